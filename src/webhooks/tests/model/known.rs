//! What the model knows of endpoints and deliveries, and what it says becomes of them. Written from the rules, not from
//! the code.

use super::super::*;

pub(super) const PAUSES: [i64; 8] =
    [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 20 * HOUR, 24 * HOUR];

/// How an attempt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Ok,
    Fails,
    Gone,
    Asks { seconds: u64 },
}

impl End {
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Ok => answered(200),
            Self::Fails => timed_out(),
            Self::Gone => answered(410),
            Self::Asks { seconds } => asks_for(503, Duration::from_secs(seconds)),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) row: i64,
    pub(super) id: String,
    pub(super) status: &'static str,
    pub(super) reason: Option<&'static str>,
    pub(super) held_until: Option<i64>,
    pub(super) failing_since: Option<i64>,
    pub(super) is_warned: bool,
    pub(super) is_deleted: bool,
    /// Until when each secret signs, the newest first.
    pub(super) secrets: Vec<Option<i64>>,
    pub(super) told: Vec<&'static str>,
}

impl Place {
    pub(super) fn is_live(&self) -> bool {
        !self.is_deleted && self.status != "disabled"
    }

    /// Until when it is left alone; nobody is for over a day.
    pub(super) fn held(&self, now: i64) -> Option<i64> {
        self.held_until.filter(|until| *until <= now + DAY)
    }

    pub(super) fn signing(&self, now: i64) -> usize {
        self.secrets.iter().filter(|until| until.is_none_or(|until| until > now)).count().min(10)
    }

    /// As the row is compared.
    pub(super) fn shown(&self) -> String {
        let at = |at: Option<i64>| at.map_or("-".to_owned(), |at| at.to_string());
        let Self { row, status, reason, is_warned, .. } = self;
        let (held, since) = (at(self.held_until), at(self.failing_since));
        format!("{row} {status} {} {held} {since} {}", reason.unwrap_or("-"), i64::from(*is_warned))
    }

    /// What was published of it.
    pub(super) fn told(&self) -> impl Iterator<Item = String> {
        self.told.iter().map(|told| format!("{} {told}", self.id))
    }

    pub(super) fn disable(&mut self, reason: &'static str) {
        (self.status, self.reason) = ("disabled", Some(reason));
        self.told.push("webhook.endpoint_disabled");
    }

    /// A failure that is the endpoint's; until when it wants to be left alone.
    fn fail(&mut self, now: i64, end: End) -> Option<i64> {
        if !self.is_live() {
            return None;
        }
        if end == End::Gone {
            self.disable("gone");
            return None;
        }
        let mut until = None;
        if let End::Asks { seconds } = end {
            let asked = now + i64::try_from(seconds).unwrap().saturating_mul(SECOND).min(DAY);
            until = Some(self.held(now).map_or(asked, |known| known.max(asked)));
            self.held_until = until;
        }
        let known = self.failing_since.filter(|since| *since <= now);
        let since = known.unwrap_or(now);
        (self.failing_since, self.is_warned) = (Some(since), known.is_some() && self.is_warned);
        if now - since >= DAY && !self.is_warned {
            self.is_warned = true;
            self.told.push("webhook.endpoint_failing");
        }
        if now - since >= 5 * DAY {
            self.disable("failing");
        }
        until
    }
}

#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) place: usize,
    pub(super) status: &'static str,
    pub(super) attempts: i64,
    pub(super) step: i64,
    pub(super) interruptions: i64,
    pub(super) next: Option<i64>,
    pub(super) asked_at: Option<i64>,
    pub(super) resumes: Option<&'static str>,
    /// Until when, and of which start of the program.
    pub(super) lease: Option<(i64, u32)>,
    pub(super) is_purged: bool,
    pub(super) journal: Vec<String>,
    pub(super) was_delivered: bool,
}

impl Known {
    pub(super) fn new(place: usize, status: &'static str, next: Option<i64>) -> Self {
        Self {
            place,
            status,
            attempts: 0,
            step: 0,
            interruptions: 0,
            next,
            asked_at: None,
            resumes: None,
            lease: None,
            is_purged: false,
            journal: vec![],
            was_delivered: false,
        }
    }

