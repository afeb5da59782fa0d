//! Holds the tree to what `docs/architecture.md` claims of it: five checks, each a rule that a reader relies on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn main() {
    let tree = Tree::load();
    let faults: Vec<String> = [
        arrows_point_one_way(&tree),
        dependencies_have_one_home(&tree),
        tables_have_one_owner(&tree),
        files_are_small_and_say_what_they_are_for(&tree),
        promises_name_their_tests(&tree),
    ]
    .concat();
    for fault in &faults {
        eprintln!("{fault}");
    }
    assert!(faults.is_empty(), "{} faults in the tree", faults.len());
    println!("tidy: {} files, 5 checks", tree.files.len());
    println!("5 passed, 0 failed");
}

struct Tree {
    files: Vec<File>,
}

struct File {
    /// From the top, e.g. `src/backend/sql/mod.rs`.
    path: String,
    text: String,
}

impl Tree {
    fn load() -> Self {
        let top = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        for folder in ["src", "tests"] {
            collect(top, &top.join(folder), &mut files);
        }
        files.sort_by(|a: &File, b: &File| a.path.cmp(&b.path));
        Self { files }
    }

    fn sources(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.starts_with("src/"))
    }
}

fn collect(top: &Path, folder: &Path, files: &mut Vec<File>) {
    let entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    for path in entries {
        if path.is_dir() {
            collect(top, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(top).expect("below the top").to_string_lossy().into_owned();
            files.push(File { path: name, text: std::fs::read_to_string(&path).expect("UTF-8") });
        }
    }
}

impl File {
    /// `backend` for `src/backend/sql/mod.rs`, `lib` for `src/lib.rs`. The command line is a house of its own: it knows
    /// `dev`, which knows the rest of the edge.
    fn house(&self) -> &str {
        if self.path.starts_with("src/edge/cli/") {
            return "edge/cli";
        }
        let below = self.path.strip_prefix("src/").unwrap_or(&self.path);
        below.split('/').next().unwrap_or(below).trim_end_matches(".rs")
    }

    fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.contains("/tests/") || self.path.contains("tests.rs")
    }

    /// The code before its own tests, without comments.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let own = self.text.split("#[cfg(test)]\nmod ").next().unwrap_or(&self.text);
        own.lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line))
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    fn fault(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// main → edge/cli → dev → edge → app → subsystems → kernel; among subsystems only the arrows named here.
fn arrows_point_one_way(tree: &Tree) -> Vec<String> {
    let rank = |house: &str| match house {
        "kernel" => 0,
        "config" => 1,
        "backend" | "outbox" | "chat" | "onboarding" | "leads" | "tenants" | "webhooks" | "communications" => 2,
        "app" => 3,
        "edge" => 4,
        "dev" => 5,
        "edge/cli" => 6,
        _ => 7,
    };
    let allowed_among_subsystems = [
        ("onboarding", "chat"),
        ("leads", "chat"),
        ("webhooks", "outbox"),
        ("communications", "outbox"),
        ("communications", "chat"),
        ("communications", "onboarding"),
    ];
    let mut faults = Vec::new();
    for file in tree.sources().filter(|file| !file.is_test()) {
        let from = file.house();
        for (line, code) in file.code() {
            for to in code.split("crate::").skip(1) {
                let to = match to.strip_prefix("edge::").map(names) {
                    Some(below) if below.contains(&"cli") => "edge/cli",
                    _ => names(to).first().copied().unwrap_or_default(),
                };
                let is_up = rank(to) > rank(from);
                let is_across = rank(from) == 2 && rank(to) == 2 && from != to;
                if to.chars().next().is_some_and(char::is_lowercase)
                    && (is_up || is_across && !allowed_among_subsystems.contains(&(from, to)))
                {
                    faults.push(file.fault(line, &format!("{from} must not know {to}")));
                }
            }
        }
    }
    faults
}

/// The names with which a path goes on: one, or those of a group.
fn names(path: &str) -> Vec<&str> {
    let group = path.strip_prefix('{').map(|rest| rest.split('}').next().unwrap_or(rest));
    let names = group.unwrap_or(path).split(|c: char| !c.is_alphanumeric() && c != '_');
    names.filter(|name| !name.is_empty()).take(if group.is_some() { usize::MAX } else { 1 }).collect()
}

/// Each dependency is named in one place, so that replacing it is one folder's work.
fn dependencies_have_one_home(tree: &Tree) -> Vec<String> {
    let homes: [(&str, &[&str]); 21] = [
        ("axum", &["src/edge/http/", "src/dev/"]),
        ("teloxide", &["src/edge/telegram/"]),
        ("reqwest", &["src/edge/telegram/", "src/edge/backend/", "src/dev/"]),
        ("hyper", &["src/edge/http/", "src/webhooks/transport/"]),
        ("hyper_util", &["src/edge/http/", "src/webhooks/transport/"]),
        ("http_body_util", &["src/webhooks/transport/"]),
        ("tower_service", &["src/webhooks/transport/"]),
        ("tokio_rustls", &["src/webhooks/transport/"]),
        ("webpki_roots", &["src/webhooks/transport/"]),
        ("standardwebhooks", &["src/webhooks/signature.rs"]),
        ("chacha20poly1305", &["src/webhooks/vault.rs"]),
        ("httpdate", &["src/webhooks/"]),
        ("utoipa", &["src/edge/http/"]),
        ("cron", &["src/edge/jobs/"]),
        ("clap", &["src/edge/cli/"]),
        ("csv", &["src/edge/cli/leads/", "src/edge/cli/members/", "src/edge/cli/broadcast/"]),
        ("indicatif", &["src/edge/cli/"]),
        ("phonenumber", &["src/leads/intake/", "src/config/"]),
        ("rusqlite", &["src/kernel/store/", "/sql.rs", "/sql/"]),
        ("minijinja", &["src/onboarding/content/"]),
        ("toml", &["src/config/", "src/onboarding/content/"]),
    ];
    let mut faults = Vec::new();
    for file in tree.sources().filter(|file| !file.is_test()) {
        for (line, code) in file.code() {
            for (name, places) in homes {
                let names_it = code.contains(&format!("use {name}::")) || code.contains(&format!(" {name}::"));
                if names_it && !places.iter().any(|place| file.path.contains(place)) {
                    faults.push(file.fault(line, &format!("{name} is at home in {}", places.join(", "))));
                }
            }
        }
    }
    faults
}

/// Every table's SQL is in its owner's folder.
fn tables_have_one_owner(tree: &Tree) -> Vec<String> {
    let owners = [
        ("store_probe", "src/kernel/store/"),
        ("members", "src/backend/"),
        ("web_notifications", "src/backend/"),
        ("bot_event_outbox", "src/backend/"),
        ("bot_event_lanes", "src/backend/"),
        ("bot_processed_events", "src/onboarding/"),
        ("bot_users", "src/onboarding/"),
        ("backend_calls", "src/onboarding/calls/"),
        ("telegram_connect_links", "src/backend/"),
        ("member_imports", "src/backend/"),
        ("bot_bind_prompts", "src/onboarding/"),
        ("content_blocks", "src/onboarding/"),
        ("bot_reminders_sent", "src/onboarding/"),
        ("bot_digests_sent", "src/onboarding/"),
        ("broadcasts", "src/onboarding/"),
        ("broadcast_recipients", "src/onboarding/"),
        ("telegram_updates", "src/chat/inbox/"),
        ("telegram_update_lanes", "src/chat/inbox/"),
        ("telegram_intake", "src/chat/inbox/"),
        ("outbox_events", "src/outbox/"),
        ("telegram_messages", "src/chat/"),
        ("telegram_chat_lanes", "src/chat/"),
        ("telegram_pauses", "src/chat/"),
        ("broker_leads", "src/leads/"),
        ("broker_lead_events", "src/leads/"),
        ("broker_lead_rate_limits", "src/leads/"),
        ("idempotency_keys", "src/outbox/"),
        ("event_types", "src/outbox/"),
        ("tenants", "src/tenants/"),
        ("api_keys", "src/tenants/"),
        ("webhook_audience", "src/webhooks/"),
        ("webhook_endpoints", "src/webhooks/"),
        ("webhook_secrets", "src/webhooks/"),
        ("webhook_messages", "src/webhooks/"),
        ("webhook_deliveries", "src/webhooks/"),
        ("webhook_attempts", "src/webhooks/"),
        ("webhook_tests", "src/webhooks/"),
        ("job_runs", "src/edge/jobs/"),
        ("job_requests", "src/edge/jobs/"),
    ];
    let mut faults = Vec::new();
    for file in tree.sources().filter(|file| !file.is_test()) {
        for (line, code) in file.code() {
            let names = |table: &str| {
                ["FROM ", "INTO ", "UPDATE ", "JOIN "].iter().any(|verb| {
                    code.split(&format!("{verb}{table}"))
                        .nth(1)
                        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
                })
            };
            for (table, owner) in owners {
                if !file.path.starts_with(owner) && names(table) {
                    faults.push(file.fault(line, &format!("{table} belongs to {owner}")));
                }
            }
        }
    }
    faults
}

fn files_are_small_and_say_what_they_are_for(tree: &Tree) -> Vec<String> {
    let banned = [
        "utils",
        "helpers",
        "common",
        "misc",
        "manager",
        "service",
        "processor",
        "handler",
        "handlers",
        "types",
        "models",
        "traits",
        "prelude",
    ];
    let mut faults = Vec::new();
    for file in &tree.files {
        let lines = file.text.lines().count();
        if lines > 400 {
            faults.push(file.fault(lines, "more than 400 lines: split it by what its parts know"));
        }
        if !file.text.starts_with("//!") {
            faults.push(file.fault(1, "does not open with what it is for (`//!`)"));
        }
        let stem = file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        if banned.contains(&stem) {
            faults.push(file.fault(1, "a name that fits anything: what concept is missing?"));
        }
        if !file.is_test() && !file.path.starts_with("src/leads/") {
            for (line, code) in file.code().filter(|(_, code)| code.chars().any(|c| ('а'..='я').contains(&c))) {
                faults.push(
                    file.fault(
                        line,
                        &format!("a text for people outside onboarding/content and leads: {}", code.trim()),
                    ),
                );
            }
        }
    }
    faults
}

/// A guarantee or a window in a module's doc that names a test names one that exists.
fn promises_name_their_tests(tree: &Tree) -> Vec<String> {
    let known: BTreeSet<&str> = tree.files.iter().map(|file| file.path.as_str()).collect();
    let mut faults = Vec::new();
    for file in tree.sources() {
        for (at, line) in file.text.lines().enumerate().filter(|(_, line)| line.starts_with("//!")) {
            for named in line
                .split('`')
                .skip(1)
                .step_by(2)
                .filter(|named| named.starts_with("tests/") || named.starts_with("src/"))
            {
                let (path, test) = named.split_once("::").unwrap_or((named, ""));
                let holds = test.is_empty()
                    || tree.files.iter().any(|f| f.path == path && f.text.contains(&format!("fn {test}(")));
                let is_folder = tree.files.iter().any(|f| f.path.starts_with(&format!("{path}/")));
                if !(known.contains(path) || is_folder) || !holds {
                    faults.push(file.fault(at + 1, &format!("there is no {named}")));
                }
            }
        }
    }
    faults
}
