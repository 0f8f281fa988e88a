use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
};

use cog_provider::{Provider, ProviderInfo};
use cog_spec::{Amount, ErrorBody, ModelEvent, Usage};

use super::{Budget, Estimate};
use crate::clock;

/// The bytes of text that count as one token in an estimate.
const TOKEN_BYTES: u64 = 4;

/// The tokens of a reply that are reserved if the request does not limit them (docs/budgets.md).
const RESERVED_OUTPUT: u64 = 4_096;

/// A call that the budgets of a run have admitted. One that is dropped before its usage is known, because its run was
/// cancelled, counts with an estimate: otherwise a client could cancel each run before its end and pay for none.
pub(crate) struct OpenCall {
    counter: CallCounter,
    provider: Arc<dyn Provider>,
    model: String,
    /// An estimate of the tokens of the request.
    input_tokens: u64,
    /// The tokens of the reply that are reserved.
    output_tokens: u64,
    /// What the budgets have reserved for it.
    reserved: Estimate,
    /// The bytes of the reply so far.
    output_bytes: u64,
    is_open: bool,
}

/// Counts the attempts of one call in the budgets of a run. Clones count the same call.
#[derive(Clone)]
pub(crate) struct CallCounter {
    budgets: Vec<Budget>,
    module: String,
    /// The error of the budget that refused a retry.
    refused: Arc<OnceLock<ErrorBody>>,
}

