//! Pillarbox: one binary with one SQLite file. This page is the map; the code is in the modules.
//!
//! # The one idea
//! What comes in is stored before it is acknowledged. What it causes is one transaction: the mark that it was done, the
//! change, the events, the messages. What goes out is a row: claimed, attempted outside any transaction, and settled by
//! a write that the claim fences.
//!
//! # Layers
//! ```text
//! main → edge/cli → dev → edge/… → app → backend · onboarding · leads · tenants · webhooks · communications
//!                                        → outbox · chat → kernel
//! ```
//! Arrows point one way; `tests/tidy.rs` holds the tree to it.
//! - [`kernel`]: time, ids, secrets, the contract's forms, the event catalogue, and the store with its two doors.
//! - `backend`: members, binding and connect links; the outbox of bot events (emit, pages, acknowledgements, requeue); web
//!   notifications.
//! - `outbox`: domain events, recorded by the transaction in which they happened or posted by tenants, and the relay that
//!   hands each to every consumer until all have accepted it. Analytics is one of them.
//! - `tenants`: whose events, endpoints and keys there are.
//! - `webhooks`: endpoints, the consumer that makes deliveries, the worker that sends them, and where they may go.
//! - `communications`: the consumer that makes Telegram messages of events, by the operator's rules.
//! - `onboarding`: the bot's mind: consumer, ledger, reactions, dialog, screens, menu, texts, reminders, digests, broadcasts.
//!   Knows no Telegram and no HTTP.
//! - `leads`: a form's lead, stored once, and the broker's chat told of it through an atomic claim.
//! - `chat`: the inbox of updates, and the send queue: lanes, limits, the three outcomes of a send, the port to a messenger.
//! - `app`: the assembly; the only place that knows all of them.
//! - `edge`: HTTP, Telegram, a remote backend, jobs, the command line; each folder is the one home of its dependency.
//! - `dev`: a fake Bot API, a webhook sink, a clock that can be moved, the demo.
//! - [`config`]: file, environment and arguments into checked sections.
//!
//! # Six walks
//! **An event is emitted.** `edge/http/bot_events.rs` decodes and calls `backend::emit` in [`kernel::store::Db::write`];
//! the row's trigger sets its subject and the subject's lane; the writer thread commits it with whoever else waits, answers,
//! and wakes `bot-outbox-poll`.
//!
//! **The event is handled.** The job calls `onboarding::Consumer::run_once`: a page is claimed; in one transaction each
//! event, in a savepoint of its own, gets its ledger mark, its reaction (`reactions.rs`), and is closed; a failing one is
//! put off and holds its subject. The commit wakes `telegram-send`.
//!
//! **Its message goes out.** `chat::Sender::run_once` asks the limiter for a slot, claims the head of a chat's lane,
//! sends it through `edge/telegram`, and settles it: delivered, certainly not, or unknown, each with what its kind asks for.
//!
//! **A lead is posted.** `edge/http/leads.rs` checks origin, method, type and size, and calls `leads::accept` in one write: known,
//! counted, refused, or stored with its events. The commit wakes `lead-notifications`: `leads::notify` takes a slot, claims the
//! lead and reads its summary, sends it through `edge/telegram`, and completes it, fenced by the attempt's number. A program
//! elsewhere does the same by the functions of `edge/http/rest`.
//!
//! **An event becomes a webhook.** `tx.publish`, `POST /v1/events` or another program's SQL leaves a row of `outbox_events`.
//! The commit wakes `outbox-relay`: in one transaction `webhooks::Fanout` writes the event's body once, as the bytes that will
//! be signed, and a delivery for each endpoint that has subscribed; the acceptances are in the same row. That commit wakes
//! `webhooks-deliver`: a slot of the endpoint, a claim, a request whose name is resolved, judged and dialled under one
//! deadline, and a finish that journals the attempt and moves the delivery, fenced by the attempt's number.
//!
//! **A person writes.** `edge/telegram/updates` fetches the update, or is brought it, and stores it with the offset in one write;
//! only then is it acknowledged. The commit wakes `telegram-updates`: `onboarding::updates` reads it as what a person did, asks
//! the backend what it has to know, and in one transaction, fenced by the attempt's number, `onboarding::dialog` changes the
//! funnel, draws a screen and queues the answer, and the update is handled. A panic takes back all of it; ten make it dead.
//!
//! # Invariants
//! - Only `kernel/store` opens a transaction, and nothing async can happen inside one.
//! - An event is in the ledger if and only if its effects are in the file.
//! - No event is handled while an earlier one of its subject is open, and no update while an earlier one of its chat is.
//! - A message is sent only as a claimed row; its attempt number is the fence of its settle. So is a lead's notification.
//! - Nobody is told of a lead a second time without a person, but after a claim that nobody completed for 15 minutes.
//! - An event is published when every consumer has accepted it, and what a consumer inside the file did and its acceptance
//!   are one commit.
//! - What is signed is what was frozen when the event was relayed: the same bytes and the same `webhook-id` at every attempt.
//! - No request of a webhook leaves to an address that was not judged, by the address that is dialled, when its connection
//!   was made: at this attempt, or less than a minute before it.
//! - A tenant sees its own, and what is another's looks like what never was.
//! - The database files are never opened by path in this process.
//!
//! # Decisions
//! 1. *Why one writer thread and not a connection per task?* SQLite has one writer anyway; its own busy handler is unfair
//!    (waits of seconds), and writes that wait can share a flush. We would change this for a store with several writers.
//! 2. *Why a lane row per subject?* Taking a page by `NOT EXISTS (earlier open event)` costs what waits behind one head. A
//!    lane's due time is that of its head, kept by triggers, so that SQL from other programs counts too.
//! 3. *Why is a lease on the events and not on the lane?* The contract's columns are on the events, and the head's lease
//!    is the subject's. A lease names its boot, so those of an earlier process are void without being cleared.
//! 4. *Why is the subject checked again when an event is applied?* A binding may merge two subjects between claim and
//!    handling. The check costs two look-ups and needs no lock that outlives a transaction.
//! 5. *Why our own Telegram calls under teloxide's types?* What follows a send depends on status, parameters and phase,
//!    which teloxide's `send` drops; and on a 5xx it sleeps for ten seconds inside the call.
//! 6. *Why are notifications of leads no rows of the send queue?* The contract has their claim in the lead's row, where
//!    programs elsewhere take part in it; a doubtful one is not repeated; and the chat's id may not be in the file. What
//!    they share with the queue is the limiter and what the outcomes mean.
//! 7. *Why are acceptances in the event's row, and no table of their own?* There are three consumers, they are read and
//!    written with the event, and a published one needs none. A dozen consumers would change it.
//! 8. *Why is a back-off of minutes and hours in the relay, where the contract has "the next run"?* The next run is five
//!    seconds later, and ten of them would give an event up within a minute of a full disk.
//! 9. *Why may a webhook not be followed by a redirect, a proxy or a name that was looked up before?* Each is a way to have
//!    our server call an address that nobody has judged.
//! 10. *Why do rules of communications come from the file only?* A rule has three parts and stands in a list; a variable
//!     that overrides one of them would have to say of which.
//!
//! # Glossary
//! захват = claim · аренда = lease · завершение = settle · попытка = attempt · дедуп-леджер = ledger · этап = stage ·
//! воронка = funnel · лидер = leader · привязка = bind · напоминание = reminder · дайджест = digest · рассылка =
//! broadcast · чистка = prune · получатель вебхука = endpoint · доставка = delivery · заявка = lead · сводка = summary ·
//! подготовка = preparation · повтор = retry · потребитель = consumer · подписка = subscription · тенант = tenant ·
//! получатель (того же) = receiver · обновление = update · экран = screen ·
//! блок = block · шаг = step · аудитория = audience

pub(crate) mod app;
pub(crate) mod backend;
pub(crate) mod chat;
pub(crate) mod communications;
pub mod config;
pub(crate) mod dev;
pub(crate) mod edge;
pub mod kernel;
pub(crate) mod leads;
#[doc(hidden)]
pub mod measured;
pub(crate) mod onboarding;
pub(crate) mod outbox;
pub(crate) mod tenants;
pub(crate) mod webhooks;

/// The program: runs the verb that `args` (the program's name first) ask for, and answers how it ended.
pub fn run(args: impl IntoIterator<Item = std::ffi::OsString>) -> std::process::ExitCode {
    edge::cli::run(args)
}
