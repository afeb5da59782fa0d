//! What each of the six events means for the person it is about. One function a type.

use serde_json::{Value, json};

use super::Error;
use super::consumer::Context;
use super::content::Values;
use super::dialog::bind;
use super::funnel::{Stage, advance};
use super::people::short_name;
use super::port::PageEvent;
use super::screens::Drawn;
use super::sql::{self, Person};
use crate::chat::{self, Format, Keyboard, Kind, NewMessage};
use crate::kernel::contract::{BotEvent, BotEventType, Payload, WebNotification};
use crate::kernel::store::{StoreError, Tx};

/// Applies an event. A person the bot does not know is nobody to react to: that is no failure.
pub(super) fn react(tx: &Tx<'_>, context: &Context, entry: &PageEvent) -> Result<(), Error> {
    if matches!(entry.event.payload, Payload::Unreadable(_)) {
        return Err(Error::Unreadable);
    }
    let reaction = Reaction { tx, context, event: &entry.event, person: find_person(tx, &entry.event)? };
    match BotEventType::parse(&entry.event.event_type).ok_or(Error::UnknownType)? {
        BotEventType::WalletConnected => reaction.wallet_connected(),
        BotEventType::Registered => reaction.registered(),
        BotEventType::NewPartner => reaction.new_partner(),
        BotEventType::StatusNftActivated => reaction.status_nft_activated(),
        BotEventType::Reactivation => reaction.direct_message("reactivation"),
        BotEventType::StructOvertake => reaction.direct_message("struct_overtake"),
    }
}

/// By the chat if the event names one, else by the member.
fn find_person(tx: &Tx<'_>, event: &BotEvent) -> Result<Option<Person>, StoreError> {
    match (event.telegram_id, event.magnet_uid) {
        (Some(telegram_id), _) => sql::find_person(tx, telegram_id),
        (None, Some(uid)) => sql::find_person_of(tx, uid),
        (None, None) => Ok(None),
    }
}

struct Reaction<'a> {
    tx: &'a Tx<'a>,
    context: &'a Context,
    event: &'a BotEvent,
    person: Option<Person>,
}

