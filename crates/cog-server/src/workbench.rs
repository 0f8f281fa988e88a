//! What the workbench does beyond running modules, as far as a server needs it: checks, tests, logs, labels (docs/workbench.md).

use std::sync::Arc;

use cog_json::{ToJson, Value, Writer};
use cog_module::{Diagnostic, Module, Origin};
use cog_run::feedback::Feedback;
use cog_spec::ErrorBody;
use futures_util::{future::BoxFuture, stream::BoxStream};

/// What the page can do for a person at their own machine. The program implements it with what its commands do.
///
/// The results are JSON, as the commands print it. All functions but [`Workbench::test`] read files, and are called on a thread
/// that may block.
pub trait Workbench: Send + Sync {
    /// Returns the providers that a run can name, those that are configured first.
    fn providers(&self) -> Vec<ListedProvider>;

    /// Whether runs are logged.
    fn has_logs(&self) -> bool;

    /// Checks the files of a module, and the modules that it calls.
    fn check(&self, origin: &Origin) -> Vec<Diagnostic>;

    /// Runs golden tests. The stream has one line of JSON for each case and one for all; dropping it stops the tests.
    ///
    /// # Errors
    /// The provider is unknown or cannot be used.
    fn test(&self, request: TestRequest)
    -> BoxFuture<'static, Result<BoxStream<'static, String>, ErrorBody>>;

    /// Writes a golden test into the directory of a module, which has no test with this name or this input. Returns the path of its
    /// expected file in the directory.
    ///
    /// # Errors
    /// E1001 for an input or an answer that no test of this module can have, E1006 for a file that cannot be written, E4007
    /// for a module that is built in.
    fn add_case(&self, module: &Module, case: NewCase) -> Result<String, ErrorBody>;

    /// Returns the newest runs of the log, of one module or of all: an array.
    ///
    /// # Errors
    /// E1006 if runs are not logged, or if the log cannot be read.
    fn runs(&self, module: Option<&str>, limit: usize) -> Result<String, ErrorBody>;

    /// Returns a run of the log; none if there is no run with this ID.
    ///
    /// # Errors
    /// As [`Workbench::runs`].
    fn run(&self, id: &str) -> Result<Option<String>, ErrorBody>;

    /// Labels a run of the log, and returns the label; none if there is no run with this ID.
    ///
    /// # Errors
    /// As [`Workbench::runs`]; E1001 for a corrected answer that does not fit the schema of the module.
    fn label(&self, run: &str, feedback: Feedback) -> Result<Option<String>, ErrorBody>;

    /// Returns what the runs of a module showed that its contract did not foresee, as `cog insights --format json`.
    ///
    /// # Errors
    /// As [`Workbench::runs`].
    fn insights(&self, module: &Module) -> Result<String, ErrorBody>;

    /// Returns what the confidences of a module are worth.
    ///
    /// # Errors
    /// E1006 for a file of calibrations that cannot be used.
    fn trust(&self, module: &Module) -> Result<String, ErrorBody>;
}

/// A provider that a run can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedProvider {
    /// Its name.
    pub name: String,
    /// The model that it calls unless a run names one; empty if there is none.
    pub model: String,
    /// Whether the settings have what a call needs.
    pub is_configured: bool,
}

/// Written by hand: the keys are those of docs/workbench.md.
impl ToJson for ListedProvider {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", &self.name);
            w.field("model", &self.model);
            w.field("configured", &self.is_configured);
        });
    }
}

/// Golden tests to run.
#[derive(Debug, Clone)]
pub struct TestRequest {
    /// The module.
    pub module: Arc<Module>,
    /// The names of the cases; empty for all.
    pub cases: Vec<String>,
    /// The provider to call. Without one, recordings are replayed, and the other cases are only compared with the contract.
    pub provider: Option<String>,
    /// The model of the provider.
    pub model: Option<String>,
}

/// A run that becomes a golden test.
#[derive(Debug, Clone)]
pub struct NewCase {
    /// The name of its files: lower-case letters, digits and hyphens.
    pub name: String,
    /// The input.
    pub input: Value,
    /// The right answer, as an envelope.
    pub envelope: Value,
}

/// The workbench of a server.
#[derive(Clone)]
pub(crate) struct Bench {
    pub(crate) workbench: Arc<dyn Workbench>,
    /// Whether files of modules may be written.
    pub(crate) can_edit: bool,
    /// Locked while a file is compared with what was read, and replaced.
    pub(crate) writing: Arc<std::sync::Mutex<()>>,
}
