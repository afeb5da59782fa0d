//! Receivers that speak TLS, with certificates as a test says.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};

use super::*;
use crate::webhooks::transport::TransportError;

/// An authority of a test, and the file that makes it known.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    dir: tempfile::TempDir,
}

/// What a receiver shows.
pub(super) struct Shown {
    pub(super) certificate: CertificateDer<'static>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.pem"), certificate.pem()).unwrap();
        Self { issuer: Issuer::new(params, key), dir }
    }

    pub(super) fn settings(&self, timeout: Duration) -> TransportSettings {
        TransportSettings { ca_file: Some(self.dir.path().join("ca.pem")), ..settings(timeout) }
    }

    pub(super) fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Shown {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        Shown::of(params.signed_by(&key, &self.issuer).unwrap(), &key)
    }
}

impl Shown {
    fn of(certificate: rcgen::Certificate, key: &KeyPair) -> Self {
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        Self { certificate: certificate.der().clone(), key }
    }

    fn self_signed(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        Self::of(CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap(), &key)
    }
}

/// A receiver at [`PUBLIC`] that speaks these versions of TLS. Names that clients ask for are written down.
async fn serving(shown: Shown, versions: &[&'static SupportedProtocolVersion]) -> (u16, Seen) {
    let config = ServerConfig::builder_with_provider(provider()).with_protocol_versions(versions).unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![shown.certificate], shown.key).unwrap();
    serving_by(config).await
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(tokio_rustls::rustls::crypto::ring::default_provider())
}

async fn serving_by(config: ServerConfig) -> (u16, Seen) {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let seen = Seen::default();
    let write = Arc::clone(&seen);
    let behave = move |stream: TcpStream| {
        let (acceptor, write) = (acceptor.clone(), Arc::clone(&write));
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let name = stream.get_ref().1.server_name().unwrap_or("-").to_owned();
            while let Some(request) = read_request(&mut stream).await {
                let host = String::from_utf8_lossy(&request)
                    .lines()
                    .find(|line| line.starts_with("host: "))
                    .unwrap_or_default()
                    .to_owned();
                write.lock().unwrap().push(format!("{name} {host}"));
                let _ = stream.write_all(OK).await;
                let _ = stream.flush().await;
            }
        }
    };
    (listen(PUBLIC, behave).await.0.port(), seen)
}

const BOTH: &[&SupportedProtocolVersion] = &[&version::TLS12, &version::TLS13];

#[tokio::test]
async fn only_a_valid_certificate_for_the_name_is_spoken_to() {
    let ours = Authority::new();
    let (transport, script) = scripted(&ours.settings(AMPLE));
    script.will("good.example", addresses(&[PUBLIC]));
    let ask = async |shown: Shown| {
        let (port, seen) = serving(shown, BOTH).await;
        let answer = post(&transport, &format!("https://good.example:{port}/")).await;
        let seen = seen.lock().unwrap().clone();
        let name = format!("good.example host: good.example:{port}");
        assert!(seen.iter().all(|line| *line == name), "the original name and host: {seen:?}");
        (told(&answer), seen.len())
    };
    let at_public = |status, error| (status, error, Some(PUBLIC.to_owned()));
    assert_eq!(ask(ours.issue("good.example", |_| {})).await, (at_public(Some(200), None), 1));
    let expired = ours.issue("good.example", |params| {
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(2019, 1, 1), rcgen::date_time_ymd(2020, 1, 1));
    });
    let early = ours.issue("good.example", |params| params.not_before = rcgen::date_time_ymd(4000, 1, 1));
    let stranger = Authority::new().issue("good.example", |_| {});
    let wrong = [ours.issue("other.example", |_| {}), expired, early, stranger, Shown::self_signed("good.example")];
    for (n, shown) in wrong.into_iter().enumerate() {
        assert_eq!(ask(shown).await, (at_public(None, Some("tls")), 0), "{n}");
    }
}

