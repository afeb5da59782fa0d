//! The verbs that look at deliveries: a list, one whole, and the journal of its attempts.

use anyhow::anyhow;
use serde::Serialize;

use super::delivery_args::{AttemptsArgs, DeliveriesVerb, IdArgs, ListArgs};
use super::{Desk, refusal};
use crate::edge::cli::print::{Printer, Row, or_dash};
use crate::edge::cli::whose::{Whose, note_more};
use crate::edge::cli::{Exit, Form};
use crate::edge::http::DeliveryBody;
use crate::kernel::clock::rfc3339;
use crate::webhooks::Error;
use crate::webhooks::delivery::DeliveryStatus;
use crate::webhooks::inspect::{self, Attempt, DeliveryFilter, LONGEST_PAGE, Seen, TestAttempt};

pub(super) async fn on(desk: &Desk, verb: DeliveriesVerb) -> anyhow::Result<Exit> {
    match verb {
        DeliveriesVerb::List(args) => list(desk, args).await,
        DeliveriesVerb::Show(args) => show(desk, args).await,
    }
}

impl Row for DeliveryBody {
    const HEADER: &'static [&'static str] =
        &["ID", "TYPE", "ENDPOINT", "STATUS", "ATTEMPTS", "NEXT ATTEMPT", "LAST ERROR", "MADE"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.id.clone(),
            self.event_type.clone(),
            self.endpoint_id.clone(),
            self.status.to_owned(),
            self.attempts.to_string(),
            or_dash(self.next_attempt_at.as_deref()),
            or_dash(self.last_error.as_deref()),
            self.created_at.clone(),
        ]
    }
}

async fn list(desk: &Desk, args: ListArgs) -> anyhow::Result<Exit> {
    let now = desk.db.clock().now();
    let filter = DeliveryFilter {
        endpoint_id: args.endpoint.clone(),
        status: args.status.as_deref().map(DeliveryStatus::parse).transpose()?,
        event_type: args.event_type,
        since: args.since.map(|moment| moment.at(now)),
        until: args.until.map(|moment| moment.at(now)),
    };
    let wanted = usize::try_from(args.page.limit).unwrap_or(1);
    let (mut bodies, mut after) = (Vec::<DeliveryBody>::new(), args.page.after);
    // A page that looked at much and found little goes on behind it.
    loop {
        let (tenant, filter, left) = (args.whose.tenant.clone(), filter.clone(), wanted - bodies.len());
        let page = desk.db.read(move |tx| inspect::deliveries(tx, &tenant, &filter, after, left)).await;
        let page = page.map_err(|error| refusal(error, args.endpoint.as_deref().unwrap_or_default(), &args.whose))?;
        bodies.extend(page.items.into_iter().map(DeliveryBody::from));
        after = page.next;
        if after.is_none() || bodies.len() >= wanted {
            break;
        }
    }
    Printer::stdout(args.whose.printed).list(&bodies, "no such deliveries")?;
    note_more(after.map(|next| next.to_string()).as_deref());
    Ok(Exit::Ok)
}

/// A delivery with the journal of its attempts.
#[derive(Serialize)]
struct WholeBody {
    #[serde(flatten)]
    delivery: DeliveryBody,
    journal: Vec<AttemptBody>,
}

async fn show(desk: &Desk, args: IdArgs) -> anyhow::Result<Exit> {
    let (tenant, id) = (args.whose.tenant.clone(), args.id.clone());
    let read = move |tx: &crate::kernel::store::Tx<'_>| {
        let delivery = inspect::delivery(tx, &tenant, &id)?;
        Ok((delivery, inspect::attempts(tx, &tenant, &id, None, LONGEST_PAGE)?.items))
    };
    let (delivery, journal) = desk.db.read(read).await.map_err(|error| missing(error, &args.id, &args.whose))?;
    let delivery = DeliveryBody::from(delivery);
    let fields = [
        ("id", Some(delivery.id.clone())),
        ("event", Some(delivery.event_id.clone())),
        ("type", Some(delivery.event_type.clone())),
        ("endpoint", Some(delivery.endpoint_id.clone())),
        ("status", Some(delivery.status.to_owned())),
        ("attempts", Some(delivery.attempts.to_string())),
        ("next attempt", delivery.next_attempt_at.clone()),
        ("resend asked for", delivery.resend_requested_at.clone()),
        ("last error", delivery.last_error.clone()),
        ("delivered", delivery.delivered_at.clone()),
        ("made", Some(delivery.created_at.clone())),
    ];
    let whole = WholeBody { delivery, journal: journal.into_iter().map(AttemptBody::from).collect() };
    let mut printer = Printer::stdout(args.whose.printed);
    printer.fields(&whole, &fields)?;
    if printer.form() == Form::Table && !whole.journal.is_empty() {
        printer.list(&whole.journal, "")?;
    }
    Ok(Exit::Ok)
}

