//! Digests of modules and inputs.

use sha2::{Digest as _, Sha256};

/// The first 128 bits of a SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Digest([u8; 16]);

impl Digest {
    /// Returns the digest of parts, each with its length.
    pub(crate) fn from_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut digest = [0; 16];
        digest.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
        Self(digest)
    }
}

/// Returns a digest of the files of a module, for the description of a batch.
#[must_use]
pub fn digest_of_files(files: &[(String, Vec<u8>)]) -> String {
    let mut files: Vec<_> = files.iter().collect();
    files.sort();
    let parts = files.iter().flat_map(|(name, content)| [name.as_bytes(), content.as_slice()]);
    Digest::from_parts(parts).0.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_depends_on_names_and_contents_only() {
        let file = |name: &str, content: &str| (name.to_owned(), content.as_bytes().to_vec());
        let digest = digest_of_files(&[file("a", "1"), file("b", "2")]);
        assert_eq!(digest, digest_of_files(&[file("b", "2"), file("a", "1")]));
        assert_eq!(digest.len(), 32);
        for others in [[file("a", "1"), file("b", "3")], [file("a", "1b"), file("", "2")]] {
            assert_ne!(digest, digest_of_files(&others));
        }
    }
}
