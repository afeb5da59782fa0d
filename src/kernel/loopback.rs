//! Which hosts are this machine itself: the one rule for what no proxy can reach, what needs no TLS, whom the fake Bot
//! API may call, and who may command `dev`.
//!
//! Names are not looked up. Only `localhost` counts among them (RFC 6761 §6.3): what any other name means is up to
//! whoever answers for it, who may say 127.0.0.1 to one question and something else to the next.

use std::net::IpAddr;

/// Whether `host`, as it stands in a URL or a `Host` header without its port, is `localhost` or a loopback address in
/// figures. An IPv6 address may be in its brackets.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match bare {
        Some(address) => address.parse().is_ok_and(|address: std::net::Ipv6Addr| address.is_loopback()),
        None => {
            host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn only_this_machine_is_loopback() {
        for host in ["localhost", "LocalHost", "127.0.0.1", "127.9.8.7", "::1", "[::1]", "[0:0:0:0:0:0:0:1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "[]",
            "[127.0.0.1]",
            "[::1",
            "0.0.0.0",
            "::",
            "10.0.0.1",
            "127.0.0.1.nip.example",
            "localhost.evil.example",
            "127.1",
            "0x7f000001",
            "2130706433",
            "127.0.0.1:80",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
