use std::io::Read;

use cog_json::Node;
use md5::{Digest, Md5};
use sha2::Sha256;

use crate::{MediaError, Stored};

/// The expected checksum of a media file (docs/spec/media.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    algorithm: Algorithm,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Sha256,
    Md5,
    Crc32,
}

impl Checksum {
    /// Returns a checksum of the algorithm `sha256`, `md5` or `crc32`, given as hexadecimal digits.
    ///
    /// # Errors
    /// [`MediaError::InvalidSource`] for an unknown algorithm or the wrong number of digits.
    pub fn new(algorithm: &str, value: &str) -> Result<Self, MediaError> {
        let (algorithm, digits) = match algorithm {
            "sha256" => (Algorithm::Sha256, 64),
            "md5" => (Algorithm::Md5, 32),
            "crc32" => (Algorithm::Crc32, 8),
            _ => return Err(invalid("`checksum.algorithm` must be sha256, md5 or crc32")),
        };
        if value.len() != digits || !value.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(invalid(
                "`checksum.value` must be hexadecimal: 64 digits for sha256, 32 for md5, 8 for crc32",
            ));
        }
        Ok(Self { algorithm, value: value.to_ascii_lowercase() })
    }

    /// Reads `{algorithm, value}`.
    ///
    /// # Errors
    /// As [`Checksum::new`], and if a member is missing.
    pub fn read(node: Node<'_>) -> Result<Self, MediaError> {
        let algorithm = node.get_str("algorithm");
        let value = node.get_str("value");
        match algorithm.zip(value) {
            Some((algorithm, value)) => Self::new(algorithm, value),
            None => Err(invalid("`checksum` requires `algorithm` and `value`")),
        }
    }

    /// Returns the name of its algorithm.
    pub fn algorithm(&self) -> &'static str {
        match self.algorithm {
            Algorithm::Sha256 => "sha256",
            Algorithm::Md5 => "md5",
            Algorithm::Crc32 => "crc32",
        }
    }

    /// Verifies bytes. The SHA-256 of received bytes is already known; the other algorithms read the bytes once.
    ///
    /// # Errors
    /// [`MediaError::Checksum`] if they differ; an error if the disk cannot be read.
    pub fn verify(&self, stored: &Stored) -> Result<(), MediaError> {
        let found = match self.algorithm {
            Algorithm::Sha256 => sha256_of(stored)?,
            Algorithm::Md5 => hash_of::<Md5>(stored.reader())?,
            Algorithm::Crc32 => crc32_of(stored.reader())?,
        };
        if found == self.value { Ok(()) } else { Err(MediaError::Checksum { algorithm: self.algorithm() }) }
    }
}

/// Returns the SHA-256 in hexadecimal digits. Reads the content if it was not hashed as it arrived.
pub(crate) fn sha256_of(stored: &Stored) -> Result<String, MediaError> {
    match stored.sha256() {
        Some(known) => Ok(hex(known)),
        None => hash_of::<Sha256>(stored.reader()),
    }
}

/// Returns bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_of<H: Digest>(reader: impl Read) -> Result<String, MediaError> {
    let mut hash = H::new();
    each_block(reader, |block| hash.update(block))?;
    Ok(hex(&hash.finalize()))
}

fn crc32_of(reader: impl Read) -> Result<String, MediaError> {
    let mut hash = crc32fast::Hasher::new();
    each_block(reader, |block| hash.update(block))?;
    Ok(hex(&hash.finalize().to_be_bytes()))
}

fn each_block(mut reader: impl Read, mut take: impl FnMut(&[u8])) -> Result<(), MediaError> {
    let mut block = vec![0; 64 * 1024];
    loop {
        let read = reader.read(&mut block)?;
        match block.get(..read) {
            Some(read) if !read.is_empty() => take(read),
            _ => return Ok(()),
        }
    }
}

fn invalid(what: &'static str) -> MediaError {
    MediaError::InvalidSource { what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[test]
    fn verifies_each_algorithm() {
        let mut store = Store::with_limit(100);
        store.push(b"123456789").unwrap();
        let stored = store.finish();
        for (algorithm, value) in [
            ("sha256", "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"),
            ("md5", "25F9E794323B453885F5181F1B624D0B"),
            ("crc32", "cbf43926"),
        ] {
            let checksum = Checksum::new(algorithm, value).unwrap();
            assert!(checksum.verify(&stored).is_ok(), "{algorithm}");
            let other = Checksum::new(algorithm, &value.replace('2', "3")).unwrap();
            assert!(matches!(other.verify(&stored), Err(MediaError::Checksum { .. })), "{algorithm}");
        }
    }
}
