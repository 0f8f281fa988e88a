//! Without the feature `tokenizers`, each byte counts as a token: no tokenizer has tokens of less than one byte.

use super::Bound;

pub(crate) fn name(_: Option<&'static str>, _: Bound) -> &'static str {
    "bytes"
}

pub(crate) fn is_exact(_: Option<&'static str>) -> bool {
    false
}

/// Returns the bytes of text, or nothing for a count that must not be too high.
pub(crate) fn count(_: Option<&'static str>, text: &str, bound: Bound) -> u64 {
    if bound == Bound::Upper { text.len() as u64 } else { 0 }
}
