//! Tenants and their API keys: whose something is, and who may do what with it.
//!
//! # What
//! A tenant is a name. What is its own is kept apart from everybody else's by whoever keeps it (`outbox`, `webhooks`);
//! here are the tenants themselves ([`create_tenant`], [`tenants()`]) and the keys that speak for them: made by
//! [`create_key`], shown once, known again by [`authenticate`], listed without their text, ended by [`revoke_key`].
//!
//! # States
//! A key is valid from its making until it is revoked, and then never again. A tenant is never removed.
//!
//! # Guarantees
//! - The text of a key is in its first answer and nowhere else: the file has its SHA-256 and its last four characters:
//!   `src/tenants/tests/keys.rs::the_text_of_a_key_is_nowhere_in_the_file`.
//! - A revoked key is a stranger from the revocation's commit on:
//!   `src/tenants/tests/keys.rs::a_revoked_key_is_a_stranger_at_once_and_for_ever`.
//! - A tenant sees and revokes its own keys only, and another's look like none:
//!   `src/tenants/tests/keys.rs::keys_of_another_tenant_look_like_none`.
//! - A role has its rights and no others: `src/tenants/role.rs::a_role_has_its_rights_and_no_others`.
//! - What every request repeats costs the same among any number of keys:
//!   `src/tenants/tests/plan.rs::every_repeated_statement_uses_the_index_made_for_it`.
//!
//! # Windows
//! - The process dies after the commit of a new key and before its text was shown: the key is there and nobody has it.
//!   It is in the list under its last four, and is revoked like any other
//!   (`src/tenants/tests/keys.rs::a_key_that_nobody_saw_can_be_found_and_revoked`).
//!
//! # Not here
//! No keys that expire by themselves, no rights below a role, no removal of a tenant. How a key travels is `edge/http`'s.

mod key;
mod role;
mod sql;
mod tenant;
#[cfg(test)]
mod tests;

pub(crate) use key::{Key, authenticate, create_key, ensure_key, keys, revoke_key};
pub(crate) use role::{Caller, Right, Role};
pub(crate) use tenant::{Tenant, create_tenant, exists, tenants};

use crate::kernel::store::StoreError;

/// What can be wrong with a request to the tenants.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// There is no such tenant.
    #[error("there is no such tenant")]
    NoTenant,
    /// The name is taken.
    #[error("there is a tenant of that name")]
    TenantExists,
    /// This tenant has no such key.
    #[error("there is no such key")]
    NoKey,
    /// The description is too long.
    #[error("a description has at most {} characters", key::LONGEST_DESCRIPTION)]
    LongDescription,
    /// A text that is to be a key could be guessed, or could not be sent in a header.
    #[error("a key has at least {} visible ASCII characters", key::SHORTEST_TOKEN)]
    WeakToken,
    /// The text is the key of something else: of another tenant or role, or it was revoked.
    #[error("that key is in use for another tenant or role, or was revoked")]
    TokenTaken,
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}
