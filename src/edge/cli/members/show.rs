//! `members show`: a member as it is stored.

use super::args::ShowArgs;
use crate::backend::members;
use crate::edge::cli::Exit;
use crate::edge::cli::print::{Printer, note};
use crate::edge::http::MemberForm;
use crate::kernel::store::{Db, StoreError, Tx};

pub(super) async fn show(db: &Db, args: ShowArgs) -> anyhow::Result<Exit> {
    let ShowArgs { uid, telegram, printed, .. } = args;
    let found = db.read(move |tx| find(tx, uid, telegram)).await?;
    let Some(member) = found else {
        note(match telegram {
            Some(_) => "no member is bound to that chat",
            None => "there is no such member",
        });
        return Ok(Exit::Failure);
    };
    let told = [
        ("wallet told", member.told.wallet_connected_at),
        ("registration told", member.told.registered_at),
        ("lp1 told", member.told.lp1_at),
        ("lp2 told", member.told.lp2_at),
    ];
    let form = MemberForm::from(member);
    let mut fields = vec![
        ("uid", Some(form.uid.to_string())),
        ("link", form.link.clone()),
        ("name", form.name.clone()),
        ("chat", form.telegram_id.clone()),
        ("previewed chat", form.preview_telegram_id.clone()),
        ("parent", form.parent_uid.map(|uid| uid.to_string())),
        ("wallet", form.addr.clone()),
        ("lp1", Some(form.lp1.to_string())),
        ("lp2", Some(form.lp2.to_string())),
        ("active until", form.time_active.clone()),
        ("registered", Some(form.registration_confirmed.to_string())),
        ("changed", form.updated_at.clone()),
    ];
    fields.extend(told.map(|(name, at)| (name, at.map(crate::kernel::clock::rfc3339))));
    Printer::stdout(printed).fields(&form, &fields)?;
    Ok(Exit::Ok)
}

fn find(tx: &Tx<'_>, uid: Option<i64>, telegram: Option<i64>) -> Result<Option<members::Member>, StoreError> {
    let of_chat = telegram.map(|chat| members::find_by_chat(tx, chat)).transpose()?.flatten();
    uid.or(of_chat).map_or(Ok(None), |uid| members::find(tx, uid))
}
