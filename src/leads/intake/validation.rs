//! What a request must have to become a lead. What it lacks is told to the log, in these codes, and not to the sender.

use super::Submission;
use crate::config::LeadsConfig;

/// Every fault of the request, in the order of the rules.
pub(super) fn faults(submission: &Submission, rules: &LeadsConfig) -> Vec<&'static str> {
    let Submission { client, mortgage, context, .. } = submission;
    let fill_ms = context.form_fill_ms;
    let checks = [
        (submission.request_id.is_none(), "invalid_request_id"),
        (!submission.is_of_known_schema, "unsupported_schema_version"),
        (context.form_version.is_empty(), "form_version_required"),
        (client.name.is_empty(), "name_required"),
        (!submission.phone.is_valid, "invalid_phone"),
        (client.city.is_empty(), "city_required"),
        (mortgage.scenario.is_empty(), "scenario_required"),
        (!submission.has_consent, "personal_data_consent_required"),
        (fill_ms.is_none(), "invalid_form_fill_ms"),
        (fill_ms.is_some_and(|fill_ms| fill_ms < i64::from(rules.min_fill_ms)), "form_submitted_too_fast"),
    ];
    checks.into_iter().filter(|(is_fault, _)| *is_fault).map(|(_, code)| code).collect()
}
