use std::time::Duration;

use cog_json::{Event, EventKind, Node, Path, Segment, Value};
use cog_schema::Violation;
use cog_spec::{ChunkType, Dialect, OnViolation};

use crate::{
    AnswerRules,
    outbox::Outbox,
    place,
    repair::said,
    shape::{Recognizer, Shape},
    tell::{Deltas, Drafts},
    watch::Watch,
};

/// Hears what the parser tells of a reply, and makes chunks of it.
#[derive(Debug)]
pub(crate) struct Listener {
    recognizer: Recognizer,
    teller: Teller,
    watch: Option<Watch>,
}

/// How content travels (SPEC 2.2, `chunk_type`).
#[derive(Debug)]
enum Teller {
    Deltas(Box<Deltas>),
    Drafts(Drafts),
    /// Not at all: no one reads it.
    Silent,
}

impl Listener {
    pub(crate) fn new(rules: &AnswerRules) -> Self {
        let holds_nulls = rules.asked == Dialect::OpenAiStrict;
        let teller = match rules.response.chunk_type {
            _ if !rules.watch => Teller::Silent,
            ChunkType::Delta => {
                Teller::Deltas(Box::new(Deltas::new(rules.response.buffer_size, holds_nulls)))
            }
            ChunkType::Snapshot => Teller::Drafts(Drafts::default()),
        };
        let is_watching = rules.watch || rules.response.on_violation != OnViolation::Report;
        Self {
            recognizer: Recognizer::new(!rules.manifest.format.asks_for_envelope()),
            teller,
            watch: is_watching.then(|| Watch::new(rules, holds_nulls)),
        }
    }

    /// MediaCapabilities one event of the parser.
    pub(crate) fn hear(&mut self, rules: &AnswerRules, event: &Event<'_>, out: &mut Outbox) {
        if let EventKind::Retracted { tentative } = event.kind {
            return self.begin_anew(rules, tentative, out);
        }
        self.recognizer.note(event);
        let is_silent = matches!(self.teller, Teller::Silent);
        if is_silent && self.watch.is_none() {
            return;
        }
        match (self.recognizer.shape(), event.path.first()) {
            (Some(Shape::Bare), _) => self.hear_data(rules, &place::below_data(event.path), event, out),
            (Some(Shape::Envelope { ok: true }), Some(Segment::Key("data"))) => {
                self.hear_data(rules, event.path, event, out);
            }
            (Some(Shape::Envelope { .. }), Some(Segment::Key("meta")))
                if event.path.depth() == 1 && !is_silent =>
            {
                hear_meta(rules, event, out);
            }
            _ => {}
        }
    }

    /// A piece of the reply was read: gives what is due.
    pub(crate) fn settle(&mut self, root: Option<Node<'_>>, bytes: usize, now: Duration, out: &mut Outbox) {
        match &mut self.teller {
            Teller::Silent => {}
            Teller::Deltas(deltas) => deltas.settle(now, out),
            Teller::Drafts(drafts) => {
                if let Some(draft) = root.and_then(|root| self.recognizer.draft(root)) {
                    drafts.settle(draft, bytes, now, out);
                }
            }
        }
    }

    /// The reply ends before its data do: gives what is held back.
    pub(crate) fn flush(&mut self, root: Option<Node<'_>>, out: &mut Outbox) {
        match &mut self.teller {
            Teller::Silent => {}
            Teller::Deltas(deltas) => deltas.flush(out),
            Teller::Drafts(drafts) => {
                if let Some(draft) = root.and_then(|root| self.recognizer.draft(root)) {
                    drafts.flush(draft, out);
                }
            }
        }
    }

    /// When [`Listener::settle`] is due at the latest, though nothing arrives.
    pub(crate) fn due(&self) -> Option<Duration> {
        match &self.teller {
            Teller::Deltas(deltas) => deltas.due(),
            Teller::Drafts(_) | Teller::Silent => None,
        }
    }

    /// The violations for which the provider is to be stopped.
    pub(crate) fn reasons_to_stop(&self) -> &[Violation] {
        self.watch.as_ref().map_or(&[], Watch::reasons_to_stop)
    }

    /// What is known of the shape of the reply.
    pub(crate) fn recognizer(&self) -> &Recognizer {
        &self.recognizer
    }

    /// Tells what is left of the data of a success, so that all chunks together give exactly `data`.
    pub(crate) fn conclude(self, data: &Value, changed: &[Path], was_heard: bool, out: &mut Outbox) {
        match self.teller {
            Teller::Deltas(deltas) => deltas.conclude(data, changed, was_heard, out),
            Teller::Drafts(drafts) => drafts.conclude(data, out),
            Teller::Silent => {}
        }
    }

    /// What was heard was a draft in the model's reasoning: retracts what was emitted of it. Violations for which the
    /// provider may have been stopped already count all the same, so that the split does not matter.
    fn begin_anew(&mut self, rules: &AnswerRules, tentative: bool, out: &mut Outbox) {
        let has_told = match &self.teller {
            Teller::Deltas(deltas) => deltas.has_told(),
            Teller::Drafts(drafts) => drafts.has_told(),
            Teller::Silent => false,
        };
        let has_told = has_told || self.watch.as_ref().is_some_and(Watch::has_told);
        let is_lost = !tentative && !self.reasons_to_stop().is_empty();
        let watch = self.watch.take_if(|_| is_lost);
        *self = Self::new(rules);
        self.watch = watch.or(self.watch.take());
        if has_told {
            out.take_back();
        }
    }

    fn hear_data(&mut self, rules: &AnswerRules, path: &Path, event: &Event<'_>, out: &mut Outbox) {
        if let Teller::Deltas(deltas) = &mut self.teller {
            deltas.hear(path, event, out);
        }
        if let Some(watch) = &mut self.watch {
            watch.hear(rules, path, event, out);
        }
    }
}

/// The model's own meta, told once it is complete and fits (ruling R42).
fn hear_meta(rules: &AnswerRules, event: &Event<'_>, out: &mut Outbox) {
    if event.kind != EventKind::Complete {
        return;
    }
    if let Some(meta) = said::preview(event.node, &rules.contract) {
        out.snapshot("meta", meta);
    }
}
