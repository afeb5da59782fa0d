//! What a receiver may do with a request, and what is told of it.

use super::*;
use crate::webhooks::transport::warm::MOST;

#[tokio::test]
async fn a_request_carries_its_headers_and_exactly_its_bytes() {
    let (at, seen, _) = recording(PRIVATE).await;
    let transport = insecure(AMPLE);
    let body = "{\"data\": 1e400, \"a\":\"\u{2028}\u{1f600}\\/\"}";
    let url = format!("http://localhost.:{}/hook?a=%20b", at.port());
    let answer = transport.post(&target(&transport, &url), &HEADERS, body.into()).await;
    assert_eq!(told(&answer), at_loopback(Some(200), None));
    assert_eq!(answer.outcome.response_body.as_deref(), Some("ok"));
    let seen = seen.lock().unwrap();
    let (head, sent) = seen[0].split_once("\r\n\r\n").unwrap();
    assert_eq!(sent, body);
    let mut lines: Vec<&str> = head.lines().collect();
    assert_eq!(lines.remove(0), "POST /hook?a=%20b HTTP/1.1");
    lines.sort_unstable();
    let host = format!("host: localhost:{}", at.port());
    let length = format!("content-length: {}", body.len());
    let agent = format!("user-agent: pillarbox/{}", env!("CARGO_PKG_VERSION"));
    let mut wanted = [
        "accept: */*",
        &length,
        "content-type: application/json",
        &host,
        &agent,
        "webhook-id: evt_1",
        "webhook-signature: v1,abc",
        "webhook-timestamp: 1700000000",
    ];
    wanted.sort_unstable();
    assert_eq!(lines, wanted);
}

