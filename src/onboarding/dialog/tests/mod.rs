//! The conversation on a real file: what somebody does goes in, what they are answered is read from the send queue.

mod bind;
mod odd;
mod start;
mod steps;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rusqlite::types::FromSql;

use super::command::Command;
use super::{Addresses, Dialog, Facts, command_of, gather, handle};
use crate::chat::{Author, Input, Membership, Place, What};
use crate::kernel::clock::Clock;
use crate::kernel::contract::{Bound, ConnectLink, Leader, MemberState, WebNotification};
use crate::kernel::events::Event;
use crate::kernel::store::{Db, Role, Settings, StoreError, Tx};
use crate::onboarding::content::{Content, Lang};
use crate::onboarding::updates::Arrived;
use crate::onboarding::{Backend, BackendError, Error, Fate, Finished, PageEvent};

pub(in crate::onboarding) const START: i64 = 1_700_000_000_000;
pub(in crate::onboarding) const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;

/// A backend in memory, which answers what it is told to and notes what it was asked.
#[derive(Default)]
pub(in crate::onboarding) struct Members {
    leader: Mutex<Option<Leader>>,
    pub(in crate::onboarding) account: Mutex<Option<i64>>,
    pub(in crate::onboarding) state: Mutex<Option<MemberState>>,
    link: Mutex<Option<ConnectLink>>,
    bound: Mutex<Option<Bound>>,
    asked: Mutex<Vec<String>>,
}

impl Members {
    fn note(&self, asked: String) {
        self.asked.lock().unwrap().push(asked);
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Backend for Members {
    fn source(&self) -> &'static str {
        "test"
    }
    fn next_page(&self, _: i64) -> BoxFuture<'_, Result<Vec<PageEvent>, BackendError>> {
        async { Ok(Vec::new()) }.boxed()
    }
    fn hold<'a>(&'a self, _: &'a [i64]) -> BoxFuture<'a, Result<(), BackendError>> {
        async { Ok(()) }.boxed()
    }
    fn may_apply(&self, _: &Tx<'_>, _: i64) -> Result<bool, StoreError> {
        Ok(true)
    }
    fn close(&self, _: &Tx<'_>, _: i64) -> Result<(), StoreError> {
        Ok(())
    }
    fn put_off(&self, _: &Tx<'_>, _: i64, _: &str) -> Result<Fate, StoreError> {
        Ok(Fate::Theirs)
    }
    fn closes_at_once(&self) -> bool {
        true
    }
    fn finish<'a>(&'a self, _: &'a Finished) -> BoxFuture<'a, Result<(), BackendError>> {
        async { Ok(()) }.boxed()
    }
    fn notify(&self, _: &Tx<'_>, _: &WebNotification) -> Result<(), StoreError> {
        Ok(())
    }
    fn find_leader<'a>(&'a self, code: &'a str) -> BoxFuture<'a, Result<Option<Leader>, BackendError>> {
        self.note(format!("leader {code}"));
        let leader = self.leader.lock().unwrap().clone().filter(|leader| leader.link == code);
        async move { Ok(leader) }.boxed()
    }
    fn find_account(&self, chat: i64) -> BoxFuture<'_, Result<Option<i64>, BackendError>> {
        self.note(format!("account {chat}"));
        let account = *self.account.lock().unwrap();
        async move { Ok(account) }.boxed()
    }
    fn find_state(&self, chat: i64) -> BoxFuture<'_, Result<Option<MemberState>, BackendError>> {
        self.note(format!("state {chat}"));
        let state = self.state.lock().unwrap().clone();
        async move { Ok(state) }.boxed()
    }
    fn connect_link(&self, chat: i64) -> BoxFuture<'_, Result<Option<ConnectLink>, BackendError>> {
        self.note(format!("link {chat}"));
        let link = self.link.lock().unwrap().clone();
        async move { Ok(link) }.boxed()
    }
    fn bind(&self, _: &Tx<'_>, chat: i64, uid: i64) -> Result<Option<Bound>, StoreError> {
        self.note(format!("bind {chat} {uid}"));
        Ok(*self.bound.lock().unwrap())
    }
}

/// What one message of the queue says: text, buttons and the message it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::onboarding) struct Said {
    pub(in crate::onboarding) text: String,
    /// Data, or the address behind `->`.
    pub(in crate::onboarding) buttons: Vec<String>,
    pub(in crate::onboarding) edit: Option<i64>,
}

/// A conversation on a file of its own.
pub(in crate::onboarding) struct World {
    _dir: tempfile::TempDir,
    pub(in crate::onboarding) db: Db,
    clock: Clock,
    pub(in crate::onboarding) members: Arc<Members>,
    dialog: Arc<Dialog>,
    updates: Mutex<i64>,
    seen: Mutex<i64>,
}

/// Keeps what happened as `from>to`, so that a test sees what was published.
fn record(tx: &Tx<'_>, event: &Event) -> Result<(), StoreError> {
    let Event::StageAdvanced { from, to, .. } = event else { return Ok(()) };
    tx.execute("CREATE TABLE IF NOT EXISTS seen_stages (step TEXT) STRICT", [])?;
    tx.execute("INSERT INTO seen_stages VALUES (?1)", [format!("{from}>{to}")]).map(|_| ())
}

