//! Everything the product promises, tested through its edges; one binary, a file per behaviour.

mod cli;
mod cli_sql;
mod config;
mod config_secrets;
mod consumer;
mod crash;
mod harness;
mod order;
mod order_local;
mod order_model;
mod process;
mod store;
mod telegram;
