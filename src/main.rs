//! Arguments and environment in, exit code out.

fn main() -> std::process::ExitCode {
    pillarbox::run(std::env::args_os())
}
