//! `pillarbox webhooks`: endpoints and their deliveries for the one who looks after them, beside a running server; and
//! signatures for whoever writes a receiver.

mod args;
mod deliveries;
mod delivery_args;
mod endpoint_args;
mod endpoints;
mod listen;
mod message;
mod new_key;
mod probe;
mod repair;
mod secret;
mod sign;
mod verify;

use anyhow::anyhow;

pub(super) use args::WebhooksVerb;
use args::{DeskVerb, HandVerb};

use super::args::Location;
use super::whose::Whose;
use super::{Exit, beside};
use crate::app::Webhooks;
use crate::config::Config;
use crate::kernel::store::Db;
use crate::webhooks::recover::Lost;
use crate::webhooks::{Error, TransportError};

/// What the verbs that touch the file work with.
struct Desk {
    db: Db,
    config: Config,
}

impl Desk {
    /// Opens the data directory of the configuration, to read only where that is enough.
    async fn open(location: &Location, whose: &Whose, only_looks: bool) -> anyhow::Result<Self> {
        Self::of(Config::load(location.sources(&whose.overrides.set))?, whose, only_looks).await
    }

    async fn of(config: Config, whose: &Whose, only_looks: bool) -> anyhow::Result<Self> {
        let db = if only_looks { beside::open_to_read(&config)? } else { beside::open(&config)? };
        let desk = Self { db, config };
        whose.must_exist(&desk.db).await?;
        Ok(desk)
    }

    /// What endpoints are made and tried with, as the server has it. Beside `dev` this machine may be sent to, as `dev`
    /// itself allows unless its own command line says otherwise; then it is refused at the attempt.
    fn tools(&self) -> Result<Webhooks, TransportError> {
        let mut webhooks = self.config.webhooks.clone();
        webhooks.allow_insecure |= beside::is_in_dev_time(self.db.dir());
        Webhooks::open(&webhooks, &self.db)
    }
}

/// Runs one of the verbs.
///
/// # Errors
/// The configuration's, the store's, or the output's.
pub(super) async fn run(location: &Location, verb: WebhooksVerb) -> anyhow::Result<Exit> {
    match verb {
        WebhooksVerb::AtDesk(verb) => {
            let desk = Desk::open(location, verb.whose(), verb.only_looks()).await?;
            let done = at(&desk, verb).await;
            desk.db.close().await;
            done
        }
        WebhooksVerb::Listen(args) => listen::run(location, args).await,
        WebhooksVerb::NewKey(args) => new_key::run(location, args).await,
        WebhooksVerb::ByHand(HandVerb::Sign(args)) => sign::run(args),
        WebhooksVerb::ByHand(HandVerb::Verify(args)) => verify::run(args),
    }
}

async fn at(desk: &Desk, verb: DeskVerb) -> anyhow::Result<Exit> {
    match verb {
        DeskVerb::Endpoints(verb) => endpoints::on(desk, verb).await,
        DeskVerb::Deliveries(verb) => deliveries::on(desk, verb).await,
        DeskVerb::Attempts(args) => deliveries::attempts(desk, args).await,
        DeskVerb::Test(args) => probe::test(desk, args).await,
        DeskVerb::Resend(args) => repair::resend(desk, args).await,
        DeskVerb::Recover(args) => repair::queue(desk, Lost::Undelivered, args).await,
        DeskVerb::ReplaySkipped(args) => repair::queue(desk, Lost::Skipped, args).await,
    }
}

/// What keeps something from being done to the endpoint `id`, with what to do.
fn refusal(error: Error, id: &str, whose: &Whose) -> anyhow::Error {
    match error {
        Error::NotFound => anyhow!(
            "tenant {} has no endpoint {id}; `pillarbox webhooks endpoints list` shows which there are",
            whose.tenant
        ),
        Error::Url(fault) => {
            anyhow!("the address is refused: {fault}; see \"Where a webhook may go\" in docs/webhooks.md")
        }
        Error::TooManyEndpoints => anyhow!("{error}; delete one that is not needed any more"),
        other => other.into(),
    }
}

fn counted(number: usize, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{s}")
}
