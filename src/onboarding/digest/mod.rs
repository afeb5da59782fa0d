//! Digests: a leader's numbers, at local noon, once a day.
