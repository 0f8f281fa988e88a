//! Budgets: the limits of several calls to models together (docs/budgets.md).

mod clients;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use cog_json::Value;
use cog_provider::{Provider, ProviderInfo};
use cog_spec::{Amount, Code, ErrorBody, ModelEvent, Usage};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

pub use self::clients::ClientBudgets;
use crate::clock;

/// The `Retry-After` while calls in progress may spend the rest of a budget.
const WHILE_RESERVED: Duration = Duration::from_secs(1);

/// What the calls of a run, a composition or a client may spend together. Clones share one account.
///
/// The limits are checked before each call to a model. The call that reaches a limit is completed, and the next one is
/// refused with E4002. The budget of a client, which has periods, also reserves what a call may spend until it ends, so
/// that simultaneous calls do not exceed the limits together.
///
/// ```
/// use cog_run::{Budget, BudgetLimits, RunOptions};
///
/// let budget = Budget::new("composition", BudgetLimits { max_calls: Some(20), max_cost: Some(0.5), ..BudgetLimits::default() });
/// let options = RunOptions { budgets: vec![budget.clone()], ..RunOptions::default() };
/// # let _ = options;
/// assert_eq!(budget.spent().calls, 0);
/// ```
#[derive(Debug, Clone)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The name of its owner, for messages.
    name: String,
    /// Whether it is the budget of one run, which its parts and tools share.
    is_of_run: bool,
    /// Whether a call that may exceed a limit is refused, also if it runs alone.
    is_capped: bool,
    limits: BudgetLimits,
    /// The time after which the account is empty again; none if it never is.
    period: Option<Duration>,
    books: Mutex<Books>,
}

impl Shared {
    fn new(name: impl Into<String>, limits: BudgetLimits) -> Self {
        let books = Mutex::new(Books::new());
        Self { name: name.into(), is_of_run: false, is_capped: false, limits, period: None, books }
    }
}

/// What was spent in the current period, and what the calls in progress may spend.
#[derive(Debug)]
struct Books {
    started: Instant,
    /// The same in milliseconds since 1970.
    started_ms: u64,
    account: Account,
    reserved: Reserved,
}

impl Books {
    fn new() -> Self {
        let started_ms = clock::millis(clock::now());
        Self {
            started: Instant::now(),
            started_ms,
            account: Account::default(),
            reserved: Reserved::default(),
        }
    }
}

/// What a budget has spent in a period, as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct BudgetRecord {
    /// When the period started, in milliseconds since 1970.
    started_ms: u64,
    modules: Account,
}

impl BudgetRecord {
    /// Returns the time since its period started. A clock that was set back is no reason to spend again.
    fn age(&self) -> Duration {
        Duration::from_millis(clock::millis(clock::now()).saturating_sub(self.started_ms))
    }

    fn is_current(&self, period: Duration) -> bool {
        !self.modules.0.is_empty() && self.age() < period
    }
}

impl Budget {
    /// Creates a budget. The name says whose it is, such as `run` or `token:ada`.
    pub fn new(name: impl Into<String>, limits: BudgetLimits) -> Self {
        Self(Arc::new(Shared::new(name, limits)))
    }

    /// Creates a budget whose limits are not exceeded: a call is refused if the most that it can spend does not fit. A request without
    /// a limit of output tokens counts as one with 4,096.
    pub fn capped(name: impl Into<String>, limits: BudgetLimits) -> Self {
        Self(Arc::new(Shared { is_capped: true, ..Shared::new(name, limits) }))
    }

    /// Returns whether a call that may exceed a limit is refused, also if it runs alone.
    pub(crate) fn is_capped(&self) -> bool {
        self.0.is_capped
    }

    /// Returns a budget for a run with these limits. None if there are no limits, or if the run is a part or a tool of one
    /// whose budget is among the given ones.
    pub(crate) fn for_run(limits: BudgetLimits, given: &[Self]) -> Option<Self> {
        let is_new = limits.are_set() && given.iter().all(|budget| !budget.0.is_of_run);
        let shared = || Shared { is_of_run: true, ..Shared::new("this run", limits) };
        is_new.then(|| Self(Arc::new(shared())))
    }

