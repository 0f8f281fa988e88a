use std::time::Duration;

use cog_json::{Event, EventKind, Node, Path, Segment, Value};
use cog_rules::{Check, CheckFailure, CheckedAnswer, Verdict};
use cog_schema::Violation;
use cog_spec::{CheckSeverity, ChunkType, ViolationNote};

use crate::{
    AnswerRules,
    emit::{Deltas, Drafts},
    error, patch, repair,
    sequencer::ChunkSequencer,
    shape::{Recognizer, Shape},
};

/// Converts the parser's events of a reply to chunks.
#[derive(Debug)]
pub(crate) struct Listener {
    recognizer: Recognizer,
    emitter: Emitter,
    watch: Option<Watch>,
}

/// The form in which data are emitted (SPEC 2.2, `chunk_type`).
#[derive(Debug)]
enum Emitter {
    Deltas(Box<Deltas>),
    Drafts(Drafts),
    /// Not at all: no caller reads them.
    Silent,
}

impl Listener {
    pub(crate) fn new(rules: &AnswerRules) -> Self {
        let delays_nulls = rules.dialect.adds_nulls();
        let emitter = match rules.response.chunk_type {
            _ if !rules.is_streamed => Emitter::Silent,
            ChunkType::Delta => {
                Emitter::Deltas(Box::new(Deltas::new(rules.response.buffer_size, delays_nulls)))
            }
            ChunkType::Snapshot => Emitter::Drafts(Drafts::default()),
        };
        let is_watching = rules.is_streamed || rules.stops_at_violations();
        Self {
            recognizer: Recognizer::new(rules),
            emitter,
            watch: is_watching.then(|| Watch::new(rules, delays_nulls)),
        }
    }

    /// Processes one event of the parser.
    pub(crate) fn on_event(&mut self, rules: &AnswerRules, event: &Event<'_>, out: &mut ChunkSequencer) {
        // What was read as the answer was something else, such as an example before it.
        if let EventKind::Retracted { tentative } = event.kind {
            return self.reset(rules, tentative, out);
        }
        if self.recognizer.is_beside_wrapper(event) {
            let recognizer = self.recognizer.start_beside_wrapper();
            self.reset(rules, false, out);
            self.recognizer = recognizer;
        }
        self.recognizer.note(event);
        // A sync answer is checked once, at its end; without a reader, copying each event would be wasted.
        let is_silent = matches!(self.emitter, Emitter::Silent);
        if is_silent && self.watch.is_none() {
            return;
        }
        match (self.recognizer.shape(), event.path.first()) {
            (Some(Shape::Bare), _) => self.on_data(rules, &patch::from_bare(event.path), event, out),
            (Some(Shape::Envelope { ok: true }), Some(Segment::Key("data"))) => {
                self.on_data(rules, event.path, event, out);
            }
            (Some(Shape::Envelope { .. }), Some(Segment::Key("meta")))
                if event.path.depth() == 1 && event.kind == EventKind::Complete =>
            {
                self.on_meta(rules, event, out);
            }
            _ => {}
        }
    }

    /// Emits what is due after a part of the reply was parsed.
    pub(crate) fn flush_due(
        &mut self,
        root: Option<Node<'_>>,
        bytes: usize,
        now: Duration,
        out: &mut ChunkSequencer,
    ) {
        match &mut self.emitter {
            Emitter::Silent => {}
            Emitter::Deltas(deltas) => deltas.flush_due(now, out),
            Emitter::Drafts(drafts) => {
                if let Some(draft) = root.and_then(|root| self.recognizer.draft(root)) {
                    drafts.flush_due(draft, bytes, now, out);
                }
            }
        }
    }

    /// Emits the rest of a failed answer, so that the chunks contain its partial data (ruling R43). `draft` are the
    /// data that arrived.
    pub(crate) fn fail(
        mut self,
        draft: Option<Node<'_>>,
        partial: Option<&Value>,
        placed: &[Path],
        is_complete: bool,
        out: &mut ChunkSequencer,
    ) {
        match (&mut self.emitter, partial, draft) {
            (Emitter::Deltas(deltas), ..) => deltas.flush(out),
            (Emitter::Drafts(drafts), None, Some(draft)) => drafts.flush(draft, out),
            _ => {}
        }
        if let Some(partial) = partial {
            self.finish(partial, placed, is_complete, out);
        }
    }

    /// Returns when to call [`Listener::flush_due`] if no event arrives before.
    pub(crate) fn due(&self) -> Option<Duration> {
        match &self.emitter {
            Emitter::Deltas(deltas) => deltas.due(),
            Emitter::Drafts(_) | Emitter::Silent => None,
        }
    }

    /// Returns the violations that stop the provider.
    pub(crate) fn stopping_violations(&self) -> &[Violation] {
        self.watch.as_ref().map_or(&[], Watch::stopping_violations)
    }

    /// Returns the failed checks that stop the provider.
    pub(crate) fn stopping_checks(&self) -> &[CheckFailure] {
        self.watch.as_ref().map_or(&[], Watch::stopping_checks)
    }

    /// Runs the checks that read only values that are complete. `root` is the draft of the reply.
    pub(crate) fn run_checks(
        &mut self,
        rules: &AnswerRules,
        root: Option<Node<'_>>,
        out: &mut ChunkSequencer,
    ) {
        let Some(watch) = self.watch.as_mut().filter(|watch| watch.has_due_checks()) else { return };
        if let Some(data) = root.and_then(|root| self.recognizer.draft(root)) {
            watch.run_checks(rules, data, out);
        }
    }

    /// Returns what is known of the reply's shape.
    pub(crate) fn recognizer(&self) -> &Recognizer {
        &self.recognizer
    }

