//! Keys of lead intake.

use super::{duration, key, ms, secret, unset};
use crate::config::keys::Key;
use crate::config::kind::{Kind, SecretForm};

pub(super) const KEYS: &[Key] = &[
    // --- leads
    unset(
        "leads",
        "allowed_origins",
        Kind::Origins,
        "Origins of the pages that may post leads, such as `https://example.org`; unset means none.",
    ),
    key(
        "leads",
        "allow_originless",
        Kind::Switch,
        "false",
        "Whether a lead is taken from a request without an Origin header, which no browser sends from a page.",
    ),
    key(
        "leads",
        "rate_limit_per_hour",
        Kind::Integer { min: 1, max: 100 },
        "8",
        "Posts an hour of one visitor; one more is answered 429.",
    ),
    key(
        "leads",
        "min_fill_ms",
        Kind::Integer { min: 500, max: 30_000 },
        "1500",
        "Milliseconds in which a person can fill the form in; a faster one is refused.",
    ),
    key(
        "leads",
        "max_body_bytes",
        Kind::Integer { min: 4096, max: 262_144 },
        "65536",
        "Largest body of a lead, in bytes; a larger one is answered 413.",
    ),
    key(
        "leads",
        "telegram_timeout",
        duration(ms(1000), ms(15_000)),
        "5s",
        "How long the call that sends a lead's notification may take.",
    ),
    secret(
        "leads",
        "chat_id",
        SecretForm::ChatId,
        None,
        "Chat that is told of leads: a group's id is negative; the bot has to be in it.",
    ),
    key(
        "leads",
        "delivery",
        Kind::Choice(&["auto", "worker", "rpc", "off"]),
        "auto",
        "Who sends notifications: `worker` is this process, `rpc` a program that claims them over `/rest`, `off` nobody; `auto` is `worker` with telegram.token and chat_id, else `off`.",
    ),
    secret(
        "leads",
        "service_role_key",
        SecretForm::Bearer,
        Some("SUPABASE_SERVICE_ROLE_KEY"),
        "Key that opens `/rest/v1/rpc` and `/v1/leads`; while it is unset, those answer 503, the latter to who has no API key.",
    ),
    secret(
        "leads",
        "anon_key",
        SecretForm::Bearer,
        Some("SUPABASE_ANON_KEY"),
        "Key that `/rest/v1/rpc` recognises as one that may do nothing: 403, not 401.",
    ),
    key(
        "leads",
        "phone_region",
        Kind::Region,
        "RU",
        "Country whose phone numbers may be written without its code, by its two letters.",
    ),
    unset(
        "leads",
        "retention_days",
        Kind::Integer { min: 0, max: 3650 },
        "Days after which a lead is deleted; 0 keeps each until somebody deletes it, and unset means that nobody has decided.",
    ),
];
