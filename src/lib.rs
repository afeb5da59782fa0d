//! Pillarbox: one binary with one SQLite file.

pub(crate) mod app;
pub(crate) mod backend;
pub(crate) mod chat;
pub mod config;
pub(crate) mod dev;
pub(crate) mod edge;
pub mod kernel;
pub(crate) mod onboarding;
pub(crate) mod outbox;

/// temp
pub fn run(args: impl Iterator<Item = std::ffi::OsString>) -> std::process::ExitCode {
    let args: Vec<String> = args.map(|a| a.to_string_lossy().into_owned()).collect();
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let sources = config::Sources::from_process(None, args[2..].to_vec());
    let done = runtime.block_on(async {
        match args[1].as_str() {
            "serve" => edge::cli::serve::run(sources).await,
            _ => {
                edge::cli::dev::run(
                    sources,
                    edge::cli::dev::DevOptions { ready_file: None, demo: edge::cli::dev::Demo::Play, fake: None },
                )
                .await
            }
        }
    });
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("{error:#}");
            edge::cli::Exit::of_error(&error).into()
        }
    }
}
