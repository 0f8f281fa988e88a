//! The tool calls of one run: what was requested, and what may still be called.

use std::{collections::HashSet, sync::Arc};

use cog_harmony::{Message, Metadata, ToolCall, ToolChoice};
use cog_json::Value;
use cog_media::Media;
use cog_module::Module;
use cog_provider::{ModelRequest, Provider, ProviderInfo, ToolRequest};
use cog_spec::{Code, ErrorBody, ModelEvent, Risk, Usage, Warning, WarningCode};
use futures_util::{StreamExt as _, stream};
use tokio::time::Instant;

use super::{
    ModuleCalls, PendingApprovals, Round, RoundEnd, ToolLimits, ToolSet, ToolSettings, VendorTools,
    execute::{self, Ended, Executor},
    logged,
    restore::Continued,
    results::Done,
    round::{HaltedCalls, ReplyCalls},
    state::{self, HaltedState, Progressed},
};
use crate::{
    RunContext, RunOptions,
    call_log::CallLog,
    call_model::RunModel,
    clock,
    events::{self, CallTime, RunScope},
    input::CheckedInput,
    parts_state::CompositionState,
    provider,
    stream::ChunkQueue,
    tool::{ToolContext, ToolError, ToolProgress},
};

/// The tool calls of one run.
pub(crate) struct ToolRun {
    set: Arc<ToolSet>,
    limits: ToolLimits,
    context: ToolContext,
    options: RunOptions,
    /// The log of the run, so that one that starts again does not repeat its calls.
    log: Option<CallLog>,
    /// Whether the run is itself a call of a tool, and cannot wait for a confirmation.
    is_tool: bool,
    reply: ReplyCalls,
    /// The ids of all calls so far.
    known_ids: HashSet<String>,
    progressed: Progressed,
    /// The calls for which the run was halted, with what was decided.
    halted_calls: HaltedCalls,
    /// The calls of the round in which the run was halted.
    pending: Option<Round>,
    /// Whether the run has the warning about media in results.
    has_warned: bool,
    origin: Origin,
    /// Who learns of the calls.
    scope: RunScope,
}

/// What the tools of a run are made from.
pub(crate) struct ToolSources<'a> {
    pub(crate) settings: &'a ToolSettings,
    pub(crate) modules: Arc<dyn ModuleCalls>,
    /// Who learns of the calls.
    pub(crate) scope: RunScope,
    pub(crate) session_id: &'a str,
    pub(crate) options: &'a RunOptions,
    pub(crate) context: &'a RunContext,
}

/// The last call of the model before a run is halted.
pub(crate) struct LastCall<'a> {
    pub(crate) provider: &'a ProviderInfo,
    pub(crate) request: &'a ModelRequest,
    /// The tokens of the run so far.
    pub(crate) usage: Option<&'a Usage>,
}

/// What a halted run needs to continue.
struct Origin {
    module: Arc<Module>,
    input: Value,
    halted: PendingApprovals,
}

impl ToolRun {
    /// Returns the tools of a run, with the warnings about those that do not exist; none if the module may call none.
    pub(crate) fn new(
        sources: ToolSources<'_>,
        module: &Arc<Module>,
        input: &CheckedInput,
        continued: Option<&Continued>,
    ) -> (Option<Box<Self>>, Vec<Warning>) {
        let (set, warnings) = ToolSet::new(module, &sources);
        let Some(set) = set else { return (None, warnings) };
        let ToolSources { settings, scope, session_id, options, context, .. } = sources;
        let limits = settings.limits.lowered(options.max_tool_rounds, options.max_tool_calls);
        let mut run = Self {
            set,
            limits,
            context: ToolContext {
                call_id: String::new(),
                session_id: session_id.to_owned(),
                owner: options.owner.clone(),
                timeout: limits.call_timeout,
                max_result_bytes: limits.max_result_bytes,
                cancellation: options.cancellation.clone(),
                span: context.parent_span.clone(),
                model: None,
                progress: ToolProgress::default(),
            },
            options: options.clone(),
            log: context.call_log.clone(),
            is_tool: context.is_tool,
            reply: ReplyCalls::default(),
            known_ids: HashSet::new(),
            progressed: Progressed {
                is_high_risk: options.risk == Some(Risk::High),
                ..Progressed::default()
            },
            halted_calls: HaltedCalls::default(),
            pending: None,
            has_warned: false,
            origin: Origin {
                module: Arc::clone(module),
                input: input.to_continue(),
                halted: settings.halted.clone(),
            },
            scope,
        };
        if let Some(continued) = continued {
            run.known_ids = continued.call_ids();
            let is_high_risk = run.progressed.is_high_risk || continued.progressed.is_high_risk;
            run.progressed = Progressed { is_high_risk, ..continued.progressed.clone() };
            run.halted_calls = continued.halted_calls.clone();
            run.pending = continued.round.clone();
            run.settle(&continued.started);
        }
        (Some(Box::new(run)), warnings)
    }

