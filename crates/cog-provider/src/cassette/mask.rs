//! Masks the API key where a server repeats it.

use cog_spec::Secret;

/// The minimum length of a key that is masked. Shorter keys are placeholders such as `none`, for servers that need no
/// key.
const MIN_LENGTH: usize = 8;

/// Replaces each byte of a key with `*`, also where the key spans several chunks.
pub(super) struct Mask {
    key: Vec<u8>,
    /// The last bytes received, which may be the beginning of the key.
    retained: Vec<u8>,
}

impl Mask {
    pub(super) fn new(key: Option<&Secret>) -> Self {
        let key = key.map(Secret::expose).filter(|key| key.len() >= MIN_LENGTH).unwrap_or_default();
        Self { key: key.as_bytes().to_vec(), retained: Vec::new() }
    }

    /// Adds a chunk and returns the bytes that can be stored now.
    pub(super) fn mask(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut bytes = self.take_rest();
        bytes.extend_from_slice(chunk);
        if self.key.is_empty() {
            return bytes;
        }
        let mut from = 0;
        while let Some(found) = bytes.get(from..).and_then(|rest| find(rest, &self.key)) {
            let end = from + found + self.key.len();
            if let Some(found_key) = bytes.get_mut(from + found..end) {
                found_key.fill(b'*');
            }
            from = end;
        }
        let partial = (1..self.key.len())
            .rev()
            .find(|length| bytes.ends_with(self.key.get(..*length).unwrap_or_default()));
        self.retained = bytes.split_off(bytes.len() - partial.unwrap_or(0));
        bytes
    }

    /// Returns the bytes that were retained.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.retained)
    }

    /// Masks a complete text.
    pub(super) fn text(mut self, text: &str) -> String {
        let mut bytes = self.mask(text.as_bytes());
        bytes.append(&mut self.retained);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn find(bytes: &[u8], key: &[u8]) -> Option<usize> {
    bytes.windows(key.len()).position(|window| window == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"a": "sk-sk-canary", "b": "sk-can", "c": "sk-canary"}"#;

    #[test]
    fn masks_key_however_the_text_is_split() {
        let key = Secret::new("sk-canary");
        for at in 0..=TEXT.len() {
            let (first, second) = TEXT.as_bytes().split_at(at);
            let mut mask = Mask::new(Some(&key));
            let masked = [mask.mask(first), mask.mask(second), mask.take_rest()].concat();
            assert_eq!(String::from_utf8(masked).unwrap(), TEXT.replace("sk-canary", "*********"), "{at}");
        }
        assert_eq!(Mask::new(Some(&key)).text("?key=sk-canary sk-"), "?key=********* sk-");
    }

    #[test]
    fn short_key_is_not_masked() {
        for key in [None, Some(Secret::new("none"))] {
            assert_eq!(Mask::new(key.as_ref()).text("none of these"), "none of these");
        }
    }
}