    /// Emits the rest of a successful answer, so that all chunks add up to exactly `data`.
    pub(crate) fn finish(self, data: &Value, changed: &[Path], is_complete: bool, out: &mut ChunkSequencer) {
        match self.emitter {
            Emitter::Deltas(deltas) => deltas.finish(data, changed, is_complete, out),
            Emitter::Drafts(drafts) => drafts.finish(data, out),
            Emitter::Silent => {}
        }
    }

    /// Retracts what was emitted of a draft that is not the answer. Violations for which the provider may have been
    /// stopped already count all the same, so that the split does not matter.
    fn reset(&mut self, rules: &AnswerRules, tentative: bool, out: &mut ChunkSequencer) {
        let has_emitted = match &self.emitter {
            Emitter::Deltas(deltas) => deltas.has_emitted(),
            Emitter::Drafts(drafts) => drafts.has_emitted(),
            Emitter::Silent => false,
        };
        let has_emitted = has_emitted || self.watch.as_ref().is_some_and(Watch::has_emitted);
        let is_invalid =
            !(tentative || self.stopping_violations().is_empty() && self.stopping_checks().is_empty());
        let watch = self.watch.take_if(|_| is_invalid);
        *self = Self::new(rules);
        self.watch = watch.or(self.watch.take());
        if has_emitted {
            out.retract();
        }
    }

    fn on_data(&mut self, rules: &AnswerRules, path: &Path, event: &Event<'_>, out: &mut ChunkSequencer) {
        if let Emitter::Deltas(deltas) = &mut self.emitter {
            deltas.on_event(path, event, out);
        }
        if let Some(watch) = &mut self.watch {
            watch.on_event(rules, path, event, out);
        }
    }

    /// Emits the model's own meta if it is valid (ruling R42), and checks it.
    fn on_meta(&mut self, rules: &AnswerRules, event: &Event<'_>, out: &mut ChunkSequencer) {
        if !matches!(self.emitter, Emitter::Silent)
            && let Some(meta) = repair::preview(event.node, &rules.contract)
        {
            out.snapshot("meta", meta);
        }
        if let Some(watch) = &mut self.watch {
            watch.on_meta(rules, event, out);
        }
    }
}

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
    /// The named checks that can run before the end.
    checks: Vec<PendingCheck>,
    /// The maximum depth of the values that they wait for.
    check_depth: usize,
    failed_checks: Vec<CheckFailure>,
}

/// A named check before it has run.
#[derive(Debug)]
struct PendingCheck {
    /// Its index in the checks of the module.
    index: usize,
    /// The values that it reads and that are complete.
    is_read: Vec<bool>,
    is_due: bool,
}

impl Watch {
    pub(crate) fn new(rules: &AnswerRules, ignores_nulls: bool) -> Self {
        Self {
            is_stopping: rules.stops_at_violations(),
            ignores_nulls,
            awaits_media: rules.makes_media(),
            violations: Vec::new(),
            checks: Self::pending_checks(rules),
            check_depth: rules.checks.iter().map(Check::depth).max().unwrap_or_default(),
            failed_checks: Vec::new(),
        }
    }

    /// Returns the checks that can fail before the end. A warning is only reported at the end.
    fn pending_checks(rules: &AnswerRules) -> Vec<PendingCheck> {
        let checks = rules.checks.iter().enumerate();
        let early = checks.filter(|(_, check)| {
            check.depth() > 0 && check.severity == CheckSeverity::Error && !rules.makes_media()
        });
        early.map(|(index, _)| PendingCheck { index, is_read: Vec::new(), is_due: false }).collect()
    }

    /// Notes that a value of the data is complete.
    fn note_complete(&mut self, rules: &AnswerRules, path: &Path) {
        for pending in self.checks.iter_mut().filter(|pending| !pending.is_due) {
            let check = rules.checks.iter().nth(pending.index);
            pending.is_due = check.is_some_and(|check| check.note(path, &mut pending.is_read));
        }
    }

    fn has_due_checks(&self) -> bool {
        self.checks.iter().any(|pending| pending.is_due)
    }

    /// Runs the checks that are due, each once. The final check of the answer runs all of them.
    fn run_checks(&mut self, rules: &AnswerRules, data: Node<'_>, out: &mut ChunkSequencer) {
        let answer = CheckedAnswer::new(rules.input.as_ref().map(Value::node), data);
        let due: Vec<usize> =
            self.checks.extract_if(.., |pending| pending.is_due).map(|due| due.index).collect();
        for check in due.into_iter().filter_map(|index| rules.checks.iter().nth(index)) {
            let Verdict::Failed { failure, reads_null } = answer.run(check) else { continue };
            // A null may stand for an omitted member, which is only known at the end.
            if self.ignores_nulls && reads_null {
                continue;
            }
            if out.violation(note(rules, &error::check_violation(&failure))) {
                self.failed_checks.push(*failure);
            }
        }
    }

    /// Returns the failed checks because of which to stop the provider.
    fn stopping_checks(&self) -> &[CheckFailure] {
        if self.is_stopping { &self.failed_checks } else { &[] }
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
        if event.kind == EventKind::Complete && path.depth() <= self.check_depth && !self.checks.is_empty() {
            self.note_complete(rules, path);
        }
    }

    /// Processes the complete meta of an envelope.
    pub(crate) fn on_meta(&mut self, rules: &AnswerRules, event: &Event<'_>, out: &mut ChunkSequencer) {
        self.add(rules, repair::violations(event.node, rules), event.path, event, out);
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
        !self.violations.is_empty() || !self.failed_checks.is_empty()
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