    /// Lists the tools again, which a call may have changed. Returns them if they have changed.
    pub(crate) fn list_again(&mut self) -> Option<Arc<ToolSet>> {
        self.set = self.set.listed_again()?;
        Some(self.set())
    }

    /// Returns the tools, for the requests to the model.
    pub(crate) fn set(&self) -> Arc<ToolSet> {
        Arc::clone(&self.set)
    }

    /// Observes an event of the reply.
    pub(crate) fn observe(&mut self, event: &ModelEvent) {
        self.reply.observe(event, self.limits.max_arguments_bytes);
    }

    /// Returns the message of the model and the round that it requests; none if the reply requests no calls.
    pub(crate) fn take_round(&mut self) -> Option<(Message, Round)> {
        let (text, calls) = self.reply.take(&mut self.known_ids)?;
        let mut message = Message::assistant(text);
        message.content.retain(|part| part.as_text().is_none_or(|text| !text.trim().is_empty()));
        message.tool_calls.clone_from(&calls);
        for call in &mut message.tool_calls {
            call.arguments = execute::for_message(&call.arguments).to_owned();
        }
        Some((message, Round::new(calls)))
    }

    /// Gives a result to the calls of an interrupted round that began and may have changed something: they are not repeated.
    fn settle(&mut self, started: &HashSet<String>) {
        let Some(round) = &mut self.pending else { return };
        let open: Vec<_> = round.open().map(|(position, call)| (position, call.clone())).collect();
        for (position, call) in open.into_iter().filter(|(_, call)| started.contains(&call.id)) {
            let Done { message, note, .. } =
                Done::failure(&call, interrupted(&call.name), self.limits.max_result_bytes);
            self.progressed.notes.push(note);
            round.set(position, message);
        }
    }

    /// Returns the round in which the run was halted or interrupted.
    pub(crate) fn take_pending(&mut self) -> Option<Round> {
        self.pending.take()
    }

    /// Returns whether the run has rounds that were executed before it was halted or interrupted.
    pub(crate) fn has_rounds(&self) -> bool {
        self.progressed.rounds > 0
    }

    /// Returns whether the run continues one that has spent tokens.
    pub(crate) fn has_earlier_usage(&self) -> bool {
        self.progressed.usage.is_some()
    }

    /// Returns the tokens that were spent before the run was halted or interrupted.
    pub(crate) fn earlier_usage(&mut self) -> Option<Usage> {
        self.progressed.usage.take()
    }

    /// Adds a round to the log of the session, if it has one, so that a run that starts again continues after it.
    pub(crate) async fn log(&self, message: &Message, round: &Round, usage: Option<&Usage>) {
        if let Some(log) = &self.log {
            let is_first = self.progressed.rounds == 1;
            let hashes = if is_first { state::hashes(&self.origin.module) } else { Vec::new() };
            let _ = log.append(logged::round(message, round, usage, &hashes)).await;
        }
    }

