use std::{fmt, net::IpAddr, str::FromStr};

use super::Network;

/// An operator's exception to the public network: a network, an IP address or a host name, with or without a port.
///
/// Examples: `10.1.0.0/16`, `127.0.0.1:9000`, `[fd00::5]:8080`, `media.internal`, `*.media.internal:8443`. A rule with
/// a port applies to that port only. An internal host name is allowed with any IP address. For a public host name a
/// rule allows the port only: each IP address must be public or allowed itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowRule {
    scope: Scope,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Scope {
    Network(Network),
    Name(String),
    /// Every name below this one.
    Below(String),
}

/// Text that is not a valid rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a valid network, IP address or host: use 10.0.0.0/8, 127.0.0.1:9000, media.internal or *.media.internal"
)]
pub struct RuleError(String);

impl AllowRule {
    /// Returns the port that it applies to; none for all allowed ports.
    pub(super) fn port(&self) -> Option<u16> {
        self.port
    }

    pub(super) fn admits_ip(&self, address: IpAddr, port: u16) -> bool {
        self.applies_to(port) && matches!(&self.scope, Scope::Network(network) if network.contains(address))
    }

    pub(super) fn admits_name(&self, name: &str, port: u16) -> bool {
        self.applies_to(port)
            && match &self.scope {
                Scope::Network(_) => false,
                Scope::Name(own) => own == name,
                Scope::Below(parent) => {
                    name.strip_suffix(parent.as_str()).is_some_and(|before| before.ends_with('.'))
                }
            }
    }

    fn applies_to(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
}

impl FromStr for AllowRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let wrong = || RuleError(text.to_owned());
        let (target, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((inner, rest)) => (inner, rest.strip_prefix(':')),
            None if text.parse::<Network>().is_ok() => (text, None),
            None => text.rsplit_once(':').map_or((text, None), |(scope, port)| (scope, Some(port))),
        };
        let port = port.map(|port| port.parse().map_err(|_| wrong())).transpose()?;
        let scope = match target.parse() {
            Ok(network) => Scope::Network(network),
            Err(_) => named(target).ok_or_else(wrong)?,
        };
        Ok(Self { scope, port })
    }
}

fn named(text: &str) -> Option<Scope> {
    let (name, is_below) = match text.strip_prefix("*.") {
        Some(parent) => (parent, true),
        None => (text, false),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_name = name.split('.').all(|label| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    });
    // A name that ends in a number could be parsed as an IP address.
    let ends_in_letters = name.rsplit('.').next()?.bytes().any(|byte| byte.is_ascii_alphabetic());
    (is_name && ends_in_letters).then_some(if is_below { Scope::Below(name) } else { Scope::Name(name) })
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Scope::Network(network) if self.port.is_some() && network.is_v6() => write!(f, "[{network}]")?,
            Scope::Network(network) => network.fmt(f)?,
            Scope::Name(name) => f.write_str(name)?,
            Scope::Below(parent) => write!(f, "*.{parent}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}
