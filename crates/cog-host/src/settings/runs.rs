//! The settings of each run: what it prefers of the generation, its budget, and its tool calls. Only the operator may set the last
//! two: they decide what a run may cost, and what it may do without a confirmation.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use cog_run::{
    BudgetLimits,
    tools::{PendingApprovals, ToolLimits},
};
use cog_spec::{Ask, Effort, Generation, ParseEnumError, ServiceTier, Verbosity};

use super::{
    DisplayValue, Row, Setting, SettingsError,
    sources::{Layers, Names},
    values,
};

const EFFORT: Names = Names::variable("COG_EFFORT");
const VERBOSITY: Names = Names::variable("COG_VERBOSITY");
const SERVICE_TIER: Names = Names::variable("COG_SERVICE_TIER");
const ASK: Names = Names::variable("COG_ASK");
const BUDGET_MAX_COST: Names = Names::variable("COG_BUDGET_MAX_COST");
const BUDGET_MAX_TOKENS: Names = Names::variable("COG_BUDGET_MAX_TOKENS");
const BUDGET_MAX_CALLS: Names = Names::variable("COG_BUDGET_MAX_CALLS");
const TOOL_CONFIRM: Names = Names::variable("COG_TOOLS_CONFIRM");
const TOOL_MAX_ROUNDS: Names = Names::variable("COG_TOOLS_MAX_ROUNDS");
const TOOL_MAX_CALLS: Names = Names::variable("COG_TOOLS_MAX_CALLS");
const TOOL_MAX_PARALLEL: Names = Names::variable("COG_TOOLS_MAX_PARALLEL");
const TOOL_TIMEOUT: Names = Names::variable("COG_TOOLS_CALL_TIMEOUT");
const TOOL_MAX_RESULT_BYTES: Names = Names::variable("COG_TOOLS_MAX_RESULT_BYTES");
const TOOL_MAX_TOKENS: Names = Names::variable("COG_TOOLS_MAX_TOKENS");
const TOOL_MAX_COST: Names = Names::variable("COG_TOOLS_MAX_COST");
const TOOL_STATE_DIR: &str = "COG_TOOLS_STATE_DIR";

/// The settings of the generation.
#[derive(Debug)]
pub struct GenerationSettings {
    /// The amount of reasoning.
    pub effort: Setting<Option<Effort>>,
    /// The detail of the answer.
    pub verbosity: Setting<Option<Verbosity>>,
    /// The class of service.
    pub service_tier: Setting<Option<ServiceTier>>,
    /// The form in which models are asked for their answers.
    pub ask: Setting<Option<Ask>>,
}

impl GenerationSettings {
    /// Reads the variables and the files.
    ///
    /// # Errors
    /// A variable with an unknown value.
    pub(super) fn read(layers: &Layers<'_>) -> Result<Self, SettingsError> {
        Ok(Self {
            effort: layers.optional(EFFORT, None, variant, |file| file.effort)?,
            verbosity: layers.optional(VERBOSITY, None, variant, |file| file.verbosity)?,
            service_tier: layers.optional(SERVICE_TIER, None, variant, |file| file.service_tier)?,
            ask: layers.optional(ASK, None, variant, |file| file.ask)?,
        })
    }

    /// Returns the parameters that runs prefer.
    pub fn preferred(&self) -> Generation {
        Generation {
            effort: self.effort.value,
            verbosity: self.verbosity.value,
            service_tier: self.service_tier.value,
            ask: self.ask.value,
            ..Generation::default()
        }
    }

    /// Returns the settings as `cog config` shows them.
    pub(super) fn rows(&self) -> [Row; 4] {
        [
            Row::new("effort", &self.effort, name),
            Row::new("verbosity", &self.verbosity, name),
            Row::new("service_tier", &self.service_tier, name),
            Row::new("ask", &self.ask, name),
        ]
    }
}

/// Parses the name of a variant.
fn variant<T: FromStr<Err = ParseEnumError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseEnumError| error.to_string())
}

fn name(value: &Option<impl Display>) -> DisplayValue {
    DisplayValue::maybe(value.as_ref())
}

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
        Ok(Self {
            max_cost: layers.optional(BUDGET_MAX_COST, None, values::cost, |file| file.budget.max_cost)?,
            max_tokens: layers
                .optional(BUDGET_MAX_TOKENS, None, values::count, |file| file.budget.max_tokens)?,
            max_calls: layers
                .optional(BUDGET_MAX_CALLS, None, values::count, |file| file.budget.max_calls)?,
        })
    }

    /// Returns the limits of a run.
    pub fn limits(&self) -> BudgetLimits {
        BudgetLimits {
            max_cost: self.max_cost.value,
            max_tokens: self.max_tokens.value,
            max_calls: self.max_calls.value,
        }
    }

    /// Returns every setting as `cog config` shows it.
    pub(super) fn rows(&self) -> [Row; 3] {
        [
            Row::new("budget.max_cost", &self.max_cost, |it| DisplayValue::maybe(*it)),
            Row::new("budget.max_tokens", &self.max_tokens, |it| {
                it.map_or(DisplayValue::Nothing, DisplayValue::Count)
            }),
            Row::new("budget.max_calls", &self.max_calls, |it| {
                it.map_or(DisplayValue::Nothing, DisplayValue::Count)
            }),
        ]
    }
}

