//! What becomes of domain events: the relay and whom it hands them to.

use std::sync::Arc;

use super::{Error, content_of};
use crate::communications::Communications;
use crate::config::{Config, ConfigErrors};
use crate::kernel::store::Db;
use crate::onboarding::content::Content;
use crate::outbox::consumer::Consumer;
use crate::outbox::{Analytics, Relay};
use crate::webhooks::Fanout;

/// What of a valid configuration only the assembled parts can judge.
///
/// # Errors
/// Everything that is wrong, as [`Config::load`] would say it.
pub(crate) fn check(config: &Config) -> Result<(), ConfigErrors> {
    // A shipped text that is not valid is a fault of this build, and is told when the service is put together.
    let Ok(content) = content_of(&config.bot) else { return Ok(()) };
    Communications::open(&config.communications, content).map(|_| ())
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
