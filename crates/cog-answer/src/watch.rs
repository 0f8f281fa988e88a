use cog_json::{Event, EventKind, Path, Segment};
use cog_schema::Violation;
use cog_spec::ViolationNote;

use crate::{AnswerRules, patch, repair::reply_meta, sequencer::ChunkSequencer};

/// Checks each value when it is complete (rulings R48, R68).
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
    pub(crate) fn on_event(
        &mut self,
        rules: &AnswerRules,
        path: &Path,
        event: &Event<'_>,
        out: &mut ChunkSequencer,
    ) {
        // `data` itself is checked at the end, after insights over the limit were removed.
        if event.kind == EventKind::Complete && path.depth() > 1 && !self.is_open(rules, path) {
            self.add(rules, rules.contract.check_at(path, event.node), path, event, out);
        }
    }

    /// Processes the complete meta of an envelope.
    pub(crate) fn on_meta(&mut self, rules: &AnswerRules, event: &Event<'_>, out: &mut ChunkSequencer) {
        self.add(rules, reply_meta::violations(event.node, rules), event.path, event, out);
    }

    /// Reports violations of the value at `path`.
    fn add(
        &mut self,
        rules: &AnswerRules,
        violations: Vec<Violation>,
        path: &Path,
        event: &Event<'_>,
        out: &mut ChunkSequencer,
    ) {
        for violation in violations {
            if !self.is_excused(&violation, path, event) && out.violation(note(rules, &violation)) {
                self.violations.push(violation);
            }
        }
    }

    /// Returns whether media may still be inserted there.
    fn is_open(&self, rules: &AnswerRules, path: &Path) -> bool {
        self.awaits_media && rules.contract.has_media_outputs_at(path)
    }

    /// Returns whether a violation was reported.
    pub(crate) fn has_emitted(&self) -> bool {
        !self.violations.is_empty()
    }

    /// Returns the violations because of which to stop the provider; none if it should continue.
    pub(crate) fn stopping_violations(&self) -> &[Violation] {
        if self.is_stopping { &self.violations } else { &[] }
    }

    /// Returns whether the violating value is a null that counts as absent.
    fn is_excused(&self, violation: &Violation, path: &Path, event: &Event<'_>) -> bool {
        if !self.ignores_nulls {
            return false;
        }
        let Ok(whole) = violation.path.parse::<Path>() else { return false };
        let node = patch::resolve_below(event.node, &whole, path.depth());
        matches!(whole.last(), Some(Segment::Key(_))) && node.is_some_and(|node| node.is_null())
    }
}

fn note(rules: &AnswerRules, violation: &Violation) -> ViolationNote {
    let Violation { path, rule, message, .. } = violation;
    ViolationNote { path: rules.redact(path), rule: rule.clone(), message: rules.redact(message) }
}
