use super::{BudgetLimits, Spent};

/// What a call may spend.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Estimate {
    pub(crate) tokens: u64,
    /// The cost in US dollars; 0 if it is unknown.
    pub(crate) cost: f64,
}

/// What the calls in progress may spend together.
#[derive(Debug, Default)]
pub(super) struct Reserved {
    calls: u64,
    tokens: u64,
    cost: f64,
}

impl Reserved {
    pub(super) fn add(&mut self, estimate: Estimate) {
        self.calls += 1;
        self.tokens = self.tokens.saturating_add(estimate.tokens);
        self.cost += estimate.cost;
    }

    pub(super) fn remove(&mut self, estimate: Estimate) {
        self.calls = self.calls.saturating_sub(1);
        self.tokens = self.tokens.saturating_sub(estimate.tokens);
        self.cost -= estimate.cost;
        if self.calls == 0 {
            *self = Self::default(); // sums of floating-point numbers leave a rest
        }
    }

    #[cfg(test)]
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the name and the value of a limit that a further call could exceed. None while no call is in progress: the
    /// estimate of a single one may be larger than the limit, and would be refused forever.
    pub(super) fn exceeded(
        &self,
        limits: &BudgetLimits,
        spent: &Spent,
        next: Estimate,
    ) -> Option<(&'static str, String)> {
        if self.calls == 0 {
            return None;
        }
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
