//! The text around the document in a reply: reasoning, prose and a code fence.

use crate::parser::opening::is_space;
use crate::parser::seek::Seeker;
use crate::parser::tolerance::{Ledger, Tolerance};

/// The possible start of the document in a reply that otherwise only contains a fence.
#[derive(Clone, Copy)]
pub(super) struct Bodies {
    /// With everything that looks like a draft, which may be in the strings of an array.
    origin: usize,
    /// After reasoning in tags.
    pub(super) body: usize,
    /// After the last closing tag, if that ends reasoning too.
    pub(super) tail: usize,
}

impl Bodies {
    pub(super) fn new(text: &str, seeker: &Seeker) -> Self {
        let at = |from| body(text, from);
        Self { origin: at(seeker.origin()), body: at(seeker.body()), tail: at(seeker.tail()) }
    }

    pub(super) fn each(self) -> impl Iterator<Item = usize> {
        let body = (self.body != self.origin).then_some(self.body);
        let tail = (self.tail != self.body).then_some(self.tail);
        std::iter::once(self.origin).chain(body).chain(tail)
    }
}

pub(super) const FENCE: &str = "```";

/// Returns where the document starts if the text contains nothing else but a fence.
fn body(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default().trim_start_matches(is_space);
    let inner = match rest.strip_prefix(FENCE).and_then(|rest| rest.split_once('\n')) {
        Some((word, inner)) if is_info(word) => inner.trim_start_matches(is_space),
        _ => rest,
    };
    text.len() - inner.len()
}

/// Whether this may follow the opening fence on its line.
fn is_info(word: &str) -> bool {
    word.trim().bytes().all(|byte| byte.is_ascii_alphanumeric())
}

pub(super) fn note_before(ledger: &mut Ledger, text: &str) {
    let text = text.trim_matches(is_space);
    let (prose, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let fence = last.trim().strip_prefix(FENCE).is_some_and(is_info);
    ledger.note_around(Tolerance::SurroundingText, if fence { prose.trim().len() } else { text.len() });
    ledger.note_around(Tolerance::CodeFence, if fence { last.trim().len() } else { 0 });
}

pub(super) fn note_after(ledger: &mut Ledger, text: &str) {
    let text = text.trim_matches(is_space);
    let prose = text.strip_prefix(FENCE).unwrap_or(text).trim();
    ledger.note_around(Tolerance::CodeFence, if text.starts_with(FENCE) { FENCE.len() } else { 0 });
    ledger.note_around(Tolerance::SurroundingText, prose.len());
}