    /// Creates a budget for each period of this length.
    pub fn per_period(name: impl Into<String>, limits: BudgetLimits, period: Duration) -> Self {
        Self(Arc::new(Shared { period: Some(period), ..Shared::new(name, limits) }))
    }

    /// Returns what was spent so far.
    pub fn spent(&self) -> BudgetUsage {
        self.lock().account.total()
    }

    /// Returns whether this many further calls are within the limit of calls.
    pub(crate) fn has_room_for(&self, calls: u64) -> bool {
        self.0.limits.max_calls.is_none_or(|max| self.spent().calls.saturating_add(calls) <= max)
    }

    /// Checks that the calls which evidence needs are within the limit of calls.
    ///
    /// # Errors
    /// E4002 with `details.reason: max_calls`.
    pub(crate) fn check_calls(&self, calls: u64) -> Result<(), ErrorBody> {
        if self.has_room_for(calls) {
            return Ok(());
        }
        let message = format!(
            "the evidence needs {calls} calls, and the budget of {} has no room for them",
            self.0.name
        );
        Err(refused(message, "max_calls").suggest("Collect less evidence, or raise the limit."))
    }

    /// Checks that the price of a model is known if the budget limits the cost: an unknown price is not zero.
    ///
    /// # Errors
    /// E4002 with `details.reason: unknown_price`.
    pub(crate) fn check_price(&self, provider: &dyn Provider, model: &str) -> Result<(), ErrorBody> {
        let info = provider.info();
        let sample = Usage { input_tokens: 1, output_tokens: 1, ..Usage::default() };
        let model = info.model_or_default(model);
        let is_priced = || info.cost(model, &sample, clock::now()).is_some();
        if self.0.limits.max_cost.is_none() || is_priced() {
            return Ok(());
        }
        let message = format!(
            "the budget of {} limits the cost, and the price of {}/{model} is unknown",
            self.0.name, info.name
        );
        Err(refused(message, "unknown_price")
            .suggest("Limit tokens or calls instead of the cost, or choose a model whose price is known."))
    }

    /// Checks that no limit is reached, before a run: also not with what the calls in progress may spend.
    ///
    /// # Errors
    /// E4002 with what was spent, and by which modules.
    pub(crate) fn check_room(&self) -> Result<(), ErrorBody> {
        let books = self.lock();
        self.check_account(&books)?;
        self.check_reserved(&books, Estimate::default())
    }

    /// Checks that no limit is reached.
    ///
    /// # Errors
    /// E4002 with what was spent, and by which modules.
    pub(crate) fn check(&self) -> Result<(), ErrorBody> {
        self.check_account(&self.lock())
    }

    /// Counts a call of a module and reserves what it may spend, if no limit is reached. Returns the start of its period.
    ///
    /// # Errors
    /// As [`Self::check`]; also if it does not fit next to the calls in progress. A call that runs alone always fits, unless the
    /// budget is capped.
    fn admit(&self, module: &str, reservation: Reservation) -> Result<Instant, ErrorBody> {
        let estimate = self.share(reservation);
        let mut books = self.lock();
        self.check_account(&books)?;
        self.check_reserved(&books, estimate)?;
        books.account.add_call(module);
        books.reserved.add(estimate);
        Ok(books.started)
    }

    /// Counts a retry of a call, which spends what the call has reserved. Returns the start of its period.
    ///
    /// # Errors
    /// As [`Self::check`].
    fn admit_retry(&self, module: &str) -> Result<Instant, ErrorBody> {
        let mut books = self.lock();
        self.check_account(&books)?;
        books.account.add_call(module);
        Ok(books.started)
    }

    /// Removes a call that was counted in this period and not made.
    fn withdraw(&self, module: &str, period: Instant) {
        let mut books = self.lock();
        // The account of a new period does not contain the call.
        if books.started == period {
            books.account.remove_call(module);
        }
    }

