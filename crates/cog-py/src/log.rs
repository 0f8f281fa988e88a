//! The log of runs that `cog logs` shows.

use std::sync::Arc;

use cog_host::{
    run_log::{RequestedModel, RunLog},
    settings::Settings,
};
use cog_run::{RunOptions, events::RunEvents};

use crate::caller::warn;

/// The log of the settings, unless it is off.
pub(crate) struct Log {
    runs: Arc<RunLog>,
    /// Whether the operator set it up, so that a log that cannot be written is reported.
    is_set: bool,
}

impl Log {
    pub(crate) fn new(settings: &Settings) -> Option<Self> {
        let runs = Arc::new(RunLog::new(settings)?);
        Some(Self { runs, is_set: settings.logs.are_set() })
    }

    /// Returns the listener that adds a run with these options.
    pub(crate) fn listener(&self, options: &RunOptions) -> Arc<dyn RunEvents> {
        let is_set = self.is_set;
        let requested = RequestedModel { provider: options.provider.clone(), model: options.model.clone() };
        self.runs.listener(requested, move |error| {
            if is_set {
                warn(format!("this run is not in `cog logs`: {error}"));
            }
        })
    }
}
