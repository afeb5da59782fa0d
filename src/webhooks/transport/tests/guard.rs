//! Where the transport does not go, whatever a receiver or a name server says.

use super::*;
use crate::webhooks::egress::UrlFault;

#[tokio::test]
async fn an_address_in_figures_is_judged_before_it_is_dialled() {
    let (at, seen, connections) = recording(PRIVATE).await;
    let (transport, script) = scripted(&settings(AMPLE));
    let port = at.port();
    let spellings = [
        format!("https://127.0.0.1:{port}/"),
        format!("https://2130706433:{port}/"),
        format!("https://0x7f.1:{port}/"),
        format!("https://0177.0.0.1:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        format!("https://[::1]:{port}/"),
        format!("https://0.0.0.0:{port}/"),
    ];
    for text in spellings {
        // As if the endpoint had been written under other rules.
        let url: url::Url = text.parse().unwrap();
        let answer = transport.post(&Target::new(url).unwrap(), &HEADERS, b"{}".to_vec()).await;
        assert_eq!(told(&answer), (None, Some("blocked"), None), "{text}");
    }
    assert!(seen.lock().unwrap().is_empty() && script.asked().is_empty());
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_name_that_answers_public_and_then_private_is_refused_the_second_time() {
    let once = |mut stream: TcpStream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
    };
    let listener = TcpListener::bind((PUBLIC, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(once(stream));
        }
    });
    let inside = TcpListener::bind((PRIVATE, port)).await.unwrap();
    let (transport, script) = scripted(&settings(AMPLE));
    script.will("rebinds.example", addresses(&[PUBLIC]));
    script.will("rebinds.example", addresses(&[PRIVATE]));
    // Plain http, so that the receiver needs no certificate; the check of the scheme is the endpoint's.
    let target = Target::new(format!("http://rebinds.example:{port}/").parse().unwrap()).unwrap();
    let first = transport.post(&target, &HEADERS, b"{}".to_vec()).await;
    assert_eq!(told(&first), (Some(200), None, Some(PUBLIC.to_owned())));
    let second = transport.post(&target, &HEADERS, b"{}".to_vec()).await;
    assert_eq!(told(&second), (None, Some("blocked"), None));
    assert_eq!(script.asked(), ["rebinds.example", "rebinds.example"]);
    assert!(futures_util::FutureExt::now_or_never(inside.accept()).is_none(), "nobody came to the private address");
}

#[tokio::test]
async fn a_connection_is_used_for_a_minute_and_then_the_name_is_judged_again() {
    let (at, seen, connections) = recording(PUBLIC).await;
    let (transport, script) = scripted(&settings(AMPLE));
    script.will("moves.example", addresses(&[PUBLIC]));
    script.will("moves.example", addresses(&[PRIVATE]));
    let target = Target::new(format!("http://moves.example:{}/", at.port()).parse().unwrap()).unwrap();
    for _ in 0..3 {
        let answer = transport.post(&target, &HEADERS, b"{}".to_vec()).await;
        assert_eq!(told(&answer), (Some(200), None, Some(PUBLIC.to_owned())));
    }
    assert_eq!((connections.load(Ordering::SeqCst), script.asked().len()), (1, 1));
    transport.clients.grow_old();
    let answer = transport.post(&target, &HEADERS, b"{}".to_vec()).await;
    assert_eq!(told(&answer), (None, Some("blocked"), None));
    assert_eq!((seen.lock().unwrap().len(), script.asked().len()), (3, 2));
}

