use std::any::Any;

use cog_json::Value;

use crate::RunOptions;

/// What is to run. It is kept, so that an interrupted run can be asked again.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// The module's name, by which [`Runtime::load_name`] finds it when it is asked again.
    pub module: String,
    /// The input.
    pub input: Value,
    /// What this run sets differently.
    pub options: RunOptions,
}

/// How a session begins.
pub struct Start {
    /// Who may see the session; for everybody else it does not exist.
    pub owner: String,
    /// The run goes on when nobody reads it.
    pub detached: bool,
    /// Held until the run has ended, such as a place among those that may run.
    pub slot: Box<dyn Any + Send>,
}