/// The settings of tool calls.
#[derive(Debug)]
pub struct ToolsSettings {
    /// The tools whose calls a person must confirm.
    pub confirm: Setting<Vec<String>>,
    max_rounds: Setting<u32>,
    max_calls: Setting<u32>,
    max_parallel: Setting<usize>,
    call_timeout: Setting<Duration>,
    max_result_bytes: Setting<usize>,
    max_tokens: Setting<Option<u64>>,
    max_cost: Setting<Option<f64>>,
    /// The directory of runs that wait for a confirmation; none without a home directory.
    state_dir: Setting<Option<PathBuf>>,
}

impl ToolsSettings {
    /// Reads the variables and the operator's file.
    ///
    /// # Errors
    /// A variable with an invalid value.
    pub(super) fn read(layers: &Layers<'_>) -> Result<Self, SettingsError> {
        let ToolLimits { max_rounds, max_calls, max_parallel, call_timeout, max_result_bytes, .. } =
            ToolLimits::default();
        let state_dir = layers.directories.state.as_deref().map(|state| state.join("halted"));
        Ok(Self {
            confirm: layers.setting(
                TOOL_CONFIRM,
                None,
                |text| Ok(values::names(text)),
                |file| file.tools.confirm.clone(),
                Vec::new(),
            )?,
            max_rounds: layers.setting(
                TOOL_MAX_ROUNDS,
                None,
                values::count,
                |file| file.tools.max_rounds,
                max_rounds,
            )?,
            max_calls: layers.setting(
                TOOL_MAX_CALLS,
                None,
                values::count,
                |file| file.tools.max_calls,
                max_calls,
            )?,
            max_parallel: layers.setting(
                TOOL_MAX_PARALLEL,
                None,
                values::count,
                |file| file.tools.max_parallel,
                max_parallel,
            )?,
            call_timeout: layers.setting(
                TOOL_TIMEOUT,
                None,
                values::duration,
                |file| Some(file.tools.call_timeout?.0),
                call_timeout,
            )?,
            max_result_bytes: layers.setting(
                TOOL_MAX_RESULT_BYTES,
                None,
                values::bytes,
                |file| Some(file.tools.max_result_bytes?.0),
                max_result_bytes,
            )?,
            max_tokens: layers
                .optional(TOOL_MAX_TOKENS, None, values::count, |file| file.tools.max_tokens)?,
            max_cost: layers.optional(TOOL_MAX_COST, None, values::cost, |file| file.tools.max_cost)?,
            state_dir: layers.path(TOOL_STATE_DIR, |file| file.tools.state_dir.as_ref(), state_dir),
        })
    }

    /// Returns the limits of tool calls.
    pub fn limits(&self) -> ToolLimits {
        let mut limits = ToolLimits::default();
        limits.max_rounds = self.max_rounds.value;
        limits.max_calls = self.max_calls.value;
        limits.max_parallel = self.max_parallel.value;
        limits.call_timeout = self.call_timeout.value;
        limits.max_result_bytes = self.max_result_bytes.value;
        limits.max_tokens = self.max_tokens.value;
        limits.max_cost = self.max_cost.value;
        limits
    }

    /// Returns the directory of runs that wait for a confirmation; none without a home directory.
    pub fn state_dir(&self) -> Option<&Path> {
        self.state_dir.value.as_deref()
    }

    /// Returns the store of runs that wait for a confirmation.
    pub fn pending_approvals(&self) -> PendingApprovals {
        match &self.state_dir.value {
            Some(directory) => PendingApprovals::in_directory(directory),
            None => PendingApprovals::default(),
        }
    }

    /// Returns every setting as `cog config` shows it.
    pub(super) fn rows(&self) -> [Row; 9] {
        [
            Row::new("tools.confirm", &self.confirm, |names| DisplayValue::list(names.iter())),
            Row::new("tools.max_rounds", &self.max_rounds, |it| DisplayValue::Count(u64::from(*it))),
            Row::new("tools.max_calls", &self.max_calls, |it| DisplayValue::Count(u64::from(*it))),
            Row::new("tools.max_parallel", &self.max_parallel, |it| DisplayValue::Count(*it as u64)),
            Row::new("tools.call_timeout", &self.call_timeout, DisplayValue::duration),
            Row::new("tools.max_result_bytes", &self.max_result_bytes, DisplayValue::bytes),
            Row::new("tools.max_tokens", &self.max_tokens, |it| {
                it.map_or(DisplayValue::Nothing, DisplayValue::Count)
            }),
            Row::new("tools.max_cost", &self.max_cost, |it| DisplayValue::maybe(*it)),
            Row::new("tools.state_dir", &self.state_dir, |path| DisplayValue::path(path.as_ref())),
        ]
    }
}
