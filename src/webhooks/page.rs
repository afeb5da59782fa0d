//! A page of a list: what was found, and where the next page begins if there is one.

/// Rows of a page, and the row after which the next one begins. A page may be short, even empty, and still have a next
/// one: a list looks at a bounded number of rows for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page<T> {
    /// What was found.
    pub(crate) items: Vec<T>,
    /// The cursor of the next page; `None` if this was the last.
    pub(crate) next: Option<i64>,
}

/// The page of what was found with one row more than asked for: that one says whether there is a next page.
pub(super) fn page<T>(mut found: Vec<T>, limit: usize, row: impl Fn(&T) -> i64) -> Page<T> {
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().map(row).filter(|_| has_more);
    Page { items: found, next }
}
