//! A call of a part, and its end.

use std::{sync::Arc, time::Duration};

use cog_flow::Callee;
use cog_json::{Node, Value};
use cog_module::Module;
use cog_spec::{Code, Meta, PartError, PartReport, PartStatus, WarningCode};

use super::HaltedPart;
use crate::{CancelReason, RunInput, tools::CONFIRMATION_REQUIRED};

/// A call of a part, or of the module's own prompt.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// The task that waits for it.
    pub(super) task: usize,
    /// What runs.
    pub(super) callee: Callee,
    /// The name of its module, as `dataflow` and the prompt write it.
    pub(super) name: String,
    /// The module that runs; none if it is missing.
    pub(super) module: Option<Arc<Module>>,
    /// The callee whose result it is; another one for a fallback.
    pub(super) result_of: Callee,
    /// The path in `meta.parts`.
    pub(super) path: String,
    /// The input of the part.
    pub(super) input: RunInput,
    /// The texts in place of the calls and references of the own prompt.
    pub(super) texts: Vec<String>,
    /// The maximum duration.
    pub(super) timeout: Option<Duration>,
    /// Whether the composition continues without its result.
    pub(super) optional: bool,
    /// The number of fallbacks before this one.
    pub(super) fallbacks: usize,
}

/// A call that has ended.
pub(super) struct Ended {
    pub(super) call: Call,
    /// The envelope of the answer or the error.
    pub(super) envelope: Value,
    pub(super) time: Duration,
    /// The key under which the answer is recorded; none if it is not recorded.
    pub(super) key: Option<String>,
    /// Whether the answer is that of an earlier, interrupted run.
    pub(super) restored: bool,
}

impl Ended {
    /// Returns whether the call has an answer.
    pub(super) fn is_ok(&self) -> bool {
        self.envelope.get("ok").and_then(Node::as_bool) == Some(true)
    }

    /// Returns whether the call was cancelled.
    fn is_cancelled(&self) -> bool {
        let details = self.envelope.get("error").and_then(|error| error.get("details"));
        let reason = details.and_then(|details| details.get("reason")?.as_str());
        let reasons = [CancelReason::Cancelled, CancelReason::ClientGone, CancelReason::Shutdown];
        let is_interrupted = |(code, _)| code == Code::StreamInterrupted.as_str();
        self.error().is_some_and(is_interrupted) && reasons.iter().any(|known| reason == Some(known.as_str()))
    }

    fn status(&self) -> PartStatus {
        match self.is_ok() {
            true => PartStatus::Done,
            false if self.is_cancelled() => PartStatus::Cancelled,
            false => PartStatus::Failed,
        }
    }

    /// Returns what the part emits; none if it emits nothing.
    pub(super) fn emitted(&self) -> Option<Value> {
        let emitted = self.envelope.get("_emitted_context").filter(|_| self.is_ok())?;
        Some(self.envelope.child(emitted))
    }

    /// Returns the error: its code, and its message.
    pub(super) fn error(&self) -> Option<(&str, &str)> {
        let error = self.envelope.get("error")?;
        Some((error.get("code")?.as_str()?, error.get("message").and_then(Node::as_str).unwrap_or_default()))
    }

    /// Returns the part if it waits for a confirmation.
    pub(super) fn halted(&self) -> Option<HaltedPart> {
        let (code, _) = self.error()?;
        let details = self.envelope.get("error")?.get("details")?;
        if code != Code::PermissionDenied.as_str()
            || details.get("reason")?.as_str()? != CONFIRMATION_REQUIRED
        {
            return None;
        }
        let id = details.get("halted")?.get("id")?.as_str()?.to_owned();
        Some(HaltedPart { path: self.call.path.clone(), key: self.key.clone()?, id })
    }

    /// Returns the meta of the envelope.
    pub(super) fn meta(&self) -> Option<Meta> {
        Meta::read(self.envelope.get("meta")?)
    }

    /// Returns the report about the call, followed by those about the parts of the part.
    pub(super) fn reports(&self) -> Vec<PartReport> {
        let Call { path, name, module, .. } = &self.call;
        let mut report = PartReport::new(path, name, self.status());
        report.version = module.as_ref().map(|module| module.manifest.version.clone());
        report.restored = self.restored;
        report.time_ms = Some(u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX));
        let error = self.error().filter(|_| report.status == PartStatus::Failed);
        report.error =
            error.map(|(code, message)| PartError { code: code.to_owned(), message: message.to_owned() });
        let Some(meta) = self.meta() else { return vec![report] };
        report.usage.clone_from(&meta.runtime.usage);
        (report.model, report.cache) = (meta.runtime.model.clone(), meta.runtime.cache);
        if self.is_ok() {
            (report.confidence, report.risk) = (meta.confidence, Some(meta.risk.level()));
        }
        let inner = meta.runtime.parts.into_iter();
        let inner = inner.map(|part| PartReport { path: format!("{path}/{}", part.path), ..part });
        std::iter::once(report).chain(inner).collect()
    }

    /// Returns the warnings of the answer: their codes and messages.
    pub(super) fn warnings(&self) -> impl Iterator<Item = (WarningCode, &str)> {
        let warnings = self.envelope.get("_warnings").into_iter().flat_map(Node::elements);
        warnings.filter_map(|warning| {
            Some((warning.get("code")?.as_str()?.parse().ok()?, warning.get("message")?.as_str()?))
        })
    }

    /// Returns whether the same call may succeed when the stream is resumed.
    pub(super) fn is_interrupted(&self) -> bool {
        self.envelope.get("error").is_some_and(may_pass)
    }
}

/// Returns whether an error may pass: the call was interrupted, or refused for a time. The error of a composition contains that
/// of its part.
fn may_pass(error: Node<'_>) -> bool {
    let Some(code) = error.get("code").and_then(Node::as_str) else { return false };
    let is = |known: Code| known.as_str() == code;
    if is(Code::PartialResult) {
        return error.get("details").and_then(|details| details.get("error")).is_some_and(may_pass);
    }
    let recoverable = error.get("recoverable").and_then(Node::as_bool);
    let passing = [Code::Timeout, Code::StreamInterrupted, Code::StreamTimeout, Code::RateLimited];
    passing.into_iter().any(is) || is(Code::ProviderUnavailable) && recoverable != Some(false)
}
