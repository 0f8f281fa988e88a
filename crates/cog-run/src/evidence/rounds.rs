//! The rounds of a collection: the first providers, then the next ones, as long as the gate of an answer asks for them.

use std::time::Duration;

use cog_spec::{Code, Envelope, ErrorBody, ErrorCode, ErrorOrigin, Fallback, Outcome};

use super::{
    CollectedRun, Collection,
    answers::{Costs, is_bad_answer},
    held::Held,
};

/// Starts the runs of a collection with the providers after this number of the first ones, within this time.
pub(crate) type StartNext =
    Box<dyn FnOnce(usize, Duration) -> Result<(CollectedRun, Box<Collection>), ErrorBody> + Send>;

/// How a round ended.
pub(super) enum Asked {
    /// The run has its answer, or its error. `is_first` is whether it is from the run whose chunks were passed on, unchanged.
    Ended { envelope: Envelope, is_first: bool },
    /// The answer of this provider was refused, and the next one should be asked. `fallbacks` are the providers before it.
    Next { envelope: Envelope, provider: String, fallbacks: Vec<Fallback> },
}

/// What the rounds of a collection add up to.
#[derive(Default)]
pub(super) struct Rounds {
    pub(super) costs: Costs,
    /// The end of the run whose chunks are passed on.
    pub(super) held: Held,
    /// The providers that were asked before the current round.
    fallbacks: Vec<Fallback>,
    /// The answer that was refused last.
    refused: Option<Envelope>,
}

impl Rounds {
    /// Adds a round whose answer was refused. Returns the number of its providers that were asked.
    pub(super) fn add(&mut self, refused: Envelope, provider: String, before: Vec<Fallback>) -> usize {
        let asked = before.len() + 1;
        self.fallbacks.extend(before);
        if let Some(error) = refused.error() {
            let code = match error.code {
                ErrorCode::Standard(code) => code,
                _ => Code::LowConfidence,
            };
            self.fallbacks.push(Fallback { provider, code, message: error.message.clone() });
        }
        self.refused = Some(refused);
        asked
    }

    /// Adds what all rounds have in common to the last envelope. If the providers of the last round gave no answer, the refused one
    /// is all that there is.
    pub(super) fn end(self, mut envelope: Envelope, is_first: bool, time: Duration) -> (Envelope, bool) {
        let Self { costs, mut fallbacks, refused, .. } = self;
        let gave_none =
            envelope.error().is_some_and(|error| error.origin != ErrorOrigin::Model && !is_bad_answer(error));
        let mut is_unchanged = is_first;
        if let Some(before) = refused.filter(|_| gave_none)
            && let Outcome::Failure { error: failed, partial_data } = before.outcome
            && let Outcome::Failure { error, partial_data: of_last } = &mut envelope.outcome
            && of_last.is_none()
        {
            *error = cog_answer::refused_after(error.clone(), &failed);
            *of_last = partial_data;
            is_unchanged = false;
            if envelope.meta.runtime.model.is_none() {
                envelope.meta.runtime = before.meta.runtime; // no call was made in the last round
            }
        }
        let runtime = &mut envelope.meta.runtime;
        fallbacks.append(&mut runtime.fallbacks);
        runtime.fallbacks = fallbacks;
        costs.sum_into(&mut envelope, time);
        (envelope, is_unchanged)
    }
}
