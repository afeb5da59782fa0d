//! Partners: who is in a member's structure, who came last first.

use super::numbers::Numbers;
use super::sql::{self, Partner};
use super::{Error, name_of, path};
use crate::kernel::store::Tx;
use crate::onboarding::content::Values;
use crate::onboarding::dialog::Reply;
use crate::onboarding::screens::menu::{NO_PARTNERS, PARTNERS};
use crate::onboarding::screens::{Flag, Flags, Item, View};

pub(super) fn show(tx: &Tx<'_>, reply: &Reply<'_>, uid: i64, page: i64) -> Result<(), Error> {
    let total = sql::count_partners(tx, uid)?;
    if total == 0 {
        return reply.show(&NO_PARTNERS, &View::default());
    }
    let numbers = Numbers::of(total, page);
    let partners = sql::partners(tx, uid, numbers.before())?;
    let items = partners.iter().map(|partner| item(tx, reply, "partners_item", partner)).collect::<Result<_, _>>()?;
    reply.show(&PARTNERS, &list(numbers, items))
}

/// A page of a list as its screen shows it.
pub(super) fn list(numbers: Numbers, items: Vec<Item>) -> View {
    let mut view = View { items, page: Some((numbers.page, numbers.pages)), ..View::default() };
    view.values.set("total", &numbers.total());
    view.values.set("page", &numbers.page.to_string());
    view.values.set("pages", &numbers.pages.to_string());
    view
}

/// Somebody's line by this block, and what their button needs.
pub(super) fn item(tx: &Tx<'_>, reply: &Reply<'_>, block: &str, partner: &Partner) -> Result<Item, Error> {
    let name = name_of(partner.first_name.as_deref());
    let mut values = Values::new("name", &name);
    values.set("username", &name_of(partner.username.as_deref()));
    values.set("stage", &partner.stage.to_string());
    values.set("stage_name", &path::stage_name(tx, reply, partner.stage)?);
    values.set_switch("is_asking", partner.is_asking);
    let line = reply.content().render(tx, block, reply.lang(), &values)?;
    let flags = if partner.is_asking { Flags::from([Flag::Asking]) } else { Flags::new() };
    Ok(Item { id: partner.telegram_id, line, values: Values::new("name", &name), flags })
}
