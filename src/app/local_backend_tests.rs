//! The backend in this file as the conversation asks it of members.

use url::Url;

use super::local_backend::LocalBackend;
use crate::backend::connect;
use crate::kernel::clock::Clock;
use crate::kernel::contract::{Bound, Leader, MemberState};
use crate::kernel::store::{Db, Role, Settings};
use crate::onboarding::Backend;

fn open(dir: &std::path::Path) -> Db {
    Db::open(dir, Role::Owner("test"), &Settings::small(), Clock::stopped_at(1_800_000_000_000), vec![]).unwrap()
}

#[tokio::test]
async fn members_of_this_file_are_found_led_to_the_site_and_bound() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let sql = "INSERT INTO members (uid, link, name, telegram_id, addr, lp2, time_active) VALUES
               (7, 'anna', 'Anna', 107, '0xA1', 1, 1800000000000), (8, NULL, NULL, NULL, '', 0, NULL)";
    db.write(move |tx| tx.execute(sql, []).map(|_| ())).await.unwrap();
    let site: Url = "https://site.example/".parse().unwrap();
    let backend = LocalBackend::new(db.clone(), Some(site));

    let anna = Leader { uid: 7, link: "anna".into(), name: Some("Anna".into()) };
    assert_eq!(backend.find_leader("anna").await.unwrap(), Some(anna));
    assert_eq!(backend.find_leader("Anna").await.unwrap(), None);
    assert_eq!((backend.find_account(107).await.unwrap(), backend.find_account(108).await.unwrap()), (Some(7), None));
    let state = MemberState {
        lp2: true,
        addr: Some("0xA1".into()),
        time_active: Some("2027-01-15T08:00:00.000Z".into()),
        own_link: Some("anna".into()),
        ..MemberState::default()
    };
    assert_eq!(backend.find_state(107).await.unwrap(), Some(state));

    let link = backend.connect_link(108).await.unwrap().unwrap();
    assert_eq!(backend.connect_link(108).await.unwrap(), Some(link.clone()));
    db.write(move |tx| connect::redeem(tx, &link.token, 8)).await.unwrap();
    let bound = db.write(move |tx| {
        Ok::<_, crate::kernel::store::StoreError>([
            backend.bind(tx, 109, 8)?,
            backend.bind(tx, 108, 8)?,
            backend.bind(tx, 108, 8)?,
        ])
    });
    assert_eq!(bound.await.unwrap(), [Some(Bound::Refused), Some(Bound::Now), Some(Bound::Before)]);
    assert_eq!(LocalBackend::new(db.clone(), None).connect_link(108).await.unwrap(), None, "no site is known");
    db.close().await;
}
