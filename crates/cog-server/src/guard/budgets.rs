//! The budgets of clients: what each may spend on calls to models (docs/budgets.md).

use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cog_run::{Budget, BudgetLimits};

/// The maximum number of clients with budgets of their own. Further ones share one.
const MAX_CLIENTS: usize = 10_000;

/// The budget of each client.
pub(crate) struct ClientBudgets {
    limits: BudgetLimits,
    period: Duration,
    budgets: Mutex<HashMap<Client, Budget>>,
}

impl ClientBudgets {
    /// Creates budgets with these limits for each period.
    pub(crate) fn new(limits: BudgetLimits, period: Duration) -> Self {
        Self { limits, period, budgets: Mutex::default() }
    }

    /// Returns the budget of a client; none if there are no limits.
    pub(crate) fn budget(&self, client: &Client) -> Option<Budget> {
        if !self.limits.are_set() {
            return None;
        }
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = budgets.len() >= MAX_CLIENTS && !budgets.contains_key(client);
        let client = if is_full { &Client::Others } else { client };
        let create = || Budget::per_period(client.owner(), self.limits, self.period);
        Some(budgets.entry(client.clone()).or_insert_with(create).clone())
    }
}

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
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[test]
    fn clients_have_budgets_of_their_own_until_the_table_is_full() {
        let budgets = ClientBudgets::new(
            BudgetLimits { max_calls: Some(1), ..BudgetLimits::default() },
            Duration::from_secs(60),
        );
        for number in 0..=MAX_CLIENTS {
            let ip = Ipv4Addr::from_bits(u32::try_from(number).unwrap());
            assert!(budgets.budget(&Client::from_ip(IpAddr::V4(ip))).is_some());
        }
        let known = budgets.budgets.lock().unwrap();
        assert_eq!(known.len(), MAX_CLIENTS + 1);
        assert!(known.contains_key(&Client::Others));
    }

    #[test]
    fn without_limits_there_are_no_budgets() {
        let budgets = ClientBudgets::new(BudgetLimits::default(), Duration::from_secs(60));
        assert!(budgets.budget(&Client::Others).is_none());
    }

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
