//! My path: the nine stages, where the person is, and the way on.

use super::Error;
use crate::kernel::store::Tx;
use crate::onboarding::content::Values;
use crate::onboarding::dialog::Reply;
use crate::onboarding::funnel::Stage;
use crate::onboarding::screens::menu::{PATH, PATH_TO_INTRO, PATH_TO_SITE, PATH_TO_VIDEO};
use crate::onboarding::screens::{Flags, Item, Screen, View};
use crate::onboarding::sql::Person;

pub(super) fn show(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person) -> Result<(), Error> {
    let mut view = View::default();
    view.values.set("stage", &person.stage.to_string());
    view.values.set("stage_name", &stage_name(tx, reply, person.stage)?);
    for stage in Stage::ALL.map(|stage| stage as i64) {
        view.items.push(item(tx, reply, person, stage)?);
    }
    reply.show(screen(person.stage), &view)
}

/// The screen whose button leads on from this stage.
fn screen(stage: i64) -> &'static Screen {
    match stage {
        ..=2 => &PATH_TO_INTRO,
        3 | 4 => &PATH_TO_VIDEO,
        5..=7 => &PATH_TO_SITE,
        _ => &PATH,
    }
}

fn item(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person, stage: i64) -> Result<Item, Error> {
    let mut values = Values::new("stage_name", &stage_name(tx, reply, stage)?);
    let line = if stage == person.stage {
        reply.content().render(tx, "path_here_item", reply.lang(), &values)?
    } else {
        values.set_switch("is_done", stage < person.stage);
        reply.content().render(tx, "path_item", reply.lang(), &values)?
    };
    Ok(Item { id: stage, line, values: Values::none(), flags: Flags::new() })
}

/// What a stage is called in the language of the reply.
pub(super) fn stage_name(tx: &Tx<'_>, reply: &Reply<'_>, stage: i64) -> Result<String, Error> {
    reply.content().render(tx, &format!("stage_name_{stage}"), reply.lang(), &Values::none())
}