    /// Returns what this budget reserves for a call.
    fn share(&self, reservation: Reservation) -> Estimate {
        if self.0.is_capped { reservation.largest } else { reservation.expected }
    }

    /// Frees what a call has reserved.
    fn release(&self, reservation: Reservation) {
        self.lock().reserved.remove(self.share(reservation));
    }

    /// Reserves more for a call whose reply is longer than what it has reserved.
    fn extend(&self, more: Estimate) {
        if !self.0.is_capped {
            self.lock().reserved.extend(more);
        }
    }

    /// Adds the tokens of a call that was admitted, in this period or an earlier one. They count in the period in which they
    /// become known, so that no call is free.
    fn add(&self, module: &str, usage: &Usage, is_estimated: bool) {
        self.lock().account.add_usage(module, usage, is_estimated);
    }

    fn check_account(&self, books: &Books) -> Result<(), ErrorBody> {
        let total = books.account.total();
        let Some((limit, max)) = self.0.limits.reached(&total) else { return Ok(()) };
        let rest = self.0.period.map(|period| period.saturating_sub(books.started.elapsed()));
        Err(self.spent_error(&books.account, &total, limit, &max, rest))
    }

    /// Checks that a further call fits next to the calls in progress.
    fn check_reserved(&self, books: &Books, estimate: Estimate) -> Result<(), ErrorBody> {
        // Without a period, calls end for ever at the limit: those in progress may exceed it together.
        if self.0.period.is_none() && !self.0.is_capped {
            return Ok(());
        }
        // The estimate of a single call may be larger than the limit of a period, and would be refused forever.
        if books.reserved.calls == 0 && !self.0.is_capped {
            return Ok(());
        }
        let total = books.account.total();
        let Some((limit, max)) = books.reserved.exceeded(&self.0.limits, &total, estimate) else {
            return Ok(());
        };
        if self.0.is_capped {
            return Err(self.spent_error(&books.account, &total, limit, &max, None));
        }
        let error = self.spent_error(&books.account, &total, limit, &max, Some(WHILE_RESERVED));
        let mut error =
            error.suggest("Try again when a run of this client has ended, or set a smaller `max_tokens`.");
        error.message = format!(
            "the budget of {} admits no further call at the same time: {total}, and calls in progress may spend the rest; \
             `{limit}` is {max}",
            self.0.name
        );
        Err(error)
    }

    fn spent_error(
        &self,
        account: &Account,
        total: &BudgetUsage,
        limit: &str,
        max: &str,
        rest: Option<Duration>,
    ) -> ErrorBody {
        let name = &self.0.name;
        let message = match limit {
            "unknown_cost" => {
                format!("the budget of {name} limits the cost, and the cost of an earlier call is unknown")
            }
            _ => format!("the budget of {name} is spent: {total}; `{limit}` is {max}"),
        };
        let mut details = serde_json::json!({
            "reason": "budget", "budget": name, "limit": limit, "max": max, "spent": total.to_json(),
            "by": account.by_module(),
        });
        if let (Some(rest), Some(members)) = (rest, details.as_object_mut()) {
            let rest = u64::try_from(rest.as_millis()).unwrap_or(u64::MAX);
            members.insert("retry_after_ms".to_owned(), rest.into());
        }
        let suggestion = match rest {
            Some(_) => "Try again in the next period; the operator can raise the budget.".to_owned(),
            None => format!("Raise `{limit}` of the budget, or request less."),
        };
        refused(message, "budget")
            .with_recoverable(rest.is_some())
            .suggest(suggestion)
            .with_details(Value::from(details))
    }

