//! Who may command the doubles: programs on this machine, and pages that this machine itself serves.
//!
//! Listening on loopback keeps other machines out, but not the web: a page from anywhere may make the browser on this
//! machine send requests here, and with a name that first means its own server and then 127.0.0.1 (DNS rebinding) even
//! read the answers. The browser tells the two apart for us: it always sends the `Host` that the page asked for, the
//! page's `Origin` with whatever could change something, and `Sec-Fetch-Site` with the rest (an image, a link).

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{HOST, HeaderName, HeaderValue, ORIGIN};
use axum::http::uri::{Authority, Uri};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};

use super::problem::Problem;
use crate::kernel::loopback::is_loopback;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The same routes, for callers of this machine only; others are answered 403.
pub(super) fn local_only(routes: Router) -> Router {
    routes.layer(from_fn(refuse_foreign))
}

async fn refuse_foreign(request: Request, next: Next) -> Response {
    match find_foreign(request.uri(), request.headers()) {
        Some(why) => Problem::foreign(why).into_response(),
        None => next.run(request).await,
    }
}

/// What shows that the request is not this machine's own.
fn find_foreign(uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
    let mut hosts = headers.get_all(HOST).iter().peekable();
    let of_target = uri.authority().map(Authority::host);
    let is_named = of_target.is_some() || hosts.peek().is_some();
    if !is_named || !of_target.is_none_or(is_loopback) || !hosts.all(is_local_host) {
        return Some("Host: only localhost and loopback addresses are answered here");
    }
    if !headers.get_all(ORIGIN).iter().all(is_local_origin) {
        return Some("Origin: only pages from localhost or a loopback address are obeyed here");
    }
    let is_cross_site = headers.get_all(FETCH_SITE).iter().any(|site| site == "cross-site");
    if is_cross_site && !headers.contains_key(ORIGIN) {
        return Some("Sec-Fetch-Site: a page of another site made this request");
    }
    None
}

fn is_local_host(host: &HeaderValue) -> bool {
    let authority = Authority::try_from(host.as_bytes());
    // Whoever names a user in a Host header means something that is not known here.
    authority.is_ok_and(|authority| !authority.as_str().contains('@') && is_loopback(authority.host()))
}

/// `null`, the origin of a sandboxed page or a file, is nobody's in particular.
fn is_local_origin(origin: &HeaderValue) -> bool {
    let text = origin.to_str().unwrap_or_default();
    let authority = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    authority.is_some_and(|authority| HeaderValue::from_str(authority).is_ok_and(|host| is_local_host(&host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_foreign(target: &str, headers: &[(&'static str, &'static str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        find_foreign(&target.parse().expect("a target"), &map).is_some()
    }

    #[test]
    fn this_machine_is_obeyed_by_any_of_its_names() {
        for host in ["localhost", "localhost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8080", "LOCALHOST"] {
            assert!(!is_foreign("/dev/clock", &[("host", host)]), "{host}");
        }
        let host = ("host", "127.0.0.1:8080");
        for origin in ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:5173"] {
            assert!(!is_foreign("/", &[host, ("origin", origin), ("sec-fetch-site", "cross-site")]), "{origin}");
        }
        for site in ["none", "same-origin", "same-site"] {
            assert!(!is_foreign("/", &[host, ("sec-fetch-site", site)]), "{site}");
        }
        assert!(!is_foreign("http://127.0.0.1:8080/dev/clock", &[]), "HTTP/2 names the host in its target");
    }

    #[test]
    fn everybody_else_is_not() {
        for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "a@127.0.0.1", "10.0.0.1", "", "[::]"]
        {
            assert!(is_foreign("/dev/clock", &[("host", host)]), "{host}");
        }
        let host = ("host", "127.0.0.1:8080");
        for origin in
            ["http://evil.example", "https://localhost.evil.example", "null", "", "file://", "http://", "127.0.0.1"]
        {
            assert!(is_foreign("/", &[host, ("origin", origin)]), "{origin}");
        }
        assert!(is_foreign("/dev/clock", &[]), "no host at all");
        assert!(is_foreign("/", &[host, ("host", "evil.example")]), "two hosts");
        assert!(is_foreign("/", &[host, ("origin", "http://localhost"), ("origin", "http://evil.example")]));
        assert!(is_foreign("http://evil.example/", &[host]), "the target overrides the header");
        assert!(is_foreign("/bot1:a/sendMessage?text=x", &[host, ("sec-fetch-site", "cross-site")]), "an image");
    }
}
