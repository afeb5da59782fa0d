//! What is wrong with the notifications as a whole, told once when it begins and once when it is over: codes and counts.

use std::sync::{Mutex, PoisonError};

/// The alerts that were told and are not over.
#[derive(Debug, Default)]
pub(super) struct Watch(Mutex<Vec<&'static str>>);

/// What is new of the alerts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct News {
    pub(super) begun: Vec<&'static str>,
    pub(super) over: Vec<&'static str>,
}

impl Watch {
    /// Takes note of the alerts that there are now.
    pub(super) fn compare(&self, now: Vec<&'static str>) -> News {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = now.iter().copied().filter(|alert| !told.contains(alert)).collect();
        let over = told.iter().copied().filter(|alert| !now.contains(alert)).collect();
        *told = now;
        News { begun, over }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_new_once_and_over_once() {
        let watch = Watch::default();
        let news = |begun: &[&'static str], over: &[&'static str]| News { begun: begun.into(), over: over.into() };
        assert_eq!(watch.compare(vec!["failed_present"]), news(&["failed_present"], &[]));
        assert_eq!(watch.compare(vec!["failed_present", "stale_sending"]), news(&["stale_sending"], &[]));
        assert_eq!(watch.compare(vec!["stale_sending"]), news(&[], &["failed_present"]));
        assert_eq!(watch.compare(Vec::new()), news(&[], &["stale_sending"]));
        assert_eq!(watch.compare(Vec::new()), news(&[], &[]));
    }
}
