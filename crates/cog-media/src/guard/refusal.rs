use std::net::IpAddr;

use cog_spec::Code;

use super::Network;

/// Why a URL may not be asked. It never repeats the URL, which may hold a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Readers of URLs could disagree about it, or it is none.
    #[error("the URL is refused: {0}")]
    Form(&'static str),
    /// A scheme other than http and https; empty where there is none.
    #[error("the URL is refused: {}", scheme(.0))]
    Scheme(String),
    /// A user name or password, or an `@` where one could be read.
    #[error("the URL is refused: credentials before the host are not allowed")]
    Credentials,
    /// Its host is written as one thing and read as another, which is this.
    #[error("the URL is refused: the host is an unusual spelling of {0}")]
    Spelling(String),
    /// A port that is not asked.
    #[error("the URL is refused: port {0} is not allowed")]
    Port(u16),
    /// A name that is not asked.
    #[error("the URL is refused: {name}: {why}")]
    Name {
        /// The name.
        name: String,
        /// What it is.
        why: &'static str,
    },
    /// An address that is not public.
    #[error("the URL is refused: {}{address} is not public: {what}{}", of(.name), within(*.network))]
    Address {
        /// The address.
        address: IpAddr,
        /// The network that it belongs to.
        network: Network,
        /// What the network is for.
        what: &'static str,
        /// The name that was resolved to it; none where the URL has the address itself.
        name: Option<String>,
    },
}

impl Refusal {
    /// The code of the specification: E1012 (ruling R62).
    pub fn code(&self) -> Code {
        Code::MediaFetchFailed
    }

    /// The same of an address that this name was resolved to.
    pub(super) fn of(mut self, resolved: &str) -> Self {
        if let Self::Address { name, .. } = &mut self {
            *name = Some(resolved.to_owned());
        }
        self
    }
}

fn within(network: Network) -> String {
    if network.is_one_address() { String::new() } else { format!(" ({network})") }
}

fn scheme(scheme: &str) -> String {
    match scheme {
        "" => "it has no scheme; http and https are allowed".to_owned(),
        scheme => format!("scheme `{scheme}`; http and https are allowed"),
    }
}

fn of(name: &Option<String>) -> String {
    name.as_ref().map_or_else(String::new, |name| format!("{name}: its IP address "))
}
