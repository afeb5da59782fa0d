//! What kind of failure an error of the HTTP client is. The client tells it by the chain of an error's causes; the tests
//! beside this provoke each kind, so that another version which tells it otherwise is noticed.

use std::error::Error;
use std::io;

use hyper_util::client::legacy;

use super::connect::NotConnected;
use super::guard::NotDialled;
use crate::webhooks::response::ErrorClass;
use crate::webhooks::shortage::is_shortage;

pub(super) fn class_of(error: &legacy::Error) -> ErrorClass {
    let causes = || std::iter::successors(error.source(), |cause| (*cause).source());
    if let Some(why) = causes().find_map(|cause| cause.downcast_ref::<NotDialled>()) {
        return match why {
            NotDialled::Unknown => ErrorClass::Dns,
            NotDialled::NotPublic => ErrorClass::Blocked,
            NotDialled::Untold => ErrorClass::Interrupted,
        };
    }
    let is_io =
        |is_so: fn(&io::Error) -> bool| causes().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(is_so);
    let not_connected = causes().find_map(|cause| cause.downcast_ref::<NotConnected>());
    if matches!(not_connected, Some(NotConnected::Late)) || is_io(|error| error.kind() == io::ErrorKind::TimedOut) {
        return ErrorClass::Timeout;
    }
    match not_connected {
        // A connection for which this machine had no descriptor was never asked for.
        Some(_) if is_io(is_shortage) => ErrorClass::Interrupted,
        Some(NotConnected::Handshake(_)) => ErrorClass::Tls,
        Some(_) => ErrorClass::Connect,
        // TLS reports what it does not accept as invalid data, also after the handshake; a socket itself never does.
        None if is_io(|error| error.kind() == io::ErrorKind::InvalidData) => ErrorClass::Tls,
        None => ErrorClass::Protocol,
    }
}
