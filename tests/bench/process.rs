//! The real `serve`, as a process of its own.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

/// The binary that is shipped, built by the same `cargo bench`.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_pillarbox");
pub(crate) const SECRET: &str = "bench-secret-0123456789abcdef0123";

/// A running server; ended with its value.
pub(crate) struct Serve {
    child: Child,
    pub(crate) address: SocketAddr,
    /// From the start of the process to its first 200 of `/readyz`.
    pub(crate) ready_after: Duration,
    /// What opens `/v1` of a `dev`; empty elsewhere.
    pub(crate) api_key: String,
}

/// Who consumes the events of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Events {
    ConsumedThere,
    LeftAlone,
}

impl Serve {
    pub(crate) fn start(data_dir: &Path, events: Events) -> anyhow::Result<Self> {
        let source = match events {
            Events::ConsumedThere => "bot.event_source=local",
            Events::LeftAlone => "bot.event_source=off",
        };
        Self::start_with(data_dir, &[source])
    }

    /// With these settings.
    pub(crate) fn start_with(data_dir: &Path, settings: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(BINARY);
        command.arg("serve").env("BOT_TO_BACKEND_SECRET", SECRET);
        for setting in settings {
            command.args(["--set", setting]);
        }
        Self::run(command, data_dir, "/readyz")
    }

    /// The fake Bot API instead.
    pub(crate) fn start_fake(data_dir: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(data_dir)?;
        let mut command = Command::new(BINARY);
        command.arg("fake");
        Self::run(command, data_dir, "/dev/telegram/messages")
    }

    /// `dev`, which may send webhooks to this machine.
    pub(crate) fn start_dev(data_dir: &Path) -> anyhow::Result<Self> {
        let ready = data_dir.with_extension("ready");
        let mut command = Command::new(BINARY);
        command.args(["dev", "--no-demo", "--set", "log.level=error", "--ready-file"]).arg(&ready);
        let mut serve = Self::run(command, data_dir, "/readyz")?;
        let started = Instant::now();
        while !ready.exists() {
            anyhow::ensure!(started.elapsed() < Duration::from_secs(10), "no ready file");
            std::thread::sleep(Duration::from_millis(1));
        }
        let told: serde_json::Value = serde_json::from_slice(&std::fs::read(ready)?)?;
        serve.api_key = told["api_key"].as_str().context("no api_key")?.to_owned();
        Ok(serve)
    }

    /// Calls `/v1` with the key of `dev`; the answer's body.
    pub(crate) fn call(&self, method: &str, path: &str, body: &serde_json::Value) -> anyhow::Result<serde_json::Value> {
        let answer = self.ask(method, path, &body.to_string());
        let (_, body) = answer.split_once("\r\n\r\n").with_context(|| format!("no answer to {method} {path}"))?;
        serde_json::from_str(body).with_context(|| format!("{method} {path}: {answer}"))
    }

    /// Runs the command until it answers on this path.
    fn run(mut command: Command, data_dir: &Path, path: &str) -> anyhow::Result<Self> {
        // Taken and given back at once: nobody else on this machine asks for just this one in between.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        command.arg("--data-dir").arg(data_dir).args(["--listen", &address.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {BINARY}"))?;
        let mut serve = Self { child, address, ready_after: Duration::ZERO, api_key: String::new() };
        while !serve.ask("GET", path, "").starts_with("HTTP/1.1 200") {
            anyhow::ensure!(started.elapsed() < Duration::from_secs(60), "it is not ready after a minute");
            anyhow::ensure!(serve.child.try_wait()?.is_none(), "it ended instead of getting ready");
            std::thread::sleep(Duration::from_millis(1));
        }
        serve.ready_after = started.elapsed();
        Ok(serve)
    }

    /// Asks it once over a connection of its own; nothing if it does not listen.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> String {
        ask(self.address, &self.api_key, method, path, body)
    }

    /// Processor time of each of its threads so far, in milliseconds, as the scheduler counts it (the first word of
    /// `schedstat`, nanoseconds). The clock ticks of `stat` are 10 ms, and rounded for user and system by themselves.
    pub(crate) fn processor_ms(&self) -> anyhow::Result<HashMap<OsString, f64>> {
        let mut threads = HashMap::new();
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let thread = thread?;
            let counted = std::fs::read_to_string(thread.path().join("schedstat"))?;
            let ns: f64 = counted.split_whitespace().next().context("an empty schedstat")?.parse()?;
            threads.insert(thread.file_name(), ns / 1e6);
        }
        Ok(threads)
    }

    /// Resident memory now, in MiB.
    pub(crate) fn resident_mib(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches("kB").trim().parse::<f64>()? / 1024.0)
    }

    /// Ends it in order, so that the next start finds a closed file.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status()?;
        anyhow::ensure!(asked.success(), "serve could not be asked to end");
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // After `stop` there is nothing left to kill, and that is no fault.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks a server once over a connection of its own; nothing if it does not listen.
pub(crate) fn ask(address: SocketAddr, key: &str, method: &str, path: &str, body: &str) -> String {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().unwrap_or_default()
}
