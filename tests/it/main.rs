//! Everything the product promises, tested through its edges; one binary, a file per behaviour.

mod cli;
mod cli_sql;
mod config;
mod config_secrets;
mod store;
