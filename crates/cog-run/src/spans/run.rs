//! The span of a run.

use std::{borrow::Cow, sync::Arc};

use cog_json::Value;
use cog_module::Module;
use cog_spec::{ErrorBody, Meta};

use super::{RunWork, Tracer, Work, open::OpenSpan};
use crate::{Ended, RunInput, RunOptions, RunOutcome};

/// The span of a run that has not ended.
pub(crate) struct OpenRun {
    span: OpenSpan,
    pub(crate) session_id: String,
    input: Option<Value>,
}

/// What an answer adds to the end of a run.
#[derive(Clone, Copy, Default)]
pub(crate) struct RunEnd<'a> {
    pub(crate) meta: Option<&'a Meta>,
    pub(crate) data: Option<&'a Value>,
    pub(crate) message: Option<&'a str>,
}

impl OpenRun {
    /// Starts the span of a run. Returns it with the options of the run, whose spans belong to it; no span without a tracer.
    pub(crate) fn start<'a>(
        tracer: Option<&Arc<dyn Tracer>>,
        options: &'a RunOptions,
        input: &RunInput,
    ) -> (Option<Self>, Cow<'a, RunOptions>) {
        let Some(tracer) = tracer else { return (None, Cow::Borrowed(options)) };
        let span = OpenSpan::start(tracer, options.parent_span.as_ref());
        let mut options = options.clone();
        if span.context.is_sampled {
            // The envelope names the trace in which its run is found.
            options.trace_id.get_or_insert_with(|| span.context.trace_id());
        }
        options.parent_span = Some(span.context.clone());
        let input = span.records_content().then(|| content(input));
        (Some(Self { span, session_id: String::new(), input }), Cow::Owned(options))
    }

    /// Ends the span of a run that was refused before the provider was called.
    pub(crate) fn refused(&self, error: &ErrorBody, module: &Module) {
        let outcome = RunOutcome::Failed(&error.code);
        let end = Ended { module: "", outcome, usage: None, attempts: 0, repairs: 0, fallbacks: &[] };
        let message = Some(error.message.as_str());
        self.end(module, end, RunEnd { message, ..RunEnd::default() });
    }

    pub(crate) fn end(&self, module: &Module, end: Ended<'_>, answer: RunEnd<'_>) {
        let has_content = self.span.records_content();
        self.span.end(Work::Run(RunWork {
            manifest: &module.manifest,
            session_id: &self.session_id,
            end: Ended { module: &module.manifest.name, ..end },
            meta: answer.meta,
            input: self.input.as_ref(),
            output: answer.data.filter(|_| has_content),
            message: answer.message.filter(|_| has_content),
        }));
    }
}

/// Returns the input as JSON: a text, or the fields beside it too.
fn content(input: &RunInput) -> Value {
    match input {
        RunInput::Json(value) => value.clone(),
        RunInput::Args(text) => serde_json::json!(text).into(),
        RunInput::ArgsWith(text, fields) => serde_json::json!([text, fields.to_serde()]).into(),
    }
}