    /// Locks the books. The account of a period that is over is empty; calls in progress stay reserved.
    fn lock(&self) -> MutexGuard<'_, Books> {
        let mut books = self.0.books.lock().unwrap_or_else(PoisonError::into_inner);
        if self.0.period.is_some_and(|period| books.started.elapsed() >= period) {
            let reserved = std::mem::take(&mut books.reserved);
            *books = Books { reserved, ..Books::new() };
        }
        books
    }

    /// Returns what was spent in this period.
    fn record(&self) -> BudgetRecord {
        let books = self.lock();
        BudgetRecord { started_ms: books.started_ms, modules: books.account.clone() }
    }

    /// Continues the period of a record.
    fn restore(&self, record: BudgetRecord) {
        let mut books = self.lock();
        if let Some(started) = Instant::now().checked_sub(record.age()) {
            *books =
                Books { started, started_ms: record.started_ms, account: record.modules, ..Books::new() };
        }
    }
}

fn refused(message: String, reason: &str) -> ErrorBody {
    let details = serde_json::json!({ "reason": reason });
    ErrorBody::new(Code::RateLimited, message).with_recoverable(false).with_details(Value::from(details))
}

/// The limits of a budget. None of them is set by default.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BudgetLimits {
    /// The maximum cost in US dollars, at list prices. A model whose price is unknown is refused.
    pub max_cost: Option<f64>,
    /// The maximum number of tokens, of inputs and outputs.
    pub max_tokens: Option<u64>,
    /// The maximum number of calls to models.
    pub max_calls: Option<u64>,
}

impl BudgetLimits {
    /// Whether any limit is set.
    pub(crate) fn are_set(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the name and the value of a limit that is reached.
    fn reached(&self, spent: &BudgetUsage) -> Option<(&'static str, String)> {
        if let Some(max) = self.max_calls.filter(|max| spent.calls >= *max) {
            return Some(("max_calls", max.to_string()));
        }
        if let Some(max) = self.max_tokens.filter(|max| spent.tokens >= *max) {
            return Some(("max_tokens", max.to_string()));
        }
        let max = self.max_cost?;
        match spent.cost {
            None => Some(("unknown_cost", max.to_string())),
            Some(cost) if cost >= max => Some(("max_cost", max.to_string())),
            Some(_) => None,
        }
    }
}

/// What a call may spend.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Estimate {
    pub(crate) tokens: u64,
    /// The cost in US dollars; 0 if it is unknown.
    pub(crate) cost: f64,
}

/// What is reserved for a call.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Reservation {
    /// With an estimate of the tokens of its input.
    pub(crate) expected: Estimate,
    /// With the most tokens that its input can have.
    pub(crate) largest: Estimate,
}

/// The input tokens of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InputTokens {
    /// An estimate.
    pub(crate) expected: u64,
    /// The most that there can be.
    pub(crate) at_most: u64,
}

/// What the calls in progress may spend together.
#[derive(Debug, Default)]
struct Reserved {
    calls: u64,
    tokens: u64,
    cost: f64,
}

impl Reserved {
    fn add(&mut self, estimate: Estimate) {
        self.calls += 1;
        self.extend(estimate);
    }

    fn extend(&mut self, estimate: Estimate) {
        self.tokens = self.tokens.saturating_add(estimate.tokens);
        self.cost += estimate.cost;
    }

    fn remove(&mut self, estimate: Estimate) {
        self.calls = self.calls.saturating_sub(1);
        self.tokens = self.tokens.saturating_sub(estimate.tokens);
        self.cost -= estimate.cost;
        if self.calls == 0 {
            *self = Self::default(); // sums of floating-point numbers leave a rest
        }
    }

    #[cfg(test)]
    fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the name and the value of a limit that a further call could exceed.
    fn exceeded(
        &self,
        limits: &BudgetLimits,
        spent: &BudgetUsage,
        next: Estimate,
    ) -> Option<(&'static str, String)> {
        let tokens = spent.tokens.saturating_add(self.tokens);
        if let Some(max) = limits.max_tokens
            && (tokens >= max || tokens.saturating_add(next.tokens) > max)
        {
            return Some(("max_tokens", max.to_string()));
        }
        let max = limits.max_cost?;
        let cost = spent.cost.unwrap_or_default() + self.cost;
        (cost >= max || cost + next.cost > max).then(|| ("max_cost", max.to_string()))
    }
}

