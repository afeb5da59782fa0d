//! What can be tried once the demo is over, as commands that can be copied: they fit this server and this directory.

use super::Stage;

/// The page of `docs/examples` posts to this address unless it is edited.
const FORM_POSTS_TO: &str = "http://127.0.0.1:8080";
/// Where Python serves that page as the example is printed.
const FORM_IS_AT: &str = "http://localhost:3000";
/// An event that the demo's receiver has subscribed to.
const ORDER: &str =
    r#"{"type":"order.paid","version":1,"aggregate":{"type":"order","id":"42"},"data":{"total":"9.90"}}"#;
/// The least that makes a lead.
const LEAD: &str = concat!(
    r#"{"schema_version":1,"request_id":"IP-20261130-TRYIT1","form_version":"1","form_fill_ms":20000,"#,
    r#""client":{"name":"Boris","phone":"8 900 123-45-68","city":"Kazan"},"mortgage":{"scenario":"New flat"},"#,
    r#""personal_data_consent":"yes","consent":true}"#,
);

/// Prints them.
pub(super) fn tell(stage: &Stage<'_>) {
    let dir = stage.db.dir().display();
    // As this program was called, since not everybody has it on the path.
    let program = std::env::args().next().unwrap_or_else(|| "pillarbox".to_owned());
    println!("\nThat was the demo. The server goes on; Ctrl-C ends it. In another terminal, from this directory:");
    println!("  {program} leads list --data-dir {dir}      # and so: outbox list, messages list");
    println!("  curl -s {}/dev/telegram/messages", stage.fake);
    let hours = stage.db.clock().offset_ms() / 3_600_000;
    println!("The retries moved the clock of {dir}: it is {hours} hours ahead of this machine's.");
    println!("Its log shows errors only; `{program} dev --no-demo`, or --set log.level=info, shows each request.");
    if let Some(origin) = stage.leads.allowed_origins.first() {
        println!("Post a lead, as a page of {origin} does:");
        let headers = format!("-H 'Origin: {origin}' -H 'Content-Type: application/json'");
        println!("  curl -s {headers} {}/leads -d '{LEAD}'", stage.url);
        if (origin.as_str(), stage.url) == (FORM_IS_AT, FORM_POSTS_TO) {
            println!("Fill in the form, at {origin}/lead-form.html (not 127.0.0.1, which is another origin):");
            println!("  python3 -m http.server 3000 --bind 127.0.0.1 --directory docs/examples");
        }
    }
    if stage.sends_here {
        println!("Post an event of your own, and look at what the receiver got:");
        println!("  curl -s -H 'Authorization: Bearer {}' -H 'Content-Type: application/json' \\", stage.api_key);
        println!("    -d '{ORDER}' {}/v1/events", stage.url);
        println!("  curl -s {}/dev/sink/crm/requests", stage.fake);
    }
    println!("Emit an event, as a backend does:");
    println!("  curl -s -H 'Authorization: Bearer {}' -H 'Content-Type: application/json' \\", stage.bot_secret);
    println!("    -d '{{\"eventType\":\"reactivation\",\"telegramId\":\"103\"}}' {}/bot/events", stage.url);
}