    /// Executes the calls of a round that have no result: those that only read at the same time. Their tools may ask `model`. Adds
    /// their tokens to `spent`.
    pub(crate) async fn execute(
        &mut self,
        mut round: Round,
        model: Option<&RunModel>,
        out: &ChunkQueue,
        spent: &mut Vec<Usage>,
    ) -> RoundEnd {
        let executor = Executor {
            set: &self.set,
            limits: &self.limits,
            context: &self.context,
            log: self.log.as_ref(),
            is_tool: self.is_tool,
            halted_calls: &self.halted_calls,
            halted_tools: &self.progressed.halted_tools,
            is_high_risk: self.progressed.is_high_risk,
            model,
            out,
            scope: &self.scope,
        };
        let executor = &executor;
        let mut ended: Vec<(usize, Ended, CallTime)> = Vec::new();
        let open: Vec<(usize, &ToolCall)> = round.open().collect();
        // A call that changes something runs alone: the calls before it must not see its effect, and those after it must.
        for group in open.chunk_by(|(_, one), (_, next)| !executor.is_alone(one) && !executor.is_alone(next))
        {
            let calls = group.iter().map(|(at, call)| async move {
                let started = Instant::now();
                (*at, executor.execute(call).await, CallTime::since(started))
            });
            let calls: Vec<_> = calls.collect();
            ended.extend(
                stream::iter(calls).buffered(self.limits.max_parallel.max(1)).collect::<Vec<_>>().await,
            );
        }
        // A decision is about the round that was halted: a later call with the same id and arguments needs its own.
        self.halted_calls = HaltedCalls::default();
        for (position, ended, time) in ended {
            if let Ended::Done(done) = ended {
                let Done { message, note, usage, is_high_risk } = *done;
                self.progressed.is_high_risk |= is_high_risk;
                self.progressed.notes.push(note);
                let message = match self.message_metadata() {
                    Some(metadata) => events::complete_result(message, metadata, usage.as_ref(), &time),
                    None => message,
                };
                round.set(position, message);
                spent.extend(usage);
            }
        }
        round.end()
    }

    /// Returns the metadata of results, if a listener needs messages.
    fn message_metadata(&self) -> Option<Metadata> {
        let trace_id = self.options.trace_id.as_deref();
        events::message_metadata(&self.scope.listeners, &self.context.session_id, trace_id)
    }

    /// Stores a run whose calls wait for a confirmation, and returns the error that ends it. `media` are the input's media
    /// whose sources can expire. `parts` are those that ran before, of a composed module.
    pub(crate) async fn halt(
        &self,
        round: Round,
        media: Vec<(String, Media)>,
        last: &LastCall<'_>,
        parts: Option<CompositionState>,
    ) -> ErrorBody {
        let mut progressed = self.progressed.clone();
        progressed.usage = last.usage.cloned();
        for (_, call) in round.open() {
            if !progressed.halted_tools.contains(&call.name) {
                progressed.halted_tools.push(call.name.clone());
            }
        }
        let Origin { module, input, halted } = &self.origin;
        match HaltedState::new(module, input, &self.options, round) {
            Ok(state) => {
                let state = HaltedState { progressed, parts, ..state };
                let state = state.with_messages(&last.request.messages);
                halted.halt(state.with_model(last.provider, &last.request.model), media).await
            }
            Err(error) => error,
        }
    }
}

/// The result of a call whose own result is lost, for the model.
fn interrupted(name: &str) -> ToolError {
    let message = format!(
        "the run was interrupted while `{name}` ran, and it is unknown whether the call took effect. It was not repeated; \
         check that before you call it again."
    );
    ToolError::new("OutcomeUnknown", message)
}

// The limits of a run's tool calls.

impl ToolRun {
    /// Checks that the price of a model is known if the cost of the run is limited.
    ///
    /// # Errors
    /// E4001 if it is unknown.
    pub(crate) fn check_price(&self, provider: &dyn Provider, model: &str) -> Result<(), ErrorBody> {
        let info = provider.info();
        if self.limits.max_cost.is_none() || !provider::calls_model(provider) {
            return Ok(());
        }
        let model = info.model_or_default(model);
        let one = Usage { input_tokens: 1, ..Usage::default() };
        if info.cost(model, &one, clock::now()).is_some() {
            return Ok(());
        }
        let message = format!(
            "`tools.max_cost` limits the cost of the run, but the price of {}/{model} is unknown",
            info.name
        );
        Err(ErrorBody::new(Code::ProviderUnavailable, message).with_recoverable(false).suggest(
            "Choose a model with a known price, or set `tools.max_tokens` instead of `tools.max_cost`.",
        ))
    }

