//! Anything in any order, held against a small model of what is promised.