impl Reaction<'_> {
    fn wallet_connected(&self) -> Result<(), Error> {
        let Some(person) = &self.person else { return Ok(()) };
        self.learn_member(person)?;
        advance(self.tx, person, Stage::WalletConnected)?;
        self.ask_to_bind(person)
    }

    fn registered(&self) -> Result<(), Error> {
        let parent = self.number("parentUid")?;
        let Some(person) = &self.person else { return Ok(()) };
        self.learn_member(person)?;
        advance(self.tx, person, Stage::Registered)?;
        if let Some(parent) = parent {
            sql::set_parent(self.tx, person.telegram_id, parent)?;
            if let Some(leader) = person.leader_uid.filter(|leader| *leader != parent) {
                self.tell_former_leader(person, leader)?;
            }
        }
        self.ask_to_bind(person)
    }

    /// The first-touch leader keeps the person in the metrics, but the structure has gone elsewhere. Told once.
    fn tell_former_leader(&self, person: &Person, leader_uid: i64) -> Result<(), Error> {
        let Some(leader) = sql::find_person_of(self.tx, leader_uid)? else { return Ok(()) };
        if !leader.optin_urgent || !leader.is_reachable {
            return Ok(());
        }
        let name = short_name(person.first_name.as_deref().unwrap_or_default());
        let text =
            self.context.content.render(self.tx, "left_leader", leader.lang, &Values::new("partner_name", &name))?;
        self.queue(NewMessage {
            dedup_key: format!("left_leader:{}", person.telegram_id),
            ..self.message(&leader, Kind::Event, text)
        })
    }

    fn new_partner(&self) -> Result<(), Error> {
        self.number("partnerUid")?.ok_or(Error::Payload { field: "partnerUid" })?;
        let name = short_name(&self.text("partnerName")?.unwrap_or_default());
        let lang = self.person.as_ref().map_or(self.context.content.default_lang(), |person| person.lang);
        let values = Values::new("partner_name", &name);
        let instead =
            self.notification("new_partner", |key| self.context.content.render(self.tx, key, lang, &values))?;
        let Some(person) = self.person.as_ref().filter(|person| person.is_reachable) else {
            return match instead {
                Some(notification) => Ok(self.context.backend.notify(self.tx, &notification)?),
                None => Ok(()),
            };
        };
        let text = self.context.content.render(self.tx, "new_partner", lang, &values)?;
        let fallback = instead.map(|notification| json!({ "notification": notification }));
        self.queue(NewMessage { fallback, ..self.message(person, Kind::Event, text) })
    }

    fn status_nft_activated(&self) -> Result<(), Error> {
        if !matches!(self.text("level")?.as_deref(), Some("lp1" | "lp2")) {
            return Err(Error::Payload { field: "level" });
        }
        let Some(person) = &self.person else { return Ok(()) };
        self.learn_member(person)?;
        Ok(advance(self.tx, person, Stage::NftActivated)?)
    }

    fn direct_message(&self, block: &str) -> Result<(), Error> {
        let Some(person) = &self.person else { return Ok(()) };
        if !person.is_reachable {
            return Ok(());
        }
        let text = self.context.content.render(self.tx, block, person.lang, &Values::none())?;
        self.queue(self.message(person, Kind::Event, text))
    }

    /// A chat that has opened the member's connect link, but is not bound yet, is asked to confirm.
    fn ask_to_bind(&self, person: &Person) -> Result<(), Error> {
        let Some(uid) = self.event.magnet_uid.filter(|_| self.is_preview()) else { return Ok(()) };
        let Drawn { text, keyboard } = bind::ask(self.tx, &self.context.content, person, uid)?;
        self.queue(NewMessage { keyboard, ..self.message(person, Kind::BindPrompt, text) })
    }

    /// The chat of a bound event is the member's; a preview is no binding.
    fn learn_member(&self, person: &Person) -> Result<(), Error> {
        match self.event.magnet_uid {
            Some(uid) if person.magnet_uid != Some(uid) && !self.is_preview() => {
                Ok(sql::set_member(self.tx, person.telegram_id, uid)?)
            }
            _ => Ok(()),
        }
    }

    fn message(&self, to: &Person, kind: Kind, text: String) -> NewMessage {
        let (source, id, event_type) = (self.context.backend.source(), self.event.id, &self.event.event_type);
        NewMessage {
            chat_id: to.telegram_id,
            kind,
            text,
            format: Format::Html,
            keyboard: Keyboard::default(),
            edit: None,
            dedup_key: format!("event:{source}:{id}:{event_type}"),
            due_at: None,
            fallback: None,
        }
    }

    fn queue(&self, message: NewMessage) -> Result<(), Error> {
        chat::enqueue(self.tx, &message)?;
        Ok(())
    }

    /// What the member is told in the web cabinet if the direct message cannot be delivered.
    fn notification(
        &self,
        kind: &str,
        render: impl Fn(&str) -> Result<String, Error>,
    ) -> Result<Option<WebNotification>, Error> {
        let Some(magnet_uid) = self.event.magnet_uid else { return Ok(None) };
        Ok(Some(WebNotification {
            magnet_uid,
            kind: kind.to_owned(),
            title: render(&format!("{kind}_title"))?,
            body: render(&format!("{kind}_body"))?,
            dedup_key: Some(format!("event:{}:{}:{kind}", self.context.backend.source(), self.event.id)),
        }))
    }

    fn is_preview(&self) -> bool {
        self.field("preview").and_then(Value::as_bool).unwrap_or(false)
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.event.payload.field(name)
    }

    fn number(&self, field: &'static str) -> Result<Option<i64>, Error> {
        match self.field(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_i64().map(Some).ok_or(Error::Payload { field }),
        }
    }

    fn text(&self, field: &'static str) -> Result<Option<String>, Error> {
        match self.field(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(Error::Payload { field }),
        }
    }
}
