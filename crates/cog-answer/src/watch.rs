use cog_json::{Event, EventKind, Path, Segment};
use cog_schema::Violation;
use cog_spec::ViolationNote;

use crate::{AnswerRules, outbox::Outbox, place};

/// Checks each value when it is complete (ruling R48).
#[derive(Debug)]
pub(crate) struct Watch {
    /// The first violation stops the provider.
    is_stopping: bool,
    /// A null in an object may stand for an omitted member.
    ignores_nulls: bool,
    /// Media may be inserted into the data after the reply.
    awaits_media: bool,
    violations: Vec<Violation>,
}

impl Watch {
    pub(crate) fn new(rules: &AnswerRules, ignores_nulls: bool) -> Self {
        Self {
            is_stopping: rules.stops_at_violations(),
            ignores_nulls,
            awaits_media: rules.makes_media(),
            violations: Vec::new(),
        }
    }

    /// Processes an event of the data. `path` is its path in the envelope.
    pub(crate) fn on_event(&mut self, rules: &AnswerRules, path: &Path, event: &Event<'_>, out: &mut Outbox) {
        if event.kind != EventKind::Complete || !is_watched(path) || self.is_open(rules, path) {
            return;
        }
        for violation in rules.contract.check_at(path, event.node) {
            if !self.is_excused(&violation, path, event) && out.violation(note(rules, &violation)) {
                self.violations.push(violation);
            }
        }
    }

    /// Whether media may still be inserted there.
    fn is_open(&self, rules: &AnswerRules, path: &Path) -> bool {
        self.awaits_media && rules.contract.has_media_outputs_at(path)
    }

    /// Whether a violation was reported.
    pub(crate) fn has_emitted(&self) -> bool {
        !self.violations.is_empty()
    }

    /// Returns the violations because of which to stop the provider; none if it should continue.
    pub(crate) fn stopping_violations(&self) -> &[Violation] {
        if self.is_stopping { &self.violations } else { &[] }
    }

    /// Whether the violating value is a null that counts as absent.
    fn is_excused(&self, violation: &Violation, path: &Path, event: &Event<'_>) -> bool {
        if !self.ignores_nulls {
            return false;
        }
        let Ok(whole) = violation.path.parse::<Path>() else { return false };
        let node = place::resolve_below(event.node, &whole, path.depth());
        matches!(whole.last(), Some(Segment::Key(_))) && node.is_some_and(|node| node.is_null())
    }
}

/// `data` itself and `extensions` are checked at the end, with what the manifest allows beyond the schema.
fn is_watched(path: &Path) -> bool {
    let mut steps = path.segments().skip(1);
    steps.next().is_some_and(|step| step != Segment::Key("extensions"))
}

fn note(rules: &AnswerRules, violation: &Violation) -> ViolationNote {
    let Violation { path, rule, message, .. } = violation;
    ViolationNote { path: rules.redact(path), rule: rule.clone(), message: rules.redact(message) }
}
