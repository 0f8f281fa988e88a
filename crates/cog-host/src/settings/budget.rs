//! The settings of budgets. Only the operator may set them.

use cog_run::BudgetLimits;

use super::{
    Row, Setting, SettingsError, Shown, values,
    sources::{Layers, Names},
};

const MAX_COST: Names = Names { flag: "", variable: "COG_BUDGET_MAX_COST" };
const MAX_TOKENS: Names = Names { flag: "", variable: "COG_BUDGET_MAX_TOKENS" };
const MAX_CALLS: Names = Names { flag: "", variable: "COG_BUDGET_MAX_CALLS" };

/// The budget of each run.
#[derive(Debug)]
pub struct BudgetSettings {
    max_cost: Setting<Option<f64>>,
    max_tokens: Setting<Option<u64>>,
    max_calls: Setting<Option<u64>>,
}

impl BudgetSettings {
    /// Reads the variables and the operator's file.
    ///
    /// # Errors
    /// A variable with an invalid value.
    pub(super) fn read(layers: &Layers<'_>) -> Result<Self, SettingsError> {
        let cost = layers.pick(MAX_COST, None, values::cost, |file| file.budget.max_cost)?;
        let tokens = layers.pick(MAX_TOKENS, None, values::count, |file| file.budget.max_tokens)?;
        let calls = layers.pick(MAX_CALLS, None, values::count, |file| file.budget.max_calls)?;
        Ok(Self {
            max_cost: cost.map_or_else(|| Setting::default(None), Setting::some),
            max_tokens: tokens.map_or_else(|| Setting::default(None), Setting::some),
            max_calls: calls.map_or_else(|| Setting::default(None), Setting::some),
        })
    }

    /// Returns the limits of a run.
    pub fn limits(&self) -> BudgetLimits {
        let mut limits = BudgetLimits::new();
        limits.max_cost = self.max_cost.value;
        limits.max_tokens = self.max_tokens.value;
        limits.max_calls = self.max_calls.value;
        limits
    }

    /// Returns every setting as `cog config` shows it.
    pub(super) fn rows(&self) -> [Row; 3] {
        [
            Row::new("budget.max_cost", &self.max_cost, |it| Shown::maybe(*it)),
            Row::new("budget.max_tokens", &self.max_tokens, |it| it.map_or(Shown::Nothing, Shown::Count)),
            Row::new("budget.max_calls", &self.max_calls, |it| it.map_or(Shown::Nothing, Shown::Count)),
        ]
    }
}
