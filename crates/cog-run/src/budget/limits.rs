use super::account::Spent;

/// The limits of a budget. None of them is set by default.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct BudgetLimits {
    /// The maximum cost in US dollars, at list prices. A model whose price is unknown is refused.
    pub max_cost: Option<f64>,
    /// The maximum number of tokens, of inputs and outputs.
    pub max_tokens: Option<u64>,
    /// The maximum number of calls to models.
    pub max_calls: Option<u64>,
}

impl BudgetLimits {
    /// Returns limits that limit nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum cost in US dollars.
    #[must_use]
    pub fn max_cost(mut self, max_cost: f64) -> Self {
        self.max_cost = Some(max_cost);
        self
    }

    /// Sets the maximum number of tokens.
    #[must_use]
    pub fn max_tokens(mut self, max_tokens: u64) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// Sets the maximum number of calls to models.
    #[must_use]
    pub fn max_calls(mut self, max_calls: u64) -> Self {
        self.max_calls = Some(max_calls);
        self
    }

    /// Whether any limit is set.
    pub fn are_set(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the name and the value of a limit that is reached.
    pub(super) fn reached(&self, spent: &Spent) -> Option<(&'static str, String)> {
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