/// What keeps something from being done to the delivery `id`, with what to do.
pub(super) fn missing(error: Error, id: &str, whose: &Whose) -> anyhow::Error {
    match error {
        Error::NotFound => anyhow!(
            "tenant {} has no delivery {id}; `pillarbox webhooks deliveries list` shows which there are",
            whose.tenant
        ),
        other => other.into(),
    }
}

/// An attempt as it is printed; those of the test button have no number, and the id of their message.
#[derive(Serialize)]
struct AttemptBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
    trigger: &'static str,
    started_at: String,
    duration_ms: Option<i64>,
    http_status: Option<u16>,
    error: Option<&'static str>,
    response_body: Option<String>,
    resolved_ip: Option<String>,
}

impl AttemptBody {
    fn new(trigger: &'static str, seen: Seen) -> Self {
        Self {
            number: None,
            message_id: None,
            trigger,
            started_at: rfc3339(seen.started_at),
            duration_ms: seen.duration_ms,
            http_status: seen.http_status,
            error: seen.error.map(|class| class.as_str()),
            response_body: seen.response_body,
            resolved_ip: seen.resolved_ip,
        }
    }
}

impl From<Attempt> for AttemptBody {
    fn from(attempt: Attempt) -> Self {
        Self { number: Some(attempt.number), ..Self::new(attempt.trigger.as_str(), attempt.seen) }
    }
}

impl From<TestAttempt> for AttemptBody {
    fn from(attempt: TestAttempt) -> Self {
        Self { message_id: Some(attempt.message_id), ..Self::new("test", attempt.seen) }
    }
}

impl Row for AttemptBody {
    const HEADER: &'static [&'static str] =
        &["ATTEMPT", "TRIGGER", "STARTED", "TOOK", "STATUS", "ERROR", "ADDRESS", "ANSWER BEGINS"];

    fn cells(&self) -> Vec<String> {
        let number = self.number.map(|number| number.to_string());
        vec![
            or_dash(number.as_deref().or(self.message_id.as_deref())),
            self.trigger.to_owned(),
            self.started_at.clone(),
            self.duration_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms")),
            or_dash(self.http_status.map(|status| status.to_string()).as_deref()),
            or_dash(self.error),
            or_dash(self.resolved_ip.as_deref()),
            or_dash(self.response_body.as_deref()),
        ]
    }
}

pub(super) async fn attempts(desk: &Desk, args: AttemptsArgs) -> anyhow::Result<Exit> {
    let (tenant, id, page) = (args.whose.tenant.clone(), args.id.clone(), args.page);
    let limit = usize::try_from(page.limit).unwrap_or(1);
    let (bodies, next) = if args.id.starts_with("ep_") {
        let found = desk.db.read(move |tx| inspect::tests(tx, &tenant, &id, page.after, limit)).await;
        let found = found.map_err(|error| refusal(error, &args.id, &args.whose))?;
        (found.items.into_iter().map(AttemptBody::from).collect::<Vec<_>>(), found.next)
    } else {
        let found = desk.db.read(move |tx| inspect::attempts(tx, &tenant, &id, page.after, limit)).await;
        let found = found.map_err(|error| missing(error, &args.id, &args.whose))?;
        (found.items.into_iter().map(AttemptBody::from).collect(), found.next)
    };
    Printer::stdout(args.whose.printed).list(&bodies, "no attempts yet")?;
    note_more(next.map(|next| next.to_string()).as_deref());
    Ok(Exit::Ok)
}
