//! Where a webhook may go. Whoever creates an endpoint names an address and has our server call it: without these checks
//! that is a way into the network behind us (server-side request forgery).
//!
//! # What
//! [`Egress`] is the one judge, of an endpoint's URL when it is written ([`Egress::check_url`]) and again before it is sent to,
//! and of each address at the moment it is dialled ([`Egress::permits`]): the HTTP client asks no resolver but ours, ours
//! hands out judged addresses only, and addresses in figures, about which a client asks no resolver, are judged before.
//!
//! # States
//! None. The policy is that of the process; own addresses are asked of the system each time, as they may change.
//!
//! # Guarantees
//! - Every range that is not the public internet is refused, in every spelling and wherever a v4 address hides in a v6
//!   one: `src/webhooks/egress/tests/mod.rs::no_address_or_spelling_of_the_table_is_let_through`.
//! - Public addresses are allowed: `src/webhooks/egress/tests/mod.rs::public_addresses_are_allowed`.
//! - This machine's own addresses are refused, also public ones: `src/webhooks/egress/tests/mod.rs::our_own_addresses_are_refused`.
//! - An address of which the system does not say whether it is our own is not dialled:
//!   `src/webhooks/egress/tests/mod.rs::an_address_that_may_be_our_own_is_not_permitted`.
//! - A name with one address that is not public among public ones is not dialled, nor one whose answer changes:
//!   `src/webhooks/transport/tests/guard.rs::a_name_with_one_private_address_among_public_ones_is_not_dialled`,
//!   `src/webhooks/transport/tests/guard.rs::a_name_that_answers_public_and_then_private_is_refused_the_second_time`.
//! - A redirect is never followed: `src/webhooks/transport/tests/guard.rs::a_redirect_is_a_failure_and_is_never_followed`.
//! - A refusal names the rule, and neither the address nor the network: `src/webhooks/egress/tests/mod.rs::a_refusal_names_the_rule_and_no_address`.
//!
//! # Windows
//! A connection that is kept open was judged when it was dialled, and requests begin on it for a minute at most
//! (`src/webhooks/transport/tests/guard.rs::a_connection_is_used_for_a_minute_and_then_the_name_is_judged_again`).
//!
//! # Not here
//! No list of names: a name says nothing about where it leads. No defence against a NAT or proxy outside this machine that
//! sends a public address back inside; a public address that a provider maps to this machine without telling it cannot
//! be known here.

mod own;
mod ranges;
#[cfg(test)]
mod tests;
mod url;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::IpNet;

use self::own::{Own, Whose};
pub(crate) use self::url::{Host, UrlFault};

/// What the operator allows.
#[derive(Clone, Debug, Default)]
pub(crate) struct EgressPolicy {
    /// Ports beside 443.
    pub(crate) ports: Vec<u16>,
    /// Networks that may be sent to although they are not public.
    pub(crate) allow_networks: Vec<IpNet>,
    /// `http`, every port, and this machine's loopback; for `dev`.
    pub(crate) allow_insecure: bool,
}

/// What is said of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It may be dialled.
    Permitted,
    /// The rules forbid it.
    Refused,
    /// It may be this machine's own: the system did not say. It is not dialled, and nobody but this machine is to blame.
    Untold,
}

/// The judge of where a webhook may go; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Egress(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ports: Vec<u16>,
    networks: Vec<IpNet>,
    allow_insecure: bool,
    own: Own,
}

impl Egress {
    /// A judge by this policy, and by what the system says are our own addresses.
    pub(crate) fn new(policy: EgressPolicy) -> Self {
        Self::with(policy, Own::ask_the_system())
    }

    /// A judge whom the system does not tell which addresses are our own.
    #[cfg(test)]
    pub(crate) fn untold(policy: EgressPolicy) -> Self {
        Self::with(policy, Own::Untold)
    }

    fn with(policy: EgressPolicy, own: Own) -> Self {
        let networks = policy.allow_networks.into_iter().map(ranges::canonical).collect();
        let EgressPolicy { ports, allow_insecure, .. } = policy;
        Self(Arc::new(Inner { ports, networks, allow_insecure, own }))
    }

    /// Whether this address may be dialled.
    pub(crate) fn permits(&self, address: IpAddr) -> bool {
        self.judge(address) == Judgement::Permitted
    }

    /// The same, and whose fault it is if not.
    pub(crate) fn judge(&self, address: IpAddr) -> Judgement {
        let address = address.to_canonical();
        let listed = self.lists(address);
        let is_allowed = match ranges::embedded(address) {
            _ if address.is_loopback() => listed || self.0.allow_insecure,
            // An operator who lists such a range (that of their NAT64, say) allows the way and not what lies behind it.
            Some(inner) if listed => return self.judge(inner.into()),
            Some(_) => false,
            None => listed || ranges::is_public(address),
        };
        // A network that happens to hold this machine too does not allow it: its administration listens there. An
        // operator who means it lists that one address.
        match is_allowed {
            false => Judgement::Refused,
            true if address.is_loopback() || self.lists_alone(address) => Judgement::Permitted,
            true => match self.0.own.whose(address) {
                Whose::Others => Judgement::Permitted,
                Whose::Ours => Judgement::Refused,
                Whose::Untold => Judgement::Untold,
            },
        }
    }

    fn permits_loopback(&self) -> bool {
        self.permits(Ipv4Addr::LOCALHOST.into()) || self.permits(Ipv6Addr::LOCALHOST.into())
    }

    fn permits_port(&self, port: u16) -> bool {
        port != 0 && (port == 443 || self.0.allow_insecure || self.0.ports.contains(&port))
    }

    fn lists(&self, address: IpAddr) -> bool {
        self.0.networks.iter().any(|network| network.contains(&address))
    }

    fn lists_alone(&self, address: IpAddr) -> bool {
        self.0.networks.iter().any(|network| *network == IpNet::from(address))
    }
}