impl CallCounter {
    /// Counts an attempt in each budget, or in none of them. The first one has an estimate, which is reserved.
    ///
    /// # Errors
    /// E4002 if one of them is spent.
    fn admit(&self, estimate: Option<Estimate>) -> Result<(), ErrorBody> {
        let mut admitted = Vec::new();
        for budget in &self.budgets {
            let period = match estimate {
                Some(estimate) => budget.admit(&self.module, estimate),
                None => budget.admit_retry(&self.module),
            };
            match period {
                Ok(period) => admitted.push((budget, period)),
                Err(error) => {
                    for (earlier, period) in admitted {
                        earlier.withdraw(&self.module, period);
                        if let Some(estimate) = estimate {
                            earlier.release(estimate);
                        }
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Counts a retry of the call, and returns whether it may be made.
    pub(crate) fn admit_retry(&self) -> bool {
        self.admit(None).map_err(|error| self.refused.set(error)).is_ok()
    }
}

impl OpenCall {
    /// Counts a call in each budget, or in none of them. They reserve its input, and the output that it requests.
    ///
    /// # Errors
    /// E4002 if one of them is spent, or may be by the calls in progress.
    pub(crate) fn new(
        budgets: &[Budget],
        module: &str,
        provider: Arc<dyn Provider>,
        model: &str,
        input_tokens: u64,
        max_output_tokens: Option<u64>,
    ) -> Result<Self, ErrorBody> {
        let counter =
            CallCounter { budgets: budgets.to_vec(), module: module.to_owned(), refused: Arc::default() };
        let output_tokens = max_output_tokens.unwrap_or(RESERVED_OUTPUT);
        let reserved = reservation(provider.as_ref(), model, input_tokens, output_tokens);
        counter.admit(Some(reserved))?;
        let model = model.to_owned();
        let output_bytes = 0;
        let is_open = true;
        Ok(Self { counter, provider, model, input_tokens, output_tokens, reserved, output_bytes, is_open })
    }

    /// Returns what counts the retries of the call.
    pub(crate) fn counter(&self) -> CallCounter {
        self.counter.clone()
    }

    /// Observes an event of the reply.
    pub(crate) fn observe(&mut self, event: &ModelEvent) {
        self.output_bytes = self.output_bytes.saturating_add(output_bytes(event));
        if self.output_bytes.div_ceil(TOKEN_BYTES) > self.output_tokens {
            self.reserve_more();
        }
    }

    /// Reserves more for a reply that is longer than what is reserved: the next calls wait for it. In steps, so that the budgets
    /// are not locked for each event.
    fn reserve_more(&mut self) {
        self.output_tokens = self.output_bytes.div_ceil(TOKEN_BYTES).saturating_add(RESERVED_OUTPUT);
        let reserved =
            reservation(self.provider.as_ref(), &self.model, self.input_tokens, self.output_tokens);
        let more = Estimate {
            tokens: reserved.tokens.saturating_sub(self.reserved.tokens),
            cost: reserved.cost - self.reserved.cost,
        };
        self.counter.budgets.iter().for_each(|budget| budget.extend(more));
        self.reserved = reserved;
    }

    /// Ends the call with its usage, or with an estimate if that is unknown.
    pub(crate) fn end(mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.is_open = false;
            self.add(&usage, false);
        }
    }

    /// Ends a call that the provider rejected: it is counted, without tokens. Returns the error of the budget that refused to
    /// retry it, if one did.
    pub(crate) fn reject(mut self) -> Option<ErrorBody> {
        self.is_open = false;
        self.counter.refused.get().cloned()
    }

    /// Ends a call whose reply was lost before another provider is called: the model may have worked, so it counts with an
    /// estimate. Returns the error as [`OpenCall::reject`] does.
    pub(crate) fn lose(self) -> Option<ErrorBody> {
        self.counter.refused.get().cloned()
    }

    fn add(&self, usage: &Usage, is_estimated: bool) {
        let CallCounter { budgets, module, .. } = &self.counter;
        budgets.iter().for_each(|budget| budget.add(module, usage, is_estimated));
    }

    fn estimate(&self) -> Usage {
        estimate(self.provider.info(), &self.model, self.input_tokens, self.output_bytes)
    }
}

/// Returns the usage of a call whose tokens are not counted, from an estimate of its input and the bytes of its reply.
pub(crate) fn estimate(info: &ProviderInfo, model: &str, input_tokens: u64, output_bytes: u64) -> Usage {
    let output_tokens = output_bytes.div_ceil(TOKEN_BYTES);
    let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
    let cost = info.cost(model, &usage, clock::now());
    Usage { cost, ..usage }
}

/// Returns the bytes of an event that the model wrote.
pub(crate) fn output_bytes(event: &ModelEvent) -> u64 {
    let bytes = match event {
        ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.len(),
        ModelEvent::ToolCall(part) => part.arguments.len(),
        _ => 0,
    };
    bytes as u64
}

/// Returns what a call with these tokens is to reserve.
fn reservation(provider: &dyn Provider, model: &str, input_tokens: u64, output_tokens: u64) -> Estimate {
    let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
    let cost = provider.info().cost(model, &usage, clock::now());
    Estimate { tokens: usage.total(), cost: cost.map_or(0.0, |cost| cost.amount.as_f64()) }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if self.is_open {
            let usage = self.estimate();
            self.add(&usage, true);
        }
        // Every exit comes here: an answer, a failure, a cancellation, a panic.
        self.counter.budgets.iter().for_each(|budget| budget.release(self.reserved));
    }
}

/// What was spent.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BudgetUsage {
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

    pub(super) fn total(&self) -> BudgetUsage {
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
        // A call of an earlier period has only tokens in this one.
        let used = self.0.iter().filter(|(_, item)| item.calls > 0 || item.tokens > 0);
        used.map(|(module, item)| {
            let BudgetUsage { calls, tokens, cost, is_estimated } = item.spent();
            serde_json::json!({
                "module": module, "calls": calls, "tokens": tokens, "cost": cost, "estimated": is_estimated,
            })
        })
        .collect()
    }

    fn item(&mut self, module: &str) -> &mut Item {
        self.0.entry(module.to_owned()).or_default()
    }
}

impl Item {
    fn spent(&self) -> BudgetUsage {
        let cost = (!self.has_unknown_cost).then(|| self.cost.as_f64());
        BudgetUsage { calls: self.calls, tokens: self.tokens, cost, is_estimated: self.is_estimated }
    }
}

impl BudgetUsage {
    pub(super) fn to_json(self) -> serde_json::Value {
        let Self { calls, tokens, cost, is_estimated } = self;
        serde_json::json!({ "calls": calls, "tokens": tokens, "cost": cost, "estimated": is_estimated })
    }
}

impl fmt::Display for BudgetUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "calls {}, tokens {}, cost ", self.calls, self.tokens)?;
        match self.cost {
            Some(cost) => write!(f, "{cost} USD"),
            None => f.write_str("unknown"),
        }
    }
}
