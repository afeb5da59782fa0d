//! How the HTTP client gets a connection: a dial to an address that the [`Guard`] has judged, and TLS for `https`.

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use tower_service::Service;

use super::guard::Guard;
use super::stream::{Counted, Stream};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotConnected {
    /// Nothing was dialled, or nobody answered there.
    #[error("no connection could be made")]
    Dial(#[source] Box<dyn Error + Send + Sync>),
    /// Somebody answered, and there was no understanding on encryption.
    #[error("the other side is not spoken to")]
    Handshake(#[source] io::Error),
    /// It took too long.
    #[error("no connection could be made in time")]
    Late,
}

#[derive(Clone, Debug)]
pub(super) struct Connector {
    tcp: HttpConnector<Guard>,
    tls: Arc<ClientConfig>,
    timeout: Duration,
}

impl Connector {
    /// A connection takes `timeout` at most, also one that nobody waits for any more.
    pub(super) fn new(guard: Guard, mut tls: ClientConfig, timeout: Duration) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(guard);
        // `https` too, which is ours to add.
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Shared out among the addresses of a name, so that one that does not answer leaves time for the next.
        tcp.set_connect_timeout(Some(timeout));
        // Who is trusted is checked anew on the first of its connections.
        tls.resumption = Resumption::default();
        Self { tcp, tls: Arc::new(tls), timeout }
    }

    async fn connect(mut self, uri: Uri) -> Result<Stream, NotConnected> {
        let name = (uri.scheme_str() == Some("https")).then(|| server_name(&uri)).transpose()?;
        let dialled = self.tcp.call(uri).await.map_err(|error| NotConnected::Dial(error.into()))?;
        let counted = Counted::new(dialled.into_inner());
        let Some(name) = name else { return Ok(Stream::Plain(counted)) };
        let shaken = TlsConnector::from(self.tls).connect(name, counted).await;
        Ok(Stream::Tls(Box::new(shaken.map_err(NotConnected::Handshake)?)))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = NotConnected;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, NotConnected>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), NotConnected>> {
        self.tcp.poll_ready(context).map_err(|error| NotConnected::Dial(error.into()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let connected = tokio::time::timeout(connector.timeout, connector.connect(uri)).await;
            connected.unwrap_or(Err(NotConnected::Late)).map(TokioIo::new)
        })
    }
}

/// Whom a certificate has to be for.
fn server_name(uri: &Uri) -> Result<ServerName<'static>, NotConnected> {
    let host = uri.host().unwrap_or_default();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let name = ServerName::try_from(bare.to_owned());
    name.map_err(|error| NotConnected::Handshake(io::Error::new(io::ErrorKind::InvalidInput, error)))
}

/// Certificates of the usual authorities and of `own` ones are trusted, and TLS 1.2 is the least.
///
/// # Errors
/// What is not accepted of the certificates.
pub(super) fn tls(own: Vec<CertificateDer<'static>>) -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for certificate in own {
        roots.add(certificate)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(&[&TLS13, &TLS12])?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
