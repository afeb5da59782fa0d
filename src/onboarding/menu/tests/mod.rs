//! The menu on a real file: taps go in, what is shown is read from the send queue.

mod fixtures;
mod help;
mod lists;
mod pages;
mod plans;

use crate::onboarding::dialog::tests::World;

/// Carol, who is member 77 and writes as chat 177, and Bob, chat 502, whom she brought.
async fn world() -> World {
    let world = World::new();
    world
        .run(
            "INSERT INTO bot_users (telegram_id, magnet_uid, leader_uid, first_name, lang, stage) VALUES
               (177, 77, NULL, 'Carol', 'en', 8), (502, NULL, 77, 'Bob', 'en', 3)",
        )
        .await;
    world
}