#[tokio::test]
async fn every_status_decides_by_itself() {
    for (status, class) in [
        (200, None),
        (201, None),
        (204, None),
        (299, None),
        (300, Some("http_3xx")),
        (304, Some("http_3xx")),
        (400, Some("http_4xx")),
        (410, Some("http_4xx")),
        (429, Some("http_4xx")),
        (500, Some("http_5xx")),
        (503, Some("http_5xx")),
        (599, Some("http_5xx")),
        (600, Some("protocol")),
        (999, Some("protocol")),
    ] {
        let at = answering(format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n")).await;
        assert_eq!(told(&post_to(at).await), at_loopback(Some(status), class), "{status}");
    }
}

#[tokio::test]
async fn provisional_answers_are_read_over() {
    let hundreds =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let at = answering([hundreds.as_slice(), OK].concat()).await;
    assert_eq!(told(&post_to(at).await), at_loopback(Some(200), None));
    let only = answering_once(hundreds.as_slice()).await;
    assert_eq!(told(&post_to(only).await), at_loopback(None, Some("protocol")));
    let switching = answering("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n").await;
    assert_eq!(told(&post_to(switching).await).1, Some("protocol"));
}

#[tokio::test]
async fn what_is_no_answer_is_told_as_such() {
    let no_answers: [&[u8]; 9] = [
        b"",
        b"HTTP/1.1",
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\ncontent-len",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"200 OK\r\n\r\n",
        b"HTTP/3.0 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
        b"HTTP/1.1 abc OK\r\n\r\n",
    ];
    for bytes in no_answers {
        let told = told(&post_to(answering_once(bytes).await).await);
        assert_eq!(told, at_loopback(None, Some("protocol")), "{}", String::from_utf8_lossy(bytes));
    }
}

#[tokio::test]
async fn a_connection_that_is_reset_is_no_answer() {
    let behave = |mut stream: TcpStream| async move {
        read_request(&mut stream).await;
        // Closing with a linger of zero resets the connection.
        stream.set_zero_linger().unwrap();
    };
    let (at, _) = listen(PRIVATE, behave).await;
    assert_eq!(told(&post_to(at).await), at_loopback(None, Some("protocol")));
}

#[tokio::test]
async fn headers_of_absurd_size_or_number_are_no_answer() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 0\r\n\r\n", "a".repeat(2_000_000));
    assert_eq!(told(&post_to(answering(long).await).await).1, Some("protocol"));
    let many = format!("HTTP/1.1 200 OK\r\n{}content-length: 0\r\n\r\n", "x: y\r\n".repeat(10_000));
    assert_eq!(told(&post_to(answering(many).await).await).1, Some("protocol"));
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_no_connection() {
    let listener = TcpListener::bind((PRIVATE, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    drop(listener);
    assert_eq!(told(&post_to(at).await), at_loopback(None, Some("connect")));
    let by_name = post(&insecure(AMPLE), &format!("http://localhost:{}/", at.port())).await;
    assert_eq!(told(&by_name).1, Some("connect"));
    assert!(by_name.outcome.resolved_ip.is_some_and(|ip| ip.is_loopback()));
}

#[tokio::test]
async fn the_status_decides_whatever_becomes_of_the_body() {
    let endless = |mut stream: TcpStream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\n").await;
        let chunk = [b'x'; 65536];
        let mut sent = 0_usize;
        while sent < 104_857_600 && stream.write_all(&chunk).await.is_ok() {
            sent += chunk.len();
        }
        assert!(sent < 50_000_000, "somebody read {sent} bytes of it");
    };
    let (at, _) = listen(PRIVATE, endless).await;
    let answer = post_to(at).await;
    assert_eq!(told(&answer), at_loopback(Some(200), None));
    assert_eq!(answer.outcome.response_body.map(|body| body.len()), Some(4096));

    let broken = answering_once("HTTP/1.1 204 X\r\n\r\n").await;
    assert_eq!(told(&post_to(broken).await), at_loopback(Some(204), None));
    for head in ["content-length: 100", "transfer-encoding: chunked"] {
        let at = answering_once(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\nzzz")).await;
        let answer = post_to(at).await;
        assert_eq!(told(&answer), at_loopback(Some(200), None), "{head}");
    }
    let failed = answering_once("HTTP/1.1 503 X\r\ncontent-length: 100\r\n\r\nwhy").await;
    let answer = post_to(failed).await;
    assert_eq!(told(&answer), at_loopback(Some(503), Some("http_5xx")));
    assert_eq!(answer.outcome.response_body.as_deref(), Some("why"));
}

/// Writes a byte now and then, for ever.
async fn drip(mut stream: TcpStream, head: &'static [u8]) {
    read_request(&mut stream).await;
    let _ = stream.write_all(head).await;
    loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if stream.write_all(b"x").await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn one_deadline_covers_everything() {
    let deadline = Duration::from_millis(400);
    let transport = insecure(deadline);
    let (silent, _) = listen(PRIVATE, |stream| async move {
        std::future::pending::<()>().await;
        drop(stream)
    })
    .await;
    let (headers, _) = listen(PRIVATE, |stream| drip(stream, b"HTTP/1.1 200 OK\r\nx-slow: ")).await;
    let (provisional, _) = listen(PRIVATE, |mut stream| async move {
        read_request(&mut stream).await;
        while stream.write_all(b"HTTP/1.1 102 Processing\r\n\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    for at in [silent, headers, provisional] {
        let answer = post(&transport, &format!("http://{at}/")).await;
        assert_eq!(told(&answer), at_loopback(None, Some("timeout")));
        assert!((deadline..deadline * 4).contains(&answer.outcome.duration), "{:?}", answer.outcome.duration);
    }
    let (body, _) = listen(PRIVATE, |stream| drip(stream, b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n")).await;
    let answer = post(&transport, &format!("http://{body}/")).await;
    assert_eq!(told(&answer), at_loopback(Some(200), None), "its status had come");
    assert!((deadline..deadline * 4).contains(&answer.outcome.duration), "{:?}", answer.outcome.duration);
    assert!(answer.outcome.response_body.is_some_and(|body| body.starts_with("xxx")));
}

#[tokio::test]
async fn a_body_that_is_kept_back_is_not_waited_for_when_the_status_is_there() {
    let kept_back = |mut stream: TcpStream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok").await;
        std::future::pending::<()>().await;
    };
    let dripped = |stream| drip(stream, b"HTTP/1.1 503 X\r\nretry-after: 7\r\ncontent-length: 9999\r\n\r\n");
    let (kept_back, dripped) = (listen(PRIVATE, kept_back).await.0, listen(PRIVATE, dripped).await.0);
    let (first, second) = tokio::join!(post_to(kept_back), post_to(dripped));
    assert_eq!(told(&first), at_loopback(Some(200), None));
    assert_eq!(first.outcome.response_body.as_deref(), Some("ok"));
    assert_eq!(told(&second), at_loopback(Some(503), Some("http_5xx")));
    assert_eq!(second.outcome.retry_after, Some(Duration::from_secs(7)));
    for answer in [first, second] {
        assert!(answer.outcome.duration < AMPLE / 3, "{:?}", answer.outcome.duration);
    }
}

#[tokio::test]
async fn the_deadline_covers_the_lookup_and_tls_too() {
    let (transport, script) = scripted(&settings(Duration::from_millis(300)));
    script.will("hangs.example", Line::Hangs);
    let answer = post(&transport, "https://hangs.example/").await;
    assert_eq!(told(&answer), (None, Some("timeout"), None));
    let (silent, _) = listen(PUBLIC, |stream| async move {
        std::future::pending::<()>().await;
        drop(stream)
    })
    .await;
    script.will("mute.example", addresses(&[PUBLIC]));
    let answer = post(&transport, &format!("https://mute.example:{}/", silent.port())).await;
    assert_eq!(told(&answer), (None, Some("timeout"), Some(PUBLIC.to_owned())));
}

#[tokio::test]
async fn a_compressed_body_is_kept_as_it_came() {
    // The beginning of a gzip stream; whoever would inflate it finds it damaged.
    let bomb = [b"\x1f\x8b\x08\x00".as_slice(), &[0xff; 6000]].concat();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", bomb.len());
    let answer = post_to(answering([head.as_bytes(), &bomb].concat()).await).await;
    assert_eq!(told(&answer), at_loopback(Some(200), None));
    let body = answer.outcome.response_body.unwrap();
    assert!(body.starts_with("\u{1f}\u{fffd}\u{8}\u{fffd}\u{fffd}") && body.len() <= 4096, "{}", body.len());
}

#[tokio::test]
async fn a_body_is_cut_between_characters() {
    let body = format!("a{}", "€".repeat(5000));
    let at = answering(format!("HTTP/1.1 400 X\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await;
    let kept = post_to(at).await.outcome.response_body.unwrap();
    assert_eq!(kept, body[..1 + 3 * 1365]);
}

#[tokio::test]
async fn a_wait_is_taken_from_429_and_503_and_no_other() {
    let wait = async |head: &str| {
        let at = answering(format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\n\r\n")).await;
        post_to(at).await.outcome.retry_after.map(|wait| wait.as_secs())
    };
    assert_eq!(wait("429 X\r\nRetry-After: 7").await, Some(7));
    assert_eq!(wait("503 X\r\nretry-after: Tue, 14 Nov 2023 22:14:20 GMT").await, Some(60), "by the injected clock");
    assert_eq!(wait("503 X\r\nretry-after: 100000000").await, Some(86_400));
    assert_eq!(wait("503 X\r\nretry-after: -1").await, None);
    assert_eq!(wait("503 X\r\nretry-after: \u{fc}").await, None);
    assert_eq!(wait("503 X").await, None);
    assert_eq!(wait("500 X\r\nretry-after: 7").await, None);
    assert_eq!(wait("200 X\r\nretry-after: 7").await, None);
    assert_eq!(wait("429 X\r\nretry-after: 7\r\nretry-after: 9").await, Some(7), "the first");
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_body_that_was_read_to_its_end() {
    let (at, _, connections) = recording(PRIVATE).await;
    let transport = insecure(AMPLE);
    let target = target(&transport, &format!("http://{at}/"));
    for _ in 0..20 {
        let answer = transport.post(&target, &HEADERS, b"{}".to_vec()).await;
        assert_eq!(told(&answer), at_loopback(Some(200), None));
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn connections_are_kept_open_to_so_many_hosts_and_no_more() {
    let (at, seen, connections) = recording(PRIVATE).await;
    let (transport, script) = insecure_and_scripted();
    for round in 0..2 {
        for n in 0..MOST + 10 {
            let name = format!("host{n}.example");
            script.will(&name, addresses(&[PRIVATE]));
            let answer = post(&transport, &format!("http://{name}:{}/", at.port())).await;
            assert_eq!(told(&answer), at_loopback(Some(200), None), "{round} {n}");
        }
    }
    let closing = seen.lock().unwrap().iter().filter(|request| request.contains("connection: close")).count();
    assert_eq!((closing, connections.load(Ordering::SeqCst)), (20, MOST + 20));
}

#[tokio::test]
async fn the_address_is_told_also_of_a_failure_on_a_connection_that_was_used_before() {
    let behave = |mut stream: TcpStream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(OK).await;
        read_request(&mut stream).await;
        std::future::pending::<()>().await;
    };
    let (at, connections) = listen(PRIVATE, behave).await;
    let transport = insecure(Duration::from_millis(500));
    let target = target(&transport, &format!("http://localhost:{}/", at.port()));
    let first = transport.post(&target, &HEADERS, b"{}".to_vec()).await;
    assert_eq!(told(&first), at_loopback(Some(200), None));
    let second = transport.post(&target, &HEADERS, b"{}".to_vec()).await;
    assert_eq!(told(&second), at_loopback(None, Some("timeout")));
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn every_url_that_passes_can_be_sent_to() {
    let (at, seen, _) = recording(PRIVATE).await;
    let transport = insecure(AMPLE);
    let mut sent = 0;
    for c in (0..=0x2ff_u32).filter_map(char::from_u32) {
        for url in [format!("http://{at}/a{c}b"), format!("http://{at}/?a{c}b"), format!("http://{at}{c}")] {
            let Ok(url) = transport.egress().check_url(&url) else { continue };
            // A digit more or less is another port, where nobody listens.
            if url.port() != Some(at.port()) {
                continue;
            }
            let answer = transport.post(&Target::new(url.clone()).unwrap(), &HEADERS, b"{}".to_vec()).await;
            assert_eq!(told(&answer), at_loopback(Some(200), None), "{url}");
            sent += 1;
        }
    }
    assert_eq!(seen.lock().unwrap().len(), sent);
    assert!(sent > 1000, "{sent}");
}
