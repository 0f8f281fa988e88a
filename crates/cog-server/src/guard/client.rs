use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

/// The client of a request, for limits and sessions: the holder of a token, or the IP address of the peer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    /// The name of the token, or the start of its digest.
    Token(Arc<str>),
    /// The IP address of the peer. Of IPv6 only the network (/64), which one subscriber has.
    Peer(IpAddr),
    /// All clients for which a full table has no space.
    Others,
}

impl Client {
    /// The client at an IP address.
    pub(crate) fn from_ip(ip: IpAddr) -> Self {
        Self::Peer(match ip.to_canonical() {
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
            ip @ IpAddr::V4(_) => ip,
        })
    }

    /// The owner of the client's sessions.
    pub(crate) fn owner(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(name) => write!(f, "token:{name}"),
            Self::Peer(ip) => write!(f, "peer:{ip}"),
            Self::Others => f.write_str("others"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Client {
        Client::from_ip(address.parse().unwrap())
    }

    #[test]
    fn ipv6_network_is_one_client() {
        assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff::9"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
    }

    #[test]
    fn ipv4_address_is_canonical() {
        assert_eq!(peer("::ffff:192.0.2.7"), peer("192.0.2.7"));
        assert_ne!(peer("192.0.2.7"), peer("192.0.2.8"));
    }

    #[test]
    fn tokens_and_peers_have_different_owners() {
        let token = Client::Token("192.0.2.7".into());
        assert_ne!(token.owner(), peer("192.0.2.7").owner());
    }
}
