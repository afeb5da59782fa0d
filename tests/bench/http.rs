//! Emitting through `POST /bot/events` of the real server, over kept-alive connections from this process.

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::load::{Sample, drive};
use crate::process::{Events, SECRET, Serve};
use crate::rounds::Run;
use crate::table::Goal;

pub(crate) fn measure(run: &mut Run) -> anyhow::Result<()> {
    let serve = Serve::start(&run.dir.path().join("http"), Events::LeftAlone)?;
    // One thread for all clients: what is measured is the server, and the machine is shared.
    let clients = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let alone = run.against_floor(|_| clients.block_on(emit(&serve, 1)))?;
    run.add_rate("POST /bot/events, 1 client", &alone, Goal::AtLeast(0.25));
    let many = run.against_floor(|_| clients.block_on(emit(&serve, 64)))?;
    run.add_rate("POST /bot/events, 64 clients", &many, Goal::AtLeast(2.5));
    run.add_at_most("  its p99", "ms", many.p99_ms, 25.0);
    serve.stop()
}

pub(crate) async fn emit(serve: &Serve, clients: usize) -> anyhow::Result<Sample> {
    let mut callers = Vec::new();
    for _ in 0..clients {
        let client = std::sync::Arc::new(tokio::sync::Mutex::new(Client::connect(serve).await?));
        callers.push(move |uid| {
            let client = std::sync::Arc::clone(&client);
            async move { client.lock().await.emit(uid).await.map(|_| ()) }
        });
    }
    drive(callers).await
}

/// A client that is as light as can be, since it shares the machine with the server.
pub(crate) struct Client {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(serve: &Serve) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(serve.address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, answer: Vec::new() })
    }

    /// Emits one event; its id.
    pub(crate) async fn emit(&mut self, uid: i64) -> anyhow::Result<i64> {
        let body = format!(
            r#"{{"eventType":"new_partner","telegramId":"{uid}","magnetUid":{uid},"payload":{{"partnerUid":{uid},"partnerName":"Anna Example"}}}}"#
        );
        let length = body.len();
        let request = format!(
            "POST /bot/events HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {SECRET}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let text = self.created(&request).await?;
        let (_, body) = text.split_once("{\"id\":").context("no id in the answer")?;
        Ok(body.trim_end_matches('}').parse()?)
    }

    /// Sends a request and reads its answer, which must be a 201.
    pub(crate) async fn created(&mut self, request: &str) -> anyhow::Result<&str> {
        self.stream.write_all(request.as_bytes()).await?;
        let text = std::str::from_utf8(self.read().await?)?;
        anyhow::ensure!(text.starts_with("HTTP/1.1 201"), "refused: {text}");
        Ok(text)
    }

    /// Reads one answer whole.
    async fn read(&mut self) -> anyhow::Result<&[u8]> {
        self.answer.clear();
        loop {
            anyhow::ensure!(self.stream.read_buf(&mut self.answer).await? > 0, "the server closed the connection");
            if self.is_whole()? {
                return Ok(&self.answer);
            }
        }
    }

    fn is_whole(&self) -> anyhow::Result<bool> {
        let Some(end) = self.answer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(false) };
        let head = std::str::from_utf8(&self.answer[..end])?.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).context("no length")?;
        Ok(self.answer.len() >= end + 4 + length.trim().parse::<usize>()?)
    }
}
