//! Secrets of endpoints at rest. They are in the file sealed with XChaCha20-Poly1305 under a key that is not in it, but
//! in a file of the data directory beside it, so that a copy of the database alone signs nothing. Each is sealed for its
//! endpoint: one that is moved to another row does not open there.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use rand::TryRngCore;
use rand::rngs::OsRng;

/// The key's file in the data directory.
pub(crate) const KEY_FILE: &str = "webhooks.key";
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
/// The longest that a key's file can be: its base64 with white space around it.
const LONGEST_FILE: u64 = 128;

/// Why a secret cannot be sealed or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum VaultError {
    /// The key's file cannot be read or made.
    #[error("{path} cannot be {verb}")]
    File {
        /// The key's file.
        path: PathBuf,
        /// What was tried.
        verb: &'static str,
        /// Why it failed.
        #[source]
        error: io::Error,
    },
    /// The key's file may be read by others.
    #[error("{path} may be read by others: it must have the rights 600")]
    Exposed {
        /// The key's file.
        path: PathBuf,
    },
    /// The key's file does not hold a key.
    #[error("{path} holds no whole key: put the right one back")]
    Damaged {
        /// The key's file.
        path: PathBuf,
    },
    /// There are sealed secrets, and no key.
    #[error(
        "{path} is missing, and the secrets of endpoints are sealed with it: put it back, or see `pillarbox webhooks new-key`"
    )]
    Missing {
        /// The key's file.
        path: PathBuf,
    },
    /// The secret was sealed with another key or for another endpoint, or is damaged.
    #[error("a secret does not open: {path} is not the key that it was sealed with, or it is damaged")]
    WrongKey {
        /// The key's file.
        path: PathBuf,
    },
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
}

/// Seals and opens secrets; clones share the key. The key's file is made when the first secret is sealed.
#[derive(Clone)]
pub(crate) struct Vault(Arc<Inner>);

struct Inner {
    path: PathBuf,
    cipher: Mutex<Option<XChaCha20Poly1305>>,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Vault").field(&self.0.path).finish()
    }
}

impl Vault {
    /// The vault of that data directory. Its key is read at its first use: one that cannot be used is told then, and holds
    /// up nothing else.
    pub(crate) fn at(data_dir: &Path) -> Self {
        Self(Arc::new(Inner { path: data_dir.join(KEY_FILE), cipher: Mutex::default() }))
    }

    /// Whether there is a key.
    ///
    /// # Errors
    /// The key's file is there and cannot be used.
    pub(crate) fn has_key(&self) -> Result<bool, VaultError> {
        Ok(self.cipher()?.is_some())
    }

    /// Makes a key in the place of one that is lost; one that is there is kept.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn make_new(&self) -> Result<(), VaultError> {
        self.make_key().map(|_| ())
    }

    /// Seals a secret for the endpoint of that id. `is_first` says that nothing is sealed yet: only then is a missing key
    /// made, for a new one would not open what is there.
    ///
    /// # Errors
    /// There is no key, or it cannot be made.
    pub(super) fn seal(&self, endpoint_id: &str, secret: &[u8], is_first: bool) -> Result<Vec<u8>, VaultError> {
        let cipher = match self.cipher()? {
            Some(cipher) => cipher,
            None if is_first => self.make_key()?,
            None => return Err(VaultError::Missing { path: self.0.path.clone() }),
        };
        let nonce = random::<NONCE_BYTES>()?;
        let payload = Payload { msg: secret, aad: endpoint_id.as_bytes() };
        let sealed = cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| self.wrong_key())?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Opens what was sealed for the endpoint of that id: the secret's bytes.
    ///
    /// # Errors
    /// There is no key, or it is not the one.
    pub(crate) fn unseal(&self, endpoint_id: &str, sealed: &[u8]) -> Result<Vec<u8>, VaultError> {
        let Some(cipher) = self.cipher()? else { return Err(VaultError::Missing { path: self.0.path.clone() }) };
        let (nonce, msg) = sealed.split_first_chunk::<NONCE_BYTES>().ok_or_else(|| self.wrong_key())?;
        let payload = Payload { msg, aad: endpoint_id.as_bytes() };
        cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| self.wrong_key())
    }

    /// The key, also if another process has made it since this one looked.
    fn cipher(&self) -> Result<Option<XChaCha20Poly1305>, VaultError> {
        let mut known = self.known();
        if known.is_none() {
            *known = read_key(&self.0.path)?;
        }
        Ok(known.clone())
    }

    /// Makes the key's file. Of several processes that do so at the same moment one wins, and all use its key.
    fn make_key(&self) -> Result<XChaCha20Poly1305, VaultError> {
        write_key(&self.0.path, &random::<KEY_BYTES>()?)?;
        self.cipher()?.ok_or_else(|| VaultError::Missing { path: self.0.path.clone() })
    }

    fn known(&self) -> MutexGuard<'_, Option<XChaCha20Poly1305>> {
        self.0.cipher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is in the file is no secret that this key has sealed.
    pub(super) fn wrong_key(&self) -> VaultError {
        VaultError::WrongKey { path: self.0.path.clone() }
    }
}

/// Bytes that nobody can guess.
pub(super) fn random<const N: usize>() -> Result<[u8; N], VaultError> {
    let mut bytes = [0; N];
    OsRng.try_fill_bytes(&mut bytes).map_err(|_| VaultError::NoRandomness)?;
    Ok(bytes)
}

fn failed(path: &Path, verb: &'static str) -> impl FnOnce(io::Error) -> VaultError {
    move |error| VaultError::File { path: path.to_path_buf(), verb, error }
}

fn read_key(path: &Path) -> Result<Option<XChaCha20Poly1305>, VaultError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, "read")(error)),
    };
    let rights = file.metadata().map_err(failed(path, "read"))?.permissions().mode();
    if rights & 0o077 != 0 {
        return Err(VaultError::Exposed { path: path.to_path_buf() });
    }
    let mut text = String::new();
    let read = file.take(LONGEST_FILE).read_to_string(&mut text);
    let key = read.ok().and_then(|_| STANDARD.decode(text.trim()).ok()).filter(|key| key.len() == KEY_BYTES);
    let cipher = key.and_then(|key| XChaCha20Poly1305::new_from_slice(&key).ok());
    cipher.map(Some).ok_or_else(|| VaultError::Damaged { path: path.to_path_buf() })
}

/// Writes the key beside its place, whole and on the disk, and only then gives it its name: a file of that name is a
/// key, or was damaged by somebody else. One that is there already stays.
fn write_key(path: &Path, key: &[u8]) -> Result<(), VaultError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed(path, "made"))?;
    let name = u64::from_le_bytes(random()?);
    let draft = path.with_extension(format!("key.{name:016x}"));
    let written = write_draft(&draft, key).and_then(|()| match std::fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    });
    let removed = std::fs::remove_file(&draft);
    written.and(removed).and_then(|()| File::open(dir)?.sync_all()).map_err(failed(path, "made"))
}

fn write_draft(draft: &Path, key: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
    writeln!(file, "{}", STANDARD.encode(key))?;
    file.sync_all()
}
