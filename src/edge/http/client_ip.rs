//! Whose request it is: the peer's address, or the one that proxies vouch for.
//!
//! Each proxy appends whom it was called by to `X-Forwarded-For`, so the list is read from its end, for as long as who
//! wrote an entry is trusted: the first address that is not a trusted proxy's is the client's. What stands left of it
//! the client may have invented, and from an untrusted peer it is all invention.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;

use super::HttpState;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The other end of the connection; `serve` puts it into every request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) IpAddr);

/// The client's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClientIp(pub(super) IpAddr);

impl FromRequestParts<Arc<HttpState>> for ClientIp {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpState>) -> Result<Self, Infallible> {
        let Some(Peer(peer)) = parts.extensions.get() else {
            // No reason to turn clients away; they are then all one, and nobody's word is taken.
            tracing::error!("a request came without its peer's address; this is a fault of pillarbox");
            return Ok(Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
        };
        Ok(Self(client_ip(*peer, &parts.headers, &state.trusted_proxies)))
    }
}

/// The client of a request from `peer`. An entry that is no address ends the walk: who is left of it nobody can know,
/// so it is the last one that was vouched for. If all are trusted, it is the left-most.
fn client_ip(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let lines = headers.get_all(X_FORWARDED_FOR).iter().map(|line| line.as_bytes());
    let entries: Vec<&[u8]> = lines.flat_map(|line| line.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii).collect();
    let mut client = peer.to_canonical();
    for entry in entries.into_iter().rev().filter(|entry| !entry.is_empty()) {
        if !trusted.iter().any(|network| network.contains(&client)) {
            break;
        }
        let Some(before) = address(entry) else { break };
        client = before;
    }
    client
}

/// The address of an entry. Some proxies add the port, with brackets around an IPv6 address.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?;
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn found(peer: &str, lines: &[&[u8]], trusted: &str) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_bytes(line).unwrap());
        }
        let trusted: Vec<IpNet> = trusted.split_whitespace().map(|network| network.parse().unwrap()).collect();
        client_ip(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    const LOCAL: &str = "127.0.0.0/8 ::1/128 10.0.0.0/8";

    #[test]
    fn the_first_from_the_right_who_is_no_proxy_of_ours_is_the_client() {
        for (lines, client) in [
            (&[&b"203.0.113.9"[..]][..], "203.0.113.9"),
            (&[b"6.6.6.6, 203.0.113.9"], "203.0.113.9"),
            (&[b"6.6.6.6, 203.0.113.9, 10.0.0.3,10.0.0.4"], "203.0.113.9"),
            (&[b"6.6.6.6", b"203.0.113.9", b"10.0.0.3"], "203.0.113.9"),
            (&[b"203.0.113.9:5678"], "203.0.113.9"),
            (&[b"2001:db8::7"], "2001:db8::7"),
            (&[b"[2001:db8::7]"], "2001:db8::7"),
            (&[b"[2001:db8::7]:80"], "2001:db8::7"),
            (&[b"::ffff:203.0.113.9"], "203.0.113.9"),
            (&[b"203.0.113.9, ::ffff:10.0.0.3"], "203.0.113.9"),
            (&[b" 203.0.113.9 ,, "], "203.0.113.9"),
            (&[b"10.0.0.1, 10.0.0.2"], "10.0.0.1"),
            (&[b""], "127.0.0.1"),
            (&[], "127.0.0.1"),
        ] {
            assert_eq!(found("127.0.0.1", lines, LOCAL), client, "{lines:?}");
        }
        assert_eq!(found("::ffff:127.0.0.1", &[b"203.0.113.9"], LOCAL), "203.0.113.9");
        assert_eq!(found("::1", &[b"203.0.113.9"], LOCAL), "203.0.113.9");
    }

    #[test]
    fn what_is_no_address_ends_the_walk_at_the_last_good_one() {
        for (lines, client) in [
            (&[&b"203.0.113.9, unknown"[..]][..], "127.0.0.1"),
            (&[b"203.0.113.9, unknown, 10.0.0.3"], "10.0.0.3"),
            (&[b"203.0.113.9, \xff\xfe, 10.0.0.3"], "10.0.0.3"),
            (&[b"unknown, 203.0.113.9"], "203.0.113.9"),
            (&[b"\xff, 203.0.113.9"], "203.0.113.9"),
            (&[b"1.2.3.4:99999"], "127.0.0.1"),
            (&[b"1.2.3"], "127.0.0.1"),
            (&[b"[1.2.3.4"], "127.0.0.1"),
        ] {
            assert_eq!(found("127.0.0.1", lines, LOCAL), client, "{lines:?}");
        }
    }

    #[test]
    fn an_untrusted_peer_is_not_believed() {
        assert_eq!(found("203.0.113.1", &[b"6.6.6.6"], LOCAL), "203.0.113.1");
        assert_eq!(found("127.0.0.1", &[b"6.6.6.6"], ""), "127.0.0.1");
        assert_eq!(found("::ffff:203.0.113.1", &[b"6.6.6.6"], LOCAL), "203.0.113.1");
    }
}
