//! The plan of a run that is ready to call the model.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use cog_answer::{AnswerRules, HandoffRules, HandoffTarget};
use cog_harmony::handoff::Handoff;
use cog_media::ProcessedMedia;
use cog_module::Module;
use cog_provider::{ModelRequest, OptionalPart, Provider, ProviderError, RejectedPart};
use cog_spec::{Code, Dialect, ErrorBody, Response, Warning, WarningCode};

use crate::{
    Budget, Cancellation, ClientRules, RunContext, RunOptions,
    cache::CacheSink,
    check::AnswerCheck,
    clock,
    composition::PendingComposition,
    confidence::RequiredConfidence,
    error,
    events::{OpenRun, Recorder, RunScope},
    evidence::{Collection, JudgementSlot, MediaSlot},
    media::{self, Collected, MediaSink, Sources},
    module_context::ContextSink,
    parts_state::CompositionState,
    prompt,
    request::{self, RequestSpec, instructions},
    tools::{Claim, ToolRun},
};

/// A run that passed every check before the call.
pub(crate) struct PreparedRun {
    pub(crate) plan: Plan,
    /// The rules by which the answer is checked.
    pub(crate) rules: AnswerRules,
    /// What is collected about the answer; none if nothing is.
    pub(crate) collection: Option<Box<Collection>>,
    /// What reports the end of the run, if there are listeners.
    pub(crate) open: Option<Box<OpenRun>>,
    /// The rules for the client, by which its errors are shown.
    pub(crate) client: ClientRules,
}

/// The providers, the request and the limits of a run.
pub(crate) struct Plan {
    /// The provider that is called first.
    pub(crate) provider: Arc<dyn Provider>,
    /// The fallback providers, in order.
    pub(crate) others: VecDeque<Arc<dyn Provider>>,
    pub(crate) spec: RequestSpec,
    /// The request to the current provider.
    pub(crate) request: ModelRequest,
    /// The media to open before the first call.
    pub(crate) media: Option<Sources>,
    /// Where the media of the input are left once they are open, for the evidence of the run.
    pub(crate) media_slot: Option<MediaSlot>,
    /// Where the judgement of a valid answer is left that waits for the evidence of the run.
    pub(crate) judgement_slot: Option<JudgementSlot>,
    /// The halted run that this one continues, until its media are open.
    pub(crate) claim: Option<Claim>,
    /// The handling of media that the model generates.
    pub(crate) media_sink: Arc<MediaSink>,
    /// The parts that run before the first call.
    pub(crate) parts: Option<Box<PendingComposition>>,
    /// The parts that have run.
    pub(crate) parts_state: Option<CompositionState>,
    /// Stores the reply of a successful answer.
    pub(crate) cache: Option<CacheSink>,
    /// What the run requires of the confidence of its answer.
    pub(crate) confidence: Option<RequiredConfidence>,
    /// The budgets that the calls are counted in.
    pub(crate) budgets: Vec<Budget>,
    /// The tools that the model may call.
    pub(crate) tools: Option<Box<ToolRun>>,
    /// What checks the answer after its contract.
    pub(crate) checks: Vec<Arc<dyn AnswerCheck>>,
    /// Reports the messages of the run, if a listener needs them.
    pub(crate) recorder: Option<Box<Recorder>>,
    /// The listeners of the run.
    pub(crate) scope: RunScope,
    /// Stores the context that the answer emits.
    pub(crate) context: Option<ContextSink>,
    pub(crate) timeout: Duration,
    /// The setting of `timeout`, for messages.
    pub(crate) timeout_setting: &'static str,
    pub(crate) cancellation: Cancellation,
}

impl Plan {
    /// Adds the media of the input, and the texts of its artifacts, to the request.
    ///
    /// # Errors
    /// The provider does not support the media.
    pub(crate) async fn add_media(
        &mut self,
        collected: &Collected,
        all: Vec<ProcessedMedia>,
    ) -> Result<Vec<ProcessedMedia>, ErrorBody> {
        let encoded = tokio::task::spawn_blocking(move || (media::parts_of(&all), all)).await;
        let (parts, all) = encoded.map_err(|error| error::from_task(&error))?;
        let mut parts = parts.map_err(|error| ErrorBody::from(&error))?;
        parts.extend(collected.texts().parts());
        if let Some(composed) = &mut self.parts {
            composed.media.clone_from(&parts);
        }
        let output = self.request.output.as_deref();
        let module = &self.spec.module;
        let texts = &self.spec.texts;
        let messages = prompt::conversation(module, output, collected.input(), texts, parts)?;
        let initial = messages.messages().len();
        let former = std::mem::replace(&mut self.request.messages, messages);
        self.request.messages.0.extend(former.0.into_iter().skip(initial));
        self.provider.check(&self.request).map_err(|error| ErrorBody::from(&error))?;
        Ok(all)
    }
}

// The packet that a run received, and the agent that it hands over to (docs/handoff.md).

/// Returns what the answer of a run must follow, and the agent that it hands over to.
///
/// # Errors
/// E1001 if the run hands over, and the module has no handoff.
pub(crate) fn handoff_rules(
    module: &Module,
    parent: Option<Handoff>,
    agent: Option<String>,
) -> Result<HandoffRules, ErrorBody> {
    let Some(agent) = agent else { return Ok(HandoffRules { parent, target: None }) };
    if !module.contract.has_handoff() {
        let name = &module.manifest.name;
        let message = format!("{name} cannot hand over to `{agent}`: its data have no field `handoff`");
        return Err(ErrorBody::new(Code::InvalidInput, message).suggest(
            "Add `\"handoff\": {\"$ref\": \"#/$defs/Handoff\"}` to the data schema, or use another module.",
        ));
    }
    let target = HandoffTarget { agent, timestamp: clock::now_as_text() };
    Ok(HandoffRules { parent, target: Some(target) })
}

