/// The maximum size of a state in bytes.
pub(super) const MAX_BYTES: usize = 64 << 20;
/// The maximum number of stored states; the oldest ones are removed.
pub(super) const MAX_STATES: usize = 1_000;

/// A stored state.
pub(super) enum Stored {
    Text(String),
    /// The run has continued already.
    Used,
    Unknown,
}

/// Returns whether a text is an id of the store, so that it names no other file.
pub(super) fn is_id(id: &str) -> bool {
    let digits = id.strip_prefix("halt_").filter(|digits| digits.len() == 32);
    digits.is_some_and(|digits| digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
}
