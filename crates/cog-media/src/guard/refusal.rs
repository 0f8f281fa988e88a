use std::net::IpAddr;

use cog_spec::Code;

use super::Network;

/// Why a URL is refused. The message never repeats the URL, which may contain a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It is not a URL, or parsers could disagree about it.
    #[error("the URL is refused: {0}")]
    Form(&'static str),
    /// The scheme is not http or https; empty if there is none.
    #[error("the URL is refused: {}", scheme(.0))]
    Scheme(String),
    /// It has credentials, or an `@` that could be read as such.
    #[error("the URL is refused: credentials before the host are not allowed")]
    Credentials,
    /// The host is spelled unlike what it is parsed as, which is this.
    #[error("the URL is refused: the host is an unusual spelling of {0}")]
    Spelling(String),
    /// The port is not allowed.
    #[error("the URL is refused: port {0} is not allowed")]
    Port(u16),
    /// The host name is not allowed.
    #[error("the URL is refused: {name}: {why}")]
    Name {
        /// The host name.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// The IP address is not public.
    #[error("the URL is refused: {}{address} is not public: {what}{}", prefix(.name), within(*.network))]
    IpAddress {
        /// The IP address.
        address: IpAddr,
        /// The network that contains it.
        network: Network,
        /// The purpose of the network.
        what: &'static str,
        /// The host name that resolved to it; none if the URL contains the IP address.
        name: Option<String>,
    },
}

impl Refusal {
    /// Returns the code of the specification: E1012 (ruling R62).
    pub fn code(&self) -> Code {
        Code::MediaFetchFailed
    }

    /// Adds the host name that resolved to the IP address.
    pub(super) fn with_name(mut self, resolved: &str) -> Self {
        if let Self::IpAddress { name, .. } = &mut self {
            *name = Some(resolved.to_owned());
        }
        self
    }
}

fn within(network: Network) -> String {
    if network.is_single_ip() { String::new() } else { format!(" ({network})") }
}

fn scheme(scheme: &str) -> String {
    match scheme {
        "" => "it has no scheme; http and https are allowed".to_owned(),
        scheme => format!("scheme `{scheme}`; http and https are allowed"),
    }
}

fn prefix(name: &Option<String>) -> String {
    name.as_ref().map_or_else(String::new, |name| format!("{name}: its IP address "))
}
