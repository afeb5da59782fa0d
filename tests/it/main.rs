//! Behaviour through the edges: one binary, a file per behaviour.

mod config;
mod config_secrets;
