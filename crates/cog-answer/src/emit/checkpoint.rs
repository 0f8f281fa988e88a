use cog_spec::Checkpoint;
use sha2::{Digest, Sha256};

/// A string has a checkpoint after each of these many bytes (ruling R52).
const EVERY: u64 = 4096;

/// Hashes the emitted text of one string, so that a client can report how much of it arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct CheckpointHasher {
    hash: Sha256,
    bytes: u64,
    /// Bytes at the last checkpoint.
    marked: u64,
}

impl CheckpointHasher {
    /// Adds a delta. Returns its checkpoint if it is the last of its string or the first after another 4,096 bytes.
    pub(super) fn add(&mut self, delta: &str, is_last: bool) -> Option<Checkpoint> {
        self.push(delta);
        if !is_last && self.bytes / EVERY == self.marked / EVERY {
            return None;
        }
        self.marked = self.bytes;
        Some(self.checkpoint())
    }

    /// Adds a part of the text.
    pub(crate) fn push(&mut self, text: &str) {
        self.hash.update(text);
        self.bytes += text.len() as u64;
    }

    /// Returns the checkpoint of the text so far.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        let digest = self.hash.clone().finalize();
        let hash = digest.iter().take(3).map(|byte| format!("{byte:02x}")).collect();
        Checkpoint { offset: self.bytes, hash }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_delta_has_hash_of_complete_string() {
        let mut hasher = CheckpointHasher::default();
        assert_eq!(hasher.add("ab", false), None);
        // The SHA-256 of `abc` starts with ba7816bf.
        assert_eq!(hasher.add("c", true), Some(Checkpoint { offset: 3, hash: "ba7816".to_owned() }));
    }

    #[test]
    fn long_string_has_checkpoint_after_every_4096_bytes() {
        let mut hasher = CheckpointHasher::default();
        let part = "x".repeat(1000);
        let marks = (0..10).filter_map(|_| hasher.add(&part, false)).map(|mark| mark.offset);
        assert_eq!(marks.collect::<Vec<_>>(), [5000, 9000]);
    }
}
