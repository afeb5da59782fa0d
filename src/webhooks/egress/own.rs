//! Which addresses are this machine's own. A webhook to the server's public address reaches what listens there and is
//! meant for nobody outside, past the firewall that would keep others from it.
//!
//! The question is asked of the kernel: an address is ours if a UDP socket can be bound to it. That costs some
//! microseconds, sends nothing, needs neither a dependency nor privileges, and is right about addresses that came after
//! the start, which a list read once is not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Addresses that nobody has (documentation). Where they can be bound, the machine is set to bind anything
/// (`ip_nonlocal_bind`, as for a failover address), and binding says nothing.
const NOBODYS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// How own addresses are known.
#[derive(Debug)]
pub(super) enum Own {
    /// The kernel is asked.
    System {
        /// Whether it lets anything be bound, for v4 and v6.
        binds_all: [bool; 2],
    },
    /// These are.
    #[cfg(test)]
    These(Vec<IpAddr>),
}

impl Own {
    pub(super) fn ask_the_system() -> Self {
        let binds_all = NOBODYS.map(can_bind);
        if binds_all.contains(&true) {
            tracing::warn!("this machine binds addresses that it does not have; its own are known by its routes only");
        }
        Self::System { binds_all }
    }

    pub(super) fn holds(&self, address: IpAddr) -> bool {
        match self {
            Self::System { binds_all: [v4, v6] } => {
                let binds_all = if address.is_ipv4() { *v4 } else { *v6 };
                if binds_all { is_routed_to_itself(address) } else { can_bind(address) }
            }
            #[cfg(test)]
            Self::These(addresses) => addresses.contains(&address),
        }
    }
}

fn can_bind(address: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

/// What is sent to an own address is sent from that address. Connecting a UDP socket only chooses the route. A second
/// address of an interface may be sent to from its first one, and is missed here.
fn is_routed_to_itself(address: IpAddr) -> bool {
    let any = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let from = UdpSocket::bind(SocketAddr::new(any, 0)).and_then(|socket| {
        socket.connect(SocketAddr::new(address, 9))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_known_by_binding_and_by_routes() {
        let (own, nobodys) = ("127.0.0.1".parse().unwrap(), "192.0.2.1".parse().unwrap());
        for binds_all in [false, true] {
            let system = Own::System { binds_all: [binds_all; 2] };
            assert!(system.holds(own), "{binds_all}");
            assert!(!system.holds(nobodys), "{binds_all}");
        }
    }
}
