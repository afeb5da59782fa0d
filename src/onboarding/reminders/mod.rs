//! Reminders: who has been silent at a stage for its threshold is reminded of it once.
