//! An endpoint's URL: parsed once, judged as parsed, and stored and sent to in exactly the form that was judged. A text
//! that is read by two parsers is two addresses.

use std::net::IpAddr;

use url::Url;

use super::{Egress, Judgement};

/// The most characters of a URL, as it comes and as it is stored.
pub(super) const LONGEST_URL: usize = 2048;

/// What is wrong with an endpoint's URL: the rule that it breaks, and nothing about where it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum UrlFault {
    /// It is none.
    #[error("it is not a URL")]
    NotAUrl,
    /// It has more than [`LONGEST_URL`] characters.
    #[error("it is longer than {LONGEST_URL} characters")]
    TooLong,
    /// Another scheme than `https`.
    #[error("it must begin with https://")]
    Scheme,
    /// A name or password before the host: it would be stored and shown, and is not sent.
    #[error("it must have no user name and no password")]
    UserInfo,
    /// A part after `#`, which no server gets.
    #[error("it must have no fragment")]
    Fragment,
    /// A port that is not listed.
    #[error("its port is not allowed")]
    Port,
    /// No name that can be looked up.
    #[error("its host is no name that can be looked up")]
    Host,
    /// It leads to an address that is not public.
    #[error("it leads to an address that is not public")]
    NotPublic,
}

impl UrlFault {
    /// A short name of the rule.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::NotAUrl => "not_a_url",
            Self::TooLong => "url_too_long",
            Self::Scheme => "https_only",
            Self::UserInfo => "user_info",
            Self::Fragment => "fragment",
            Self::Port => "port_not_allowed",
            Self::Host => "bad_host",
            Self::NotPublic => "not_public",
        }
    }
}

/// Whom a judged URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// A name; where it leads is judged when it is looked up.
    Name,
    /// An address in figures, in whatever form it was written.
    Address(IpAddr),
}

impl Host {
    pub(crate) fn of(url: &Url) -> Option<Self> {
        match url.host()? {
            url::Host::Domain(_) => Some(Self::Name),
            url::Host::Ipv4(address) => Some(Self::Address(address.into())),
            url::Host::Ipv6(address) => Some(Self::Address(address.into())),
        }
    }
}

impl Egress {
    /// The URL in the form in which it is stored and sent to, if a webhook may go there. A name is not looked up.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub(crate) fn check_url(&self, text: &str) -> Result<Url, UrlFault> {
        if text.chars().count() > LONGEST_URL {
            return Err(UrlFault::TooLong);
        }
        // The parser drops tabs and line ends wherever they are; what is judged should be what was read by a person.
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(UrlFault::NotAUrl);
        }
        let mut url = Url::parse(text).map_err(|_| UrlFault::NotAUrl)?;
        match url.scheme() {
            "https" => {}
            "http" if self.0.allow_insecure => {}
            _ => return Err(UrlFault::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlFault::UserInfo);
        }
        if url.fragment().is_some() {
            return Err(UrlFault::Fragment);
        }
        if !url.port_or_known_default().is_some_and(|port| self.permits_port(port)) {
            return Err(UrlFault::Port);
        }
        self.check_host(&mut url)?;
        if url.as_str().len() > LONGEST_URL {
            return Err(UrlFault::TooLong);
        }
        Ok(url)
    }

    fn check_host(&self, url: &mut Url) -> Result<(), UrlFault> {
        match Host::of(url).ok_or(UrlFault::Host)? {
            Host::Address(address) if self.judge(address) == Judgement::Refused => Err(UrlFault::NotPublic),
            // It is judged again before it is dialled, by when the system may say whose it is.
            Host::Address(_) => Ok(()),
            Host::Name => {
                let name = url.host_str().unwrap_or_default();
                // The dot at the end says that the name is complete. Certificates and `Host` headers do without it.
                let bare = name.strip_suffix('.').unwrap_or(name).to_owned();
                if !is_host_name(&bare) {
                    return Err(UrlFault::Host);
                }
                if bare != name {
                    url.set_host(Some(&bare)).map_err(|_| UrlFault::Host)?;
                }
                // Never asked of a name server (RFC 6761 §6.3), so it can be judged here.
                let is_local = bare == "localhost" || bare.ends_with(".localhost");
                if is_local && !self.permits_loopback() { Err(UrlFault::NotPublic) } else { Ok(()) }
            }
        }
    }
}

/// Labels of letters, digits, underscores and hyphens between them, as name servers and certificates know them. The parser
/// has made them lower case, and A-labels of what is written in other letters.
fn is_host_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let is_edged = |label: &str| label.starts_with('-') || label.ends_with('-');
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(is_fit) && !is_edged(label);
    name.len() <= 253 && name.split('.').all(is_label)
}
