//! The tool calls of one run: what was requested, what may still be called, and the limits.

use std::{collections::HashSet, sync::Arc};

use cog_harmony::{Conversation, Message, ToolChoice};
use cog_json::Value;
use cog_module::Module;
use cog_provider::ToolRequest;
use cog_spec::{Code, Dialect, ErrorBody, ModelEvent, Risk, Usage, Warning};
use futures_util::{StreamExt as _, stream};
use tokio::time::Instant;

use super::{
    HaltedRuns, Round, RoundEnd, ToolContext, ToolLimits, ToolSet, arguments,
    calls::ReplyCalls,
    content,
    execute::{Done, Ended, Executor},
    restore::{Approval, Continued},
    state::{CallNote, HaltedState, Progressed},
};
use crate::{RunOptions, context::Shared, input::CheckedInput, recorder, stream::Outlet};

/// The tool calls of one run.
pub(crate) struct ToolRun {
    set: Arc<ToolSet>,
    limits: ToolLimits,
    context: ToolContext,
    reply: ReplyCalls,
    /// The ids of all calls so far.
    known_ids: HashSet<String>,
    progressed: Progressed,
    /// The decision about a call that was halted.
    approval: Option<Approval>,
    /// The calls of the round in which the run was halted.
    pending: Option<Round>,
    origin: Origin,
}

/// What a halted run needs to continue.
struct Origin {
    module: Arc<Module>,
    input: Value,
    halted: HaltedRuns,
}

