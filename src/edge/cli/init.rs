//! `pillarbox init`: writes the commented configuration file with a fresh secret, readable by its owner only.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, bail};
use rand::TryRngCore;
use rand::rngs::OsRng;

use super::Exit;
use crate::config::{DEFAULT_FILE, commented_file};
use crate::kernel::secret::Secret;

/// Writes the file at `path`, with `data_dir` in it if one is given, and says where it went and what comes next. An
/// existing file is left as it is.
///
/// # Errors
/// The file exists, or cannot be written.
pub(crate) fn init(path: &Path, data_dir: Option<&Path>, out: &mut impl Write) -> anyhow::Result<Exit> {
    let mut text = commented_file(&fresh_secret()?);
    if let Some(dir) = data_dir {
        text = with_data_dir(&text, dir)?;
    }
    // The mode is given at creation: at no moment can another user open it.
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = match created {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!(
            "{} exists and is left as it is; give another path with --config, or move it away first",
            path.display()
        ),
        Err(error) => {
            return Err(error).with_context(|| {
                format!("{} cannot be created; its directory must exist and be writable for this user", path.display())
            });
        }
    };
    if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
        // Half a file would be refused at the next start, and would stand in the way of the next `init`.
        let _ = std::fs::remove_file(path);
        return Err(error).with_context(|| format!("{} cannot be written and was removed again", path.display()));
    }
    // The default path is found without being named.
    let option = if path == Path::new(DEFAULT_FILE) { String::new() } else { format!(" --config {}", quoted(path)) };
    writeln!(out, "wrote {} (mode 0600, with a fresh bot.backend_secret)", path.display())?;
    writeln!(out, "for leads of a site: set leads.allowed_origins, leads.chat_id and leads.retention_days too")?;
    writeln!(
        out,
        "next: set telegram.token in it, then run `pillarbox config check{option}` and `pillarbox serve{option}`"
    )?;
    Ok(Exit::Ok)
}

/// `text` with its commented-out `store.data_dir` set to `dir`.
fn with_data_dir(text: &str, dir: &Path) -> anyhow::Result<String> {
    let plain = dir.to_str().filter(|dir| !dir.chars().any(char::is_control));
    let dir = plain.context("--data-dir has bytes that a configuration file cannot have; choose another name")?;
    // Without control characters, a string is quoted in JSON as it is in TOML.
    let setting = format!("data_dir = {}", serde_json::to_string(dir)?);
    let set = |line: &str| if line.starts_with("# data_dir = ") { setting.clone() } else { line.to_owned() };
    Ok(text.lines().map(|line| set(line) + "\n").collect())
}

/// 32 bytes of the system's randomness, in hex.
fn fresh_secret() -> anyhow::Result<Secret> {
    let mut bytes = [0_u8; 32];
    OsRng.try_fill_bytes(&mut bytes).context("the system gives no random bytes")?;
    Ok(Secret::new(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}

/// `path` as a shell takes it for one word.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let harmless = |c: char| c.is_ascii_alphanumeric() || "/._-+,@".contains(c);
    if text.chars().all(harmless) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::config::{Config, Sources};

    #[test]
    fn the_file_of_init_loads_is_private_and_has_a_fresh_secret() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut secrets = Vec::new();
        for name in ["a.toml", "b.toml"] {
            let path = dir.path().join(name);
            let mut out = Vec::new();
            assert_eq!(init(&path, None, &mut out).expect("written"), Exit::Ok);
            assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
            let out = String::from_utf8(out).expect("UTF-8");
            assert!(out.contains(&format!("pillarbox serve --config {}", path.display())), "{out}");
            let config =
                Config::load(Sources::from_parts(Some(path), [], Vec::new())).expect("what init writes is valid");
            let secret = config.bot.backend_secret.as_ref().expect("init sets it").expose().to_owned();
            assert!(secret.len() == 64 && secret.bytes().all(|byte| byte.is_ascii_hexdigit()));
            assert!(!out.contains(&secret));
            assert!(!config.warnings().iter().any(|warning| warning.key == "bot.backend_secret"));
            secrets.push(secret);
        }
        assert_ne!(secrets[0], secrets[1]);
    }

    #[test]
    fn what_has_no_default_is_not_shown_as_one() {
        let file = commented_file(&fresh_secret().expect("random bytes"));
        for line in
            ["# retention_days = 365  # no default\n", "# allowed_origins = \"https://example.org\"  # no default\n"]
        {
            assert!(file.contains(line), "{line}");
        }
    }

    #[test]
    fn init_refuses_to_overwrite_and_says_what_to_do() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("box.toml");
        std::fs::write(&path, "# mine\n").expect("written");
        let error = init(&path, None, &mut Vec::new()).expect_err("refused").to_string();
        assert!(error.contains("box.toml exists") && error.contains("--config"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "# mine\n");
        let error = init(&dir.path().join("missing/box.toml"), None, &mut Vec::new()).expect_err("refused").to_string();
        assert!(error.contains("directory must exist"), "{error}");
    }

    #[test]
    fn a_data_directory_that_was_given_is_in_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("box.toml");
        let data_dir = Path::new("/srv/a \"box\"");
        init(&path, Some(data_dir), &mut Vec::new()).expect("written");
        let config = Config::load(Sources::from_parts(Some(path), [], Vec::new())).expect("valid");
        assert_eq!(config.store.data_dir, data_dir);
    }

    #[test]
    fn a_path_with_a_space_is_one_word_for_the_shell() {
        assert_eq!(quoted(Path::new("/etc/a b/it's.toml")), r"'/etc/a b/it'\''s.toml'");
        assert_eq!(quoted(Path::new("/etc/pillarbox.toml")), "/etc/pillarbox.toml");
    }
}
