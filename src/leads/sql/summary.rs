//! What the summary is made of, read whatever another program wrote.

use rusqlite::{Row, named_params};

use crate::kernel::store::{StoreError, Tx, lossy_text};
use crate::leads::summary::{Preparation, Told};

/// The row of that lead.
pub(crate) fn find_row_of(tx: &Tx<'_>, lead_id: &str) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT rowid AS row FROM broker_leads WHERE id = :id";
    tx.query_opt(sql, named_params! { ":id": lead_id }, |row| row.get("row"))
}

/// What the broker is told of the lead in that row.
pub(crate) fn find_told(tx: &Tx<'_>, row: i64) -> Result<Option<Told>, StoreError> {
    let sql = "
        SELECT id, request_id, client_name, phone, city, preferred_contact, contact_time, scenario, mortgage_goal,
               object_type, property_type, object_price_text, property_price, down_payment_text, down_payment,
               income_type, monthly_income, technical_priority, source_page, page_url,
               journey_type, journey_stage, journey_scenario_slug, remaining_questions
        FROM broker_leads WHERE rowid = :row";
    let told = tx.query_opt(sql, named_params! { ":row": row }, told)?;
    let Some(mut told) = told else { return Ok(None) };
    told.preparation.completed = completed(tx, row)?;
    Ok(Some(told))
}

fn told(row: &Row<'_>) -> rusqlite::Result<Told> {
    let text = |column: &str| lossy_text(row, column);
    let number = |column: &str| row.get::<_, Option<i64>>(column).map(|number| number.map(|n| n.to_string()));
    Ok(Told {
        id: [text("request_id")?, text("id")?],
        name: text("client_name")?,
        phone: text("phone")?,
        city: text("city")?,
        contact: [text("preferred_contact")?, text("contact_time")?],
        task: [text("scenario")?, text("mortgage_goal")?],
        object: [text("object_type")?, text("property_type")?],
        price: [text("object_price_text")?, number("property_price")?],
        down_payment: [text("down_payment_text")?, number("down_payment")?],
        income: [text("income_type")?, number("monthly_income")?],
        priority: text("technical_priority")?,
        source: [text("source_page")?, text("page_url")?],
        preparation: Preparation {
            journey_type: text("journey_type")?,
            stage: text("journey_stage")?,
            scenario: text("journey_scenario_slug")?,
            completed: Vec::new(),
            questions: text("remaining_questions")?,
        },
    })
}

/// The first texts of the list of checks. SQLite takes it apart: it knew it for JSON, which a stricter reader may not.
fn completed(tx: &Tx<'_>, row: i64) -> Result<Vec<String>, StoreError> {
    let sql = "
        SELECT label.value AS label
        FROM broker_leads AS lead, json_each(lead.preparation_completed) AS label
        WHERE lead.rowid = :row AND label.type = 'text' AND label.value <> '' ORDER BY label.key LIMIT 4";
    let labels = tx.query_all(sql, named_params! { ":row": row }, |row| lossy_text(row, "label"))?;
    Ok(labels.into_iter().flatten().collect())
}
