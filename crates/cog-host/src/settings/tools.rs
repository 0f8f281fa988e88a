//! The settings of tool calls. Only the operator may set them: they decide what runs without a confirmation.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use cog_run::tools::{HaltedRuns, ToolLimits};

use super::{
    Row, Setting, SettingsError, Shown, Source, values,
    sources::{Layers, Names, expand_home},
};

const CONFIRM: Names = Names { flag: "", variable: "COG_TOOLS_CONFIRM" };
const MAX_ROUNDS: Names = Names { flag: "", variable: "COG_TOOLS_MAX_ROUNDS" };
const MAX_CALLS: Names = Names { flag: "", variable: "COG_TOOLS_MAX_CALLS" };
const MAX_PARALLEL: Names = Names { flag: "", variable: "COG_TOOLS_MAX_PARALLEL" };
const CALL_TIMEOUT: Names = Names { flag: "", variable: "COG_TOOLS_CALL_TIMEOUT" };
const MAX_RESULT_BYTES: Names = Names { flag: "", variable: "COG_TOOLS_MAX_RESULT_BYTES" };
const MAX_TOKENS: Names = Names { flag: "", variable: "COG_TOOLS_MAX_TOKENS" };
const MAX_COST: Names = Names { flag: "", variable: "COG_TOOLS_MAX_COST" };
const STATE_DIR: &str = "COG_TOOLS_STATE_DIR";

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
    pub(super) fn read(layers: &Layers<'_>, home: Option<&Path>) -> Result<Self, SettingsError> {
        let default = ToolLimits::default();
        let names = |text: &str| Ok(values::names(text));
        let confirm = layers.pick(CONFIRM, None, names, |file| file.tools.confirm.clone())?;
        let rounds = layers.pick(MAX_ROUNDS, None, values::count, |file| file.tools.max_rounds)?;
        let calls = layers.pick(MAX_CALLS, None, values::count, |file| file.tools.max_calls)?;
        let parallel = layers.pick(MAX_PARALLEL, None, values::count, |file| file.tools.max_parallel)?;
        let timeout =
            layers.pick(CALL_TIMEOUT, None, values::duration, |file| Some(file.tools.call_timeout?.0))?;
        let bytes = layers
            .pick(MAX_RESULT_BYTES, None, values::bytes, |file| Some(file.tools.max_result_bytes?.0))?;
        let tokens = layers.pick(MAX_TOKENS, None, values::count, |file| file.tools.max_tokens)?;
        let cost = layers.pick(MAX_COST, None, values::cost, |file| file.tools.max_cost)?;
        Ok(Self {
            confirm: confirm.unwrap_or_else(|| Setting::default(Vec::new())),
            max_rounds: rounds.unwrap_or_else(|| Setting::default(default.max_rounds)),
            max_calls: calls.unwrap_or_else(|| Setting::default(default.max_calls)),
            max_parallel: parallel.unwrap_or_else(|| Setting::default(default.max_parallel)),
            call_timeout: timeout.unwrap_or_else(|| Setting::default(default.call_timeout)),
            max_result_bytes: bytes.unwrap_or_else(|| Setting::default(default.max_result_bytes)),
            max_tokens: tokens.map_or_else(|| Setting::default(None), Setting::some),
            max_cost: cost.map_or_else(|| Setting::default(None), Setting::some),
            state_dir: state_dir(layers, home),
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
    pub fn halted_runs(&self) -> HaltedRuns {
        match &self.state_dir.value {
            Some(directory) => HaltedRuns::in_directory(directory),
            None => HaltedRuns::in_memory(),
        }
    }

    /// Returns every setting as `cog config` shows it.
    pub(super) fn rows(&self) -> [Row; 9] {
        let count = |number: u64| Shown::Count(number);
        [
            Row::new("tools.confirm", &self.confirm, |names| Shown::list(names.iter())),
            Row::new("tools.max_rounds", &self.max_rounds, |it| count(u64::from(*it))),
            Row::new("tools.max_calls", &self.max_calls, |it| count(u64::from(*it))),
            Row::new("tools.max_parallel", &self.max_parallel, |it| count(*it as u64)),
            Row::new("tools.call_timeout", &self.call_timeout, |it| Shown::Text(values::show_duration(*it))),
            Row::new("tools.max_result_bytes", &self.max_result_bytes, |it| {
                Shown::Text(values::show_bytes(*it))
            }),
            Row::new("tools.max_tokens", &self.max_tokens, |it| it.map_or(Shown::Nothing, count)),
            Row::new("tools.max_cost", &self.max_cost, |it| Shown::maybe(*it)),
            Row::new("tools.state_dir", &self.state_dir, |path| Shown::path(path.as_ref())),
        ]
    }
}

fn state_dir(layers: &Layers<'_>, home: Option<&Path>) -> Setting<Option<PathBuf>> {
    if let Some(path) = layers.environment.path(STATE_DIR) {
        return Setting { value: Some(path), source: Source::variable(STATE_DIR) };
    }
    let in_file = layers.operator.as_ref().and_then(|file| {
        let path = file.content.tools.state_dir.as_ref()?;
        Some(Setting::from_file(Some(file.directory().join(expand_home(path, home))), &file.path))
    });
    in_file.unwrap_or_else(|| Setting::default(home.map(|home| home.join(".local/state/cog/halted"))))
}
