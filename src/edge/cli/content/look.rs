//! The verbs that only look: a list, one block whole, and what is wrong with texts that nobody checked.

use serde::Serialize;

use super::args::{ListArgs, ShowArgs, languages};
use crate::edge::cli::args::Printed;
use crate::edge::cli::print::{Printer, Row, note, or_dash};
use crate::edge::cli::{Exit, Form};
use crate::kernel::clock::rfc3339;
use crate::kernel::store::{Db, StoreError};
use crate::onboarding::content::blocks::{self, Block};
use crate::onboarding::content::{self, Content, Lang, Override};

/// A block as it is listed.
#[derive(Serialize)]
struct BlockBody {
    key: String,
    shape: &'static str,
    ru: &'static str,
    en: &'static str,
    values: Vec<&'static str>,
}

impl Row for BlockBody {
    const HEADER: &'static [&'static str] = &["BLOCK", "SHAPE", "RU", "EN", "VALUES"];

    fn cells(&self) -> Vec<String> {
        let values = if self.values.is_empty() { "-".to_owned() } else { self.values.join(", ") };
        vec![self.key.clone(), self.shape.to_owned(), self.ru.to_owned(), self.en.to_owned(), values]
    }
}

/// A text as it is shown.
#[derive(Serialize)]
struct TextBody {
    key: String,
    lang: &'static str,
    shape: &'static str,
    state: &'static str,
    updated_at: Option<String>,
    values: Vec<&'static str>,
    body: String,
    /// With an example of each value; absent if it cannot be rendered.
    example: Option<String>,
}

/// Something that is wrong with a text.
#[derive(Serialize)]
struct FlawBody {
    key: String,
    lang: &'static str,
    flaw: String,
}

impl Row for FlawBody {
    const HEADER: &'static [&'static str] = &["BLOCK", "LANG", "FLAW"];

    fn cells(&self) -> Vec<String> {
        vec![self.key.clone(), self.lang.to_owned(), self.flaw.clone()]
    }
}

async fn overrides(db: &Db) -> Result<Vec<Override>, StoreError> {
    db.read(content::list).await
}

fn find<'a>(overrides: &'a [Override], key: &str, lang: Lang) -> Option<&'a Override> {
    overrides.iter().find(|text| text.key == key && text.lang == lang)
}

/// Where a block's text comes from. A text that another program wrote may be flawed; then the shipped one may be used.
fn state(overridden: Option<&Override>) -> &'static str {
    match overridden {
        None => "shipped",
        Some(text) if content::check(&text.key, &text.body).is_ok() => "changed",
        Some(_) => "flawed",
    }
}

fn missing(key: &str, content: &Content) -> Exit {
    let known = crate::config::nearest(key, content.blocks()).unwrap_or_default();
    note(&format!("there is no block `{key}`; the nearest is `{known}`, `pillarbox content list` shows all"));
    Exit::Failure
}

pub(super) async fn list(db: &Db, content: &Content, args: ListArgs) -> anyhow::Result<Exit> {
    let overrides = overrides(db).await?;
    let body = |key: &str, block: Option<Block>| BlockBody {
        key: key.to_owned(),
        shape: block.map_or("none", |block| block.shape.as_str()),
        ru: state(find(&overrides, key, Lang::Ru)),
        en: state(find(&overrides, key, Lang::En)),
        values: block.map(content::names).unwrap_or_default(),
    };
    let mut bodies: Vec<BlockBody> =
        blocks::BLOCKS.into_iter().flatten().map(|block| body(block.key, Some(*block))).collect();
    // A key that no version of ours has is shown nowhere; that should be seen.
    let mut stray: Vec<&str> = overrides.iter().map(|text| text.key.as_str()).filter(|key| !content.has(key)).collect();
    stray.dedup();
    bodies.extend(stray.into_iter().map(|key| body(key, None)));
    bodies.retain(|body| !args.changed || body.ru != "shipped" || body.en != "shipped");
    Printer::stdout(args.printed).list(&bodies, "every text is the shipped one")?;
    Ok(Exit::Ok)
}

pub(super) async fn show(db: &Db, content: &Content, args: ShowArgs) -> anyhow::Result<Exit> {
    let overrides = overrides(db).await?;
    let mut printer = Printer::stdout(args.printed);
    for key in &args.keys {
        let Some(block) = blocks::find(key) else {
            printer.flush()?;
            return Ok(missing(key, content));
        };
        for lang in languages(args.lang) {
            let text = text_of(block, lang, content, find(&overrides, block.key, lang));
            if args.body { printer.lines(&text.body)? } else { print(&mut printer, &text)? }
        }
    }
    printer.flush()?;
    Ok(Exit::Ok)
}

fn text_of(block: Block, lang: Lang, content: &Content, overridden: Option<&Override>) -> TextBody {
    let body = overridden.map(|text| text.body.clone()).or_else(|| content.shipped_body(block.key, lang));
    let body = body.unwrap_or_default();
    TextBody {
        key: block.key.to_owned(),
        lang: lang.as_str(),
        shape: block.shape.as_str(),
        state: state(overridden),
        updated_at: overridden.map(|text| rfc3339(text.updated_at)),
        values: content::names(block),
        example: content::example(block.key, &body),
        body,
    }
}

fn print<W: std::io::Write>(printer: &mut Printer<W>, text: &TextBody) -> std::io::Result<()> {
    if printer.form() == Form::Json {
        return printer.json(text);
    }
    let values = if text.values.is_empty() { "no values".to_owned() } else { text.values.join(", ") };
    let since = text.updated_at.as_deref().map(|at| format!(" since {at}")).unwrap_or_default();
    printer.lines(&format!("{} ({}): {}{since}; {}; {values}", text.key, text.lang, text.state, text.shape))?;
    printer.lines(&text.body)?;
    printer.lines(&format!("--- for example:\n{}\n\n", or_dash(text.example.as_deref())))
}

pub(super) async fn check(db: &Db, printed: Printed) -> anyhow::Result<Exit> {
    let overrides = overrides(db).await?;
    let flaws_of = |text: &Override| content::check(&text.key, &text.body).err().unwrap_or_default();
    let told = |text: &Override| -> Vec<FlawBody> {
        let (key, lang) = (&text.key, text.lang.as_str());
        flaws_of(text).iter().map(|flaw| FlawBody { key: key.clone(), lang, flaw: flaw.to_string() }).collect()
    };
    let flaws: Vec<FlawBody> = overrides.iter().flat_map(told).collect();
    let count = overrides.len();
    Printer::stdout(printed).list(&flaws, &format!("checked {count} changed texts: all of them can be sent"))?;
    Ok(if flaws.is_empty() { Exit::Ok } else { Exit::Failure })
}
