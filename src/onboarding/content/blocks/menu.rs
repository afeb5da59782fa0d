//! Blocks of the menu (`menu.toml`).

use super::{Block, Shape, Value, button, html, number, text};

const NAME: Value = text("name", &["Anna", "\u{202e}anna"]);
const USERNAME: Value = text("username", &["anna_b"]);
const STAGE: Value = text("stage", &["3", "9"]);
const STAGE_NAME: Value = text("stage_name", &["The video"]);
const PAGE: [Value; 2] = [text("page", &["1"]), text("pages", &["1", "5"])];
const PARTNER: &[Value] = &[NAME, USERNAME, STAGE, STAGE_NAME];

const fn stage_name(key: &'static str) -> Block {
    Block { key, shape: Shape::Plain(64), values: &[] }
}

pub(super) const BLOCKS: &[Block] = &[
    html("menu", &[]),
    button("menu_path_button"),
    button("menu_partners_button"),
    button("menu_hot_button"),
    button("menu_cabinet_button"),
    button("menu_console_button"),
    button("menu_settings_button"),
    button("menu_help_button"),
    button("page_back_button"),
    button("page_on_button"),
    html("path", &[STAGE, STAGE_NAME, Value::Items]),
    html("path_item", &[STAGE_NAME, Value::Switch { name: "is_done" }]),
    html("path_here_item", &[STAGE_NAME]),
    button("path_next_button"),
    stage_name("stage_name_1"),
    stage_name("stage_name_2"),
    stage_name("stage_name_3"),
    stage_name("stage_name_4"),
    stage_name("stage_name_5"),
    stage_name("stage_name_6"),
    stage_name("stage_name_7"),
    stage_name("stage_name_8"),
    stage_name("stage_name_9"),
    html("partners", &[number("total"), PAGE[0], PAGE[1], Value::Items]),
    html("partners_none", &[]),
    html("partners_item", &[NAME, USERNAME, STAGE, STAGE_NAME, Value::Switch { name: "is_asking" }]),
    html("hot", &[number("total"), PAGE[0], PAGE[1], Value::Items]),
    html("hot_none", &[]),
    html("hot_item", PARTNER),
    html("hot_asks_item", PARTNER),
    Block { key: "hot_handled_button", shape: Shape::Button, values: &[NAME] },
    html(
        "cabinet",
        &[
            number("in_bot"),
            number("watched"),
            number("registered"),
            number("nft"),
            text("link", &["boris", "https://t.me/example_bot?start=boris"]),
        ],
    ),
    button("cabinet_link_button"),
    html(
        "console",
        &[
            Value::Switch { name: "lp1" },
            Value::Switch { name: "lp2" },
            text("wallet", &["0xA1B2…C3D4"]),
            text("time_active", &["2026-11-30"]),
        ],
    ),
    html("console_locked", &[]),
    button("console_open_button"),
    html("settings", &[]),
    button("settings_urgent_on_button"),
    button("settings_urgent_off_button"),
    button("settings_digest_on_button"),
    button("settings_digest_off_button"),
    button("settings_broadcast_on_button"),
    button("settings_broadcast_off_button"),
    html("help", &[]),
    button("help_ask_button"),
    html("help_asked", &[]),
    html("help_noted", &[]),
    html("help_for_leader", &[NAME, USERNAME]),
    button("help_for_leader_button"),
];
