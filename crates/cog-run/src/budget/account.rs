use std::{collections::BTreeMap, fmt};

use cog_spec::{Amount, Usage};

/// What was spent.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Spent {
    /// The number of calls to models.
    pub calls: u64,
    /// The tokens of inputs and outputs.
    pub tokens: u64,
    /// The cost in US dollars; none if the cost of a call is unknown.
    pub cost: Option<f64>,
    /// Whether the tokens of a call are estimated, because its reply was interrupted or reported none.
    pub is_estimated: bool,
}

/// What the modules of a budget have spent.
#[derive(Debug, Default)]
pub(super) struct Account(BTreeMap<String, Item>);

#[derive(Debug, Clone, Copy, Default)]
struct Item {
    calls: u64,
    tokens: u64,
    cost: Amount,
    /// The cost of a call is unknown.
    has_unknown_cost: bool,
    is_estimated: bool,
}

impl Account {
    pub(super) fn add_call(&mut self, module: &str) {
        self.item(module).calls += 1;
    }

    pub(super) fn remove_call(&mut self, module: &str) {
        let item = self.item(module);
        item.calls = item.calls.saturating_sub(1);
    }

    pub(super) fn add_usage(&mut self, module: &str, usage: &Usage, is_estimated: bool) {
        let item = self.item(module);
        item.tokens = item.tokens.saturating_add(usage.total());
        item.is_estimated |= is_estimated;
        match usage.cost {
            Some(cost) => item.cost = item.cost.plus(cost.amount),
            None => item.has_unknown_cost = true,
        }
    }

    pub(super) fn total(&self) -> Spent {
        let sum = self.0.values().fold(Item::default(), |sum, item| Item {
            calls: sum.calls.saturating_add(item.calls),
            tokens: sum.tokens.saturating_add(item.tokens),
            cost: sum.cost.plus(item.cost),
            has_unknown_cost: sum.has_unknown_cost || item.has_unknown_cost,
            is_estimated: sum.is_estimated || item.is_estimated,
        });
        sum.spent()
    }

    /// Returns what each module has spent.
    pub(super) fn by_module(&self) -> Vec<serde_json::Value> {
        let entry = |(module, item): (&String, &Item)| {
            let Spent { calls, tokens, cost, is_estimated } = item.spent();
            serde_json::json!({
                "module": module, "calls": calls, "tokens": tokens, "cost": cost, "estimated": is_estimated,
            })
        };
        // A call of an earlier period has only tokens in this one.
        let used = self.0.iter().filter(|(_, item)| item.calls > 0 || item.tokens > 0);
        used.map(entry).collect()
    }

    fn item(&mut self, module: &str) -> &mut Item {
        self.0.entry(module.to_owned()).or_default()
    }
}

impl Item {
    fn spent(&self) -> Spent {
        let cost = (!self.has_unknown_cost).then(|| self.cost.as_f64());
        Spent { calls: self.calls, tokens: self.tokens, cost, is_estimated: self.is_estimated }
    }
}

impl Spent {
    pub(super) fn to_json(self) -> serde_json::Value {
        let Self { calls, tokens, cost, is_estimated } = self;
        serde_json::json!({ "calls": calls, "tokens": tokens, "cost": cost, "estimated": is_estimated })
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "calls {}, tokens {}, cost ", self.calls, self.tokens)?;
        match self.cost {
            Some(cost) => write!(f, "{cost} USD"),
            None => f.write_str("unknown"),
        }
    }
}
