//! The real binary as its users run it: processes that are started, waited for, killed, and never left behind.
//!
//! Nothing here sleeps and hopes: whoever waits polls a condition until a deadline, and says what did not happen.

pub(crate) mod broadcast;
pub(crate) mod conversation;
pub(crate) mod crash;
pub(crate) mod dev;
pub(crate) mod file;
pub(crate) mod http;
pub(crate) mod person;
pub(crate) mod receiver;
pub(crate) mod tenant;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// For what takes milliseconds on an idle machine; the others that run at the same time make it this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A token of valid form that is found nowhere else.
pub(crate) const TOKEN: &str = "4242424242:AAxyzzy-Distinctive_Token-of-the-tests";
/// The bearer secret of `serve` in these tests.
pub(crate) const SECRET: &str = "the-bearer-secret-of-the-tests-0123456789";

/// Polls until `look` finds something; fails the test after [`PATIENCE`].
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until_within(PATIENCE, what, look)
}

/// Polls until `look` finds something; fails the test when `patience` is over.
pub(crate) fn until_within<T>(patience: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "within {patience:?} this did not happen: {what}");
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// A directory of its own for one test: the data directory and a log file for each process.
pub(crate) struct Place {
    root: tempfile::TempDir,
    started: AtomicUsize,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().expect("a temporary directory"), started: AtomicUsize::new(0) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The data directory of `serve` or `dev`.
    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// A command of the real binary, with an empty environment, in this directory.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pillarbox"));
        command.args(args).env_clear().current_dir(self.root.path()).stdin(Stdio::null());
        command
    }

    /// Starts it, with both streams going to a log of its own.
    pub(crate) fn start(&self, args: &[&str], environment: &[(&str, &str)]) -> Process {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let log = self.path(&format!("{}-{number}.log", args[0]));
        let stderr = File::create(&log).expect("a log file");
        let stdout = stderr.try_clone().expect("a second handle of the log file");
        let child = self
            .command(args)
            .envs(environment.iter().copied())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .expect("the binary starts");
        Process { child, log, ended: None }
    }

    /// `serve` with a token, a secret and the limits of Telegram out of the way. Ready or not.
    pub(crate) fn start_serve(&self, fake: &str, sets: &[&str]) -> Process {
        self.start_serve_with_secret(fake, sets, SECRET)
    }

    /// The same with the bearer secret of another backend.
    pub(crate) fn start_serve_with_secret(&self, fake: &str, sets: &[&str], secret: &str) -> Process {
        let data = self.data();
        let api = format!("telegram.api_url={fake}");
        let mut args = vec!["serve", "--data-dir", text(&data), "--listen", "127.0.0.1:0"];
        let always = [
            &api,
            "telegram.per_second=1000",
            "telegram.bulk_per_second=1000",
            "telegram.chat_interval=0s",
            "telegram.max_in_flight=64",
        ];
        for set in always.iter().chain(sets) {
            args.extend(["--set", set]);
        }
        self.start(&args, &[("TELEGRAM_BOT_TOKEN", TOKEN), ("BOT_TO_BACKEND_SECRET", secret)])
    }

    /// The fake Bot API as a process of its own, and its address.
    pub(crate) fn start_fake(&self) -> (Process, String) {
        let (ready, data) = (self.path("fake.ready"), self.path("fake"));
        fs::create_dir_all(&data).expect("the fake's directory");
        let args = ["fake", "--listen", "127.0.0.1:0", "--data-dir", text(&data), "--ready-file", text(&ready)];
        let mut process = self.start(&args, &[]);
        let ready = process.ready_file(&ready);
        (process, ready["url"].as_str().expect("the fake's address").to_owned())
    }

    /// Everything that any process has written to its log.
    pub(crate) fn logs(&self) -> String {
        let entries = fs::read_dir(self.root.path()).expect("the test's directory");
        let logs = entries.map(|entry| entry.expect("an entry").path());
        logs.filter(|path| path.extension().is_some_and(|end| end == "log"))
            .map(|path| String::from_utf8_lossy(&fs::read(path).expect("a log")).into_owned())
            .collect()
    }
}

/// A running process; killed when it goes out of scope.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    ended: Option<ExitStatus>,
}

impl Process {
    /// What it has written so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).expect("the log")).into_owned()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn has_ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("the child can be waited for");
        }
        self.ended
    }

    /// Waits for the address that `serve` says it listens on.
    pub(crate) fn serving_url(&mut self) -> String {
        until("serve says its address", || {
            if let Some(status) = self.has_ended() {
                panic!("serve ended with {status}:\n{}", self.log());
            }
            find_url(&self.log())
        })
    }

    /// Waits for a ready file, which appears in one step.
    pub(crate) fn ready_file(&mut self, path: &Path) -> serde_json::Value {
        until("the ready file is written", || {
            if let Some(status) = self.has_ended() {
                panic!("the process ended with {status}:\n{}", self.log());
            }
            fs::read(path).ok().map(|bytes| serde_json::from_slice(&bytes).expect("the ready file is JSON"))
        })
    }

    /// SIGKILL, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        if self.has_ended().is_none() {
            self.child.kill().expect("a process can be killed");
            self.ended = Some(self.child.wait().expect("a killed process ends"));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a running process can be signalled");
    }

    pub(crate) fn wait(&mut self, patience: Duration) -> ExitStatus {
        until_within(patience, "the process ends", || self.has_ended())
    }

    /// SIGTERM, and the promise of an orderly end.
    pub(crate) fn stop(&mut self) {
        self.signal(Signal::TERM);
        let status = self.wait(PATIENCE);
        assert!(status.success(), "after SIGTERM: {status}\n{}", self.log());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address in the line with which `serve` or `dev` announces itself.
pub(crate) fn find_url(log: &str) -> Option<String> {
    let announces = |line: &&str| line.contains("pillarbox is serving") || line.contains("pillarbox dev is serving");
    let line = log.lines().find(announces)?;
    let fields: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(fields["url"].as_str()?.to_owned())
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("the test's directory has a name in UTF-8")
}

/// A setting of the one who runs the tests; the only environment that tests read.
#[expect(clippy::disallowed_methods, reason = "the rule is for the program; tests have no configuration of their own")]
pub(crate) fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}
