//! Values that are lists: origins of pages, networks of proxies. Entries are separated by commas or white space, so that
//! a variable can hold them; an empty list is a list.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, Url};

use super::value::{Refusal, refuse};

const ORIGIN_ADVICE: &str =
    "write scheme and host as a browser's Origin header has them, such as \"https://example.org\"";
const NETWORK_ADVICE: &str =
    "write addresses or networks such as \"10.0.0.0/8\", or the words loopback and private, or none alone";

pub(super) const PORT_ADVICE: &str = "write ports from 1 to 65535, such as 443 or [443, 8443]";

/// What a list names, one by one.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty())
}

/// The origins of `text` as browsers write them, each once.
pub(super) fn origins(text: &str) -> Result<Vec<String>, Refusal> {
    let mut origins = Vec::new();
    for entry in entries(text) {
        let origin = origin(entry)?;
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    Ok(origins)
}

/// `entry` as a browser writes it: lower case, a host of ASCII, no port that the scheme has anyway.
pub(super) fn origin(entry: &str) -> Result<String, Refusal> {
    match entry {
        "*" => return refuse("`*` would let every page post leads", "name each origin whose pages have the form"),
        "null" => return refuse("`null` is the origin of any page in a sandbox", "name the origin of the page itself"),
        _ => {}
    }
    let Ok(url) = Url::parse(entry) else {
        return refuse("an entry is not an origin", ORIGIN_ADVICE);
    };
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none_or(|host| host == Host::Domain("")) {
        return refuse("an origin begins with http:// or https://", ORIGIN_ADVICE);
    }
    let has_more = url.path() != "/" || url.query().is_some() || url.fragment().is_some();
    if has_more || !url.username().is_empty() || url.password().is_some() {
        return refuse("an origin ends after host and port", ORIGIN_ADVICE);
    }
    if url.host_str().is_some_and(|host| host.contains('*')) {
        return refuse("an origin has no wildcard", "name each host");
    }
    Ok(url.origin().ascii_serialization())
}

/// The ports of `text`, each once.
pub(super) fn ports(text: &str) -> Result<Vec<u16>, Refusal> {
    let mut ports = Vec::new();
    for entry in entries(text) {
        match entry.parse::<u16>() {
            Ok(port) if port > 0 && entry.bytes().all(|byte| byte.is_ascii_digit()) => {
                if !ports.contains(&port) {
                    ports.push(port);
                }
            }
            _ => return refuse("an entry is no port", PORT_ADVICE),
        }
    }
    match ports.is_empty() {
        true => refuse("the list of ports is empty", PORT_ADVICE),
        false => Ok(ports),
    }
}

/// The networks that `text` names.
pub(super) fn networks(text: &str) -> Result<Vec<IpNet>, Refusal> {
    let mut networks = Vec::new();
    let mut says_none = false;
    for entry in entries(text) {
        match entry {
            "none" => says_none = true,
            "loopback" => networks.extend(LOOPBACK),
            "private" => networks.extend(PRIVATE),
            _ => match network(entry) {
                Some(network) => networks.push(network),
                None => return refuse("an entry is no address and no network", NETWORK_ADVICE),
            },
        }
    }
    match says_none && !networks.is_empty() {
        true => refuse("`none` stands beside other entries", "remove it or them"),
        false => Ok(networks),
    }
}

fn network(entry: &str) -> Option<IpNet> {
    let network = entry.parse().or_else(|_| entry.parse::<IpAddr>().map(IpNet::from)).ok()?;
    Some(unmapped(network).trunc())
}

/// IPv4 addresses in IPv6's clothes are IPv4 addresses: so are those of the clients that they are compared with.
fn unmapped(network: IpNet) -> IpNet {
    let IpNet::V6(wide) = network else { return network };
    let narrow = wide.addr().to_ipv4_mapped().zip(wide.prefix_len().checked_sub(96));
    narrow.and_then(|(address, prefix)| Ipv4Net::new(address, prefix).ok()).map_or(network, IpNet::V4)
}

/// This machine.
const LOOPBACK: [IpNet; 2] = [v4([127, 0, 0, 0], 8), v6(Ipv6Addr::LOCALHOST, 128)];
/// Networks that the internet does not route (RFC 1918, RFC 4193).
const PRIVATE: [IpNet; 4] = [
    v4([10, 0, 0, 0], 8),
    v4([172, 16, 0, 0], 12),
    v4([192, 168, 0, 0], 16),
    v6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7),
];

const fn v4(address: [u8; 4], prefix: u8) -> IpNet {
    let [a, b, c, d] = address;
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix))
}

const fn v6(address: Ipv6Addr, prefix: u8) -> IpNet {
    IpNet::V6(Ipv6Net::new_assert(address, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_what_a_browser_says() {
        for (written, origin) in [
            ("https://Example.ORG", "https://example.org"),
            ("https://example.org/", "https://example.org"),
            ("https://example.org:443", "https://example.org"),
            ("HTTP://example.org:80", "http://example.org"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("https://пример.рф", "https://xn--e1afmkfd.xn--p1ai"),
            ("http://[::1]:8080", "http://[::1]:8080"),
        ] {
            assert_eq!(origins(written), Ok(vec![origin.to_owned()]), "{written}");
        }
        let two = vec!["https://a.example".to_owned(), "https://b.example".to_owned()];
        for list in
            ["https://a.example,https://b.example", " https://a.example \n https://b.example, https://A.example"]
        {
            assert_eq!(origins(list), Ok(two.clone()), "{list}");
        }
        assert_eq!(origins(" , "), Ok(vec![]));
    }

    #[test]
    fn whatever_is_no_origin_is_refused() {
        for text in [
            "*",
            "null",
            "example.org",
            "https://*.example.org",
            "https://example.org/form",
            "https://example.org?a",
            "https://example.org#a",
            "https://me@example.org",
            "https://me:pw@example.org",
            "ftp://example.org",
            "file:///form.html",
            "https://",
            "https://example.org:99999",
            "https://a.example,*",
        ] {
            assert!(origins(text).is_err(), "{text}");
        }
    }

    #[test]
    fn networks_are_addresses_ranges_and_words() {
        let contains = |text: &str, address: &str| {
            let address: IpAddr = address.parse().unwrap();
            networks(text).unwrap().iter().any(|network| network.contains(&address))
        };
        assert!(contains("loopback", "127.9.9.9") && contains("loopback", "::1"));
        assert!(!contains("loopback", "10.0.0.1") && !contains("loopback", "::2"));
        for address in ["10.1.2.3", "172.31.0.1", "192.168.0.1", "fd00::1"] {
            assert!(contains("private", address), "{address}");
        }
        for address in ["172.32.0.1", "127.0.0.1", "8.8.8.8", "fe80::1", "2001:db8::1"] {
            assert!(!contains("private", address), "{address}");
        }
        assert!(contains("192.0.2.7", "192.0.2.7") && !contains("192.0.2.7", "192.0.2.8"));
        assert!(contains("192.0.2.77/24", "192.0.2.8"), "host bits are of no account");
        assert!(contains("::ffff:192.0.2.7", "192.0.2.7") && contains("::ffff:192.0.2.0/120", "192.0.2.200"));
        assert!(contains("2001:db8::/32, loopback", "2001:db8::5"));
        assert_eq!(networks("none"), Ok(vec![]));
        assert_eq!(networks(""), Ok(vec![]));
        for text in ["none, loopback", "localhost", "10.0.0.0/33", "10.0.0", "10.0.0.1:80", "[::1]", "LOOPBACK", "*"] {
            assert!(networks(text).is_err(), "{text}");
        }
    }
}