impl ToolRun {
    /// Returns the tools of a run, with the warnings about those that do not exist; none if the module may call none.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        module: &Arc<Module>,
        input: &CheckedInput,
        options: &RunOptions,
        continued: Option<&Continued>,
    ) -> (Option<Box<Self>>, Vec<Warning>) {
        let (set, warnings) = ToolSet::new(shared, module, options);
        let Some(set) = set else { return (None, warnings) };
        let limits = shared.tools.limits.lowered(options.max_tool_rounds, options.max_tool_calls);
        let mut run = Self {
            set,
            limits,
            context: context(options, &limits),
            reply: ReplyCalls::default(),
            known_ids: HashSet::new(),
            progressed: Progressed {
                is_high_risk: options.risk == Some(Risk::High),
                ..Progressed::default()
            },
            approval: continued.map(|continued| continued.approval.clone()),
            pending: None,
            origin: Origin {
                module: Arc::clone(module),
                input: input.to_continue(),
                halted: shared.tools.halted.clone(),
            },
        };
        if let Some(Continued { state, .. }) = continued {
            run.known_ids = state.call_ids();
            run.progressed = state.progressed.clone();
            run.pending = Some(state.round.clone());
        }
        (Some(Box::new(run)), warnings)
    }

    /// Sets the session of the run, which its tools receive.
    pub(crate) fn set_session(&mut self, session_id: &str) {
        session_id.clone_into(&mut self.context.session_id);
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
            call.arguments = arguments::for_message(&call.arguments).to_owned();
        }
        Some((message, Round::new(calls)))
    }

    /// Returns the round in which the run was halted.
    pub(crate) fn take_pending(&mut self) -> Option<Round> {
        self.pending.take()
    }

    /// Returns the tokens that were spent before the run was halted.
    pub(crate) fn earlier_usage(&mut self) -> Option<Usage> {
        self.progressed.usage.take()
    }

    /// Counts a round that the model requests.
    ///
    /// # Errors
    /// A limit of the run is reached: E2001 for rounds and calls, E2003 for tokens and cost.
    pub(crate) fn begin(&mut self, round: &Round, usage: Option<&Usage>) -> Result<(), ErrorBody> {
        let (rounds, calls) = (self.progressed.rounds + 1, round.calls.len() as u64);
        let calls = u64::from(self.progressed.calls) + calls;
        let tokens = usage.map_or(0, Usage::total);
        let cost = usage.and_then(|usage| usage.cost).map_or(0.0, |cost| cost.amount.as_f64());
        let limits = &self.limits;
        let counted = [
            (u64::from(rounds), u64::from(limits.max_rounds), "max_rounds", "rounds of tool calls"),
            (calls, u64::from(limits.max_calls), "max_calls", "tool calls"),
        ];
        if let Some((.., name, what)) = counted.into_iter().find(|(used, max, ..)| used > max) {
            return Err(self.limit_error(Code::LowConfidence, name, what));
        }
        if limits.max_tokens.is_some_and(|max| tokens > max) {
            return Err(self.limit_error(Code::TokenLimit, "max_tokens", "tokens"));
        }
        if limits.max_cost.is_some_and(|max| cost > max) {
            return Err(self.limit_error(Code::TokenLimit, "max_cost", "cost"));
        }
        self.progressed.rounds = rounds;
        self.progressed.calls = u32::try_from(calls).unwrap_or(u32::MAX);
        Ok(())
    }

    fn limit_error(&self, code: Code, name: &str, what: &str) -> ErrorBody {
        let Progressed { rounds, calls, notes, .. } = &self.progressed;
        let message = format!(
            "the run reached its limit of {what} after {rounds} rounds with {calls} tool calls, before the model answered"
        );
        let details = serde_json::json!({
            "reason": "tool_limit", "limit": name, "rounds": rounds, "calls": calls, "tools": notes,
        });
        ErrorBody::new(code, message)
            .with_recoverable(true)
            .suggest(format!("Raise `tools.{name}`, or change the prompt so that fewer calls are needed."))
            .with_details(Value::from(details))
    }

    /// Returns the tools of the next request. After the last round the model must answer with what it knows.
    pub(crate) fn next_request(&self, dialect: Dialect) -> Arc<ToolRequest> {
        let Progressed { rounds, calls, .. } = self.progressed;
        let is_last = rounds >= self.limits.max_rounds || calls >= self.limits.max_calls;
        self.set.request(dialect, if is_last { ToolChoice::None } else { ToolChoice::Auto })
    }

    /// Executes the calls of a round that have no result, several at the same time. Adds their tokens to `spent`.
    pub(crate) async fn execute(
        &mut self,
        mut round: Round,
        out: &Outlet,
        spent: &mut Vec<Usage>,
    ) -> RoundEnd {
        let executor = Executor {
            set: &self.set,
            limits: &self.limits,
            context: &self.context,
            approval: self.approval.as_ref(),
            is_high_risk: self.progressed.is_high_risk,
            out,
        };
        let executor = &executor;
        let calls: Vec<_> = round
            .open()
            .map(|(at, call)| async move {
                let started = Instant::now();
                (at, executor.execute(call).await, recorder::CallTime::since(started))
            })
            .collect();
        let ended: Vec<(usize, Ended, recorder::CallTime)> =
            stream::iter(calls).buffered(self.limits.max_parallel.max(1)).collect().await;
        self.approval = None;
        for (position, ended, time) in ended {
            if let (Ended::Done(done), Some(call)) = (ended, round.calls.get(position).cloned()) {
                let Done { content, status, usage, is_high_risk } = *done;
                self.progressed.is_high_risk |= is_high_risk;
                self.progressed.notes.push(CallNote { id: call.id.clone(), tool: call.name.clone(), status });
                let message = content::message(&call, content);
                round.set(position, recorder::result(&self.context, message, usage.as_ref(), &time));
                spent.extend(usage);
            }
        }
        round.end()
    }

    /// Stores a run whose calls wait for a confirmation, and returns the error that ends it. `stored_input` replaces the
    /// input if its media have sources that can expire.
    pub(crate) async fn halt(
        &self,
        round: Round,
        stored_input: Option<Value>,
        messages: &Conversation,
        usage: Option<&Usage>,
    ) -> ErrorBody {
        let mut progressed = self.progressed.clone();
        progressed.usage = usage.cloned();
        let Origin { module, input, halted } = &self.origin;
        let halting =
            HaltedState::new(module, stored_input.as_ref().unwrap_or(input), &self.context.options, round);
        let state = match halting {
            Ok(state) => HaltedState { progressed, ..state }.with_messages(messages),
            Err(error) => return error,
        };
        let error = state.error();
        match halted.store(state).await {
            Ok(()) => error,
            Err(failed) => failed,
        }
    }
}

/// Returns the context of the calls of a run.
fn context(options: &RunOptions, limits: &ToolLimits) -> ToolContext {
    ToolContext {
        call_id: String::new(),
        session_id: String::new(),
        owner: options.owner.clone(),
        timeout: limits.call_timeout,
        max_result_bytes: limits.max_result_bytes,
        cancellation: options.cancellation.clone(),
        options: Arc::new(options.clone()),
    }
}
