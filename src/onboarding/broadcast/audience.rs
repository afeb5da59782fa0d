//! Whom a broadcast is for, and how many that are before it starts.

use std::collections::BTreeMap;

use super::{Error, sql};
use crate::kernel::store::Db;
use crate::onboarding::content::Lang;

/// People of one read of a preview: a read that takes long keeps the WAL from being checkpointed.
const PAGE: i64 = 20_000;

/// Whom a broadcast is for; `None` asks for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Audience {
    /// Stages from 1 to 9, both ends included.
    pub(crate) stages: Option<(i64, i64)>,
    /// People who chose this language, or have it by default.
    pub(crate) lang: Option<Lang>,
    /// People whom this member brought.
    pub(crate) leader_uid: Option<i64>,
    /// People who were here within so many seconds before the start.
    pub(crate) active_within_s: Option<i64>,
    /// People whose NFT is active, or is not.
    pub(crate) has_nft: Option<bool>,
}

/// What a start would freeze.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Preview {
    /// People in the audience.
    pub(crate) total: i64,
    /// Who would be written to.
    pub(crate) eligible: i64,
    /// Of those, by language.
    pub(crate) by_lang: BTreeMap<String, i64>,
    /// Who would not, by why: `blocked`, `opted_out`, `no_text`.
    pub(crate) skipped: BTreeMap<String, i64>,
}

/// Counts what a start would freeze now. People without a language count as `default_lang`.
///
/// # Errors
/// [`Error::NotFound`]; the store's.
pub(crate) async fn preview(db: &Db, id: i64, default_lang: Lang) -> Result<Preview, Error> {
    let mut preview = Preview::default();
    let mut after = i64::MIN;
    loop {
        let page = db.read(move |tx| {
            let broadcast = sql::find(tx, id)?.ok_or(Error::NotFound(id))?;
            let upto = sql::audience::last_of_range(tx, after, PAGE)?;
            let range = sql::audience::Range { after, upto: upto.unwrap_or(i64::MAX), default_lang };
            Ok::<_, Error>((sql::audience::count(tx, &broadcast, range)?, upto))
        });
        let (counts, upto) = page.await?;
        for count in counts {
            preview.total += count.people;
            match count.why {
                Some(why) => *preview.skipped.entry(why).or_default() += count.people,
                None => {
                    preview.eligible += count.people;
                    *preview.by_lang.entry(count.lang).or_default() += count.people;
                }
            }
        }
        match upto {
            Some(upto) => after = upto,
            None => return Ok(preview),
        }
    }
}
