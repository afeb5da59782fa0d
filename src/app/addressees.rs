//! The people behind the chats, as the send queue knows them: onboarding's, with the backend's cabinet as the fallback.

use std::sync::Arc;

use serde::Deserialize;

use crate::chat::{Addressee, Asked, Closed, Kind, Permit, Reason};
use crate::kernel::contract::WebNotification;
use crate::kernel::store::{StoreError, Tx};
use crate::onboarding::{Backend, broadcast, people};

/// What a message may ask for when it cannot be delivered.
#[derive(Deserialize)]
struct Fallback {
    notification: WebNotification,
}

pub(crate) struct Addressees {
    /// Who has the cabinet; nobody, if no backend is configured.
    pub(crate) backend: Option<Arc<dyn Backend>>,
}

impl Addressee for Addressees {
    fn permits(&self, tx: &Tx<'_>, asked: &Asked<'_>) -> Result<Permit, StoreError> {
        match people::permits(tx, asked.chat_id, asked.kind)? {
            Permit::Granted if asked.kind == Kind::Broadcast => broadcast::permits(tx, asked.dedup_key),
            permit => Ok(permit),
        }
    }

    fn unreachable(&self, tx: &Tx<'_>, chat_id: i64, reason: Reason) -> Result<(), StoreError> {
        people::mark_unreachable(tx, chat_id, reason)
    }

    fn fall_back(&self, tx: &Tx<'_>, fallback: &str) -> Result<(), StoreError> {
        match (serde_json::from_str::<Fallback>(fallback), &self.backend) {
            (Ok(Fallback { notification }), Some(backend)) => backend.notify(tx, &notification),
            (Ok(_), None) => Ok(()),
            (Err(_), _) => {
                tracing::error!("a message's fallback is none that this version knows; it was dropped");
                Ok(())
            }
        }
    }

    fn closed(&self, tx: &Tx<'_>, closed: &Closed<'_>) -> Result<(), StoreError> {
        match closed.kind {
            Kind::Broadcast => broadcast::record(tx, closed),
            // Nobody counts messages of the other kinds.
            _ => Ok(()),
        }
    }

    fn moved(&self, _: &Tx<'_>, from: i64, to: i64) -> Result<(), StoreError> {
        // People do not move; a group that does is nobody's row here.
        tracing::warn!(is_group = from < 0 && to < 0, "a group goes on under another id; what waited for it follows");
        Ok(())
    }
}
