//! The tool calls of a run: executed between two replies of the model.

use std::sync::Arc;

use cog_answer::{Assembler, PartsSummary};
use cog_harmony::Reasoning;
use cog_media::Media;
use cog_spec::{ErrorBody, Usage};

use super::{Driver, State};
use crate::{
    call_model::RunModel,
    composition::{CompositionAnswer, CompositionProvider, CompositionResult, Execution, PendingComposition},
    parts_state::CompositionState,
    plan::Plan,
    prompt,
    provider::COMPOSITION,
    stream::ChunkQueue,
    tools::{LastCall, Round, RoundEnd, ToolRun, fit_media},
};

impl State {
    /// Returns the state of a run whose media are ready.
    pub(super) fn ready(assembler: Box<Assembler>, run: &mut Plan, out: &ChunkQueue) -> Self {
        out.set_prepared();
        let is_streamed = assembler.is_streamed();
        match run.parts.as_mut().and_then(|parts| parts.start(run.timeout, is_streamed, out)) {
            Some(parts) => Self::Composing(assembler, parts),
            None => Self::calling(assembler, run),
        }
    }

    /// Returns the state of a run whose messages are complete. One that was halted or interrupted in a round first executes
    /// its calls.
    pub(super) fn calling(mut assembler: Box<Assembler>, run: &mut Plan) -> Self {
        let Some(tools) = &mut run.tools else { return Self::Calling(assembler) };
        if let Some(usage) = tools.earlier_usage() {
            assembler.add_usage(&usage);
        }
        match tools.take_pending() {
            Some(round) => Self::CallingTools(assembler, Box::new(round)),
            None => {
                if tools.has_rounds() {
                    let vendor = run.spec.vendor_tools(run.provider.as_ref(), &run.request.model);
                    run.request.tools = Some(tools.next_request(&vendor));
                }
                Self::Calling(assembler)
            }
        }
    }
}

impl Driver {
    /// Adds the message of a reply that requests tool calls to the conversation. Returns the assembler if the reply
    /// requests none.
    pub(super) async fn request_calls(
        &mut self,
        mut assembler: Box<Assembler>,
    ) -> Result<State, Box<Assembler>> {
        let Some(tools) = &mut self.run.tools else { return Err(assembler) };
        let provider = self.run.provider.info().name.clone().into_owned();
        let Some((mut message, round)) = tools.take_round() else { return Err(assembler) };
        let items = std::mem::take(&mut self.reasoning);
        message.reasoning = (!items.is_empty()).then_some(Reasoning { provider, items });
        self.generated.clear();
        if let Some(recorder) = &mut self.run.recorder {
            message = recorder.end_reply(assembler.model(), assembler.reply_usage().as_ref(), message);
        }
        if let Err(error) = tools.begin(&round, assembler.usage_with_reply().as_ref()) {
            return Ok(self.fail(assembler, error));
        }
        assembler.end_round(&mut self.out);
        tools.log(&message, &round, assembler.usage()).await;
        self.run.request.messages.0.push(message);
        Ok(State::CallingTools(assembler, Box::new(round)))
    }

    /// Executes the calls of a round, and calls the model with their results.
    pub(super) async fn call_tools(&mut self, mut assembler: Box<Assembler>, round: Round) -> State {
        let Some(mut tools) = self.run.tools.take() else { return State::Calling(assembler) };
        self.record_request();
        let out = self.out.clone();
        let mut spent = Vec::new();
        let run = &self.run;
        let name = &run.spec.module.manifest.name;
        let model = RunModel::new(&run.provider, &run.request, &run.budgets, name);
        let executed = self
            .within_deadline(async { Ok(tools.execute(round, model.as_ref(), &out, &mut spent).await) })
            .await;
        spent.iter().for_each(|usage| assembler.add_usage(usage));
        let state = match executed {
            Ok(RoundEnd::Complete(mut results)) => {
                let provider = self.run.provider.as_ref();
                let model = &self.run.request.model;
                assembler.warn(fit_media(provider.info(), model, &mut results));
                assembler.warn(tools.moved_media(provider, model, &results));
                self.record(&results);
                self.run.request.messages.0.extend(results);
                if let Some(set) = tools.list_again() {
                    self.run.spec.tools = Some(set);
                }
                self.prepare_next_reply(&tools);
                State::Calling(assembler)
            }
            Ok(RoundEnd::Halted(round)) => {
                self.record(&round.messages());
                let parts = self.run.parts_state.take();
                let media = self.expiring_media();
                let last = LastCall {
                    provider: self.run.provider.info(),
                    request: &self.run.request,
                    usage: assembler.usage(),
                };
                let error = tools.halt(round, media, &last, parts).await;
                self.fail(assembler, error)
            }
            Err(error) => self.fail(assembler, error),
        };
        self.run.tools = Some(tools);
        state
    }

