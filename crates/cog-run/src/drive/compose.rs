//! The parts of a composed module: they run before its own answer.

use std::sync::Arc;

use cog_answer::Assembler;
use cog_spec::{ErrorBody, Usage};

use super::{Driver, State};
use crate::{
    composition::{
        COMPOSITION, PartsAnswer, PartsEnd, PartsError, PartsFuture, PartsReply, PartsState, PartsSummary,
        PendingParts,
    },
    prompt, request,
};

impl Driver {
    /// Waits for the parts. They watch the cancellation and the time limit of the run themselves, because a composition that
    /// is stopped reports the parts that are done.
    pub(super) async fn compose(&mut self, mut assembler: Box<Assembler>, parts: PartsFuture) -> State {
        let PartsEnd { mut summary, answer, partial_data, state, slot } = parts.await;
        if self.run.tools.as_ref().is_some_and(|tools| tools.has_earlier_usage()) {
            summary.usage = new_usage(&summary); // the halted run has counted the parts before it
        }
        assembler.add_parts(summary, partial_data);
        match answer {
            Ok(PartsAnswer::Texts(texts)) => {
                (self.run.parts_state, self.slot) = (Some(state), slot);
                self.place(assembler, texts.into())
            }
            Ok(PartsAnswer::Envelope(envelope)) => {
                self.run.provider = Arc::new(PartsReply::new(envelope));
                self.run.others.clear();
                assembler.answer_from_parts(COMPOSITION, PartsReply::MODEL);
                State::Calling(assembler)
            }
            Err(PartsError { error, is_interrupted }) => {
                let error = self.halt_parts(state).await.unwrap_or(error);
                assembler.fail_parts(error, is_interrupted, self.started.elapsed(), &mut self.out);
                State::Ended
            }
        }
    }

    /// Stores the run if parts wait for a confirmation, and returns the error that ends it.
    async fn halt_parts(&mut self, state: PartsState) -> Option<ErrorBody> {
        if state.halted.is_empty() {
            return None;
        }
        let media = self.expiring_media();
        self.run.parts.as_ref()?.halt(&self.run.spec.module, state, media).await
    }

    /// Builds the messages with these texts in place of the calls and references of the prompt.
    fn place(&mut self, assembler: Box<Assembler>, texts: Arc<[String]>) -> State {
        let run = &mut self.run;
        let Some(parts) = run.parts.take() else { return State::Calling(assembler) };
        run.spec.texts = texts;
        let instructions = request::instructions(run.request.output.as_deref());
        let PendingParts { input, media, .. } = *parts;
        let messages = prompt::conversation(&run.spec.module, instructions, &input, &run.spec.texts, media);
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