#[tokio::test]
async fn an_authority_of_ones_own_needs_its_file() {
    let ours = Authority::new();
    let (transport, script) = scripted(&settings(AMPLE));
    script.will("good.example", addresses(&[PUBLIC]));
    let (port, _) = serving(ours.issue("good.example", |_| {}), BOTH).await;
    let answer = post(&transport, &format!("https://good.example:{port}/")).await;
    assert_eq!(told(&answer).1, Some("tls"));
}

#[tokio::test]
async fn both_versions_of_tls_that_are_in_use_are_spoken() {
    let ours = Authority::new();
    let (transport, script) = scripted(&ours.settings(AMPLE));
    script.will("good.example", addresses(&[PUBLIC]));
    for versions in [[&version::TLS12], [&version::TLS13]] {
        let (port, _) = serving(ours.issue("good.example", |_| {}), &versions).await;
        assert_eq!(told(&post(&transport, &format!("https://good.example:{port}/")).await).0, Some(200));
    }
}

#[tokio::test]
async fn an_address_in_figures_is_checked_against_the_certificate_too() {
    let ours = Authority::new();
    let (transport, _) = scripted(&ours.settings(AMPLE));
    let (port, _) = serving(ours.issue(PUBLIC, |_| {}), BOTH).await;
    assert_eq!(told(&post(&transport, &format!("https://{PUBLIC}:{port}/")).await).0, Some(200));
    let (port, _) = serving(ours.issue("good.example", |_| {}), BOTH).await;
    assert_eq!(told(&post(&transport, &format!("https://{PUBLIC}:{port}/")).await).1, Some("tls"));
}

/// With TLS 1.3 the refusal comes when the client has long finished shaking hands.
#[tokio::test]
async fn a_receiver_that_wants_a_certificate_of_ours_is_told_as_such() {
    let ours = Authority::new();
    let (transport, script) = scripted(&ours.settings(AMPLE));
    script.will("good.example", addresses(&[PUBLIC]));
    for versions in [[&version::TLS12], [&version::TLS13]] {
        let shown = ours.issue("good.example", |_| {});
        let mut roots = RootCertStore::empty();
        roots.add(shown.certificate.clone()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build().unwrap();
        let config = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&versions).unwrap();
        let config = config.with_client_cert_verifier(verifier);
        let (port, seen) = serving_by(config.with_single_cert(vec![shown.certificate], shown.key).unwrap()).await;
        let answer = post(&transport, &format!("https://good.example:{port}/")).await;
        assert_eq!(told(&answer), (None, Some("tls"), Some(PUBLIC.to_owned())), "{versions:?}");
        assert!(seen.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_port_that_speaks_no_tls_is_told_as_such() {
    let (transport, script) = scripted(&settings(AMPLE));
    script.will("plain.example", addresses(&[PUBLIC]));
    let (closing, _) = listen(PUBLIC, |stream| async move { drop(stream) }).await;
    let (greeting, _) = listen(PUBLIC, |mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let _ = stream.read(&mut [0; 64]).await;
    })
    .await;
    // A TLS 1.0 alert: what a receiver says that knows only versions nobody should speak.
    let (old, _) = listen(PUBLIC, |mut stream| async move {
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(&[0x15, 3, 1, 0, 2, 2, 70]).await;
    })
    .await;
    for at in [closing, greeting, old] {
        let answer = post(&transport, &format!("https://plain.example:{}/", at.port())).await;
        assert_eq!(told(&answer), (None, Some("tls"), Some(PUBLIC.to_owned())), "{at}");
    }
}

#[test]
fn a_file_without_certificates_is_refused_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let made = |path: std::path::PathBuf| {
        let settings = TransportSettings { ca_file: Some(path), ..settings(AMPLE) };
        let egress = Egress::new(EgressPolicy::default());
        Transport::new(&settings, egress, Resolver::system(), Clock::stopped_at(NOW)).map(|_| ())
    };
    assert!(matches!(made(dir.path().join("none.pem")), Err(TransportError::CaFile { .. })));
    for text in ["", "no certificate", "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n"] {
        let path = dir.path().join("ca.pem");
        std::fs::write(&path, text).unwrap();
        assert!(matches!(made(path), Err(TransportError::NoCertificate { .. })), "{text:?}");
    }
}
