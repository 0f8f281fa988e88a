//! The log of runs that `cog logs` shows.

use std::sync::Arc;

use cog_host::{
    run_log::{RequestedModel, RunLog},
    settings::Settings,
};
use cog_module::Module;
use cog_run::{RunInput, RunOptions};
use cog_spec::Envelope;

use crate::caller::warn;

/// The log of the settings, unless it is off.
pub(crate) struct Log {
    runs: RunLog,
    /// Whether the operator set it up, so that a log that cannot be written is reported.
    is_set: bool,
}

/// A run that will be in the log.
pub(crate) struct LogEntry {
    log: Arc<Log>,
    module: Arc<Module>,
    /// Only if contents are stored.
    input: Option<RunInput>,
    requested: RequestedModel,
}

impl Log {
    pub(crate) fn new(settings: &Settings) -> Option<Arc<Self>> {
        let runs = RunLog::new(settings)?;
        Some(Arc::new(Self { runs, is_set: settings.logs.are_set() }))
    }

    /// Returns the entry of a run that starts.
    pub(crate) fn entry(
        self: &Arc<Self>,
        module: &Arc<Module>,
        input: &RunInput,
        options: &RunOptions,
    ) -> LogEntry {
        let input = self.runs.stores_contents().then(|| input.clone());
        let requested = RequestedModel { provider: options.provider.clone(), model: options.model.clone() };
        LogEntry { log: Arc::clone(self), module: Arc::clone(module), input, requested }
    }
}

impl LogEntry {
    /// Adds the run to the log.
    pub(crate) fn add(self, envelope: &Envelope) {
        let added = self.log.runs.add(&self.module, self.input.as_ref(), envelope, self.requested);
        if let Err(error) = added
            && self.log.is_set
        {
            warn(format!("this run is not in `cog logs`: {error}"));
        }
    }
}
