//! What endpoints are made, tried and sent to with: the vault of their secrets, the judge of where they may be, the client.

use crate::config::WebhooksConfig;
use crate::kernel::clock::Clock;
use crate::kernel::store::Db;
use crate::webhooks::delivery::{Jitter, Policy};
use crate::webhooks::{
    DeliverSettings, Deliverer, DelivererParts, Egress, EgressPolicy, Resolver, Transport, TransportError,
    TransportSettings, Vault,
};

/// The tools; clones share them.
#[derive(Clone)]
pub(crate) struct Webhooks {
    /// Seals and opens secrets. A key that cannot be used is no reason not to start: only webhooks wait for it.
    pub(crate) vault: Vault,
    /// Judges addresses.
    pub(crate) egress: Egress,
    /// Sends, within what the judge allows.
    pub(crate) transport: Transport,
}

impl Webhooks {
    /// The tools of this section for this data directory.
    ///
    /// # Errors
    /// `webhooks.ca_file` cannot be used, or the client cannot be made.
    pub(crate) fn open(config: &WebhooksConfig, db: &Db) -> Result<Self, TransportError> {
        let egress = Egress::new(EgressPolicy {
            ports: config.ports.clone(),
            allow_networks: config.allow_networks.clone(),
            allow_insecure: config.allow_insecure,
        });
        let transport = open_transport(config, egress.clone(), db.clock().clone())?;
        Ok(Self { vault: Vault::at(db.dir()), egress, transport })
    }

    /// The one worker of a process.
    pub(super) fn open_deliverer(&self, config: &WebhooksConfig, db: &Db) -> Deliverer {
        // Zero is never, here and there.
        let policy = Policy { disable_after: config.disable_after.unwrap_or_default(), jitter: Jitter::Random };
        let (max_in_flight, per_endpoint) = (config.max_in_flight, config.per_endpoint);
        Deliverer::open(DelivererParts {
            db: db.clone(),
            transport: self.transport.clone(),
            vault: self.vault.clone(),
            settings: DeliverSettings { max_in_flight, per_endpoint, policy },
        })
    }
}

/// The client of this section.
///
/// # Errors
/// As [`Webhooks::open`].
pub(super) fn open_transport(
    config: &WebhooksConfig,
    egress: Egress,
    clock: Clock,
) -> Result<Transport, TransportError> {
    let settings = TransportSettings {
        timeout: config.timeout,
        idle_per_host: config.per_endpoint,
        ca_file: config.ca_file.clone(),
    };
    Transport::new(&settings, egress, Resolver::system(), clock)
}