impl World {
    pub(in crate::onboarding) fn new() -> Self {
        Self::with(Addresses { video: Some("https://video.example/".into()), has_site: true, ..Addresses::default() })
    }

    pub(in crate::onboarding) fn with(addresses: Addresses) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::stopped_at(START);
        let db = Db::open(dir.path(), Role::Owner("test"), &Settings::small(), clock.clone(), vec![record]).unwrap();
        let members = Arc::new(Members::default());
        let token = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff".to_owned();
        *members.link.lock().unwrap() =
            Some(ConnectLink { url: format!("https://site.example/?t={token}"), token, expires_at: String::new() });
        let content = Arc::new(Content::shipped(Lang::Ru).unwrap());
        let dialog = Arc::new(Dialog { content, backend: Arc::<Members>::clone(&members), addresses });
        Self { _dir: dir, db, clock, members, dialog, updates: Mutex::new(0), seen: Mutex::new(0) }
    }

    /// A person does something, and is answered.
    async fn does(&self, chat: i64, what: What) -> Vec<Said> {
        self.comes(Input { chat_id: chat, place: Place::Private, author: Some(author(chat)), what }).await
    }

    async fn comes(&self, input: Input) -> Vec<Said> {
        let facts = gather(self.members.as_ref(), &command_of(&input).0, input.chat_id).await.unwrap();
        self.applies(input, facts).await.unwrap();
        self.said().await
    }

    async fn applies(&self, input: Input, facts: Facts) -> Result<(), Error> {
        let update = {
            let mut updates = self.updates.lock().unwrap();
            *updates += 1;
            *updates
        };
        let dialog = Arc::clone(&self.dialog);
        self.db
            .write(move |tx| {
                let arrived = Arrived { update, received_at: tx.now(), input: &input, facts: &facts };
                handle(tx, &dialog, &arrived)
            })
            .await
    }

    pub(in crate::onboarding) async fn says(&self, chat: i64, text: &str) -> Vec<Said> {
        self.does(chat, What::Text { message_id: 1, text: text.to_owned() }).await
    }

    /// Presses a button on message 9.
    pub(in crate::onboarding) async fn taps(&self, chat: i64, data: &str) -> Vec<Said> {
        self.does(chat, What::Tap { data: Some(data.to_owned()), message_id: Some(9) }).await
    }

    /// What was queued since this was last asked.
    pub(in crate::onboarding) async fn said(&self) -> Vec<Said> {
        let after = *self.seen.lock().unwrap();
        let sql = "SELECT id, text, COALESCE(keyboard, '[]') AS keyboard, edit_message_id FROM telegram_messages
                   WHERE id > ?1 ORDER BY id";
        let read = move |tx: &Tx<'_>| {
            tx.query_all(sql, [after], |row| {
                let keyboard: String = row.get("keyboard")?;
                Ok((row.get::<_, i64>("id")?, row.get("text")?, keyboard, row.get("edit_message_id")?))
            })
        };
        let rows = self.db.read(read).await.unwrap();
        if let Some((id, ..)) = rows.last() {
            *self.seen.lock().unwrap() = *id;
        }
        rows.into_iter().map(|(_, text, keyboard, edit)| Said { text, buttons: buttons(&keyboard), edit }).collect()
    }

    pub(in crate::onboarding) async fn run(&self, sql: &'static str) {
        self.db.write(move |tx| tx.execute(sql, [])).await.unwrap();
    }

    pub(in crate::onboarding) async fn one<T: FromSql + Send + 'static>(&self, sql: &'static str) -> T {
        self.db.read(move |tx| tx.query_one(sql, [], |row| row.get(0))).await.unwrap()
    }

    /// The rises of stage that were published.
    async fn stages(&self) -> Vec<String> {
        let sql = "SELECT step FROM seen_stages ORDER BY rowid";
        self.db.read(move |tx| tx.query_all(sql, [], |row| row.get(0))).await.unwrap_or_default()
    }

    async fn stage(&self) -> i64 {
        self.one("SELECT stage FROM bot_users WHERE telegram_id = 5").await
    }

    pub(in crate::onboarding) fn advance(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }
}

fn author(id: i64) -> Author {
    Author {
        id,
        is_bot: false,
        first_name: format!("Person {id}"),
        username: Some(format!("p{id}")),
        lang: Some("en-GB".into()),
    }
}

fn buttons(keyboard: &str) -> Vec<String> {
    let rows: Vec<Vec<serde_json::Value>> = serde_json::from_str(keyboard).unwrap();
    let shown = |button: &serde_json::Value| match button["data"].as_str() {
        Some(data) => data.to_owned(),
        None => format!("-> {}", button["url"].as_str().unwrap()),
    };
    rows.iter().flatten().map(shown).collect()
}

/// The only answer there is.
pub(in crate::onboarding) fn only(said: Vec<Said>) -> Said {
    let [one] = said.try_into().unwrap();
    one
}
