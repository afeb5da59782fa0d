//! The keys of a development installation: made once, kept in its directory, told to whoever starts it.

use std::path::Path;

use rand::RngCore;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Error, write_atomically};
use crate::config::LeadsConfig;

const FILE_NAME: &str = "keys.json";

/// Secrets of the surfaces, the same for as long as the directory lives.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Keys {
    pub(crate) bot_secret: String,
    pub(crate) service_role_key: String,
    pub(crate) anon_key: String,
    api_key: String,
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
