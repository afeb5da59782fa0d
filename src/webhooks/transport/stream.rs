//! A connection that gives only so much at a time and so much in all. The HTTP client reads over provisional answers, and
//! TLS over its own messages, for as long as bytes are there: a receiver that writes faster than they read would have a
//! thread of the runtime to itself, and nothing on it, the deadline included, would come to its turn.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Bytes after which others have their turn: some hundred provisional answers, which take a millisecond.
const TURN: usize = 16 * 1024;

/// The most bytes that are read after a request, as they come over the wire: four times the longest head that is read, and
/// twice what is read of a body. A shake of hands has as many.
pub(super) const LONGEST_ANSWER: usize = 128 * 1024;

/// More came than [`LONGEST_ANSWER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer has more than {LONGEST_ANSWER} bytes")]
struct Endless;

/// The bytes of a connection, counted.
#[derive(Debug)]
pub(super) struct Counted {
    tcp: TcpStream,
    /// Read since others had their turn.
    in_turn: usize,
    /// Read since something was asked.
    of_answer: usize,
}

/// What requests are written to.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(Counted),
    Tls(Box<TlsStream<Counted>>),
}

impl Counted {
    pub(super) fn new(tcp: TcpStream) -> Self {
        Self { tcp, in_turn: 0, of_answer: 0 }
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.of_answer >= LONGEST_ANSWER {
            return Poll::Ready(Err(io::Error::other(Endless)));
        }
        if self.in_turn >= TURN {
            self.in_turn = 0;
            // Whoever wakes itself while it runs is put behind all others.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.tcp).poll_read(context, buf);
        let count = buf.filled().len() - before;
        self.in_turn = if polled.is_pending() { 0 } else { self.in_turn + count };
        self.of_answer += count;
        polled
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write_vectored(context, slices)
    }
}

impl Stream {
    fn counted(&mut self) -> &mut Counted {
        match self {
            Self::Plain(counted) => counted,
            Self::Tls(stream) => stream.get_mut().0,
        }
    }

    /// What is read from now on belongs to the next answer. Only what the HTTP client writes asks for one: TLS writes also
    /// when a receiver bids it to.
    fn asked(&mut self, written: &Poll<io::Result<usize>>) {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.counted().of_answer = 0;
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = match this {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        };
        this.asked(&written);
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = match this {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        };
        this.asked(&written);
        written
    }
}

/// Tells the client the address that is spoken to.
impl Connection for Stream {
    fn connected(&self) -> Connected {
        match self {
            Self::Plain(counted) => counted.tcp.connected(),
            Self::Tls(stream) => stream.get_ref().0.tcp.connected(),
        }
    }
}
