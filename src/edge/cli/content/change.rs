//! The verbs that change a text, or give the shipped one back.

use anyhow::Context;
use serde::Serialize;

use super::args::{ResetArgs, SetArgs, languages};
use crate::edge::cli::print::{Printer, Row, note};
use crate::edge::cli::{Exit, input};
use crate::kernel::store::{Db, StoreError};
use crate::onboarding::content::{self, Content};

/// What became of a text.
#[derive(Serialize)]
struct ChangedBody {
    key: String,
    lang: &'static str,
    what: &'static str,
}

impl Row for ChangedBody {
    const HEADER: &'static [&'static str] = &["BLOCK", "LANG", "WHAT"];

    fn cells(&self) -> Vec<String> {
        vec![self.key.clone(), self.lang.to_owned(), self.what.to_owned()]
    }
}

pub(super) async fn set(db: &Db, args: SetArgs) -> anyhow::Result<Exit> {
    let text = String::from_utf8(input::read(&args.file)?).context("the text is not UTF-8")?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    let checked = match content::check(&args.key, text) {
        Ok(checked) => checked,
        Err(flaws) => {
            note(&format!("{} ({}) stays as it is:", args.key, args.lang.as_str()));
            flaws.iter().for_each(|flaw| note(&format!("- {flaw}")));
            return Ok(Exit::Failure);
        }
    };
    let lang = args.lang;
    db.write(move |tx| content::set(tx, &checked, lang)).await?;
    let body = ChangedBody { key: args.key, lang: lang.as_str(), what: "changed" };
    Printer::stdout(args.printed).list(&[body], "")?;
    Ok(Exit::Ok)
}

pub(super) async fn reset(db: &Db, content: &Content, args: ResetArgs) -> anyhow::Result<Exit> {
    let (key, langs) = (args.key.clone(), languages(args.lang));
    let reset = db.write(move |tx| {
        let each = langs.into_iter().map(|lang| Ok((lang, content::reset(tx, &key, lang)?)));
        each.collect::<Result<Vec<_>, StoreError>>()
    });
    let reset = reset.await?;
    if !content.has(&args.key) && reset.iter().all(|(_, was_there)| !was_there) {
        note(&format!("there is no block `{}`; `pillarbox content list` shows all", args.key));
        return Ok(Exit::Failure);
    }
    let body = |(lang, was_there): (content::Lang, bool)| ChangedBody {
        key: args.key.clone(),
        lang: lang.as_str(),
        what: if was_there { "the shipped one again" } else { "was the shipped one" },
    };
    let bodies: Vec<ChangedBody> = reset.into_iter().map(body).collect();
    Printer::stdout(args.printed).list(&bodies, "")?;
    Ok(Exit::Ok)
}
