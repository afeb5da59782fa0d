//! Everything the product promises, tested through its edges; one binary, a file per behaviour.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where by its panic")]

mod cli;
mod cli_sql;
mod config;
mod config_secrets;
mod damage;
mod data_dir;
mod opening;
mod store;
mod store_faults;
mod store_model;
