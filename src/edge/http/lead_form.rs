//! The request of a lead's form, for the document. It is read member by member where leads are taken in, since a field of an
//! odd type is an absent one there and loses no lead; what is described here is what a form should send.

#![expect(dead_code, reason = "describes what the intake reads without a type")]

use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

/// A filled form. Fields that are not named here are kept as they are; a text that is too long is cut.
#[derive(ToSchema)]
#[schema(as = NewLead)]
pub(super) struct LeadForm {
    #[schema(schema_with = one)]
    schema_version: i64,
    /// A UUID, or `IP-`, eight digits and 6 to 16 capitals and digits. A repeat under the same one is the same lead.
    #[schema(
        max_length = 80,
        pattern = "^([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|IP-[0-9]{8}-[A-Z0-9]{6,16})$"
    )]
    request_id: String,
    /// Which form it is; kept to 20 characters.
    #[schema(pattern = r"[^\s\x00-\x1F\x7F-\x9F]")]
    form_version: String,
    /// When it was sent; what is no time is the server's now.
    #[schema(format = DateTime, nullable = false)]
    submitted_at: Option<String>,
    /// Milliseconds that the person took. Less than `leads.min_fill_ms` is a machine's pace.
    #[schema(minimum = 500, maximum = 9_007_199_254_740_991_i64)]
    form_fill_ms: i64,
    #[schema(nullable = false)]
    source_page: Option<String>,
    /// An address of the web; any other is dropped.
    #[schema(nullable = false)]
    page_url: Option<String>,
    #[schema(nullable = false)]
    page_title: Option<String>,
    /// An address of the web; any other is dropped.
    #[schema(nullable = false)]
    referrer: Option<String>,
    client: LeadClientForm,
    mortgage: LeadMortgageForm,
    /// Where the visitor came from; the `utm_*` texts of `current` are kept by themselves.
    #[schema(nullable = false)]
    tracking: Option<Map<String, Value>>,
    /// The browser's own judgement; kept, and not relied on.
    #[schema(nullable = false)]
    qualification: Option<Map<String, Value>>,
    /// `yes`, by a person's own hand.
    #[schema(schema_with = yes)]
    personal_data_consent: String,
    #[schema(schema_with = agreed)]
    consent: bool,
    #[schema(nullable = false)]
    spam_check: Option<LeadSpamCheckForm>,
    /// What the visitor has found out before.
    #[schema(nullable = false)]
    preparation: Option<Map<String, Value>>,
}

/// Who asks.
#[derive(ToSchema)]
#[schema(as = NewLeadClient)]
struct LeadClientForm {
    /// Kept to 80 characters.
    #[schema(pattern = r"[^\s\x00-\x1F\x7F-\x9F]")]
    name: String,
    /// A number of `leads.phone_region`, in any spelling.
    #[schema(schema_with = phone)]
    phone: String,
    /// Kept to 120 characters.
    #[schema(pattern = r"[^\s\x00-\x1F\x7F-\x9F]")]
    city: String,
    #[schema(nullable = false)]
    preferred_contact: Option<String>,
}

/// What for.
#[derive(ToSchema)]
#[schema(as = NewLeadMortgage)]
struct LeadMortgageForm {
    /// Kept to 200 characters.
    #[schema(pattern = r"[^\s\x00-\x1F\x7F-\x9F]")]
    scenario: String,
    #[schema(nullable = false)]
    object_type: Option<String>,
    #[schema(nullable = false)]
    object_price: Option<String>,
    #[schema(nullable = false)]
    down_payment: Option<String>,
    #[schema(nullable = false)]
    income_type: Option<String>,
    #[schema(nullable = false)]
    bank_history: Option<String>,
    #[schema(nullable = false)]
    comment: Option<String>,
}

/// What the form's script makes of the visitor. Either sign of a machine makes the answer 202.
#[derive(ToSchema)]
#[schema(as = NewLeadSpamCheck)]
struct LeadSpamCheckForm {
    #[schema(nullable = false)]
    honeypot_empty: Option<bool>,
    #[schema(nullable = false)]
    likely_bot: Option<bool>,
}

fn one() -> Object {
    only(Type::Integer, 1)
}

fn yes() -> Object {
    only(Type::String, "yes")
}

fn agreed() -> Object {
    only(Type::Boolean, true)
}

fn only(kind: Type, value: impl Into<Value>) -> Object {
    ObjectBuilder::new().schema_type(kind).enum_values(Some([value])).build()
}

fn phone() -> Object {
    let format = utoipa::openapi::SchemaFormat::Custom("phone".to_owned());
    ObjectBuilder::new().schema_type(Type::String).format(Some(format)).examples(["+7 916 123-45-67"]).build()
}
