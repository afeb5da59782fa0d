//! The client against real sockets that refuse, hang, break off, or answer nonsense.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::client::ClientError;
use super::{Client, TelegramSettings};
use crate::chat::{Class, FailureCode, Format, Keyboard, Messenger, Outcome, Preview, Reason, Rendered};
use crate::kernel::secret::Secret;

const TOKEN: &str = "123456:AAsecretSECRETsecret";

fn settings(api_url: String) -> TelegramSettings {
    TelegramSettings {
        api_url,
        token: Secret::new(TOKEN),
        timeout: Duration::from_millis(400),
        connect_timeout: Duration::from_millis(200),
    }
}

fn message() -> Rendered {
    Rendered {
        chat_id: 7,
        text: "hello".into(),
        format: Format::Html,
        keyboard: Keyboard::default(),
        edit: None,
        preview: Preview::Usual,
    }
}

async fn send_to(api_url: String) -> Outcome {
    send_to_as(api_url, &message()).await
}

async fn send_to_as(api_url: String, message: &Rendered) -> Outcome {
    Client::new(&settings(api_url)).expect("an address").send(message).await
}

/// What the server does after it has read the request.
enum Then {
    Hang,
    Close,
    Write(String),
}

fn answer(status: &str, body: &str) -> Then {
    Then::Write(format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()))
}

/// Reads one request whole; returns its head and its body.
async fn read_request(stream: &mut TcpStream) -> (String, String) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0_usize) {
                return (head.to_owned(), body.to_owned());
            }
        }
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "the request ended early");
    }
}

/// Serves one request so, and returns the outcome with what the server read.
async fn outcome_of(then: Then) -> (Outcome, String, String) {
    outcome_of_sending(&message(), then).await
}

async fn outcome_of_sending(message: &Rendered, then: Then) -> (Outcome, String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = read_request(&mut stream).await;
        match then {
            Then::Hang => return (request, Some(stream)),
            Then::Close => {}
            Then::Write(text) => stream.write_all(text.as_bytes()).await.unwrap(),
        }
        (request, None)
    });
    let sending = send_to_as(url, message);
    tokio::pin!(sending);
    let (outcome, served) = tokio::join!(sending, server);
    let ((head, body), _stream) = served.unwrap();
    (outcome, head, body)
}

fn unknown(code: FailureCode) -> Outcome {
    Outcome::Unknown { code }
}

fn refused(class: Class, code: FailureCode) -> Outcome {
    Outcome::Refused { class, code }
}

#[tokio::test]
async fn a_message_is_posted_as_json_and_its_id_is_read() {
    let body =
        r#"{"ok":true,"result":{"message_id":42,"date":1,"chat":{"id":7,"type":"private","first_name":"A"},"new":{}}}"#;
    let (outcome, head, sent) = outcome_of(answer("200 OK", body)).await;
    assert_eq!(outcome, Outcome::Delivered { message_id: Some(42) });
    assert!(head.starts_with(&format!("POST /bot{TOKEN}/SendMessage HTTP/1.1")));
    let sent: serde_json::Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(sent, serde_json::json!({"chat_id": 7, "text": "hello", "parse_mode": "HTML"}));
}

#[tokio::test]
async fn an_edit_that_changes_nothing_is_there_already() {
    let same = r#"{"ok":false,"error_code":400,"description":"Bad Request: message is not modified: specified new"}"#;
    let edit = Rendered { edit: Some(42), ..message() };
    let (outcome, head, _) = outcome_of_sending(&edit, answer("400 Bad Request", same)).await;
    assert_eq!(outcome, Outcome::Delivered { message_id: Some(42) });
    assert!(head.starts_with(&format!("POST /bot{TOKEN}/EditMessageText HTTP/1.1")));
    let gone = r#"{"ok":false,"error_code":400,"description":"Bad Request: message to edit not found"}"#;
    let (outcome, ..) = outcome_of_sending(&edit, answer("400 Bad Request", gone)).await;
    assert_eq!(outcome, refused(Class::NoSuchMessage, FailureCode::NoSuchMessage));
}

#[tokio::test]
async fn no_connection_means_certainly_not_delivered() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(send_to(url).await, refused(Class::Later, FailureCode::Connect));
    // No such name can exist (RFC 2606).
    let unresolved = send_to("http://telegram.invalid".into()).await;
    assert_eq!(unresolved, refused(Class::Later, FailureCode::Connect));
}

#[tokio::test]
async fn a_connection_that_takes_too_long_means_certainly_not_delivered() {
    // Speaks no TLS, so the handshake never ends and nothing is sent.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    assert_eq!(send_to(url).await, refused(Class::Later, FailureCode::Connect));
}

#[tokio::test]
async fn whatever_breaks_after_sending_is_an_unknown_outcome() {
    assert_eq!(outcome_of(Then::Hang).await.0, unknown(FailureCode::Timeout));
    assert_eq!(outcome_of(Then::Close).await.0, unknown(FailureCode::BrokenConnection));
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"ok\":true,";
    assert_eq!(outcome_of(Then::Write(half.into())).await.0, unknown(FailureCode::BrokenConnection));
    let nonsense = Then::Write("SSH-2.0-OpenSSH_9.2\r\n\r\n".into());
    assert_eq!(outcome_of(nonsense).await.0, unknown(FailureCode::BrokenConnection));
}

#[tokio::test]
async fn answers_are_read_by_status_and_text() {
    let cases = [
        ("502 Bad Gateway", "<html>nginx</html>", unknown(FailureCode::Http(502))),
        (
            "500 Internal Server Error",
            r#"{"ok":false,"error_code":500,"description":"Internal Server Error: restart"}"#,
            unknown(FailureCode::Http(500)),
        ),
        ("200 OK", r#"{"ok":true,"result":null}"#, Outcome::Delivered { message_id: None }),
        ("200 OK", "<html>captive portal</html>", unknown(FailureCode::BrokenAnswer)),
        ("307 Temporary Redirect", "", unknown(FailureCode::Http(307))),
        (
            "403 Forbidden",
            r#"{"ok":false,"error_code":403,"description":"Forbidden: bot was blocked by the user"}"#,
            refused(Class::Unreachable(Reason::Blocked), FailureCode::Blocked),
        ),
        (
            "429 Too Many Requests",
            r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 5","parameters":{"retry_after":5}}"#,
            refused(Class::RateLimited { retry_after: Some(Duration::from_secs(5)) }, FailureCode::RateLimited),
        ),
        (
            "401 Unauthorized",
            r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#,
            refused(Class::Unauthorized, FailureCode::Unauthorized),
        ),
    ];
    for (status, body, expected) in cases {
        assert_eq!(outcome_of(answer(status, body)).await.0, expected, "{status}");
    }
}

#[tokio::test]
async fn a_refusal_whose_explanation_is_cut_off_is_still_a_refusal() {
    let cut = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 3\r\ncontent-length: 500\r\n\r\n{";
    let class = Class::RateLimited { retry_after: Some(Duration::from_secs(3)) };
    assert_eq!(outcome_of(Then::Write(cut.into())).await.0, refused(class, FailureCode::RateLimited));
}

#[tokio::test]
async fn the_token_is_in_no_debug_output() {
    let settings = settings("http://127.0.0.1:1".into());
    let client = Client::new(&settings).unwrap();
    let shown = format!("{settings:?} {client:?} {:?}", client.send(&message()).await);
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn an_address_that_is_none_is_refused() {
    for url in ["", "api.telegram.org", "ftp://example.org", "/relative"] {
        assert!(matches!(Client::new(&settings(url.into())), Err(ClientError::Address)), "{url}");
    }
}
