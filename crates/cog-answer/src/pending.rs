//! Between the end of a reply and its judgement: the media that the model made are put into the answer.

use std::time::Duration;

use cog_json::{Segment, ToJson, Value};
use cog_schema::{MediaSlot, Placement, Violation};
use cog_spec::{Chunk, Code, ErrorBody, Warning};

use crate::{
    Assembler, Correction, Finish, error,
    graft::{self, PlacedValue},
    judge::{self, Failure, Success},
    reply::Whole,
    shape::Shape,
};

/// A reply that is over and not judged yet. What the model made beside its text can be put into the answer before it is
/// held to its contract (SPEC 4.3).
#[must_use = "a stream has exactly one end: finish or fail"]
pub struct PendingReply {
    assembler: Assembler,
    said: crate::correction::Said,
    ended: Result<Whole, Box<Failure>>,
    /// Media that may not stand in the answer.
    refused: Vec<Violation>,
    warnings: Vec<Warning>,
}

impl PendingReply {
    pub(crate) fn new(
        assembler: Assembler,
        said: crate::correction::Said,
        ended: Result<Whole, Box<Failure>>,
    ) -> Self {
        Self { assembler, said, ended, refused: Vec::new(), warnings: Vec::new() }
    }

    /// The model that answered, without its provider.
    pub fn model(&self) -> Option<&str> {
        let model = self.assembler.model.as_deref()?;
        let provider = self.assembler.rules.provider.as_str();
        Some(model.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/')).unwrap_or(model))
    }

    /// The data of an answer that says it is one; none of what is none, or an error. Absent data are a null.
    pub fn data(&self) -> Option<Value> {
        let reading = &self.ended.as_ref().ok()?.reading;
        match reading.shape {
            Shape::Envelope { ok: false } => None,
            Shape::Envelope { ok: true } => {
                Some(reading.value.get("data").map(|data| reading.value.child(data)).unwrap_or_default())
            }
            Shape::Bare => Some(reading.value.clone()),
        }
    }

    /// Where media go in the data, in their order.
    pub fn places(&self, media: &[Placement<'_>]) -> Vec<Option<MediaSlot>> {
        let data = self.data().filter(|data| data.is_null() || data.is_object());
        match data {
            Some(data) => self.assembler.rules.contract.place_media(data.node(), media),
            None => media.iter().map(|_| None).collect(),
        }
    }

    /// The media that the model wrote into its data itself.
    pub fn written(&self) -> Vec<MediaSlot> {
        let data = self.data();
        data.map(|data| self.assembler.rules.contract.media_outputs(data.node())).unwrap_or_default()
    }

    /// Puts values into the data.
    pub fn put(&mut self, placed: &[PlacedValue]) {
        let Ok(whole) = &mut self.ended else { return };
        if placed.is_empty() {
            return;
        }
        let skipped = usize::from(whole.reading.shape == Shape::Bare);
        let scions: Vec<(Vec<Segment<'_>>, &dyn ToJson)> = placed
            .iter()
            .map(|one| (one.path.segments().skip(skipped).collect(), &*one.value as &dyn ToJson))
            .collect();
        whole.reading.value = graft::graft(&whole.reading.value, &scions);
        whole.placed.extend(placed.iter().map(|one| one.path.clone()));
    }

    /// A medium that may not stand in the answer, and why: the answer breaks its contract there (E3001).
    pub fn refuse(&mut self, path: &str, code: Code, why: &str) {
        let violation = error::violation(path, "media", format!("{code}: {why}"));
        self.refused.push(Violation { code, ..violation });
    }

    /// Whether a medium was refused, so that the answer does not stand.
    pub fn is_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Something to be told of an answer that stands all the same.
    pub fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// Checks the reply, and gives the last chunks.
    pub fn finish(self, now: Duration, out: &mut impl Extend<Chunk>) -> Finish {
        let Self { mut assembler, said, ended, refused, mut warnings } = self;
        let usage = assembler.spent;
        let ended = ended.and_then(|whole| {
            let Whole { reading, listener, was_heard, placed } = whole;
            let success = match refused.is_empty() {
                true => judge::judge(&assembler.rules, reading)?,
                false => return Err(judge::refused(&assembler.rules, reading, &refused)),
            };
            let changed: Vec<_> = success.changed.iter().chain(&placed).cloned().collect();
            listener.conclude(&success.data, &changed, was_heard, &mut assembler.outbox);
            Ok(success)
        });
        match ended.map_err(|failure| failure.without(&assembler.rules.keys)) {
            Ok(success) => {
                warnings.extend(success.warnings);
                assembler.succeed(Success { warnings, ..success }, usage, now);
            }
            Err(failure) if assembler.may_ask_again(&failure) => {
                assembler.restart(&failure.error);
                out.extend(assembler.outbox.drain());
                return Finish::Again(Box::new(assembler), Correction::new(said, &failure.error));
            }
            Err(failure) => {
                warnings.extend(failure.warnings.clone());
                assembler.give_up(Failure { warnings, ..failure }, usage, now);
            }
        }
        out.extend(assembler.outbox.drain());
        Finish::Ended
    }

    /// The run ends here for a reason of the runtime's own.
    pub fn fail(self, error: ErrorBody, now: Duration, out: &mut impl Extend<Chunk>) {
        let Self { mut assembler, ended, warnings, .. } = self;
        let usage = assembler.spent;
        let partial_data = ended.ok().and_then(|whole| judge::partial(&assembler.rules, &whole.reading));
        let failure = Failure { partial_data, warnings, ..Failure::new(error) };
        assembler.give_up(failure.without(&assembler.rules.keys), usage, now);
        out.extend(assembler.outbox.drain());
    }
}
