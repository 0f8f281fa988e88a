//! Inserts generated media into an answer, before the answer is checked.

use std::time::Duration;

use cog_harmony::citation::Sources;
use cog_json::{Node, Path, Segment, ToJson, Value};
use cog_schema::{MediaSlot, Placement, Violation};
use cog_spec::{Chunk, Code, ErrorBody, RationalePlace, RepairRule, Usage, Warning};

use super::{
    Assembler, Finish,
    judged::{JudgedReply, RestOfData, fail},
};
use crate::{
    correction::AttemptText,
    error,
    finalize::{self, Failure},
    patch::{self, PlacedValue},
    reply::CompleteReply,
    shape::Shape,
};

/// A complete reply that was not checked yet. Media that the model generated along with its text can be inserted before the
/// check (SPEC 4.3).
#[must_use = "a stream has exactly one end: finish or fail"]
pub struct PendingReply {
    assembler: Assembler,
    attempt_text: AttemptText,
    ended: Result<CompleteReply, Box<Failure>>,
    /// Media that the answer must not contain.
    refused: Vec<Violation>,
    warnings: Vec<Warning>,
}

impl PendingReply {
    pub(crate) fn new(
        assembler: Assembler,
        attempt_text: AttemptText,
        ended: Result<CompleteReply, Box<Failure>>,
    ) -> Self {
        Self { assembler, attempt_text, ended, refused: Vec::new(), warnings: Vec::new() }
    }

    /// Returns the model that answered, without its provider.
    pub fn model(&self) -> Option<&str> {
        self.assembler.model()
    }

    /// Returns the data of a success; none of an error and of an invalid reply. Absent data are null.
    pub fn data(&self) -> Option<Value> {
        let parsed = &self.ended.as_ref().ok()?.parsed;
        match parsed.shape {
            Shape::Envelope { ok: false } | Shape::WithoutOk => None,
            Shape::Envelope { ok: true } => {
                Some(parsed.value.get("data").map(|data| parsed.value.child(data)).unwrap_or_default())
            }
            Shape::Bare => Some(parsed.value.clone()),
        }
    }

