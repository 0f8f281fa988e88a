//! Setters of [`RunOptions`], for code that chains them.

use std::{sync::Arc, time::Duration};

use cog_media::{Access, Delivery};
use cog_spec::{ChunkType, Generation, OnViolation, Risk};

use super::{Caller, RunOptions};
use crate::{Budget, Cancellation, ContextScope, approval::Approval, events::RunEvents, tool::Tool};

impl RunOptions {
    /// Returns options that set nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a listener to this run, after those of the runtime. It is not called for parts of the run.
    #[must_use]
    pub fn events(mut self, listener: Arc<dyn RunEvents>) -> Self {
        self.events = self.events.with(&[listener]);
        self
    }

    /// Sets the provider by name, or several names in the order in which they are called: `a,b`.
    #[must_use]
    pub fn provider(mut self, provider: impl Into<String>) -> Self {
        self.provider = Some(provider.into());
        self
    }

    /// Sets the model of the first provider.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets whether every repair of the answer is a violation (ruling R26).
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Sets the maximum duration of the run (ruling R40).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the parameters of the generation. They replace the parameters of the runtime and the manifest.
    #[must_use]
    pub fn generation(mut self, generation: Generation) -> Self {
        self.generation = generation;
        self
    }

    /// Sets the handling of violations while the answer arrives (ruling R49).
    #[must_use]
    pub fn on_violation(mut self, on_violation: OnViolation) -> Self {
        self.on_violation = Some(on_violation);
        self
    }

    /// Sets the maximum number of calls to the model.
    #[must_use]
    pub fn max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = Some(max_attempts);
        self
    }

    /// Sets the way content is streamed (SPEC 2.2).
    #[must_use]
    pub fn chunk_type(mut self, chunk_type: ChunkType) -> Self {
        self.chunk_type = Some(chunk_type);
        self
    }

    /// Sets the number of bytes that are buffered before they are streamed (ruling R47).
    #[must_use]
    pub fn buffer_size(mut self, buffer_size: u64) -> Self {
        self.buffer_size = Some(buffer_size);
        self
    }

    /// Sets which media files, URLs and uploads the run may open.
    #[must_use]
    pub fn media(mut self, media: Access) -> Self {
        self.media = Some(media);
        self
    }

    /// Sets the owner whose uploads the run may open.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sets where generated media are delivered (SPEC 4.3).
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// Sets whether a user or an agent started the run.
    #[must_use]
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// Sets `meta.trace_id`.
    #[must_use]
    pub fn trace_id(mut self, trace_id: impl Into<String>) -> Self {
        self.trace_id = Some(trace_id.into());
        self
    }

    /// Sets the handle that cancels the run.
    #[must_use]
    pub fn cancellation(mut self, cancellation: Cancellation) -> Self {
        self.cancellation = cancellation;
        self
    }

    /// Sets the risk of the run. In a run of high risk, every tool that changes something needs a confirmation.
    #[must_use]
    pub fn risk(mut self, risk: Risk) -> Self {
        self.risk = Some(risk);
        self
    }

    /// Sets the maximum number of rounds of tool calls, at most the runtime's.
    #[must_use]
    pub fn max_tool_rounds(mut self, rounds: u32) -> Self {
        self.max_tool_rounds = Some(rounds);
        self
    }

    /// Sets the maximum number of tool calls, at most the runtime's.
    #[must_use]
    pub fn max_tool_calls(mut self, calls: u32) -> Self {
        self.max_tool_calls = Some(calls);
        self
    }

    /// Adds a tool for this run. It replaces one of the same name of the runtime.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.add(tool);
        self
    }

    /// Continues a halted run with its input and options.
    #[must_use]
    pub fn approval(mut self, approval: Approval) -> Self {
        self.approval = Some(approval);
        self
    }

    /// Adds a budget that the calls of the run are counted in.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budgets.push(budget);
        self
    }

    /// Sets the context that the run shares with the other modules of a composition.
    #[must_use]
    pub fn context(mut self, context: ContextScope) -> Self {
        self.context = Some(context);
        self
    }

    /// Sets the agent that the run hands over to (docs/handoff.md).
    #[must_use]
    pub fn handoff_to(mut self, agent: impl Into<String>) -> Self {
        self.handoff_to = Some(agent.into());
        self
    }
}
