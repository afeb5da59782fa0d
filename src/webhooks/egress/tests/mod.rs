//! The egress rules: the table, the operator's exceptions, and our own addresses.

mod table;

use std::net::IpAddr;

use super::own::Own;
use super::url::LONGEST_URL;
use super::{Egress, EgressPolicy, Judgement, UrlFault};

/// The defaults, on a machine without addresses of its own.
fn strict() -> Egress {
    Egress::with(EgressPolicy::default(), Own::These(vec![]))
}

fn allowing(networks: &[&str]) -> Egress {
    owning(&[], networks)
}

fn owning(own: &[&str], networks: &[&str]) -> Egress {
    let allow_networks = networks.iter().map(|network| network.parse().unwrap()).collect();
    let own = own.iter().map(|address| address.parse().unwrap()).collect();
    Egress::with(EgressPolicy { allow_networks, ..EgressPolicy::default() }, Own::These(own))
}

/// What `dev` has.
fn insecure() -> Egress {
    Egress::with(EgressPolicy { allow_insecure: true, ..EgressPolicy::default() }, Own::These(vec![]))
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn no_address_or_spelling_of_the_table_is_let_through() {
    let egress = strict();
    let rows = table::INSIDE.len() + table::FAULTY.len();
    assert!(rows >= 120 && table::INSIDE.len() >= 120, "{rows}");
    let inside = table::INSIDE.iter().map(|host| (format!("https://{host}/hook"), UrlFault::NotPublic));
    let faulty = table::FAULTY.iter().map(|(text, fault)| ((*text).to_owned(), *fault));
    let wrong: Vec<_> = inside
        .chain(faulty)
        .filter(|(text, fault)| egress.check_url(text) != Err(*fault))
        .map(|(text, _)| (egress.check_url(&text), text))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn public_addresses_are_allowed() {
    let egress = strict();
    for (text, kept) in table::ALLOWED {
        assert_eq!(egress.check_url(text).map(|url| url.to_string()).as_deref(), Ok(*kept), "{text}");
        assert_eq!(egress.check_url(kept).map(|url| url.to_string()).as_deref(), Ok(*kept), "what is kept is kept");
    }
}

#[test]
fn a_url_has_at_most_2048_characters_as_it_comes_and_as_it_is_kept() {
    let of = |path: String| strict().check_url(&format!("https://a.example/{path}")).map(|_| ());
    let short = LONGEST_URL - "https://a.example/".len();
    assert_eq!(of("a".repeat(short)), Ok(()));
    assert_eq!(of("a".repeat(short + 1)), Err(UrlFault::TooLong));
    assert_eq!(of("ж".repeat(400)), Err(UrlFault::TooLong), "six characters each when escaped");
    let label = "a".repeat(63);
    let host =
        |labels: usize| strict().check_url(&format!("https://{}/", vec![label.as_str(); labels].join("."))).map(|_| ());
    assert_eq!(host(3), Ok(()));
    assert_eq!(host(4), Err(UrlFault::Host));
    assert!(strict().check_url(&format!("https://{label}a.example/")).is_err());
}

/// A receiver's name is written in its certificate, and no certificate is for such a name.
#[test]
fn a_host_that_no_certificate_can_name_is_refused() {
    let refused = ["-a.example", "a-.example", "a.-example", "a.example-", "-", "a.-.example", "xn--.example"];
    for host in refused {
        let url = format!("https://{host}/");
        assert!(matches!(strict().check_url(&url), Err(UrlFault::Host | UrlFault::NotAUrl)), "{host}");
    }
    for host in
        ["a-b.example", "a--b.example", "_a.example", "a_.example", "xn--e1afmkfd.example", "1.example", "example"]
    {
        assert!(strict().check_url(&format!("https://{host}/")).is_ok(), "{host}");
        assert!(tokio_rustls::rustls::pki_types::ServerName::try_from(host).is_ok(), "{host}");
    }
}

#[test]
fn ports_are_443_and_those_listed() {
    let egress = Egress::with(EgressPolicy { ports: vec![8443], ..EgressPolicy::default() }, Own::These(vec![]));
    for port in [443, 8443] {
        assert!(egress.check_url(&format!("https://hooks.example.com:{port}/")).is_ok(), "{port}");
    }
    for port in [0, 80, 444, 8080, 65535] {
        assert_eq!(egress.check_url(&format!("https://hooks.example.com:{port}/")), Err(UrlFault::Port), "{port}");
    }
}

#[test]
fn insecure_allows_http_every_port_and_loopback_and_no_more() {
    let egress = insecure();
    let allowed = [
        "http://127.0.0.1:8080/",
        "http://localhost:9/",
        "http://foo.localhost/",
        "https://[::1]:8443/",
        "http://[::ffff:127.0.0.1]/",
        "http://hooks.example.com/",
        "https://93.184.216.34:22/",
    ];
    for text in allowed {
        assert!(egress.check_url(text).is_ok(), "{text}");
    }
    let refused = [
        ("http://10.0.0.1/", UrlFault::NotPublic),
        ("http://169.254.169.254/", UrlFault::NotPublic),
        ("http://0.0.0.0/", UrlFault::NotPublic),
        ("http://[::]/", UrlFault::NotPublic),
        ("http://[::127.0.0.1]/", UrlFault::NotPublic),
        ("http://[64:ff9b::7f00:1]/", UrlFault::NotPublic),
        ("http://127.0.0.1:0/", UrlFault::Port),
        ("ftp://127.0.0.1/", UrlFault::Scheme),
        ("http://a@127.0.0.1/", UrlFault::UserInfo),
    ];
    for (text, fault) in refused {
        assert_eq!(egress.check_url(text), Err(fault), "{text}");
    }
}

#[test]
fn an_operator_may_list_networks_that_are_not_public() {
    let egress = allowing(&["10.1.0.0/16", "fd00:1::/32", "127.0.0.2/32"]);
    for address in ["10.1.0.1", "10.1.255.255", "::ffff:10.1.0.1", "fd00:1::1", "127.0.0.2", "8.8.8.8"] {
        assert!(egress.permits(ip(address)), "{address}");
    }
    for address in ["10.2.0.1", "10.0.255.255", "::ffff:10.2.0.1", "::10.1.0.1", "fd00:2::1", "127.0.0.1", "::1"] {
        assert!(!egress.permits(ip(address)), "{address}");
    }
    assert_eq!(egress.check_url("http://10.1.0.1/"), Err(UrlFault::Scheme), "the other rules still hold");
    assert!(egress.check_url("https://10.1.0.1/").is_ok());
    assert!(egress.check_url("https://localhost/").is_err());
    assert!(allowing(&["127.0.0.0/8"]).check_url("https://localhost/").is_ok());
}

#[test]
fn a_network_may_be_listed_in_its_mapped_form() {
    let egress = allowing(&["::ffff:10.1.0.0/112"]);
    assert!(egress.permits(ip("10.1.0.1")) && egress.permits(ip("::ffff:10.1.0.1")));
    assert!(!egress.permits(ip("10.2.0.1")));
    assert!(allowing(&["10.1.2.3/16"]).permits(ip("10.1.9.9")), "bits after the prefix do not matter");
}

#[test]
fn a_listed_way_into_v4_does_not_allow_what_lies_behind_it() {
    let egress = allowing(&["64:ff9b::/96", "2002::/16"]);
    assert!(egress.permits(ip("64:ff9b::8.8.8.8")) && egress.permits(ip("2002:808:808::1")));
    for address in ["64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:a00:1::1", "::ffff:0:8.8.8.8"] {
        assert!(!egress.permits(ip(address)), "{address}");
    }
    assert!(!allowing(&["::/0"]).permits(ip("10.0.0.1")), "a network of v6 says nothing of v4");
    assert!(!allowing(&["::/0"]).permits(ip("::ffff:10.0.0.1")));
}

#[test]
fn our_own_addresses_are_refused() {
    let own = ["93.184.216.34", "2606:4700::1", "10.1.0.5"];
    let egress = owning(&own, &[]);
    for address in own {
        assert!(!egress.permits(ip(address)), "{address}");
    }
    assert!(!egress.permits(ip("::ffff:93.184.216.34")));
    assert!(egress.permits(ip("93.184.216.35")));
    assert_eq!(egress.check_url("https://93.184.216.34/"), Err(UrlFault::NotPublic));
}

#[test]
fn an_address_that_may_be_our_own_is_not_permitted() {
    let listed = ["10.1.0.0/16", "10.2.0.5/32"].map(|network| network.parse().unwrap()).to_vec();
    let egress = Egress::untold(EgressPolicy { allow_networks: listed, ..EgressPolicy::default() });
    for address in ["93.184.216.34", "2606:4700::1", "10.1.0.5", "::ffff:93.184.216.34"] {
        assert!(!egress.permits(ip(address)), "{address}");
        assert_eq!(egress.judge(ip(address)), Judgement::Untold, "{address}");
    }
    // What the rules say of by themselves needs no answer of the system.
    assert_eq!(egress.judge(ip("10.2.0.5")), Judgement::Permitted);
    assert_eq!(egress.judge(ip("169.254.169.254")), Judgement::Refused);
    assert!(egress.check_url("https://93.184.216.34/").is_ok(), "who writes it is not told of our trouble");
}

#[test]
fn an_own_address_is_allowed_by_itself_and_not_by_a_network_around_it() {
    assert!(!owning(&["10.1.0.5"], &["10.1.0.0/16"]).permits(ip("10.1.0.5")));
    assert!(owning(&["10.1.0.5"], &["10.1.0.0/16"]).permits(ip("10.1.0.6")));
    assert!(owning(&["10.1.0.5"], &["10.1.0.5/32"]).permits(ip("10.1.0.5")));
    assert!(owning(&["2606:4700::1"], &["2606:4700::1/128"]).permits(ip("2606:4700::1")));
}

#[test]
fn the_system_knows_our_own_addresses() {
    let Ok(socket) = std::net::UdpSocket::bind("0.0.0.0:0") else { return };
    // Chooses a route and sends nothing. Without one this machine has no address to ask about.
    let Ok(()) = socket.connect("192.0.2.1:9") else { return };
    let own = socket.local_addr().unwrap().ip();
    let everything = vec!["0.0.0.0/0".parse().unwrap()];
    let egress = Egress::new(EgressPolicy { allow_networks: everything, ..EgressPolicy::default() });
    assert!(own.is_loopback() || !egress.permits(own));
    assert!(egress.permits(ip("192.0.2.1")));
}

#[test]
fn a_refusal_names_the_rule_and_no_address() {
    let hosts = ["10.1.2.3", "169.254.169.254", "localhost", "[fd00:ec2::254]"];
    let told: Vec<String> = hosts
        .map(|host| strict().check_url(&format!("https://{host}/")).unwrap_err())
        .iter()
        .map(|fault| format!("{fault} {}", fault.code()))
        .collect();
    assert!(told.iter().all(|text| text == "it leads to an address that is not public not_public"), "{told:?}");
}
