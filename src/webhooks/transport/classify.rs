//! What kind of failure an error of the HTTP client is. The client tells it by the chain of an error's causes; the tests
//! beside this provoke each kind, so that another version which tells it otherwise is noticed.

use std::error::Error;
use std::io;

use super::guard::NotDialled;
use crate::webhooks::response::ErrorClass;
use crate::webhooks::shortage::is_shortage;

pub(super) fn class_of(error: &reqwest::Error) -> ErrorClass {
    let causes = || std::iter::successors(error.source(), |cause| (*cause).source());
    if let Some(why) = causes().find_map(|cause| cause.downcast_ref::<NotDialled>()) {
        return match why {
            NotDialled::Unknown => ErrorClass::Dns,
            NotDialled::NotPublic => ErrorClass::Blocked,
            NotDialled::Untold => ErrorClass::Interrupted,
        };
    }
    if error.is_timeout() {
        return ErrorClass::Timeout;
    }
    // A connection for which this machine had no descriptor was never asked for.
    let is_short = |cause: &(dyn Error + 'static)| cause.downcast_ref::<io::Error>().is_some_and(is_shortage);
    if error.is_connect() && causes().any(is_short) {
        return ErrorClass::Interrupted;
    }
    // TLS reports what it does not accept as invalid data, also after the handshake; a socket itself never does.
    let is_invalid = |cause: &(dyn Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::InvalidData)
    };
    if !error.is_connect() {
        return if causes().any(is_invalid) { ErrorClass::Tls } else { ErrorClass::Protocol };
    }
    // A failed dial is told by the connector's own error; what fails while shaking hands comes as it is.
    let is_handshake = causes().nth(1).is_some_and(|cause| cause.is::<io::Error>());
    if is_handshake || causes().any(is_invalid) { ErrorClass::Tls } else { ErrorClass::Connect }
}
