//! A form's request, read and cleaned before any transaction: what is left for the writer is to bind it.

use super::json::{self, Member, NotJson};
use super::money::amount;
use super::phone::{self, Phone};
use super::preparation::Preparation;
use super::priority::{Flags, Known, Priority};
use super::request_id;
use super::text::{line, lines, some, web_address};
use crate::config::LeadsConfig;
use crate::kernel::clock::{UnixMs, parse_rfc3339};

/// What stands in a column when the form leaves its field empty.
const PREFERRED_CONTACT: &str = "Позвонить";
const OBJECT_TYPE: &str = "Пока не выбрано";
const SOURCE_PAGE: &str = "Прямой переход на форму";

/// A request as the row that it becomes. A text is within the length of its column; `None` is an empty one.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    /// If it is a valid one.
    pub(crate) request_id: Option<String>,
    pub(super) is_of_known_schema: bool,
    pub(super) has_consent: bool,
    pub(super) is_spam: bool,
    /// The number as the configured region writes it.
    pub(super) phone: Phone,
    pub(crate) client: Client,
    pub(crate) mortgage: Mortgage,
    pub(crate) context: Context,
    pub(crate) preparation: Preparation,
    pub(crate) priority: Priority,
}

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) phone: String,
    pub(crate) city: String,
    pub(crate) preferred_contact: String,
}

/// What for.
#[derive(Clone, Debug)]
pub(crate) struct Mortgage {
    pub(crate) scenario: String,
    pub(crate) object_type: String,
    pub(crate) object_price: Option<String>,
    pub(crate) down_payment: Option<String>,
    pub(crate) income_type: Option<String>,
    pub(crate) bank_history: Option<String>,
    pub(crate) comment: Option<String>,
    pub(crate) property_price_amount: Option<i64>,
    pub(crate) down_payment_amount: Option<i64>,
    pub(crate) flags: Flags,
}

/// From where and by which form.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) form_version: String,
    /// `None` is the server's now.
    pub(crate) submitted_at: Option<UnixMs>,
    pub(crate) form_fill_ms: Option<i64>,
    pub(crate) source_page: String,
    pub(crate) page_url: Option<String>,
    pub(crate) page_title: Option<String>,
    pub(crate) referrer: Option<String>,
    /// Source, medium, campaign, content, term.
    pub(crate) utm: [Option<String>; 5],
    pub(crate) tracking: String,
    pub(crate) qualification: String,
    pub(crate) spam_check: String,
    /// The body, in which every escape names a character that may be stored.
    pub(crate) raw_payload: String,
}

impl Submission {
    /// Reads a body. A field of an odd type is an absent one, except that a number may stand for its text.
    ///
    /// # Errors
    /// [`NotJson`] if it is not a JSON object.
    pub(crate) fn parse(body: &[u8], rules: &LeadsConfig) -> Result<Self, NotJson> {
        let raw_payload = json::storable(body)?;
        let names = [
            "request_id",
            "schema_version",
            "client",
            "mortgage",
            "consent",
            "personal_data_consent",
            "spam_check",
            "preparation",
        ];
        let [request_id, schema_version, client, mortgage, consent, agreement, spam_check, preparation] =
            json::members(&raw_payload, names)?;
        let request_id = some(request_id.text()).filter(|text| request_id::is_valid(text));
        let is_of_known_schema = schema_version.whole() == Some(1);
        let has_consent = consent.is_true() && agreement.text() == "yes";
        let [is_bot, honeypot_is_empty] = spam_check.members(["likely_bot", "honeypot_empty"]);
        let is_spam = is_bot.is_true() || honeypot_is_empty.is_false();
        let (client, mortgage) = (Client::read(client), Mortgage::read(mortgage));
        let phone = phone::read(&client.phone, &rules.phone_region);
        let (priority, preparation) = (priority(&client, &mortgage), Preparation::read(preparation));
        let context = Context::read(raw_payload)?;
        Ok(Self {
            request_id,
            is_of_known_schema,
            has_consent,
            is_spam,
            phone,
            client,
            mortgage,
            context,
            preparation,
            priority,
        })
    }
}

