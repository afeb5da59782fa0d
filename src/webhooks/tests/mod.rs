//! Webhooks on a real file, with a clock that is moved; what a worker does is done by hand.