#[tokio::test]
async fn a_name_with_one_private_address_among_public_ones_is_not_dialled() {
    let (at, seen, connections) = recording(PUBLIC).await;
    let (transport, script) = scripted(&settings(AMPLE));
    let mixed: [&[&str]; 8] = [
        &[PUBLIC, PRIVATE],
        &[PRIVATE, PUBLIC],
        &[PUBLIC, "10.0.0.1", PUBLIC],
        &[PUBLIC, "::1"],
        &[PUBLIC, "::ffff:127.0.0.1"],
        &[PUBLIC, "64:ff9b::7f00:1"],
        &[PUBLIC, "fe80::1"],
        &["169.254.169.254"],
    ];
    for (n, answer) in mixed.into_iter().enumerate() {
        let name = format!("mixed{n}.example");
        script.will(&name, addresses(answer));
        let answer = post(&transport, &format!("https://{name}:{}/", at.port())).await;
        assert_eq!(told(&answer), (None, Some("blocked"), None), "{name}");
    }
    assert!(seen.lock().unwrap().is_empty());
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_name_without_an_address_is_told_as_such() {
    let (transport, script) = scripted(&settings(AMPLE));
    script.will("fails.example", Line::Fails);
    script.will("empty.example", addresses(&[]));
    for name in ["fails.example", "empty.example", "unknown.example"] {
        assert_eq!(told(&post(&transport, &format!("https://{name}/")).await), (None, Some("dns"), None), "{name}");
    }
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_does_not_answer() {
    let (at, seen, _) = recording(PUBLIC).await;
    let (transport, script) = insecure_and_scripted();
    script.will("two.example", addresses(&["127.0.0.3", PUBLIC]));
    let answer = post(&transport, &format!("http://two.example:{}/", at.port())).await;
    assert_eq!(told(&answer), (Some(200), None, Some(PUBLIC.to_owned())));
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_is_never_followed() {
    let (at, seen, connections) = recording(PRIVATE).await;
    for status in [301, 302, 303, 307, 308] {
        for to in [format!("http://{at}/"), "/elsewhere".to_owned(), "https://169.254.169.254/".to_owned()] {
            let redirect = format!("HTTP/1.1 {status} X\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
            let answer = post_to(answering(redirect).await).await;
            assert_eq!(told(&answer), at_loopback(Some(status), Some("http_3xx")), "{status} {to}");
        }
    }
    assert!(seen.lock().unwrap().is_empty());
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_cookie_is_not_brought_back() {
    let seen = Seen::default();
    let write = Arc::clone(&seen);
    let behave = move |mut stream: TcpStream| {
        let write = Arc::clone(&write);
        async move {
            while let Some(request) = read_request(&mut stream).await {
                write.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n").await;
            }
        }
    };
    let (at, _) = listen(PRIVATE, behave).await;
    let transport = insecure(AMPLE);
    for _ in 0..2 {
        post(&transport, &format!("http://{at}/")).await;
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert!(!seen[1].contains("cookie") && !seen[1].contains("referer"), "{}", seen[1]);
}

#[tokio::test]
async fn a_url_is_checked_as_far_as_can_be_said_before_anything_is_sent() {
    let (transport, script) = scripted(&settings(AMPLE));
    script.will("public.example", addresses(&[PUBLIC, "93.184.216.34"]));
    script.will("private.example", addresses(&[PRIVATE]));
    script.will("mixed.example", addresses(&[PUBLIC, "fd00::1"]));
    script.will("fails.example", Line::Fails);
    let check = async |text: &str| transport.check_url(text).await;
    for name in ["public.example", "fails.example", "unknown.example"] {
        assert_eq!(check(&format!("https://{name}/")).await, Ok(()), "{name}");
    }
    for name in ["private.example", "mixed.example", "10.0.0.1", "localhost"] {
        assert_eq!(check(&format!("https://{name}/")).await, Err(UrlFault::NotPublic), "{name}");
    }
    assert_eq!(check("http://public.example/").await, Err(UrlFault::Scheme));
}

/// Run by the test below, in an environment that names a proxy.
#[tokio::test]
#[ignore = "the test below runs it"]
async fn a_request_where_a_proxy_is_named() {
    let (at, seen, _) = recording(PRIVATE).await;
    let (transport, script) = insecure_and_scripted();
    script.will("hooks.example", addresses(&[PRIVATE]));
    let answer = post(&transport, &format!("http://hooks.example:{}/", at.port())).await;
    assert_eq!(told(&answer), at_loopback(Some(200), None));
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[test]
fn a_proxy_of_the_environment_is_not_asked() {
    let proxy = std::net::TcpListener::bind((PRIVATE, 0)).unwrap();
    proxy.set_nonblocking(true).unwrap();
    let url = format!("http://{}", proxy.local_addr().unwrap());
    let mut itself = std::process::Command::new(std::env::current_exe().unwrap());
    itself.args(["--exact", "webhooks::transport::tests::guard::a_request_where_a_proxy_is_named", "--ignored"]);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        itself.env(name, &url);
    }
    itself.env_remove("NO_PROXY").env_remove("no_proxy");
    let output = itself.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(proxy.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
