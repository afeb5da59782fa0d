//! The keys of a development installation: made once, kept in its directory, told to whoever starts it.

use std::path::Path;

use rand::RngCore;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Error, write_atomically};
use crate::config::LeadsConfig;
use crate::kernel::secret::Secret;
use crate::kernel::store::Db;
use crate::kernel::tenant::TenantId;
use crate::tenants::{self, Role};

const FILE_NAME: &str = "keys.json";

/// Secrets of the surfaces, the same for as long as the directory lives.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Keys {
    pub(crate) bot_secret: String,
    pub(crate) service_role_key: String,
    pub(crate) anon_key: String,
    pub(crate) api_key: String,
}

impl Keys {
    /// The keys of this directory; new ones if it has none.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub(crate) fn continue_in(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(FILE_NAME);
        if let Ok(text) = std::fs::read(&path)
            && let Ok(keys) = serde_json::from_slice(&text)
        {
            return Ok(keys);
        }
        let keys = Self { bot_secret: key(), service_role_key: key(), anon_key: key(), api_key: key() };
        write_atomically(&path, json!(keys).to_string().as_bytes())?;
        Ok(keys)
    }

    /// Makes the API key one of the installation's, with all of its rights. It is whatever the file has, also one that
    /// was made before keys had their form.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn admit(&self, db: &Db) -> Result<(), tenants::Error> {
        let key = Secret::new(self.api_key.clone());
        let admitted = db.write(move |tx| tenants::ensure_key(tx, &TenantId::installation(), Role::Admin, &key)).await;
        match admitted {
            Err(tenants::Error::TokenTaken) => {
                tracing::warn!("the api_key of the ready file was revoked; remove {FILE_NAME} from dev/ for new keys");
                Ok(())
            }
            Err(tenants::Error::WeakToken) => {
                tracing::warn!("the api_key in dev/{FILE_NAME} is too short to be a key, so /v1 is closed to it");
                Ok(())
            }
            admitted => admitted,
        }
    }

    /// Tells a waiting program that the server accepts connections, and how to speak to it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn write_ready_file(&self, path: &Path, url: &str, leads: &LeadsConfig) -> Result<(), Error> {
        let ready = json!({
            "url": url,
            "pid": std::process::id(),
            "bot_secret": self.bot_secret,
            "service_role_key": self.service_role_key,
            "anon_key": self.anon_key,
            "api_key": self.api_key,
            "lead_origin": leads.allowed_origins.first(),
            "lead_chat_id": leads.chat_id.as_ref().and_then(|id| id.expose().parse::<i64>().ok()),
        });
        write_atomically(path, ready.to_string().as_bytes())
    }
}

fn key() -> String {
    let mut bytes = [0_u8; 24];
    rand::rng().fill_bytes(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