    /// Returns the slots of media in the data, in their order.
    pub fn places(&self, media: &[Placement<'_>]) -> Vec<Option<MediaSlot>> {
        let data = self.data().filter(|data| data.is_null() || data.is_object());
        match data {
            Some(data) => self.assembler.rules.contract.place_media(data.node(), media),
            None => media.iter().map(|_| None).collect(),
        }
    }

    /// Returns the slots of the media that the model itself wrote into its data.
    ///
    /// The types of what the model states about such a media item are checked here, because [`PendingReply::put`] replaces it with
    /// what the bytes say (ruling R25). A wrong value of the right type is for [`PendingReply::note_fact`].
    pub fn written(&mut self) -> Vec<MediaSlot> {
        let Some(data) = self.data() else { return Vec::new() };
        let slots = self.assembler.rules.contract.media_outputs(data.node());
        for slot in &slots {
            if let Some(item) = patch::resolve(data.node(), &slot.path) {
                self.refused.extend(misstated(item, slot));
            }
        }
        slots
    }

    /// Inserts values into the data.
    pub fn put(&mut self, placed: &[PlacedValue]) {
        let Ok(complete) = &mut self.ended else { return };
        if placed.is_empty() {
            return;
        }
        let skipped = usize::from(complete.parsed.shape == Shape::Bare);
        let patches: Vec<(Vec<Segment<'_>>, &dyn ToJson)> = placed
            .iter()
            .map(|one| (one.path.segments().skip(skipped).collect(), &*one.value as &dyn ToJson))
            .collect();
        complete.parsed.value = patch::insert(&complete.parsed.value, &patches);
        complete.placed.extend(placed.iter().map(|one| one.path.clone()));
    }

    /// Returns the data of an answer whose rationale was not asked for, although the module needs one (ruling R91); none of any
    /// other reply.
    pub fn unexplained(&self) -> Option<Value> {
        let rules = &self.assembler.rules;
        let is_due = rules.is_without_meta()
            && rules.form.rationale == RationalePlace::Afterwards
            && rules.contract.requires_rationale();
        let is_bare = self.ended.as_ref().is_ok_and(|complete| complete.parsed.shape == Shape::Bare);
        let data = self.data().filter(|data| is_due && is_bare && data.is_object())?;
        // An answer that violates its contract is asked for again, and explained then.
        let has_violation = || {
            let check = rules.contract.check_data(data.node());
            check.violations.iter().any(|violation| violation.code != Code::MissingRationale)
        };
        (data.get("rationale").is_none() && !has_violation()).then_some(data)
    }

    /// Adds the rationale that a second call has given.
    pub fn put_rationale(&mut self, rationale: String) {
        let mut path = patch::data();
        path.push_key("rationale");
        self.put(&[PlacedValue { path, value: Box::new(rationale) }]);
    }

    /// Adds the tokens of a further call.
    pub fn add_usage(&mut self, usage: &Usage) {
        self.assembler.add_usage(usage);
    }

    /// Counts a further call whose reply broke off, or whose tokens are not counted.
    pub fn add_lost_call(&mut self, estimate: &Usage) {
        self.assembler.add_lost_call(estimate);
    }

    /// Sets the media of the input that the citations of the answer name. Their snippets are compared with these
    /// sources.
    pub fn set_sources(&mut self, sources: Sources) {
        self.assembler.rules.sources = sources;
    }

    /// Rejects a media item with a reason. The answer then violates its contract (E3001).
    pub fn refuse(&mut self, path: &str, code: Code, why: &str) {
        let violation = error::violation(path, "media", format!("{code}: {why}"));
        self.refused.push(Violation { code, ..violation });
    }

    /// Returns whether a media item was rejected, so that the answer is invalid.
    pub fn is_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Records a fact of a media item that the file has shown to be another one, with both sizes in bytes (ruling R26).
    pub fn note_fact(&mut self, path: &Path, before: usize, after: usize) {
        if let Ok(complete) = &mut self.ended {
            complete.parsed.ledger.note_sizes(RepairRule::MediaFact, &path.to_string(), before, after);
        }
    }

    /// Adds a warning.
    pub fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// Judges the reply by its contract, the named checks and the rules of the tier.
    pub fn judge(self) -> JudgedReply {
        let Self { assembler, attempt_text, ended, refused, warnings } = self;
        let (judged, rest) = match ended {
            Ok(CompleteReply { parsed, listener, is_complete, placed }) => {
                // The data that a model sends with an error are not those that were emitted.
                let is_complete = is_complete && parsed.shape != Shape::Envelope { ok: false };
                let judged = match refused.as_slice() {
                    [] => finalize::finalize(&assembler.rules, parsed),
                    refused => Err(finalize::refused(&assembler.rules, parsed, refused)),
                };
                (judged, Some(RestOfData { listener, is_complete, placed }))
            }
            Err(failure) => (Err(failure), None),
        };
        JudgedReply { assembler, attempt_text, judged, rest, warnings }
    }

    /// Judges the reply and emits the last chunks.
    pub fn finish(self, now: Duration, out: &mut impl Extend<Chunk>) -> Finish {
        self.judge().finish(now, out)
    }

    /// Ends the run with an error of the runtime.
    pub fn fail(self, error: ErrorBody, now: Duration, out: &mut impl Extend<Chunk>) {
        let Self { assembler, ended, warnings, .. } = self;
        let partial_data =
            ended.ok().and_then(|complete| finalize::partial(&assembler.rules, &complete.parsed));
        fail(assembler, Failure { partial_data, warnings, ..Failure::new(error) }, now, out);
    }
}

/// Returns what is wrong with the statements about a media item that is inline: the type, which is required, and the facts
/// (SPEC 4.3).
fn misstated(item: Node<'_>, slot: &MediaSlot) -> Vec<Violation> {
    const FACTS: [&str; 3] = ["width", "height", "duration_ms"];
    let path = &slot.path;
    if item.get_str("type") != Some("base64") {
        return Vec::new();
    }
    let mut found = Vec::new();
    match item.get("media_type") {
        Some(media_type) if media_type.is_string() => {}
        Some(other) => found.push(mistyped(&format!("{path}.media_type"), other, "a string")),
        None if slot.allows("media_type") => {
            let path = format!("{path}.media_type");
            found.push(error::violation(&path, "required", "`media_type` is required but missing"));
        }
        None => {}
    }
    for name in FACTS {
        // A dialect that requires every member makes the model write null for an absent one.
        let fact = item.get(name).filter(|fact| !fact.is_null() && fact.as_u64().is_none());
        found.extend(fact.map(|fact| mistyped(&format!("{path}.{name}"), fact, "an integer")));
    }
    found
}

fn mistyped(path: &str, node: Node<'_>, allowed: &str) -> Violation {
    error::violation(path, "type", format!("found {}; allowed: {allowed}", error::named(node.kind())))
}
