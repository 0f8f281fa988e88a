//! The budgets of clients, and the file that keeps what they have spent over a restart.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cog_store::{Durability, write_durably};

use super::{Budget, BudgetLimits, BudgetRecord};

/// The maximum number of clients with budgets of their own. Further ones share one.
const MAX_CLIENTS: usize = 10_000;
/// The name of the budget that the further ones share.
const OTHERS: &str = "others";

/// The budget of each client of a server, for periods of one length.
#[derive(Debug)]
pub struct ClientBudgets {
    limits: BudgetLimits,
    period: Duration,
    file: Option<PathBuf>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    budgets: HashMap<String, Budget>,
    /// What clients had spent before a restart that were not seen since.
    earlier: BTreeMap<String, BudgetRecord>,
    /// The content of the file.
    written: String,
}

impl ClientBudgets {
    /// Creates budgets with these limits for each period, which end with the process.
    pub fn new(limits: BudgetLimits, period: Duration) -> Self {
        Self { limits, period, file: None, table: Mutex::default() }
    }

    /// Creates budgets that are kept in a file, and continues with what it says was spent.
    ///
    /// # Errors
    /// The file exists and is not one of budgets.
    pub fn open(limits: BudgetLimits, period: Duration, file: PathBuf) -> io::Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "a file that this program writes")]
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::from("{}"),
            text => text?,
        };
        let table = Table { earlier: serde_json::from_str(&text)?, written: text, ..Table::default() };
        Ok(Self { file: Some(file), table: Mutex::new(table), ..Self::new(limits, period) })
    }

    /// Returns the budget of a client; none if there are no limits.
    pub fn budget(&self, client: &str) -> Option<Budget> {
        if !self.limits.are_set() {
            return None;
        }
        let mut table = self.lock();
        let Table { budgets, earlier, .. } = &mut *table;
        let is_full = budgets.len() >= MAX_CLIENTS && !budgets.contains_key(client);
        let client = if is_full { OTHERS } else { client };
        let budget = budgets.entry(client.to_owned()).or_insert_with(|| {
            let budget = Budget::per_period(client, self.limits, self.period);
            if let Some(record) = earlier.remove(client) {
                budget.restore(record);
            }
            budget
        });
        Some(budget.clone())
    }

    /// Writes what was spent to the file, if that has changed. Blocks.
    ///
    /// # Errors
    /// The file cannot be written. It keeps its content.
    pub fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let table = self.lock();
        let now = table.budgets.iter().map(|(client, budget)| (client.as_str(), budget.record()));
        let earlier = table.earlier.iter().map(|(client, record)| (client.as_str(), record.clone()));
        let records: BTreeMap<&str, BudgetRecord> =
            earlier.chain(now).filter(|(_, record)| record.is_current(self.period)).collect();
        let text = serde_json::to_string(&records)?;
        if text == table.written {
            return Ok(());
        }
        drop(table);
        write_durably(file, text.as_bytes(), Durability::Kill)?;
        self.lock().written = text;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use cog_spec::Usage;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn calls(max: u64) -> BudgetLimits {
        BudgetLimits { max_calls: Some(max), ..BudgetLimits::default() }
    }

    #[test]
    fn clients_have_budgets_of_their_own_until_the_table_is_full() {
        let budgets = ClientBudgets::new(calls(1), DAY);
        for number in 0..=MAX_CLIENTS {
            assert!(budgets.budget(&number.to_string()).is_some());
        }
        let table = budgets.lock();
        assert_eq!(table.budgets.len(), MAX_CLIENTS + 1);
        assert!(table.budgets.contains_key(OTHERS));
    }

    #[test]
    fn without_limits_there_are_no_budgets() {
        assert!(ClientBudgets::new(BudgetLimits::default(), DAY).budget("ada").is_none());
    }

    #[test]
    fn what_was_spent_is_kept_until_the_period_ends() {
        let place = tempfile::tempdir().unwrap();
        let open = |period| ClientBudgets::open(calls(2), period, place.path().join("budgets.json")).unwrap();
        let first = open(DAY);
        for client in ["ada", "bob"] {
            let budget = first.budget(client).unwrap();
            budget.admit("m", super::super::Reservation::default()).unwrap();
            budget.add("m", &Usage { input_tokens: 3, output_tokens: 4, ..Usage::default() }, false);
        }
        first.save().unwrap();

        let second = open(DAY);
        let ada = second.budget("ada").unwrap();
        assert_eq!((ada.spent().calls, ada.spent().tokens, ada.spent().cost), (1, 7, None));
        ada.admit("m", super::super::Reservation::default()).unwrap();
        assert_eq!(ada.check_room().unwrap_err().code.to_string(), "E4002");
        second.save().unwrap();

        // A client that was not seen between two restarts is not forgotten.
        let third = open(DAY);
        assert_eq!(third.budget("bob").unwrap().spent().calls, 1);
        assert_eq!(third.budget("ada").unwrap().spent().calls, 2);
        // The period of the settings counts, not the one in which it was spent.
        assert_eq!(open(Duration::ZERO).budget("ada").unwrap().spent().calls, 0);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a file that the test writes")]
    fn file_of_something_else_is_an_error_and_stays() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("budgets.json");
        fs::write(&file, "[1]").unwrap();
        assert!(ClientBudgets::open(calls(2), DAY, file.clone()).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"[1]");
    }
}
