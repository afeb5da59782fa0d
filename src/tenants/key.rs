//! API keys: 32 random bytes that only their holder has. What is kept here cannot be turned back into one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::RngCore;
use sha2::{Digest, Sha256};

use super::{Caller, Error, Role, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::id::uuid_v7;
use crate::kernel::secret::Secret;
use crate::kernel::store::{StoreError, Tx};
use crate::kernel::tenant::TenantId;

/// Characters of a description, as the schema has it.
pub(super) const LONGEST_DESCRIPTION: usize = 200;
/// Characters of a text that somebody else made. Ours have 47.
pub(super) const SHORTEST_TOKEN: usize = 32;
/// What a key begins with, so that a scanner of leaked secrets knows one when it sees it.
const PREFIX: &str = "pbx_";
/// The longest page of a list.
const LONGEST_PAGE: i64 = 200;

/// A key as it is shown after its making: without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// `key_…`.
    pub(crate) id: String,
    /// What it may be used for.
    pub(crate) role: Role,
    /// What a person called it.
    pub(crate) description: String,
    /// The end of its text.
    pub(crate) last_four: String,
    /// When it was made.
    pub(crate) created_at: UnixMs,
    /// Since when it is void.
    pub(crate) revoked_at: Option<UnixMs>,
}

/// A key that was just made; its text cannot be had again.
#[derive(Debug)]
pub(crate) struct NewKey {
    /// `key_…`.
    pub(crate) id: String,
    /// The text.
    pub(crate) token: Secret,
}

/// What the file has of a key's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hash(pub(super) [u8; 32]);

impl Hash {
    /// A key has 256 random bits, so nobody finds it by trying, and a slow hash would only slow every request.
    fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }
}

/// A text that has not been a key before.
pub(super) fn new_token() -> Secret {
    let mut bytes = [0_u8; 32];
    rand::rng().fill_bytes(&mut bytes);
    Secret::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// Whom this text speaks for; `None` for a stranger, and for a key that was revoked.
///
/// It is looked up by its hash, so how long that takes tells nothing about how close a guess was.
///
/// # Errors
/// The store's.
pub(crate) fn authenticate(tx: &Tx<'_>, token: &[u8]) -> Result<Option<Caller>, StoreError> {
    sql::caller(tx, Hash::of(token))
}

/// A new key of this tenant.
///
/// # Errors
/// [`Error::NoTenant`], [`Error::LongDescription`]; else the store's.
pub(crate) fn create_key(tx: &Tx<'_>, tenant: &TenantId, role: Role, description: &str) -> Result<NewKey, Error> {
    if description.chars().count() > LONGEST_DESCRIPTION {
        return Err(Error::LongDescription);
    }
    let token = new_token();
    let id = insert(tx, tenant, role, (description, &token))?;
    Ok(NewKey { id, token })
}

fn insert(tx: &Tx<'_>, tenant: &TenantId, role: Role, (description, token): (&str, &Secret)) -> Result<String, Error> {
    if !sql::has_tenant(tx, tenant)? {
        return Err(Error::NoTenant);
    }
    let text = token.expose();
    let key = Key {
        id: format!("key_{}", uuid_v7(tx.now())),
        role,
        description: description.to_owned(),
        last_four: text[text.len().saturating_sub(4)..].to_owned(),
        created_at: tx.now(),
        revoked_at: None,
    };
    sql::insert_key(tx, tenant, &key, Hash::of(text.as_bytes()))?;
    Ok(key.id)
}

/// A page of a tenant's keys, the oldest first, those behind the key `after`; at most `limit`, and never more than 200.
/// Revoked ones are among them.
///
/// # Errors
/// The store's.
pub(crate) fn keys(tx: &Tx<'_>, tenant: &TenantId, after: Option<&str>, limit: i64) -> Result<Vec<Key>, StoreError> {
    sql::keys(tx, tenant, after.unwrap_or_default(), limit.clamp(1, LONGEST_PAGE))
}

/// Nobody is let in by this key from here on. Since when that is so: a second time changes nothing.
///
/// # Errors
/// [`Error::NoKey`], also for another tenant's; else the store's.
pub(crate) fn revoke_key(tx: &Tx<'_>, tenant: &TenantId, key_id: &str) -> Result<UnixMs, Error> {
    sql::revoke_key(tx, tenant, key_id)?.ok_or(Error::NoKey)
}

/// Makes `token` a key of this tenant and role, unless it is; for `dev`, which keeps its key in a file of its own.
///
/// # Errors
/// [`Error::WeakToken`], [`Error::TokenTaken`], [`Error::NoTenant`]; else the store's.
pub(crate) fn ensure_key(tx: &Tx<'_>, tenant: &TenantId, role: Role, token: &Secret) -> Result<(), Error> {
    let text = token.expose();
    if text.len() < SHORTEST_TOKEN || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::WeakToken);
    }
    let hash = Hash::of(text.as_bytes());
    match sql::caller(tx, hash)? {
        Some(caller) if caller.tenant == *tenant && caller.role == role => Ok(()),
        Some(_) => Err(Error::TokenTaken),
        None if sql::has_hash(tx, hash)? => Err(Error::TokenTaken),
        None => insert(tx, tenant, role, ("", token)).map(|_| ()),
    }
}
