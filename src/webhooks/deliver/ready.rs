//! What sending to an endpoint takes: its judged address and its opened keys. They are made once and kept for as long as
//! the endpoint has that address and those secrets, so that a delivery costs no parsing and no decryption.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::webhooks::delivery::Destination;
use crate::webhooks::egress::{Egress, UrlFault};
use crate::webhooks::signature::Key;
use crate::webhooks::transport::Target;
use crate::webhooks::vault::{Vault, VaultError};

/// Endpoints that are kept; with more, all are forgotten and made anew.
const KEPT: usize = 4096;

/// An endpoint that can be sent to, or whose address breaks the rules.
#[derive(Debug)]
pub(in crate::webhooks) struct Ready {
    url: String,
    /// The rows of its secrets, in their order.
    secrets: Vec<i64>,
    pub(in crate::webhooks) target: Result<Target, UrlFault>,
    /// The newest first.
    pub(in crate::webhooks) keys: Vec<Key>,
}

impl Ready {
    /// Judges the address and opens the secrets.
    ///
    /// # Errors
    /// Nothing can be signed for the endpoint.
    pub(in crate::webhooks) fn make(
        destination: &Destination,
        egress: &Egress,
        vault: &Vault,
    ) -> Result<Self, VaultError> {
        let mut keys = Vec::with_capacity(destination.secrets.len());
        for secret in &destination.secrets {
            let bytes = vault.unseal(&destination.endpoint_id, &secret.sealed)?;
            keys.push(Key::from_bytes(bytes).map_err(|_| vault.wrong_key())?);
        }
        if keys.is_empty() {
            return Err(vault.wrong_key());
        }
        // It was judged when it was written, under the rules of then.
        let target = egress.check_url(&destination.url).and_then(Target::new);
        let secrets = destination.secrets.iter().map(|secret| secret.row).collect();
        Ok(Self { url: destination.url.clone(), secrets, target, keys })
    }

    fn is_for(&self, destination: &Destination) -> bool {
        self.url == destination.url
            && self.secrets.iter().copied().eq(destination.secrets.iter().map(|secret| secret.row))
    }
}

/// The endpoints that were made ready, by their rows.
#[derive(Debug, Default)]
pub(super) struct Shelf(Mutex<HashMap<i64, Arc<Ready>>>);

impl Shelf {
    /// The endpoint as it is now.
    ///
    /// # Errors
    /// Nothing can be signed for it.
    pub(super) fn find(
        &self,
        destination: &Destination,
        egress: &Egress,
        vault: &Vault,
    ) -> Result<Arc<Ready>, VaultError> {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = shelf.get(&destination.endpoint).filter(|ready| ready.is_for(destination)) {
            return Ok(Arc::clone(ready));
        }
        let ready = Arc::new(Ready::make(destination, egress, vault)?);
        if shelf.len() >= KEPT {
            shelf.clear();
        }
        shelf.insert(destination.endpoint, Arc::clone(&ready));
        Ok(ready)
    }
}
