//! What becomes of domain events: the relay and whom it hands them to.

use std::sync::Arc;

use super::webhooks::open_transport;
use super::{Error, content_of};
use crate::communications::Communications;
use crate::config::{Config, ConfigErrors};
use crate::kernel::clock::Clock;
use crate::kernel::store::Db;
use crate::onboarding::content::Content;
use crate::outbox::consumer::Consumer;
use crate::outbox::{Analytics, Relay};
use crate::webhooks::{Egress, EgressPolicy, Fanout};

/// What of a valid configuration only the assembled parts can judge.
///
/// # Errors
/// Everything that is wrong, as [`Config::load`] would say it.
pub(crate) fn check(config: &Config) -> Result<(), ConfigErrors> {
    let mut problems = Vec::new();
    // A shipped text that is not valid is a fault of this build, and is told when the service is put together.
    if let Ok(content) = content_of(&config.bot)
        && let Err(errors) = Communications::open(&config.communications, content)
    {
        problems.extend_from_slice(errors.problems());
    }
    if config.webhooks.ca_file.is_some()
        && let Err(error) = open_transport(&config.webhooks, Egress::new(EgressPolicy::default()), Clock::system())
    {
        let advice = "write the path of a file that this user can read and that has certificates in PEM";
        problems.push(config.problem("webhooks.ca_file", error.to_string(), advice));
    }
    if problems.is_empty() { Ok(()) } else { Err(ConfigErrors::new(problems)) }
}

/// The relay to every consumer that this configuration asks for.
///
/// # Errors
/// [`Error::Config`], as [`check`].
pub(super) fn open_relay(config: &Config, db: &Db, content: &Arc<Content>) -> Result<Relay, Error> {
    let mut consumers: Vec<Box<dyn Consumer>> = vec![Box::new(Fanout::default())];
    if let Some(communications) = Communications::open(&config.communications, Arc::clone(content))? {
        consumers.push(Box::new(communications));
    }
    if let Some(dir) = &config.analytics.dir {
        consumers.push(Box::new(Analytics::new(dir.clone(), db.clock().clone())));
    }
    Ok(Relay::new(db.clone(), consumers))
}
