//! The options of one run.

mod json;

use std::{sync::Arc, time::Duration};

use cog_media::{Access, Delivery};
use cog_spec::{ChunkType, Generation, OnViolation, Risk};

pub(crate) use self::json::{read_stored, write_stored};
use crate::{
    Budget, Cancellation, ClientRules, ContextScope,
    events::{Listeners, RunEvents},
    tool::{Tool, ToolList},
};

/// What a user or a program says of one run. Options that are not set come from the module or the runtime.
///
/// ```
/// use std::time::Duration;
///
/// use cog_run::RunOptions;
///
/// let options = RunOptions::new().model("gpt-5.4-mini").strict(true).timeout(Duration::from_secs(30));
/// assert_eq!(options.model.as_deref(), Some("gpt-5.4-mini"));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// The provider by name, or several names in call order: `a,b`. None uses the runtime's order.
    pub provider: Option<String>,
    /// The model of the first provider. None uses the provider's default. Fallback providers use their own
    /// models.
    pub model: Option<String>,
    /// Whether every repair is a violation (ruling R26).
    pub strict: bool,
    /// The maximum duration of the run (ruling R40). None uses the runtime's limit.
    pub timeout: Option<Duration>,
    /// The parameters of the generation. They replace the parameters of the runtime and the manifest.
    pub generation: Generation,
    /// The handling of violations while the answer arrives (ruling R49).
    pub on_violation: Option<OnViolation>,
    /// The maximum number of calls to the model.
    pub max_attempts: Option<u32>,
    /// The way content is streamed (SPEC 2.2). None uses the manifest's value.
    pub chunk_type: Option<ChunkType>,
    /// The number of bytes that are buffered before they are streamed (ruling R47). None uses the manifest's
    /// value.
    pub buffer_size: Option<u64>,
    /// The media that this run may open from its input. None uses the runtime's setting.
    pub media: Option<Access>,
    /// The owner whose uploads the run may open, when uploads have owners.
    pub owner: Option<String>,
    /// The delivery of generated media (SPEC 4.3). Delivered media belong to the owner of the uploads.
    pub delivery: Delivery,
    /// The caller of the run (docs/spec/modules.md, `invocation`).
    pub caller: Caller,
    /// The value of `meta.trace_id`.
    pub trace_id: Option<String>,
    /// The handle that cancels the run.
    pub cancellation: Cancellation,
    /// The risk of the run. In a run of high risk, every tool that changes something needs a confirmation.
    pub risk: Option<Risk>,
    /// The maximum number of rounds of tool calls, at most the runtime's.
    pub max_tool_rounds: Option<u32>,
    /// The maximum number of tool calls, at most the runtime's.
    pub max_tool_calls: Option<u32>,
    /// The tools of this run and of the modules that it calls, in addition to the runtime's.
    pub(crate) tools: ToolList,
    /// The halted run that this one continues, with its input.
    pub approval: Option<Approval>,
    /// The context that the modules of a composition share. None has only the input's own.
    pub context: Option<ContextScope>,
    /// The agent that the run hands over to: `handoff` of the answer becomes its packet, in [`Envelope::handoff`]
    /// (docs/handoff.md).
    ///
    /// [`Envelope::handoff`]: cog_spec::Envelope::handoff
    pub handoff_to: Option<String>,
    /// The budgets that the calls of the run are counted in, in addition to the budget that the runtime has for each run.
    pub budgets: Vec<Budget>,
    /// The rules for the client of a server, and for all parts of its run.
    pub client: ClientRules,
    /// The listeners of this run, without its parts.
    pub(crate) events: Listeners,
}

/// The caller of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Caller {
    /// A user, or a program on behalf of a user: `invocation.user_invocable`.
    #[default]
    User,
    /// A model: `invocation.agent_invocable`.
    Agent,
}

// Setters, for code that chains them.

impl RunOptions {
    /// Returns options that set nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a listener to this run, after the listeners of the runtime. It is not called for parts of the run.
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

/// What a person decided about a run that waits for a confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The id of the halted run: `error.details.halted.id`.
    pub id: String,
    /// The decision about the halted call.
    pub decision: Decision,
}

/// The decision about a halted call. It counts once, for this call with these arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The string that a person typed. Only `YES` approves the call; after any other string it stays halted.
    Approve(String),
    /// The call is not executed, and the model continues without it.
    Deny,
}

impl Decision {
    /// The string that approves a call (appendix A, exercise 2).
    pub const YES: &'static str = "YES";

    /// Returns the decision that approves the call.
    pub fn yes() -> Self {
        Self::Approve(Self::YES.to_owned())
    }
}
