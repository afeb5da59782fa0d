//! Everything the product promises, tested through its edges; one binary, a file per behaviour.

mod store;
