//! The log of runs that the operator keeps, as far as a server needs it: the runs of its clients, and their labels.

use std::sync::Arc;

use cog_json::{ToJson, Writer};
use cog_run::{
    RunOptions,
    events::RunEvents,
    feedback::{Feedback, LabelKind},
};
use cog_spec::ErrorBody;

/// Where the runs of clients are logged, and their labels stored (docs/labels.md).
pub trait RunRecords: Send + Sync {
    /// Returns the listener that adds one run of a client and its request.
    fn listener(&self, client: &str, request_id: &str, options: &RunOptions) -> Arc<dyn RunEvents>;

    /// Stores a label of a run of this client, if `check` accepts it for the module of this name. The run is named by its session, by
    /// the `meta.trace_id` of its answer, by its request, or by the reply of OpenAI's or Anthropic's interface. Returns none if the
    /// client has no such run. Reads files.
    ///
    /// # Errors
    /// The error of `check`; E1006 if several runs of the client have the trace or the request, or if a file cannot be read or
    /// written; E4002 if the run has too many labels.
    fn label(
        &self,
        client: &str,
        id: &str,
        feedback: Feedback,
        check: &dyn Fn(&str, &Feedback) -> Result<(), ErrorBody>,
    ) -> Result<Option<FeedbackReceipt>, ErrorBody>;
}

/// What became of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedbackReceipt {
    /// The identifier of the run in the operator's log.
    pub run: String,
    /// The label.
    pub label: LabelKind,
    /// When it was first given, as RFC 3339 in UTC.
    pub time: String,
    /// The module of the run.
    pub module: String,
    /// Whether it was added. A label that repeats the last one of its run is not.
    pub is_new: bool,
}

/// Written by hand: a repeated label has the same response.
impl ToJson for FeedbackReceipt {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("run", &self.run);
            w.field("label", self.label.as_str());
            w.field("time", &self.time);
            w.field("module", &self.module);
        });
    }
}
