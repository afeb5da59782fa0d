//! How the world reaches this program and how it reaches the world; each folder is the one home of its dependency.

pub(crate) mod telegram;
