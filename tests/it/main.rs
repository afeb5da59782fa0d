//! Everything the product promises, tested through its edges; one binary, a file per behaviour.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where by its panic")]

mod cli;
mod cli_deliveries;
mod cli_events;
mod cli_keys;
mod cli_leads;
mod cli_leads_smoke;
mod cli_listen;
mod cli_sql;
mod cli_webhooks;
mod cli_webhooks_sign;
mod co_writers;
mod config;
mod config_events;
mod config_leads;
mod config_secrets;
mod consumer;
mod crash;
mod crash_leads;
mod damage;
mod data_dir;
mod dev;
mod docs;
mod docs_leads;
mod docs_webhooks;
mod docs_webhooks_receiver;
mod event_walks;
mod golden;
mod hard_times;
mod harness;
mod jobs;
mod leads_fixtures;
mod leads_notify;
mod leads_privacy;
mod opening;
mod order;
mod order_local;
mod order_model;
mod pair;
mod process;
mod store;
mod store_faults;
mod store_model;
mod telegram;
mod token;
