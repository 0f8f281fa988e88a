//! The listeners of a run, and the spans that are created for them.

use std::{fmt, sync::Arc, time::SystemTime};

use cog_provider::{ProviderInfo, ReplyHook, RetryHook};
use tokio::time::Instant;

use super::{CallReport, Needs, RunEvents, RunReport, Span, SpanContext, ToolReport};
use crate::clock;

/// The listeners of a run, in order. Without any, nothing is created for them.
#[derive(Clone, Default)]
pub(crate) struct Listeners {
    /// What at least one of them needs.
    needs: Needs,
    all: Option<Arc<[Arc<dyn RunEvents>]>>,
}

impl Listeners {
    /// Returns these listeners and further ones.
    pub(crate) fn with(&self, more: &[Arc<dyn RunEvents>]) -> Self {
        if more.is_empty() {
            return self.clone();
        }
        let all: Arc<[_]> = self.iter().chain(more).cloned().collect();
        let needs = all.iter().map(|one| one.needs()).fold(Needs::default(), |all, one| Needs {
            spans: all.spans || one.spans,
            content: all.content || one.content,
            messages: all.messages || one.messages,
        });
        Self { needs, all: Some(all) }
    }

    /// Returns these listeners and then the others.
    pub(crate) fn and(&self, others: &Self) -> Self {
        match &others.all {
            Some(more) => self.with(more),
            None => self.clone(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_none()
    }

    pub(crate) fn needs(&self) -> Needs {
        self.needs
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<dyn RunEvents>> {
        self.all.iter().flat_map(|all| all.iter())
    }

    /// Returns a hook that reports each attempt that a provider retries, if `is_allowed` allows the retry.
    pub(crate) fn retry_hook(
        &self,
        provider: &ProviderInfo,
        is_allowed: impl Fn() -> bool + Send + Sync + 'static,
    ) -> RetryHook {
        let listeners = self.clone();
        let name = provider.name.clone();
        RetryHook::new(move |code| {
            let is_allowed = is_allowed();
            if is_allowed {
                listeners.iter().for_each(|one| one.call_retried(&name, code));
            }
            is_allowed
        })
    }

    /// Returns a hook that reports the head of each reply; none without listeners.
    pub(crate) fn reply_hook(&self) -> Option<ReplyHook> {
        let listeners = self.clone();
        let hook = || ReplyHook::new(move |head| listeners.iter().for_each(|one| one.reply_head(head)));
        (!self.is_empty()).then(hook)
    }

    pub(super) fn run_ended(&self, run: &RunReport<'_>) {
        self.iter().for_each(|one| one.run_ended(run));
    }

    pub(super) fn call_ended(&self, call: &CallReport<'_>) {
        self.iter().for_each(|one| one.call_ended(call));
    }

    pub(super) fn tool_ended(&self, tool: &ToolReport<'_>) {
        self.iter().for_each(|one| one.tool_ended(tool));
    }

    /// Starts a span. Without a parent, it is the first of a new trace. None if no listener needs spans.
    pub(super) fn open_span(&self, parent: Option<&SpanContext>) -> Option<OpenSpan> {
        if !self.needs.spans {
            return None;
        }
        let started_at = clock::now();
        let started = Instant::now();
        let mut context = SpanContext::new(parent)?;
        let mut recording = self.iter().filter(|one| one.needs().spans);
        context.is_sampled = recording.any(|one| one.samples(parent, context.trace_id));
        Some(OpenSpan { context, parent: parent.cloned(), started_at, started })
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} listeners", self.iter().count())
    }
}

/// The listeners of a run, and the span that its calls belong to.
#[derive(Clone, Default)]
pub(crate) struct RunScope {
    pub(crate) listeners: Listeners,
    /// The span of the run, or of its caller if no listener needs spans.
    pub(crate) span: Option<SpanContext>,
}

impl RunScope {
    /// Starts a span of the run.
    pub(super) fn open_span(&self) -> Option<OpenSpan> {
        self.listeners.open_span(self.span.as_ref())
    }
}

/// A span that has started.
pub(super) struct OpenSpan {
    pub(super) context: SpanContext,
    parent: Option<SpanContext>,
    started_at: SystemTime,
    started: Instant,
}

impl OpenSpan {
    /// Returns the span up to now.
    pub(super) fn report(&self) -> Span<'_> {
        Span {
            context: &self.context,
            parent: self.parent.as_ref(),
            started: self.started_at,
            duration: self.started.elapsed(),
        }
    }
}
