use std::any::Any;

use cog_json::Value;

use crate::RunOptions;

/// What is to run. It is kept, so that an interrupted run can be asked again.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunSpec {
    /// The module's name, by which [`Runtime::load_name`] finds it when it is asked again.
    pub module: String,
    /// The input.
    pub input: Value,
    /// What this run sets differently.
    pub options: RunOptions,
}

/// How a session begins.
#[non_exhaustive]
pub struct Start {
    /// Who may see the session; for everybody else it does not exist.
    pub owner: String,
    /// The run goes on when nobody reads it.
    pub detached: bool,
    /// Held until the run has ended, such as a place among those that may run.
    pub slot: Box<dyn Any + Send>,
}

impl RunSpec {
    /// Returns the specification of a run with default options.
    pub fn new(module: impl Into<String>, input: Value) -> Self {
        Self { module: module.into(), input, options: RunOptions::default() }
    }

    /// Sets the options of the run.
    #[must_use]
    pub fn options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }
}

impl Start {
    /// Starts a session of this owner, whose run is cancelled when its last reader disconnects.
    pub fn new(owner: impl Into<String>) -> Self {
        Self { owner: owner.into(), detached: false, slot: Box::new(()) }
    }

    /// Sets whether the run continues without readers.
    #[must_use]
    pub fn detached(mut self, detached: bool) -> Self {
        self.detached = detached;
        self
    }

    /// Sets a value that is dropped when the run has finished, such as a permit of a semaphore.
    #[must_use]
    pub fn slot(mut self, slot: Box<dyn Any + Send>) -> Self {
        self.slot = slot;
        self
    }
}
