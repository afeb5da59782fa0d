//! Keys of the server itself: the file, the surface, the log.

use super::{GB, KB, MB, duration, key, ms};
use crate::config::keys::Key;
use crate::config::kind::Kind;

pub(super) const KEYS: &[Key] = &[
    // --- store
    key(
        "store",
        "data_dir",
        Kind::Path,
        "pillarbox-data",
        "Directory of the database, its lock and its backups; `--data-dir` overrides it.",
    ),
    key(
        "store",
        "synchronous",
        Kind::Choice(&["full", "normal"]),
        "full",
        "`full` flushes every commit to the disk; `normal` is faster, and a power cut may lose the last commits.",
    ),
    key("store", "readers", Kind::Integer { min: 1, max: 64 }, "4", "Connections that read at the same time."),
    key(
        "store",
        "queue",
        Kind::Integer { min: 1, max: 1_000_000 },
        "4096",
        "Writes that may wait; one more is answered 503.",
    ),
    key(
        "store",
        "busy_timeout",
        duration(ms(1), ms(600_000)),
        "5s",
        "How long a write waits while another program holds the database.",
    ),
    key("store", "cache", Kind::Size { min: MB, max: 16 * GB }, "32MB", "Page cache of the writer."),
    key(
        "store",
        "min_free",
        Kind::Size { min: 0, max: 1024 * GB },
        "32MB",
        "With less free space on the disk than this, intake is answered 503.",
    ),
    key(
        "store",
        "ballast",
        Kind::Size { min: 0, max: 16 * GB },
        "8MB",
        "Size of a file that is given up when the disk is full, so that work in hand can end; 0 keeps none.",
    ),
    // --- http
    key(
        "http",
        "listen",
        Kind::Address,
        "127.0.0.1:8080",
        "Address and port of the HTTP server (no TLS); `--listen` overrides it.",
    ),
    key(
        "http",
        "shutdown_timeout",
        duration(ms(0), ms(600_000)),
        "20s",
        "How long work in hand may take to end after SIGTERM or SIGINT.",
    ),
    // A full ack (two lists of 500 ids with reasons) has to fit.
    key(
        "http",
        "body_limit",
        Kind::Size { min: 512 * KB, max: 64 * MB },
        "1MB",
        "Largest request body that is read; that of a batch of events may be eight times as large, up to 64 MB.",
    ),
    key(
        "http",
        "trusted_proxies",
        Kind::Networks,
        "loopback",
        "Proxies whose `X-Forwarded-For` is believed: addresses, networks, `loopback`, `private`, or `none`.",
    ),
    // --- log
    key(
        "log",
        "level",
        Kind::Directives,
        "info",
        "Level, or a list such as `info,pillarbox::webhooks=debug`; the HTTP libraries stay at `warn` unless named, and never below `info`.",
    ),
    key(
        "log",
        "format",
        Kind::Choice(&["auto", "text", "json"]),
        "auto",
        "`auto` is text on a terminal and JSON lines otherwise.",
    ),
];
