//! Log lines to stderr: text on a terminal, JSON lines for a collector. It is an edge because a log is one of the ways
//! the world sees us; whoever logs knows `tracing` only.
//!
//! **Token safety.** The Bot API has the token in its URLs, and HTTP libraries print URLs in their details. They are kept
//! at `warn` unless a directive names them, and never below `info` whatever the directives say. (Crates that use `log`
//! and not `tracing` are not listened to at all.)

use std::io::IsTerminal;

use tracing::subscriber::SetGlobalDefaultError;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::{EnvFilter, filter_fn};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry};

use crate::config::{LogConfig, LogFormat};

/// The libraries that see URLs and headers. A prefix: `hyper` stands for `hyper_util` and `hyper_rustls` too.
const WIRE: [&str; 6] = ["hyper", "reqwest", "h2", "rustls", "tokio_rustls", "teloxide"];

/// What log lines are written to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Output {
    /// A terminal: text, coloured unless `NO_COLOR` is set.
    Terminal,
    /// A file, a pipe, the journal.
    Stream,
}

/// Sends the process's log to stderr from here on.
///
/// # Errors
/// The log was set up before.
pub(crate) fn init(config: &LogConfig) -> Result<(), SetGlobalDefaultError> {
    let output = if std::io::stderr().is_terminal() { Output::Terminal } else { Output::Stream };
    tracing::subscriber::set_global_default(subscriber(config, output, std::io::stderr))
}

/// The subscriber of `config`, writing to `writer`.
pub(crate) fn subscriber<W>(config: &LogConfig, output: Output, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let never_details = filter_fn(|metadata| !is_wire(metadata.target()) || *metadata.level() <= Level::INFO);
    tracing_subscriber::registry().with(lines(config, output, writer)).with(filter(&config.level)).with(never_details)
}

fn lines<W>(config: &LogConfig, output: Output, writer: W) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = fmt::layer().with_writer(writer);
    match (config.format, output) {
        (LogFormat::Json, _) | (LogFormat::Auto, Output::Stream) => {
            Box::new(layer.json().flatten_event(true).with_current_span(false).with_span_list(true))
        }
        (LogFormat::Text, Output::Stream) => Box::new(layer.with_ansi(false)),
        // Left alone, the layer decides on colours by NO_COLOR.
        (LogFormat::Text | LogFormat::Auto, Output::Terminal) => Box::new(layer),
    }
}

/// `level` behind our own directives, so that one of the same target replaces ours.
fn filter(level: &str) -> EnvFilter {
    let ours = WIRE.iter().map(|name| format!("{name}=warn"));
    let theirs = level.split(',').map(|part| part.trim().to_owned());
    let directives: Vec<_> = ours.chain(theirs).collect();
    EnvFilter::builder().parse(directives.join(",")).expect("Config has checked every directive")
}

fn is_wire(target: &str) -> bool {
    WIRE.iter().any(|name| target.starts_with(name))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no writer panics").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(level: &str, format: LogFormat, output: Output, say: impl FnOnce()) -> String {
        let page = Page::default();
        let config = LogConfig { level: level.to_owned(), format };
        let writer = page.clone();
        tracing::subscriber::with_default(subscriber(&config, output, move || writer.clone()), say);
        let bytes = page.0.lock().expect("no writer panics").clone();
        String::from_utf8(bytes).expect("log lines are UTF-8")
    }

    fn wire() {
        tracing::warn!(target: "hyper_util::client", "wire warn");
        tracing::info!(target: "hyper_util::client", "wire info");
        tracing::debug!(target: "hyper_util::client", "wire debug");
        tracing::trace!(target: "reqwest::connect", "wire trace");
        tracing::debug!(target: "pillarbox::chat", "own debug");
    }

    #[test]
    fn http_libraries_stay_at_warn_whatever_the_level() {
        let page = logged("trace", LogFormat::Text, Output::Stream, wire);
        assert!(page.contains("own debug") && page.contains("wire warn"), "{page}");
        assert!(!page.contains("wire info") && !page.contains("wire debug") && !page.contains("wire trace"), "{page}");
    }

    #[test]
    fn http_libraries_never_go_below_info_even_when_named() {
        for level in ["info,hyper=trace,reqwest=trace", "trace,hyper_util::client=trace", "[{any}]=trace,hyper=debug"] {
            let page = logged(level, LogFormat::Text, Output::Stream, wire);
            assert!(!page.contains("wire debug") && !page.contains("wire trace"), "{level}: {page}");
        }
        assert!(logged("info, hyper=info", LogFormat::Text, Output::Stream, wire).contains("wire info"));
    }

    #[test]
    fn a_stream_gets_one_json_object_a_line_with_the_fields_of_its_spans() {
        let page = logged("info", LogFormat::Auto, Output::Stream, || {
            let span = tracing::info_span!("request", request.id = "r-1");
            let _entered = span.enter();
            tracing::info!(event.id = 7, "Event handled");
            tracing::info!("second");
        });
        let lines: Vec<serde_json::Value> =
            page.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["message"], "Event handled");
        assert_eq!(lines[0]["event.id"], 7);
        assert_eq!(lines[0]["spans"][0]["request.id"], "r-1");
    }

    #[test]
    fn text_is_coloured_on_a_terminal_only() {
        let say = || tracing::info!("hello");
        assert!(!logged("info", LogFormat::Text, Output::Stream, say).contains('\u{1b}'));
        assert!(logged("info", LogFormat::Json, Output::Terminal, say).starts_with('{'));
        // The test's own environment may have NO_COLOR, in which case there is nothing to see here.
        let page = logged("info", LogFormat::Auto, Output::Terminal, say);
        assert!(page.contains("hello") && !page.starts_with('{'));
    }
}
