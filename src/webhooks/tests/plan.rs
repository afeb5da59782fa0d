//! The plans of the statements that are repeated, by the name of the index each relies on; and what that is good for.
