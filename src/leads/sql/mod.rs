//! Every statement on `broker_leads`, `broker_lead_events` and `broker_lead_rate_limits`: claims, intake, lists.