    pub(super) fn begin(&mut self, now: i64, boot: u32, is_manual: bool) {
        assert_ne!(self.status, "sending", "two attempts at a time");
        if is_manual {
            (self.resumes, self.asked_at) = (Some(self.status), None);
        }
        self.status = "sending";
        self.attempts += 1;
        self.lease = Some((now + LEASE_MS, boot));
    }

    fn note(&mut self, what: &str) {
        let trigger = if self.resumes.is_some() { "manual" } else { "schedule" };
        self.journal.push(format!("{} {trigger} {what}", self.attempts));
    }

    fn rest(&mut self, status: &'static str, next: Option<i64>) {
        (self.status, self.next, self.lease, self.resumes) = (status, next, None, None);
        self.was_delivered |= status == "delivered";
    }

    fn step_on(&mut self, now: i64, not_before: Option<i64>) {
        self.step += 1;
        match PAUSES.get(usize::try_from(self.step - 1).unwrap()) {
            Some(pause) => self.rest("pending", Some((now + pause).max(not_before.unwrap_or(0)))),
            None => self.rest("failed", None),
        }
    }

    pub(super) fn end(&mut self, now: i64, end: End, place: &mut Place) {
        self.note(match end {
            End::Ok => "ok 200",
            End::Fails => "timeout -",
            End::Gone => "http_4xx 410",
            End::Asks { .. } => "http_5xx 503",
        });
        self.interruptions = 0;
        if end == End::Ok {
            (place.failing_since, place.is_warned) = (None, false);
            return self.rest("delivered", None);
        }
        let not_before = place.fail(now, end);
        match self.resumes {
            Some("pending") | None if end == End::Gone => {
                self.step += 1;
                self.rest("failed", None);
            }
            Some(before) => self.rest(before, self.next.filter(|_| before == "pending")),
            None => self.step_on(now, not_before),
        }
    }

    pub(super) fn is_cut_off(&self, now: i64, boot: u32) -> bool {
        self.lease.is_some_and(|(until, of)| of != boot || until <= now || until > now + HOUR)
    }

    pub(super) fn cut_off(&mut self, now: i64) {
        self.note("interrupted -");
        self.interruptions += 1;
        let is_too_many = self.interruptions >= 3;
        match self.resumes {
            Some(before) => {
                self.rest(before, self.next.filter(|_| before == "pending"));
                match is_too_many {
                    true => self.interruptions = 0,
                    false => self.asked_at = self.asked_at.or(Some(now)),
                }
            }
            None if is_too_many => self.step_on(now, None),
            None => self.rest("pending", Some(now)),
        }
    }

    /// What the sweep makes of one that is not being sent.
    pub(super) fn swept(&mut self, now: i64, of: &Place) {
        let is_pending = self.status == "pending";
        if of.is_deleted {
            self.is_purged = true;
        } else if of.status == "disabled" {
            self.asked_at = None;
            if is_pending {
                (self.status, self.next) = (if of.reason == Some("gone") { "cancelled" } else { "skipped" }, None);
            }
        } else if is_pending && self.next.is_some_and(|next| next > now + DAY + DAY / 10) {
            self.next = Some(now);
        }
    }

    /// As the row is compared.
    pub(super) fn shown(&self) -> String {
        let at = |at: Option<i64>| at.map_or("-".to_owned(), |at| at.to_string());
        let Self { status, attempts, step, interruptions, resumes, .. } = self;
        let (next, asked_at, until) = (at(self.next), at(self.asked_at), at(self.lease.map(|(until, _)| until)));
        format!("{status} {attempts} {step} {interruptions} {next} {asked_at} {} {until}", resumes.unwrap_or("-"))
    }

    /// The promises, told from the history alone.
    pub(super) fn check(&self) {
        let begun = usize::try_from(self.attempts).unwrap();
        assert_eq!(self.journal.len(), begun - usize::from(self.status == "sending"), "{self:?}");
        let stands = self.resumes.unwrap_or(self.status);
        assert!(!self.was_delivered || stands == "delivered", "it was delivered: {self:?}");
        assert!(self.step <= 9, "{self:?}");
    }
}