/// Returns the warning that the packet of the input is addressed to another agent. An agent may have the name of
/// its module with a suffix, such as `coder_v1`.
pub(crate) fn misaddressed(module: &Module, packet: Option<&Handoff>) -> Option<Warning> {
    let agent = packet?.target_agent();
    let name = &module.manifest.name;
    if let Some(suffix) = agent.strip_prefix(name.as_str())
        && !suffix.starts_with(char::is_alphanumeric)
    {
        return None;
    }
    let message = format!("the handoff packet is addressed to `{agent}`, but `{name}` runs it");
    Some(Warning::new(WarningCode::HandoffMisaddressed, message))
}

// Sends a request again without a part that the provider rejected.

/// The limit of output tokens.
const TOKEN_LIMIT: OptionalPart = OptionalPart::Setting("max_tokens");

impl Plan {
    /// Removes the part of the request that the provider rejected, or sends it in another form, and returns the warning about
    /// it. None if the request has no such part, or if the caller chose it. Each form is tried once, so that the calls end.
    pub(crate) fn reduce(&mut self, error: &ProviderError) -> Option<Warning> {
        let ProviderError::Rejected { part: Some(part), .. } = error else { return None };
        let change = match part {
            RejectedPart::Field { name, part } if self.may_omit(*part) && self.request.remove(*part) => {
                format!("without `{name}`")
            }
            RejectedPart::Name { name, other } if self.request.rename_token_limit() => {
                format!("with `{other}` instead of `{name}`")
            }
            // The server knows neither name, so that only its own limit applies.
            RejectedPart::Name { name, .. }
                if self.may_omit(TOKEN_LIMIT) && self.request.remove(TOKEN_LIMIT) =>
            {
                format!("without `{name}`")
            }
            RejectedPart::SystemRole if self.request.merge_system() => {
                "with the system text in the first message of the user".to_owned()
            }
            RejectedPart::Schema => self.weaken()?.to_owned(),
            _ => return None,
        };
        tracing::warn!(change, error = error.outline(), "repeating the request");
        Some(Warning::new(
            WarningCode::RequestReduced,
            format!("the request was sent again {change}: {error}"),
        ))
    }

    fn may_omit(&self, part: OptionalPart) -> bool {
        match part {
            OptionalPart::Setting(name) => self.spec.is_only_preferred(name),
            OptionalPart::Cache | OptionalPart::StreamOptions | OptionalPart::Probabilities => true,
        }
    }

    /// Sends the schema in the next weaker form: as "a JSON object", then only as text. Returns a description.
    fn weaken(&mut self) -> Option<&'static str> {
        if self.spec.module.manifest.requirements.structured_output {
            return None;
        }
        let output = self.request.output.as_ref()?;
        let form = output.form;
        let (weaker, change) = match output.dialect {
            Dialect::Prompt => return None,
            Dialect::JsonObject => (Dialect::Prompt, "without a response format"),
            _ => (Dialect::JsonObject, "without the schema, as a request for a JSON object"),
        };
        let projected = self.spec.compiled.projected(&self.spec.module, weaker, form)?;
        let old = self.request.output.as_deref();
        let new = Some(&*projected.output);
        request::replace_instructions(&mut self.request.messages, instructions(old), instructions(new));
        self.request.output = Some(Arc::clone(&projected.output));
        Some(change)
    }
}

// The rules of an answer, from the module, the request and the options of the run.

/// Returns the rules by which the answer to a request is checked.
pub(crate) fn answer_rules(
    module: &Module,
    request: &ModelRequest,
    provider: &dyn Provider,
    options: &RunOptions,
    context: &RunContext,
    session_id: String,
) -> AnswerRules {
    let own = module.manifest.response;
    let mut rules = AnswerRules::new(session_id, Arc::clone(&module.manifest), Arc::clone(&module.contract));
    rules.checks = Arc::clone(&module.checks);
    rules.response = Response {
        on_violation: options.on_violation.or(own.on_violation),
        max_attempts: options.max_attempts.or(own.max_attempts),
        chunk_type: options.chunk_type.unwrap_or(own.chunk_type),
        buffer_size: options.buffer_size.unwrap_or(own.buffer_size),
        ..own
    };
    rules.provider = provider.info().name.clone().into_owned();
    rules.runtime.model = Some(format!("{}/{}", provider.info().name, request::model_of(request, provider)));
    rules.runtime.trace_id = options.trace_id.clone();
    rules.dialect = request::dialect_of(request, provider);
    rules.form = request::form_of(request);
    rules.strict = options.strict;
    rules.escalates = options.escalate || module.manifest.failure.escalate;
    rules.is_calibration = context.is_calibration;
    if rules.makes_media() {
        rules.limits = media::limits(rules.limits, module);
    }
    rules.warnings.clone_from(&context.warnings);
    rules.resume_from = context.resume_from;
    rules.recovery = context.recovery;
    rules.is_streamed = !context.is_folded;
    rules
}
