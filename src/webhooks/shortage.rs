//! Which errors of the system say that this machine is short of something: descriptors, memory, ports, threads. What
//! fails for that is no receiver's failure.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use rustix::io::Errno;

/// What there is too little of: descriptors of this process and of the machine, memory, ports and threads.
const SHORTAGES: [Errno; 5] = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::AGAIN];

/// Whether the error says that.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|errno| SHORTAGES.contains(&errno))
}

/// Whether a socket cannot be made just now. The system's resolver tells no shortage of its own: a name that it had no
/// descriptor to ask about is to it a name that does not exist.
pub(super) fn is_short_of_sockets() -> bool {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).is_err_and(|error| is_shortage(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_other_side_does_is_no_shortage_of_ours() {
        for errno in SHORTAGES {
            assert!(is_shortage(&errno.into()), "{errno:?}");
        }
        for errno in [Errno::CONNREFUSED, Errno::CONNRESET, Errno::TIMEDOUT, Errno::HOSTUNREACH, Errno::NETUNREACH] {
            assert!(!is_shortage(&errno.into()), "{errno:?}");
        }
        assert!(!is_shortage(&io::Error::other("no such name")));
        assert!(!is_short_of_sockets());
    }
}
