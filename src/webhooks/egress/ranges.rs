//! The address ranges that are not the public internet, as data: IANA's special-purpose registries for IPv4 and IPv6, what
//! is multicast or reserved, and the forms in which an IPv6 address carries an IPv4 one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

const NOT_PUBLIC_V4: [Ipv4Net; 16] = [
    v4([0, 0, 0, 0], 8),        // "this network"; 0.0.0.0 is answered by this machine
    v4([10, 0, 0, 0], 8),       // private
    v4([100, 64, 0, 0], 10),    // between a provider and its customers (CGNAT); one cloud's metadata too
    v4([127, 0, 0, 0], 8),      // loopback
    v4([168, 63, 129, 16], 32), // another cloud's metadata, in the midst of public addresses
    v4([169, 254, 0, 0], 16),   // link-local; most clouds' metadata
    v4([172, 16, 0, 0], 12),    // private
    v4([192, 0, 0, 0], 24),     // protocol assignments
    v4([192, 0, 2, 0], 24),     // documentation
    v4([192, 88, 99, 0], 24),   // relays of 6to4
    v4([192, 168, 0, 0], 16),   // private
    v4([198, 18, 0, 0], 15),    // benchmarks
    v4([198, 51, 100, 0], 24),  // documentation
    v4([203, 0, 113, 0], 24),   // documentation
    v4([224, 0, 0, 0], 4),      // multicast
    v4([240, 0, 0, 0], 4),      // reserved, and broadcast
];

/// Only from here are addresses given out that the internet routes.
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0, 0], 3);

const NOT_PUBLIC_V6: [Ipv6Net; 4] = [
    v6([0x2001, 0, 0, 0], 23),     // protocol assignments: Teredo, ORCHID, benchmarks
    v6([0x2001, 0xdb8, 0, 0], 32), // documentation
    v6([0x2002, 0, 0, 0], 16),     // 6to4
    v6([0x3fff, 0, 0, 0], 20),     // documentation
];

/// Translated by the operator's own NAT64 (RFC 6052 §2.1): the last four bytes are IPv4.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0], 96);
const TEREDO: Ipv6Net = v6([0x2001, 0, 0, 0], 32);
const SIX_TO_FOUR: Ipv6Net = v6([0x2002, 0, 0, 0], 16);

const fn v4(octets: [u8; 4], prefix: u8) -> Ipv4Net {
    let [a, b, c, d] = octets;
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(first: [u16; 4], prefix: u8) -> Ipv6Net {
    let [a, b, c, d] = first;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), prefix)
}

/// Whether the address is of the public internet. A v4 address in its mapped form is to be unwrapped before.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !NOT_PUBLIC_V4.iter().any(|range| range.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_UNICAST.contains(&address) && !NOT_PUBLIC_V6.iter().any(|range| range.contains(&address))
        }
    }
}

/// The v4 address to which a translator or tunnel would carry what is sent to this v6 address.
pub(super) fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let bytes = address.octets();
    let at = |from: usize| Ipv4Addr::new(bytes[from], bytes[from + 1], bytes[from + 2], bytes[from + 3]);
    let is_compatible = bytes[..12] == [0; 12] && !address.is_loopback() && !address.is_unspecified();
    let is_translated = bytes[..8] == [0; 8] && bytes[8..12] == [0xff, 0xff, 0, 0]; // SIIT, RFC 2765 §2.1
    let is_isatap = matches!(address.segments()[4..6], [0 | 0x200, 0x5efe]); // RFC 5214 §6.1
    if is_compatible || is_translated || is_isatap || NAT64.contains(&address) {
        Some(at(12))
    } else if SIX_TO_FOUR.contains(&address) {
        Some(at(2))
    } else if TEREDO.contains(&address) {
        // The client's address is stored inverted (RFC 4380 §4).
        Some(Ipv4Addr::from_bits(!at(12).to_bits()))
    } else {
        None
    }
}

/// A network of v4 addresses in their mapped form, as one of v4 addresses: the form in which addresses are judged.
pub(super) fn canonical(network: IpNet) -> IpNet {
    if let IpNet::V6(v6) = network
        && v6.prefix_len() >= 96
        && let Some(first) = v6.network().to_ipv4_mapped()
        && let Ok(v4) = Ipv4Net::new(first, v6.prefix_len() - 96)
    {
        return v4.into();
    }
    network.trunc()
}