    /// Returns the media of the input whose sources can expire before a halted run continues.
    pub(super) fn expiring_media(&mut self) -> Vec<(String, Media)> {
        self.media.take().map(|media| media.expiring()).unwrap_or_default()
    }

    /// Prepares the request for the reply after a round. A correction of that reply leaves the rounds in the conversation.
    fn prepare_next_reply(&mut self, tools: &ToolRun) {
        self.initial_messages = self.run.request.messages.messages().len();
        let vendor = self.run.spec.vendor_tools(self.run.provider.as_ref(), &self.run.request.model);
        self.run.request.tools = Some(tools.next_request(&vendor));
        self.run.request.timeout = Some(self.remaining());
        self.is_sized = false;
    }
}

// The parts of a composed module: they run before its own answer.

impl Driver {
    /// Waits for the parts. They watch the cancellation and the time limit of the run themselves, because a composition that
    /// is stopped reports the parts that are done.
    pub(super) async fn compose(&mut self, mut assembler: Box<Assembler>, parts: Execution) -> State {
        let CompositionResult { mut summary, answer, partial_data, state, permit } = parts.run().await;
        if self.run.tools.as_ref().is_some_and(|tools| tools.has_earlier_usage()) {
            summary.usage = new_usage(&summary); // the halted run has counted the parts before it
        }
        assembler.add_parts(summary, partial_data);
        match answer {
            Ok(CompositionAnswer::Texts(texts)) => {
                self.run.parts_state = Some(state);
                self.permit = permit;
                self.place(assembler, texts.into())
            }
            Ok(CompositionAnswer::Envelope(envelope)) => {
                self.run.provider = Arc::new(CompositionProvider::new(envelope));
                self.run.others.clear();
                assembler.answer_from_parts(COMPOSITION, CompositionProvider::MODEL);
                State::Calling(assembler)
            }
            Err(failed) => {
                let error = self.halt_parts(state).await.unwrap_or(failed.error);
                assembler.fail_parts(error, failed.is_interrupted, self.started.elapsed(), &mut self.out);
                State::Ended
            }
        }
    }

    /// Stores the run if parts wait for a confirmation, and returns the error that ends it.
    async fn halt_parts(&mut self, state: CompositionState) -> Option<ErrorBody> {
        if state.halted.is_empty() {
            return None;
        }
        let media = self.expiring_media();
        self.run.parts.as_ref()?.halt(state, media).await
    }

    /// Builds the messages with these texts instead of the calls and references of the prompt.
    fn place(&mut self, assembler: Box<Assembler>, texts: Arc<[String]>) -> State {
        let run = &mut self.run;
        let Some(parts) = run.parts.take() else { return State::Calling(assembler) };
        run.spec.texts = texts;
        let output = run.request.output.as_deref();
        let PendingComposition { input, media, .. } = *parts;
        let messages = prompt::conversation(&run.spec.module, output, &input, &run.spec.texts, media);
        match messages {
            Ok(messages) => {
                let initial = messages.messages().len();
                let former = std::mem::replace(&mut run.request.messages, messages);
                // A run that starts again has the messages of its tool calls.
                run.request.messages.0.extend(former.0.into_iter().skip(initial));
                run.request.timeout = Some(run.timeout.saturating_sub(self.started.elapsed()));
                self.is_sized = false;
                State::calling(assembler, run)
            }
            Err(error) => self.fail(assembler, error),
        }
    }
}

/// Returns the tokens of the parts that ran now.
fn new_usage(summary: &PartsSummary) -> Option<Usage> {
    let ran = summary.reports.iter().filter(|report| !report.restored && !report.path.contains('/'));
    ran.filter_map(|report| report.usage.clone()).reduce(|sum, usage| sum.plus(&usage))
}
