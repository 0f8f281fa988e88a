use cog_spec::Checkpoint;
use sha2::{Digest, Sha256};

/// A string is checkpointed each time this many bytes of it are told (ruling R52).
const EVERY: u64 = 4096;

/// What was told of one string, so that a reader can say how much of it arrived.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    hash: Sha256,
    bytes: u64,
    /// Bytes at the last checkpoint.
    marked: u64,
}

impl Tally {
    /// A delta leaves: its checkpoint, where it is the last of its string or the first past another 4,096 bytes.
    pub(super) fn tell(&mut self, delta: &str, is_last: bool) -> Option<Checkpoint> {
        self.hash.update(delta);
        self.bytes += delta.len() as u64;
        if !is_last && self.bytes / EVERY == self.marked / EVERY {
            return None;
        }
        self.marked = self.bytes;
        let digest = self.hash.clone().finalize();
        let hash = digest.iter().take(3).map(|byte| format!("{byte:02x}")).collect();
        Some(Checkpoint { offset: self.bytes, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_delta_has_the_hash_of_the_whole() {
        let mut tally = Tally::default();
        assert_eq!(tally.tell("ab", false), None);
        // The SHA-256 of `abc` starts with ba7816bf.
        assert_eq!(tally.tell("c", true), Some(Checkpoint { offset: 3, hash: "ba7816".to_owned() }));
    }

    #[test]
    fn a_long_string_has_one_after_every_4096_bytes() {
        let mut tally = Tally::default();
        let piece = "x".repeat(1000);
        let marks = (0..10).filter_map(|_| tally.tell(&piece, false)).map(|mark| mark.offset);
        assert_eq!(marks.collect::<Vec<_>>(), [5000, 9000]);
    }
}
