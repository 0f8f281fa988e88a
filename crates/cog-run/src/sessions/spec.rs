use std::any::Any;

use cog_json::Value;

use crate::RunOptions;

/// The specification of a run. It is stored, so that an interrupted run can start again.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunSpec {
    /// The module's name. [`Runtime::load_name`](crate::Runtime::load_name) loads it when the run starts again.
    pub module: String,
    /// The input.
    pub input: Value,
    /// The options of the run.
    pub options: RunOptions,
}

/// The options of a new session.
#[non_exhaustive]
pub struct SessionOptions {
    /// The owner of the session. Other owners cannot access it.
    pub owner: String,
    /// Whether the run continues without readers.
    pub detached: bool,
    /// A value that is held until the run has ended, such as a semaphore permit.
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

impl SessionOptions {
    /// Returns the options of a session of this owner, whose run is cancelled when its last reader disconnects.
    pub fn new(owner: impl Into<String>) -> Self {
        Self { owner: owner.into(), detached: false, slot: Box::new(()) }
    }

    /// Sets whether the run continues without readers.
    #[must_use]
    pub fn detached(mut self, detached: bool) -> Self {
        self.detached = detached;
        self
    }

    /// Sets a value that is held until the run has ended, such as a permit of a semaphore.
    #[must_use]
    pub fn slot(mut self, slot: Box<dyn Any + Send>) -> Self {
        self.slot = slot;
        self
    }
}
