//! Arguments and environment in, exit code out.

use std::process::ExitCode;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    pillarbox::run(std::env::args_os())
}
