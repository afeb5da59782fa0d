//! How the world reaches us and how we speak to it; each folder is the one home of its dependency.

pub(crate) mod backend;
pub(crate) mod cli;
pub(crate) mod host;
pub(crate) mod http;
pub(crate) mod jobs;
pub(crate) mod log;
pub(crate) mod telegram;
