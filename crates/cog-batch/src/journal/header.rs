//! The header of a journal: magic, version, length, description, checksum.

use super::{Description, JournalError, JournalPaths};

/// The first bytes of a journal.
const MAGIC: &[u8; 8] = b"cogbatch";
/// The first bytes of a journal whose output is complete. Its files can be removed.
pub(crate) const DONE: &[u8; 8] = b"cog-done";
/// The version of the format.
pub(crate) const VERSION: u32 = 1;
/// The length before the description.
const FIXED_LEN: usize = MAGIC.len() + 8;
/// The maximum length of a header.
pub(crate) const MAX_LEN: usize = 1 << 20;

/// The header of a journal.
#[derive(Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) description: Description,
    /// The position of the first record.
    pub(crate) length: usize,
}

/// The start of a file.
#[derive(Debug)]
pub(crate) enum Found {
    Header(Header),
    /// The header was not written completely.
    Cut,
    /// The output is complete.
    Done,
}

/// Returns the bytes of the header.
///
/// # Errors
/// The description is too long.
pub(crate) fn encode(description: &Description) -> std::io::Result<Vec<u8>> {
    let text = description.to_json();
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
    match bytes.len() > MAX_LEN {
        true => Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "the description of the batch is too long",
        )),
        false => Ok(bytes),
    }
}

/// Reads the header from the first [`MAX_LEN`] bytes of a file.
pub(crate) fn decode(bytes: &[u8], paths: &JournalPaths) -> Result<Found, JournalError> {
    let path = || paths.journal.clone();
    if bytes.starts_with(DONE) {
        return Ok(Found::Done);
    }
    if !bytes.iter().zip(MAGIC).all(|(found, expected)| found == expected) {
        return Err(JournalError::NotAJournal { path: path() });
    }
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_LEN>() else { return Ok(Found::Cut) };
    let [_, _, _, _, _, _, _, _, v0, v1, v2, v3, l0, l1, l2, l3] = *fixed;
    let version = u32::from_le_bytes([v0, v1, v2, v3]);
    if version != VERSION {
        return Err(JournalError::OtherVersion { path: path(), found: version, supported: VERSION });
    }
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    if length > MAX_LEN - FIXED_LEN - 4 {
        return Err(JournalError::DamagedHeader { path: path() });
    }
    let Some((text, rest)) = rest.split_at_checked(length) else { return Ok(Found::Cut) };
    let Some(crc) = rest.first_chunk::<4>() else { return Ok(Found::Cut) };
    let checked = bytes.get(..FIXED_LEN + length).unwrap_or_default();
    let description = Description::from_json(text)
        .filter(|_| crc32fast::hash(checked).to_le_bytes() == *crc)
        .ok_or_else(|| JournalError::DamagedHeader { path: path() })?;
    Ok(Found::Header(Header { description, length: FIXED_LEN + length + 4 }))
}
