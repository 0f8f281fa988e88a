//! The budgets of clients: what each may spend on calls to models (docs/budgets.md).

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use cog_run::{Budget, BudgetLimits};

use super::client::Client;

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

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[test]
    fn clients_have_budgets_of_their_own_until_the_table_is_full() {
        let budgets = ClientBudgets::new(BudgetLimits::new().max_calls(1), Duration::from_secs(60));
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
        let budgets = ClientBudgets::new(BudgetLimits::new(), Duration::from_secs(60));
        assert!(budgets.budget(&Client::Others).is_none());
    }
}
