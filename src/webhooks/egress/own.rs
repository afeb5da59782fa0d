//! Which addresses are this machine's own. A webhook to the server's public address reaches what listens there and is
//! meant for nobody outside, past the firewall that would keep others from it.
//!
//! The question is asked of the kernel: an address is ours if a UDP socket can be bound to it. That costs some
//! microseconds, sends nothing, needs neither a dependency nor privileges, and is right about addresses that came after
//! the start, which a list read once is not. Only "no such address here" means that it is not ours: a kernel that cannot
//! answer, for want of a descriptor say, has not permitted anything.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Addresses that nobody has (documentation). Where they can be bound, the machine is set to bind anything
/// (`ip_nonlocal_bind`, as for a failover address), and binding says nothing.
const NOBODYS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

use rustix::io::Errno;

/// Whose an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// This machine's.
    Ours,
    /// Not this machine's.
    Others,
    /// The system did not say.
    Untold,
}

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
    /// The system says nothing.
    #[cfg(test)]
    Untold,
}

impl Own {
    pub(super) fn ask_the_system() -> Self {
        let binds_all = NOBODYS.map(|address| by_binding(address) == Whose::Ours);
        if binds_all.contains(&true) {
            tracing::warn!("this machine binds addresses that it does not have; its own are known by its routes only");
        }
        Self::System { binds_all }
    }

    pub(super) fn whose(&self, address: IpAddr) -> Whose {
        match self {
            Self::System { binds_all: [v4, v6] } => {
                let binds_all = if address.is_ipv4() { *v4 } else { *v6 };
                if binds_all { by_route(address) } else { by_binding(address) }
            }
            #[cfg(test)]
            Self::These(addresses) if addresses.contains(&address) => Whose::Ours,
            #[cfg(test)]
            Self::These(_) => Whose::Others,
            #[cfg(test)]
            Self::Untold => Whose::Untold,
        }
    }
}

fn by_binding(address: IpAddr) -> Whose {
    bound(UdpSocket::bind(SocketAddr::new(address, 0)).map(|_| ()))
}

fn bound(answer: io::Result<()>) -> Whose {
    match answer {
        Ok(()) => Whose::Ours,
        // Also where this machine speaks the other version of IP only.
        Err(error) if is_one_of(&error, &[Errno::ADDRNOTAVAIL, Errno::AFNOSUPPORT]) => Whose::Others,
        Err(_) => Whose::Untold,
    }
}

/// What is sent to an own address is sent from that address. Connecting a UDP socket only chooses the route. A second
/// address of an interface may be sent to from its first one, and is missed here.
fn by_route(address: IpAddr) -> Whose {
    let any = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let from = UdpSocket::bind(SocketAddr::new(any, 0)).and_then(|socket| {
        socket.connect(SocketAddr::new(address, 9))?;
        socket.local_addr()
    });
    routed(from.map(|from| from.ip()), address)
}

fn routed(from: io::Result<IpAddr>, to: IpAddr) -> Whose {
    const NOWHERE: [Errno; 5] =
        [Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::NETDOWN, Errno::ADDRNOTAVAIL, Errno::AFNOSUPPORT];
    match from {
        Ok(from) if from == to => Whose::Ours,
        Ok(_) => Whose::Others,
        // An own address always has a route.
        Err(error) if is_one_of(&error, &NOWHERE) => Whose::Others,
        Err(_) => Whose::Untold,
    }
}

fn is_one_of(error: &io::Error, known: &[Errno]) -> bool {
    Errno::from_io_error(error).is_some_and(|errno| known.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_known_by_binding_and_by_routes() {
        let (own, nobodys) = ("127.0.0.1".parse().unwrap(), "192.0.2.1".parse().unwrap());
        for binds_all in [false, true] {
            let system = Own::System { binds_all: [binds_all; 2] };
            assert_eq!(system.whose(own), Whose::Ours, "{binds_all}");
            assert_eq!(system.whose(nobodys), Whose::Others, "{binds_all}");
        }
    }

    #[test]
    fn a_system_that_cannot_answer_has_not_said_that_an_address_is_not_ours() {
        let to = IpAddr::from([192, 0, 2, 1]);
        for errno in [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOBUFS,
            Errno::NOMEM,
            Errno::ACCESS,
            Errno::PERM,
            Errno::INVAL,
            Errno::IO,
        ] {
            assert_eq!(bound(Err(errno.into())), Whose::Untold, "{errno:?}");
            assert_eq!(routed(Err(errno.into()), to), Whose::Untold, "{errno:?}");
        }
        for errno in [Errno::ADDRNOTAVAIL, Errno::AFNOSUPPORT] {
            assert_eq!(bound(Err(errno.into())), Whose::Others, "{errno:?}");
        }
        for errno in [Errno::NETUNREACH, Errno::HOSTUNREACH] {
            assert_eq!(routed(Err(errno.into()), to), Whose::Others, "{errno:?}");
        }
        assert_eq!(bound(Ok(())), Whose::Ours);
        assert_eq!((routed(Ok(to), to), routed(Ok([192, 0, 2, 2].into()), to)), (Whose::Ours, Whose::Others));
    }
}
