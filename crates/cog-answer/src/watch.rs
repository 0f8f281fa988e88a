use std::collections::HashSet;

use cog_json::{Event, EventKind, Path, Segment};
use cog_schema::{Contract, Violation};
use cog_spec::{Chunk, OnViolation, Progress, ViolationNote};

use crate::{outbox::Outbox, place};

/// More violations of one reply than this are not told while it arrives; the check at the end tells them all.
const MOST_TOLD: usize = 64;

/// How far a run is while the model speaks, for a progress chunk: nobody knows, so half way.
const UNDER_WAY: u8 = 50;

/// Checks values when they are complete (supplement R48).
#[derive(Debug)]
pub(crate) struct Watch {
    on_violation: OnViolation,
    /// A null of an object may stand for a member left out.
    ignores_nulls: bool,
    known: HashSet<(String, String)>,
    violations: Vec<Violation>,
}

impl Watch {
    pub(crate) fn new(on_violation: OnViolation, ignores_nulls: bool) -> Self {
        Self { on_violation, ignores_nulls, known: HashSet::new(), violations: Vec::new() }
    }

    /// Takes an event of the data; `path` is where it stands in the envelope.
    pub(crate) fn hear(&mut self, contract: &Contract, path: &Path, event: &Event<'_>, out: &mut Outbox) {
        if event.kind != EventKind::Complete || !is_watched(path) || self.known.len() >= MOST_TOLD {
            return;
        }
        for violation in contract.check_at(path, event.node) {
            let key = (violation.path.clone(), violation.rule.clone());
            if !self.is_excused(&violation, path, event) && self.known.insert(key) {
                out.push(Chunk::Progress(progress(&violation)));
                self.violations.push(violation);
            }
        }
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

fn progress(violation: &Violation) -> Progress {
    Progress {
        percent: UNDER_WAY,
        stage: Some("checking".to_owned()),
        message: None,
        violation: Some(ViolationNote {
            path: violation.path.clone(),
            rule: violation.rule.clone(),
            message: violation.message.clone(),
        }),
    }
}