/// The bytes of text that count as one token in an estimate.
const TOKEN_BYTES: u64 = 4;

/// The tokens of a reply that are reserved if the request does not limit them (docs/budgets.md).
pub(crate) const RESERVED_OUTPUT: u64 = 4_096;

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
    reserved: Reservation,
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
    /// Counts an attempt in each budget, or in none of them. The first one has a reservation.
    ///
    /// # Errors
    /// E4002 if one of them is spent.
    fn admit(&self, reservation: Option<Reservation>) -> Result<(), ErrorBody> {
        let mut admitted = Vec::new();
        for budget in &self.budgets {
            let period = match reservation {
                Some(reservation) => budget.admit(&self.module, reservation),
                None => budget.admit_retry(&self.module),
            };
            match period {
                Ok(period) => admitted.push((budget, period)),
                Err(error) => {
                    for (earlier, period) in admitted {
                        earlier.withdraw(&self.module, period);
                        if let Some(reservation) = reservation {
                            earlier.release(reservation);
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
        input: InputTokens,
        max_output_tokens: Option<u64>,
    ) -> Result<Self, ErrorBody> {
        let counter =
            CallCounter { budgets: budgets.to_vec(), module: module.to_owned(), refused: Arc::default() };
        let output_tokens = max_output_tokens.unwrap_or(RESERVED_OUTPUT);
        let reserve = |input_tokens| estimate_of(provider.as_ref(), model, input_tokens, output_tokens);
        let reserved = Reservation { expected: reserve(input.expected), largest: reserve(input.at_most) };
        counter.admit(Some(reserved))?;
        Ok(Self {
            counter,
            model: model.to_owned(),
            input_tokens: input.expected,
            output_tokens,
            reserved,
            output_bytes: 0,
            is_open: true,
            provider,
        })
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
        let needed = estimate_of(self.provider.as_ref(), &self.model, self.input_tokens, self.output_tokens);
        let Reservation { expected, .. } = self.reserved;
        let more = Estimate {
            tokens: needed.tokens.saturating_sub(expected.tokens),
            cost: needed.cost - expected.cost,
        };
        self.counter.budgets.iter().for_each(|budget| budget.extend(more));
        self.reserved.expected = needed;
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

/// Returns what a call with these tokens spends.
fn estimate_of(provider: &dyn Provider, model: &str, input_tokens: u64, output_tokens: u64) -> Estimate {
    let tokens = input_tokens.saturating_add(output_tokens);
    Estimate { tokens, cost: price(provider, model, input_tokens, output_tokens).unwrap_or_default() }
}

/// Returns the cost of a call with these tokens in US dollars; none if the price is unknown.
pub(crate) fn price(
    provider: &dyn Provider,
    model: &str,
    input_tokens: u64,
    output_tokens: u64,
) -> Option<f64> {
    let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
    provider.info().cost(model, &usage, clock::now()).map(|cost| cost.amount.as_f64())
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
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Account(BTreeMap<String, Item>);

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Item {
    calls: u64,
    tokens: u64,
    cost: Amount,
    /// The cost of a call is unknown.
    has_unknown_cost: bool,
    is_estimated: bool,
}

impl Account {
    fn add_call(&mut self, module: &str) {
        self.item(module).calls += 1;
    }

    fn remove_call(&mut self, module: &str) {
        let item = self.item(module);
        item.calls = item.calls.saturating_sub(1);
    }

    fn add_usage(&mut self, module: &str, usage: &Usage, is_estimated: bool) {
        let item = self.item(module);
        item.tokens = item.tokens.saturating_add(usage.total());
        item.is_estimated |= is_estimated;
        match usage.cost {
            Some(cost) => item.cost = item.cost.plus(cost.amount),
            None => item.has_unknown_cost = true,
        }
    }

    fn total(&self) -> BudgetUsage {
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
    fn by_module(&self) -> Vec<serde_json::Value> {
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
    fn to_json(self) -> serde_json::Value {
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

#[cfg(test)]
mod tests;
