//! Arguments and environment in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    pillarbox::run(std::env::args_os())
}
