//! Random mixes of writes, settles, attempts and reads, with failures in them, against the obvious model.

use std::collections::BTreeSet;

use pillarbox::kernel::store::{Db, Settings, StoreError, Tx};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use tokio::task::JoinSet;

use crate::data_dir::{Held, emit, open_with, settings, uids};

#[derive(Clone, Copy, Debug)]
enum Door {
    Write,
    Settle,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Keep,
    Fail,
    Panic,
}

/// What one caller does: through a door, a list of attempts that end so, and then an end of its own.
#[derive(Clone, Debug)]
struct Call {
    door: Door,
    attempts: Vec<End>,
    end: End,
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![4 => Just(End::Keep), 1 => Just(End::Fail), 1 => Just(End::Panic)]
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let door = any::<bool>().prop_map(|settles| if settles { Door::Settle } else { Door::Write });
    vec((door, vec(ends(), 0..4), ends()).prop_map(|(door, attempts, end)| Call { door, attempts, end }), 1..40)
}

fn come_to(end: End) -> Result<(), StoreError> {
    match end {
        End::Keep => Ok(()),
        End::Fail => Err(StoreError::NoRow),
        End::Panic => panic!("on purpose"),
    }
}

/// The events of call `n` have uids of their own.
fn do_call(tx: &Tx<'_>, n: usize, call: &Call) -> Result<(), StoreError> {
    let uid = |part: usize| i64::try_from(n * 10 + part).unwrap();
    for (part, end) in call.attempts.iter().enumerate() {
        let tried = tx.attempt(|| StoreError::NoRow, || emit(tx, uid(part + 1)).and_then(|()| come_to(*end)))?;
        assert_eq!(tried.is_ok(), matches!(end, End::Keep));
    }
    emit(tx, uid(0))?;
    come_to(call.end)
}

/// What must be in the file of call `n`, and whether its caller must be told success.
fn model(n: usize, call: &Call) -> Vec<i64> {
    if !matches!(call.end, End::Keep) {
        return Vec::new();
    }
    let kept = call.attempts.iter().enumerate().filter(|(_, end)| matches!(end, End::Keep)).map(|(part, _)| part + 1);
    kept.chain([0]).map(|part| i64::try_from(n * 10 + part).unwrap()).collect()
}

async fn run(db: &Db, calls: &[Call]) -> Vec<(usize, bool)> {
    let held = Held::hold(db).await;
    let mut running = JoinSet::new();
    for (n, call) in calls.iter().cloned().enumerate() {
        let db = db.clone();
        running.spawn(async move {
            let calling = tokio::spawn(async move {
                match call.door {
                    Door::Write => db.write(move |tx| do_call(tx, n, &call)).await,
                    Door::Settle => db.settle(move |tx| do_call(tx, n, &call)).await,
                }
            });
            (n, matches!(calling.await, Ok(Ok(()))))
        });
    }
    held.let_go().await;
    running.join_all().await
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_callers_are_told_is_what_is_in_the_file(calls in calls()) {
        // A panic on purpose would print a page of backtrace for every case.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let quick = Settings { synchronous: pillarbox::kernel::store::Synchronous::Normal, ..settings() };
        runtime.block_on(async {
            let db = open_with(dir.path(), &quick);
            let told = run(&db, &calls).await;
            db.close().await;
            let db = open_with(dir.path(), &quick);
            let kept: BTreeSet<i64> = uids(&db).await.into_iter().collect();
            db.close().await;
            let expected: BTreeSet<i64> = calls.iter().enumerate().flat_map(|(n, call)| model(n, call)).collect();
            prop_assert_eq!(kept, expected);
            for (n, success) in told {
                prop_assert_eq!(success, matches!(calls[n].end, End::Keep));
            }
            Ok(())
        })?;
    }
}
