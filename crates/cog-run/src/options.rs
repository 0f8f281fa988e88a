//! The options of one run.

mod json;

use std::{sync::Arc, time::Duration};

use cog_harmony::Message;
use cog_media::{Access, Delivery};
use cog_spec::{ChunkType, EvidenceRequest, Generation, OnViolation, Risk};

pub(crate) use self::json::{read_stored, write_stored};
use crate::{
    Budget, Cancellation, ClientRules, ContextScope, check::AnswerCheck, events::RunEvents, tool::Tool,
};

/// What a user or a program says of one run. Options that are not set come from the module or the runtime.
///
/// ```
/// use std::time::Duration;
///
/// use cog_run::RunOptions;
///
/// let options = RunOptions {
///     model: Some("gpt-5.4-mini".to_owned()),
///     timeout: Some(Duration::from_secs(30)),
///     ..RunOptions::default()
/// };
/// # let _ = options;
/// ```
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The provider by name, or several names in call order: `a,b`. None uses the runtime's order.
    pub provider: Option<String>,
    /// The model of the first provider. None uses the provider's default. Fallback providers use their own
    /// models.
    pub model: Option<String>,
    /// Whether every repair is a violation (ruling R26).
    pub strict: bool,
    /// The share of accepted answers that must be right (docs/calibration.md): the gate of the run. The gate of the manifest stays,
    /// if it requires more.
    pub accept: Option<f64>,
    /// Whether the next provider is called also after a bad answer: one that violates its contract or a check, is cut off, or has a
    /// confidence that is too low.
    pub escalate: bool,
    /// The maximum duration of the run (ruling R40). None uses the runtime's limit.
    pub timeout: Option<Duration>,
    /// The parameters of the generation. They replace the parameters of the runtime and the manifest.
    pub generation: Generation,
    /// The handling of violations while the answer arrives (ruling R49).
    pub on_violation: Option<OnViolation>,
    /// The maximum number of calls to the model.
    pub max_attempts: Option<u32>,
    /// What the caller asks of the model in addition to the module's prompt. It follows the input in the message of the user, and
    /// is marked as the caller's words: a module cannot know whom it comes from. A composition whose parts give the answer passes
    /// it on to them.
    pub instructions: Option<String>,
    /// Messages between the prompt and the input: examples, or what was said before. What gives the answer of a composition
    /// receives them, too.
    pub messages: Vec<Message>,
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
    /// The tools of this run and of the modules that it calls, in addition to the runtime's. One replaces the tool of the same
    /// name of the runtime.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The evidence that the run collects about its answer (docs/evidence.md). None uses the manifest's. It does not apply to the
    /// parts of the run.
    pub evidence: Option<EvidenceRequest>,
    /// What checks the answer after its contract. They are not called for parts of the run.
    pub checks: Vec<Arc<dyn AnswerCheck>>,
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
    /// The listeners of this run, called after those of the runtime. They are not called for parts of the run.
    pub events: Vec<Arc<dyn RunEvents>>,
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
    pub(crate) const YES: &'static str = "YES";

    /// Returns the decision that approves the call.
    pub fn yes() -> Self {
        Self::Approve(Self::YES.to_owned())
    }
}
