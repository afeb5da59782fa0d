//! Secrets of endpoints: made or brought, shown once, and replaced with a time during which the old one signs too.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::change::find_row;
use crate::kernel::clock::UnixMs;
use crate::kernel::secret::Secret;
use crate::kernel::store::Tx;
use crate::kernel::tenant::TenantId;
use crate::webhooks::delivery::SealedSecret;
use crate::webhooks::vault::{Vault, VaultError, random};
use crate::webhooks::{Error, sql};

const PREFIX: &str = "whsec_";
/// Bytes of a secret that is made here.
const MADE_BYTES: usize = 32;
/// Bytes that a secret may have (Standard Webhooks, "Signature scheme").
const FIT_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// How long a replaced secret goes on signing, if nobody says otherwise: a day, to roll the new one out.
const DEFAULT_OVERLAP_S: i64 = 24 * 60 * 60;
/// The longest that it may.
const LONGEST_OVERLAP_S: i64 = 7 * 24 * 60 * 60;
/// Secrets that sign at once: each is a signature in every request's header.
const MOST_SIGNING: i64 = 10;

/// How to replace a secret.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rotation {
    /// For how many seconds the old one signs too; `None` is a day.
    pub(crate) overlap_seconds: Option<i64>,
    /// A secret of the owner's; `None`: one is made.
    pub(crate) secret: Option<Secret>,
}

/// A secret that was replaced.
#[derive(Clone, Debug)]
pub(crate) struct Rotated {
    /// The new one, to be shown now and never again.
    pub(crate) secret: Secret,
    /// Until when the old one signs too; `None` if it has stopped.
    pub(crate) previous_valid_until: Option<UnixMs>,
}

/// A secret's bytes with how it is written.
pub(super) struct Written {
    bytes: Vec<u8>,
    text: String,
}

impl Written {
    /// The owner's secret, or a new one.
    pub(super) fn new(own: Option<&Secret>) -> Result<Self, Error> {
        let bytes = match own {
            Some(own) => parse(own.expose())?,
            None => random::<MADE_BYTES>()?.to_vec(),
        };
        let text = format!("{PREFIX}{}", STANDARD.encode(&bytes));
        Ok(Self { bytes, text })
    }

    /// How it is shown.
    pub(super) fn secret(&self) -> Secret {
        Secret::new(self.text.as_str())
    }

    fn last_four(&self) -> &str {
        // All of it is ASCII.
        &self.text[self.text.len() - 4..]
    }
}

fn parse(text: &str) -> Result<Vec<u8>, Error> {
    let unfit = Error::Invalid { field: "secret", what: "must be whsec_ and the base64 of 24 to 64 bytes" };
    let bytes = STANDARD.decode(text.strip_prefix(PREFIX).unwrap_or(text)).ok();
    bytes.filter(|bytes| FIT_BYTES.contains(&bytes.len())).ok_or(unfit)
}

/// Stores a secret as the one that signs for an endpoint from now on.
pub(super) fn store(
    tx: &Tx<'_>,
    endpoint: i64,
    endpoint_id: &str,
    written: &Written,
    vault: &Vault,
) -> Result<(), Error> {
    let is_first = !sql::secrets::is_any(tx)?;
    let sealed = vault.seal(endpoint_id, &written.bytes, is_first)?;
    sql::secrets::insert(tx, endpoint, &sealed, written.last_four())?;
    Ok(())
}

/// Replaces an endpoint's secret. The one that signed until now goes on for the overlap, which is counted from now, and
/// earlier ones for theirs; of more than ten the oldest stop. All of them stop without an overlap, and if one of them does
/// not open any more.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Invalid`], the vault's, the store's.
pub(crate) fn rotate_secret(
    tx: &Tx<'_>,
    tenant: &TenantId,
    id: &str,
    rotation: &Rotation,
    vault: &Vault,
) -> Result<Rotated, Error> {
    let endpoint = find_row(tx, tenant, id)?;
    let overlap_s = rotation.overlap_seconds.unwrap_or(DEFAULT_OVERLAP_S);
    if !(0..=LONGEST_OVERLAP_S).contains(&overlap_s) {
        return Err(Error::Invalid { field: "overlap_seconds", what: "must be 0 to 604800" });
    }
    let written = Written::new(rotation.secret.as_ref())?;
    let until = tx.now().saturating_add(overlap_s * 1000);
    let is_lost = |secret: &SealedSecret| matches!(vault.unseal(id, &secret.sealed), Err(VaultError::WrongKey { .. }));
    let has_lost = sql::secrets::signing(tx, endpoint)?.iter().any(is_lost);
    if has_lost || overlap_s == 0 {
        // What no key opens signs nothing, and would keep the new one from it; and without an overlap whoever replaces a
        // secret that has leaked, perhaps not the last one, means all of them.
        sql::secrets::delete_of(tx, endpoint)?;
    } else {
        sql::secrets::retire_current(tx, endpoint, until)?;
        sql::secrets::delete_expired_of(tx, endpoint)?;
    }
    store(tx, endpoint, id, &written, vault)?;
    sql::secrets::delete_all_but_newest(tx, endpoint, MOST_SIGNING)?;
    Ok(Rotated { secret: written.secret(), previous_valid_until: (overlap_s > 0 && !has_lost).then_some(until) })
}

#[cfg(test)]
mod tests {
    use super::{STANDARD, Written, parse};
    use crate::kernel::secret::Secret;
    use base64::Engine;

    #[test]
    fn a_secret_is_whsec_and_the_base64_of_24_to_64_bytes() {
        for bytes in [24_usize, 25, 32, 64] {
            let text = STANDARD.encode(vec![7; bytes]);
            assert_eq!(parse(&format!("whsec_{text}")).unwrap(), vec![7; bytes]);
            let written = Written::new(Some(&Secret::new(text.clone()))).unwrap();
            assert_eq!(written.text, format!("whsec_{text}"), "one without the prefix gets it");
            assert!(text.ends_with(written.last_four()));
        }
        let unpadded = STANDARD.encode([7; 25]).trim_end_matches('=').to_owned();
        let spaced = format!(" {}", STANDARD.encode([7; 24]));
        for bad in [
            "",
            "whsec_",
            "secret",
            "whsk_AAAA",
            &STANDARD.encode([7; 23]),
            &STANDARD.encode([7; 65]),
            &unpadded,
            &spaced,
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn made_secrets_have_32_bytes_and_are_never_the_same() {
        let (one, other) = (Written::new(None).unwrap(), Written::new(None).unwrap());
        assert_eq!(parse(&one.text).unwrap().len(), 32);
        assert_ne!(one.text, other.text);
    }
}