impl Client {
    fn read(client: Member<'_>) -> Self {
        let [name, phone, normalized, city, preferred_contact] =
            client.members(["name", "phone", "phone_normalized", "city", "preferred_contact"]);
        let phone = line(&phone.text(), 30);
        Self {
            name: line(&name.text(), 80),
            // A form that sends only what its script made of the number has sent the number.
            phone: if phone.is_empty() { line(&normalized.text(), 30) } else { phone },
            city: line(&city.text(), 120),
            preferred_contact: line_or(preferred_contact, 40, PREFERRED_CONTACT),
        }
    }
}

impl Mortgage {
    fn read(mortgage: Member<'_>) -> Self {
        let names =
            ["scenario", "object_type", "object_price", "down_payment", "income_type", "bank_history", "comment"];
        let [scenario, object_type, price, down_payment, income_type, bank_history, comment] = mortgage.members(names);
        let (scenario, bank_history) = (line(&scenario.text(), 200), lines(&bank_history.text(), 1000));
        let (price, down_payment) = (line(&price.text(), 80), line(&down_payment.text(), 120));
        Self {
            flags: Flags::of(&[&scenario, &down_payment, &bank_history]),
            scenario,
            object_type: line_or(object_type, 120, OBJECT_TYPE),
            property_price_amount: amount(&price),
            object_price: some(price),
            down_payment_amount: amount(&down_payment),
            down_payment: some(down_payment),
            income_type: some(line(&income_type.text(), 120)),
            bank_history: some(bank_history),
            comment: some(lines(&comment.text(), 1600)),
        }
    }
}

impl Context {
    fn read(raw_payload: String) -> Result<Self, NotJson> {
        let names = [
            "form_version",
            "submitted_at",
            "form_fill_ms",
            "source_page",
            "page_url",
            "page_title",
            "referrer",
            "tracking",
            "qualification",
            "spam_check",
        ];
        let [version, submitted_at, fill_ms, source_page, url, title, referrer, tracking, qualification, spam_check] =
            json::members(&raw_payload, names)?;
        let [current] = tracking.members(["current"]);
        // The keys of the page's own address; a plain `source` in a site's own record may mean something else.
        let utm = current.members(["utm_source", "utm_medium", "utm_campaign", "utm_content", "utm_term"]);
        let [source, medium, campaign, content, term] = utm.map(Member::text);
        Ok(Self {
            form_version: line(&version.text(), 20),
            submitted_at: parse_rfc3339(&submitted_at.text()),
            form_fill_ms: fill_ms.whole(),
            source_page: line_or(source_page, 500, SOURCE_PAGE),
            page_url: web_address(&url.text(), 1200),
            page_title: some(line(&title.text(), 300)),
            referrer: web_address(&referrer.text(), 1200),
            utm: [(source, 120), (medium, 120), (campaign, 200), (content, 200), (term, 200)]
                .map(|(text, most)| some(line(&text, most))),
            tracking: tracking.object(),
            qualification: qualification.object(),
            spam_check: spam_check.object(),
            raw_payload,
        })
    }
}

fn line_or(member: Member<'_>, most: usize, default: &str) -> String {
    some(line(&member.text(), most)).unwrap_or_else(|| default.to_owned())
}

fn priority(client: &Client, mortgage: &Mortgage) -> Priority {
    Priority::of(Known {
        phone: client.phone.bytes().filter(u8::is_ascii_digit).count() >= 10,
        city: !client.city.is_empty(),
        scenario: !mortgage.scenario.is_empty(),
        object: mortgage.object_type != OBJECT_TYPE,
        price: mortgage.object_price.is_some(),
        down_payment: mortgage.down_payment.is_some(),
        bank_history: mortgage.bank_history.is_some(),
        comment: mortgage.comment.is_some(),
        trouble: mortgage.flags.previous_rejection || mortgage.flags.bad_credit_history,
    })
}
