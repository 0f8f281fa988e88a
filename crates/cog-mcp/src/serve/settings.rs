//! What the program that serves the modules decides for each call.

use std::any::Any;

use cog_run::RunOptions;
use cog_spec::ErrorBody;
use http::request::Parts;
use tokio_util::sync::CancellationToken;

/// What a call may use, and whose run it is.
#[derive(Default)]
pub struct CallSettings {
    /// The options of its run.
    pub options: RunOptions,
    /// What is in use until the run has ended, such as a slot.
    pub held: Option<Box<dyn Any + Send + Sync>>,
    /// Stops the run when the program shuts down.
    pub shutdown: CancellationToken,
    /// How a person continues a run that waits for a confirmation, if the client has no elicitation. By default the
    /// suggestion of the run.
    pub confirmation_advice: Option<String>,
}

/// Returns the settings of a call. The argument is the HTTP request; none over stdio. An error refuses the call.
pub(super) type Settings = Box<dyn Fn(Option<&Parts>) -> Result<CallSettings, ErrorBody> + Send + Sync>;
