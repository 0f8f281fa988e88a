//! Hooks of the program: Python objects that learn what happens in a run.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use cog_run::{
    Module,
    events::{CallOutcome, CallReport, Needs, RunEvents, RunOutcome, RunReport, ToolOutcome, ToolReport},
};
use cog_spec::{Code, FinishReason, Usage};
use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyList},
};

use crate::{
    attach::attached, caller::Caller, hosted::LoggedRun, provider::messages_to_python, result::RunResult,
};

/// The hooks of one run.
pub(crate) struct Hooks {
    /// A list of objects of `cognitive.Hooks`.
    objects: Py<PyAny>,
    /// The name of the module that is run; a call belongs to it, also if a part of the module makes it.
    module: OnceLock<String>,
    caller: Arc<Caller>,
    /// The run, so that its result can be labelled.
    run: Arc<LoggedRun>,
}

impl Hooks {
    pub(crate) fn new(objects: Py<PyAny>, caller: Arc<Caller>, run: Arc<LoggedRun>) -> Self {
        Self { objects, module: OnceLock::new(), caller, run }
    }

    fn module(&self) -> &str {
        self.module.get().map(String::as_str).unwrap_or_default()
    }

    /// Calls a method of each object, in the context of the caller. Python logs what they raise; a run that is cancelled when the
    /// interpreter ends calls nothing.
    fn dispatch(
        &self,
        name: &str,
        fields: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyDict>) -> PyResult<()>,
    ) {
        static DISPATCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let _ = attached(|py| {
            let event = PyDict::new(py);
            fields(py, &event)?;
            let dispatch = DISPATCH.import(py, "cognitive._hooks", "dispatch")?;
            let call = (dispatch, self.objects.bind(py), name, event);
            self.caller.context(py)?.call_method1("run", call).map(drop)
        });
    }
}

impl RunEvents for Hooks {
    fn needs(&self) -> Needs {
        Needs { content: true, envelope: true, ..Needs::default() }
    }

    fn run_started(&self, module: &Module, is_nested: bool) {
        let _ = self.module.set(module.manifest.name.clone());
        self.dispatch("run_started", |_, event| {
            event.set_item("module", &module.manifest.name)?;
            event.set_item("is_nested", is_nested)
        });
    }

    fn call_ended(&self, call: &CallReport<'_>) {
        self.dispatch("model_called", |py, event| {
            event.set_item("module", self.module())?;
            event.set_item("provider", call.provider)?;
            event.set_item("model", call.model)?;
            let messages = call.input.map(|input| messages_to_python(py, input)).transpose()?;
            event.set_item("messages", messages.unwrap_or_else(|| PyList::empty(py)))?;
            event.set_item("reply", call.output.unwrap_or_default())?;
            let requested = PyList::empty(py);
            for tool in call.tool_calls {
                let shown = PyDict::new(py);
                shown.set_item("id", &tool.id)?;
                shown.set_item("name", &tool.name)?;
                shown.set_item("arguments", &tool.arguments)?;
                requested.append(shown)?;
            }
            event.set_item("tool_calls", requested)?;
            event.set_item("finish_reason", call.finish.map(finish_reason))?;
            set_usage(event, call.usage, call.duration)?;
            event.set_item("error", error_of(call.outcome).map(Code::as_str))
        });
    }

    fn tool_ended(&self, tool: &ToolReport<'_>) {
        self.dispatch("tool_called", |_, event| {
            event.set_item("module", self.module())?;
            event.set_item("tool", tool.name)?;
            event.set_item("call_id", tool.call_id)?;
            event.set_item("arguments", tool.arguments.unwrap_or_default())?;
            event.set_item("result", tool.result)?;
            let error = match tool.outcome {
                ToolOutcome::Failed(kind) => Some(kind),
                ToolOutcome::Halted => Some("halted"),
                ToolOutcome::Dropped => Some("dropped"),
                _ => None,
            };
            event.set_item("error", error)
        });
    }

    fn run_ended(&self, run: &RunReport<'_>) {
        self.dispatch("run_ended", |py, event| {
            event.set_item("module", &run.module.manifest.name)?;
            event.set_item("is_nested", run.is_nested)?;
            let envelope = run.envelope.filter(|_| run.outcome != RunOutcome::Dropped);
            let result = envelope.map(|envelope| {
                RunResult::from_run(py, envelope.clone(), Some(&self.caller), Arc::clone(&self.run))
            });
            event.set_item("result", result.map(|result| Py::new(py, result)).transpose()?)?;
            event.set_item("attempts", run.attempts)?;
            set_usage(event, run.usage, run.duration)
        });
    }
}

fn set_usage(event: &Bound<'_, PyDict>, usage: Option<&Usage>, duration: Duration) -> PyResult<()> {
    event.set_item("input_tokens", usage.map(|usage| usage.input_tokens))?;
    event.set_item("output_tokens", usage.map(|usage| usage.output_tokens))?;
    event.set_item("cost", usage.and_then(|usage| usage.cost.as_ref()).map(|cost| cost.amount.as_f64()))?;
    event.set_item("duration", duration.as_secs_f64())
}

/// Returns the code of a call that failed. One that the run stopped to read has none.
fn error_of(outcome: CallOutcome) -> Option<Code> {
    match outcome {
        CallOutcome::Failed(code) | CallOutcome::NotSent(code) => Some(code),
        CallOutcome::CircuitOpen => Some(Code::ProviderUnavailable),
        _ => None,
    }
}

/// Returns the reason by the name that a `Reply` gives it.
fn finish_reason(reason: &FinishReason) -> &str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::Refusal(_) => "refusal",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Continue(_) => "continue",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Other(name) => name,
    }
}