    /// Counts a round that the model requests.
    ///
    /// # Errors
    /// A limit of the run is reached: E2001 for rounds and calls, E2003 for tokens and cost.
    pub(crate) fn begin(&mut self, round: &Round, usage: Option<&Usage>) -> Result<(), ErrorBody> {
        let rounds = self.progressed.rounds + 1;
        let calls = round.calls.len() as u64;
        let calls = u64::from(self.progressed.calls) + calls;
        let limits = &self.limits;
        let counted = [
            (u64::from(rounds), u64::from(limits.max_rounds), "max_rounds", "rounds of tool calls"),
            (calls, u64::from(limits.max_calls), "max_calls", "tool calls"),
        ];
        if let Some((.., name, what)) = counted.into_iter().find(|(used, max, ..)| used > max) {
            return Err(self.limit_error(Code::LowConfidence, name, what));
        }
        self.check_spent(usage)?;
        self.progressed.rounds = rounds;
        self.progressed.calls = u32::try_from(calls).unwrap_or(u32::MAX);
        Ok(())
    }

    /// Checks the tokens and the cost so far. An unknown number never counts as zero.
    fn check_spent(&self, usage: Option<&Usage>) -> Result<(), ErrorBody> {
        let tokens = usage.map(Usage::total);
        if self.limits.max_tokens.is_some_and(|max| tokens.is_none_or(|tokens| tokens > max)) {
            return Err(self.spent_error("max_tokens", "tokens", tokens.is_none()));
        }
        let cost = usage.and_then(|usage| usage.cost).map(|cost| cost.amount.as_f64());
        if self.limits.max_cost.is_some_and(|max| cost.is_none_or(|cost| cost > max)) {
            return Err(self.spent_error("max_cost", "cost", cost.is_none()));
        }
        Ok(())
    }

    fn spent_error(&self, name: &str, what: &str, is_unknown: bool) -> ErrorBody {
        if !is_unknown {
            return self.limit_error(Code::TokenLimit, name, what);
        }
        let message = format!(
            "`tools.{name}` limits the {what} of the run, but the {what} so far cannot be determined"
        );
        let suggestion = format!(
            "Choose a model that reports its tokens and has a known price, or remove `tools.{name}`."
        );
        self.error(Code::TokenLimit, name, message, suggestion)
    }

    fn limit_error(&self, code: Code, name: &str, what: &str) -> ErrorBody {
        let Progressed { rounds, calls, .. } = &self.progressed;
        let message = format!(
            "the run reached its limit of {what} after {rounds} rounds with {calls} tool calls, before the model answered"
        );
        let suggestion =
            format!("Raise `tools.{name}`, or change the prompt so that fewer calls are needed.");
        self.error(code, name, message, suggestion)
    }

    fn error(&self, code: Code, name: &str, message: String, suggestion: String) -> ErrorBody {
        let Progressed { rounds, calls, notes, .. } = &self.progressed;
        let details = serde_json::json!({
            "reason": "tool_limit", "limit": name, "rounds": rounds, "calls": calls, "tools": notes,
        });
        ErrorBody::new(code, message)
            .with_recoverable(true)
            .suggest(suggestion)
            .with_details(Value::from(details))
    }

    /// Returns the tools of the next request. After the last round the model must answer with what it knows.
    pub(crate) fn next_request(&self, vendor: &VendorTools) -> Arc<ToolRequest> {
        let Progressed { rounds, calls, .. } = self.progressed;
        let is_last = rounds >= self.limits.max_rounds || calls >= self.limits.max_calls;
        self.set.request(vendor, if is_last { ToolChoice::None } else { ToolChoice::Auto })
    }

    /// Returns the warning that media in the results of tools are sent in another place; once in a run.
    pub(crate) fn moved_media(
        &mut self,
        provider: &dyn Provider,
        model: &str,
        results: &[Message],
    ) -> Option<Warning> {
        let info = provider.info();
        let with_media =
            results.iter().find(|result| result.content.iter().any(|part| part.as_text().is_none()))?;
        if self.has_warned || !info.moves_result_media(model) {
            return None;
        }
        self.has_warned = true;
        let tool = with_media.name.as_deref().unwrap_or_default();
        let model = info.model_or_default(model);
        let message = format!(
            "{}/{model} receives only text in the results of tools: the media of `{tool}` follow in a message of the user",
            info.name
        );
        Some(Warning::new(WarningCode::ResultMediaMoved, message))
    }
}
