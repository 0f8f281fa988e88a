use std::time::Duration;

use cog_json::{Node, Value};

use crate::outbox::Outbox;

/// The shortest time between two drafts (ruling R46).
const PAUSE: Duration = Duration::from_millis(50);

/// Tells all of the data, again and again: `chunk_type: snapshot` (ruling R46).
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    told: Option<Told>,
}

/// The last draft that was told.
#[derive(Debug)]
struct Told {
    at: Duration,
    bytes: usize,
}

impl Drafts {
    /// Tells the draft if there is enough that is new. `bytes` is the length of the reply so far.
    pub(crate) fn settle(&mut self, draft: Node<'_>, bytes: usize, now: Duration, out: &mut Outbox) {
        let is_due = self.told.as_ref().is_none_or(|told| told.is_outgrown(bytes, now));
        if is_due && !draft.is_empty() {
            self.told = Some(Told { at: now, bytes });
            out.snapshot("data", draft.to_value());
        }
    }

    /// Whether a draft was told.
    pub(crate) fn has_told(&self) -> bool {
        self.told.is_some()
    }

    /// Tells the last draft of an answer that stays one.
    pub(crate) fn flush(&mut self, draft: Node<'_>, out: &mut Outbox) {
        if !draft.is_empty() {
            out.snapshot("data", draft.to_value());
        }
    }

    /// Tells the answer as it is in the end.
    pub(crate) fn conclude(self, data: &Value, out: &mut Outbox) {
        out.snapshot("data", data.clone());
    }
}

impl Told {
    fn is_outgrown(&self, bytes: usize, now: Duration) -> bool {
        now.saturating_sub(self.at) >= PAUSE && bytes >= self.bytes + self.bytes / 4
    }
}
