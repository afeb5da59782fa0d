//! Arguments and environment in, exit code out.

fn main() {}
