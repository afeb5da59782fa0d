//! Secrets at rest: what happens to the key's file.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::super::vault::{KEY_FILE, Vault, VaultError};

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

fn key(dir: &Path) -> std::path::PathBuf {
    dir.join(KEY_FILE)
}

#[test]
fn the_key_is_made_with_the_first_secret_and_for_its_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let vault = Vault::at(dir.path());
    assert!(!key(dir.path()).exists());
    let sealed = vault.seal("ep_1", SECRET, true).unwrap();
    let rights = std::fs::metadata(key(dir.path())).unwrap().permissions().mode();
    assert_eq!(rights & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
    assert!(!sealed.windows(8).any(|part| SECRET.windows(8).any(|secret| secret == part)));
    assert_ne!(sealed, vault.seal("ep_1", SECRET, false).unwrap(), "never twice the same");
    let other = Vault::at(dir.path());
    assert_eq!(other.unseal("ep_1", &sealed).unwrap(), SECRET);
}

#[test]
fn a_secret_of_another_endpoint_does_not_open_nor_one_that_was_changed() {
    let dir = tempfile::tempdir().unwrap();
    let vault = Vault::at(dir.path());
    let sealed = vault.seal("ep_1", SECRET, true).unwrap();
    assert!(matches!(vault.unseal("ep_2", &sealed), Err(VaultError::WrongKey { .. })));
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        assert!(vault.unseal("ep_1", &changed).is_err(), "byte {at}");
        assert!(vault.unseal("ep_1", &sealed[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn another_key_opens_nothing_and_says_so() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sealed = Vault::at(dir.path()).seal("ep_1", SECRET, true).unwrap();
    Vault::at(other.path()).seal("ep_1", SECRET, true).unwrap();
    std::fs::copy(key(other.path()), key(dir.path())).unwrap();
    let wrong = Vault::at(dir.path()).unseal("ep_1", &sealed);
    assert!(matches!(wrong, Err(VaultError::WrongKey { .. })), "{wrong:?}");
}

#[test]
fn a_key_that_is_cut_off_or_no_key_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    Vault::at(dir.path()).seal("ep_1", SECRET, true).unwrap();
    let whole = std::fs::read(key(dir.path())).unwrap();
    let long = vec![b'A'; 100_000];
    for bad in [&[][..], &whole[..10], &whole[..40], b"\xff\xfe not text", &[b'A'; 1000], &long] {
        std::fs::write(key(dir.path()), bad).unwrap();
        let refused = Vault::at(dir.path()).has_key();
        assert!(matches!(refused, Err(VaultError::Damaged { .. })), "{refused:?}");
        assert_eq!(std::fs::read(key(dir.path())).unwrap(), bad);
    }
    std::fs::write(key(dir.path()), [b" \n", &whole[..], b"\r\n"].concat()).unwrap();
    assert!(Vault::at(dir.path()).has_key().is_ok(), "white space around it is no harm");
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    Vault::at(dir.path()).seal("ep_1", SECRET, true).unwrap();
    for rights in [0o644, 0o640, 0o604, 0o620] {
        std::fs::set_permissions(key(dir.path()), std::fs::Permissions::from_mode(rights)).unwrap();
        assert!(matches!(Vault::at(dir.path()).has_key(), Err(VaultError::Exposed { .. })), "{rights:o}");
    }
    std::fs::set_permissions(key(dir.path()), std::fs::Permissions::from_mode(0o400)).unwrap();
    assert!(Vault::at(dir.path()).has_key().is_ok());
}

#[test]
fn a_key_that_is_lost_is_not_replaced_while_something_is_sealed_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let sealed = Vault::at(dir.path()).seal("ep_1", SECRET, true).unwrap();
    std::fs::rename(key(dir.path()), dir.path().join("elsewhere")).unwrap();
    let vault = Vault::at(dir.path());
    assert!(matches!(vault.seal("ep_2", SECRET, false), Err(VaultError::Missing { .. })));
    assert!(matches!(vault.unseal("ep_1", &sealed), Err(VaultError::Missing { .. })));
    assert!(!key(dir.path()).exists());
    std::fs::rename(dir.path().join("elsewhere"), key(dir.path())).unwrap();
    assert_eq!(vault.unseal("ep_1", &sealed).unwrap(), SECRET, "and is found once it is back");
}

#[test]
fn of_many_that_make_the_key_at_once_all_use_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let vaults: Vec<Vault> = (0..8).map(|_| Vault::at(dir.path())).collect();
    let sealed: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let seal = |vault: &Vault| vault.seal("ep_1", SECRET, true).unwrap();
        let threads: Vec<_> = vaults.iter().map(|vault| scope.spawn(move || seal(vault))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let reader = Vault::at(dir.path());
    for one in sealed {
        assert_eq!(reader.unseal("ep_1", &one).unwrap(), SECRET);
    }
}

#[test]
fn nothing_of_the_key_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let vault = Vault::at(dir.path());
    vault.seal("ep_1", SECRET, true).unwrap();
    let text = std::fs::read_to_string(key(dir.path())).unwrap();
    assert!(!format!("{vault:?}").contains(text.trim()));
}
