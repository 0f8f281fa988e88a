use std::time::Duration;

use cog_json::{Node, Value};

use crate::outbox::Outbox;

/// The minimum time between two drafts (ruling R46).
const PAUSE: Duration = Duration::from_millis(50);

/// Emits all of the data repeatedly: `chunk_type: snapshot` (ruling R46).
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    sent: Option<Sent>,
}

/// The last draft that was emitted.
#[derive(Debug)]
struct Sent {
    at: Duration,
    bytes: usize,
}

impl Drafts {
    /// Emits the draft if it has grown enough. `bytes` is the length of the reply so far.
    pub(crate) fn flush_due(&mut self, draft: Node<'_>, bytes: usize, now: Duration, out: &mut Outbox) {
        let is_due = self.sent.as_ref().is_none_or(|sent| sent.is_outgrown(bytes, now));
        if is_due && !draft.is_empty() {
            self.sent = Some(Sent { at: now, bytes });
            out.snapshot("data", draft.to_value());
        }
    }

    /// Whether a draft was emitted.
    pub(crate) fn has_emitted(&self) -> bool {
        self.sent.is_some()
    }

    /// Emits the last draft of an incomplete answer.
    pub(crate) fn flush(&mut self, draft: Node<'_>, out: &mut Outbox) {
        if !draft.is_empty() {
            out.snapshot("data", draft.to_value());
        }
    }

    /// Emits the final data.
    pub(crate) fn finish(self, data: &Value, out: &mut Outbox) {
        out.snapshot("data", data.clone());
    }
}

impl Sent {
    fn is_outgrown(&self, bytes: usize, now: Duration) -> bool {
        now.saturating_sub(self.at) >= PAUSE && bytes >= self.bytes + self.bytes / 4
    }
}
