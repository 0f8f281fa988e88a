use cog_json::{Event, EventKind, Path, Segment};
use cog_schema::Violation;
use cog_spec::{OnViolation, ViolationNote};

use crate::{AnswerRules, outbox::Outbox, place};

/// Checks values when they are complete (ruling R48).
#[derive(Debug)]
pub(crate) struct Watch {
    on_violation: OnViolation,
    /// A null of an object may stand for a member left out.
    ignores_nulls: bool,
    /// Media may be put into the data once the reply is over.
    awaits_media: bool,
    violations: Vec<Violation>,
}

impl Watch {
    pub(crate) fn new(rules: &AnswerRules, ignores_nulls: bool) -> Self {
        let on_violation = rules.response.on_violation;
        Self { on_violation, ignores_nulls, awaits_media: rules.makes_media(), violations: Vec::new() }
    }

    /// MediaCapabilities an event of the data; `path` is where it stands in the envelope.
    pub(crate) fn hear(&mut self, rules: &AnswerRules, path: &Path, event: &Event<'_>, out: &mut Outbox) {
        if event.kind != EventKind::Complete || !is_watched(path) || self.is_open(rules, path) {
            return;
        }
        for violation in rules.contract.check_at(path, event.node) {
            if !self.is_excused(&violation, path, event) && out.violation(note(rules, &violation)) {
                self.violations.push(violation);
            }
        }
    }

    /// Whether media may still be put there.
    fn is_open(&self, rules: &AnswerRules, path: &Path) -> bool {
        self.awaits_media && rules.contract.has_media_outputs_at(path)
    }

    /// Whether a violation was told.
    pub(crate) fn has_told(&self) -> bool {
        !self.violations.is_empty()
    }

    /// The violations for which the provider is to be stopped; none where it is to go on.
    pub(crate) fn reasons_to_stop(&self) -> &[Violation] {
        match self.on_violation {
            OnViolation::Report => &[],
            OnViolation::Abort | OnViolation::Retry => &self.violations,
        }
    }

    /// Whether the place of a violation holds a null that will be read as absent.
    fn is_excused(&self, violation: &Violation, path: &Path, event: &Event<'_>) -> bool {
        if !self.ignores_nulls {
            return false;
        }
        let Ok(whole) = violation.path.parse::<Path>() else { return false };
        let node = place::resolve_below(event.node, &whole, path.depth());
        matches!(whole.last(), Some(Segment::Key(_))) && node.is_some_and(|node| node.is_null())
    }
}

/// Data as a whole are checked at the end, with what the manifest allows beyond the schema.
fn is_watched(path: &Path) -> bool {
    let mut steps = path.segments().skip(1);
    steps.next().is_some_and(|step| step != Segment::Key("extensions"))
}

fn note(rules: &AnswerRules, violation: &Violation) -> ViolationNote {
    let Violation { path, rule, message, .. } = violation;
    ViolationNote { path: rules.redact(path), rule: rule.clone(), message: rules.redact(message) }
}
