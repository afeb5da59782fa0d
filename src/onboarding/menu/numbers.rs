//! Lists by the page: how many pages there are, and what a count looks like.

/// How many a page has.
pub(super) const PER_PAGE: i64 = 10;
/// Beyond that nobody counts: it would cost every tap of whoever has that many.
pub(super) const COUNTED: i64 = 10_000;

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    /// Its number, from one.
    pub(super) page: i64,
    /// How many there are.
    pub(super) pages: i64,
    total: i64,
}

impl Numbers {
    /// The page that was asked for, or the last one if there is none such any more. `total` counts one beyond
    /// [`COUNTED`] at most.
    pub(super) fn of(total: i64, asked: i64) -> Self {
        let pages = (total.min(COUNTED) + PER_PAGE - 1) / PER_PAGE;
        let pages = pages.max(1);
        Self { page: asked.clamp(1, pages), pages, total }
    }

    /// How many come before the page.
    pub(super) fn before(self) -> i64 {
        (self.page - 1) * PER_PAGE
    }

    /// How many there are in all, as it is shown.
    pub(super) fn total(self) -> String {
        if self.total > COUNTED { format!("{COUNTED}+") } else { self.total.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_gone_is_the_last_one() {
        for (total, asked, page, pages, before) in
            [(0, 1, 1, 1, 0), (10, 2, 1, 1, 0), (11, 2, 2, 2, 10), (11, 9_999, 2, 2, 10), (25, 2, 2, 3, 10)]
        {
            let numbers = Numbers::of(total, asked);
            assert_eq!((numbers.page, numbers.pages, numbers.before()), (page, pages, before), "{total} {asked}");
        }
        assert_eq!(Numbers::of(10_000, 1).total(), "10000");
        assert_eq!((Numbers::of(10_001, 9_999).total().as_str(), Numbers::of(10_001, 9_999).page), ("10000+", 1_000));
    }
}
