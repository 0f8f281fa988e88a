//! What a batch is: the header of its journal, compared when it continues.

use std::{
    fmt,
    fs::File,
    io::{self, Seek as _, SeekFrom, Write as _},
};

use cog_json::{Value, Writer};
use cog_store::{Access, Durability, replace};

use super::{JournalError, JournalPaths, RECORD_LEN, Record, open::LockedFile};

/// The description of a batch: named values, such as the module and its digest, the model and the input.
///
/// A batch continues only if each of them is the same. It must not contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    fields: Vec<(String, String)>,
}

/// A value of a description that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The name of the value.
    pub name: String,
    /// The value in the journal; none if it has no value of this name.
    pub before: Option<String>,
    /// The value of this batch; none if it has no value of this name.
    pub now: Option<String>,
}

impl Description {
    /// Adds a value.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Returns a value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns what differs in a later batch, in the order of the names.
    #[must_use]
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        let added = now.fields.iter().filter(|(name, _)| self.get(name).is_none());
        let names = self.fields.iter().chain(added).map(|(name, _)| name);
        let pairs = names.map(|name| Difference {
            name: name.clone(),
            before: self.get(name).map(str::to_owned),
            now: now.get(name).map(str::to_owned),
        });
        pairs.filter(|pair| pair.before != pair.now).collect()
    }

    /// Writes the description as a JSON object.
    pub(crate) fn to_json(&self) -> String {
        let mut text = String::new();
        Writer::compact(&mut text).object(|w| {
            for (name, value) in &self.fields {
                w.field(name, value);
            }
        });
        text
    }

    /// Reads a JSON object of strings.
    pub(crate) fn from_json(text: &[u8]) -> Option<Self> {
        let value = Value::parse_bytes(text).ok().filter(Value::is_object)?;
        let fields = value.members().map(|(name, value)| Some((name.to_owned(), value.as_str()?.to_owned())));
        Some(Self { fields: fields.collect::<Option<_>>()? })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, now] = [&self.before, &self.now]
            .map(|value| value.as_ref().map_or("none".to_owned(), |value| format!("`{value}`")));
        write!(f, "{}: {before} in the journal, {now} now", self.name)
    }
}

// The header of a journal: magic, version, length, description, checksum.

/// The first bytes of a journal.
const MAGIC: &[u8; 8] = b"cogbatch";
/// The first bytes of a journal whose output is complete. Its files can be removed.
pub(crate) const DONE: &[u8; 8] = b"cog-done";
/// The last bytes of a journal that is kept although its output is complete. They are shorter than a record, and so are skipped as
/// one that is cut.
pub(crate) const COMPLETE: &[u8; 8] = b"cog-full";
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
pub(crate) enum HeaderState {
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
pub(crate) fn decode(bytes: &[u8], paths: &JournalPaths) -> Result<HeaderState, JournalError> {
    if bytes.starts_with(DONE) {
        return Ok(HeaderState::Done);
    }
    if !bytes.iter().zip(MAGIC).all(|(found, expected)| found == expected) {
        return Err(JournalError::NotAJournal { path: paths.journal.clone() });
    }
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_LEN>() else { return Ok(HeaderState::Cut) };
    let [_, _, _, _, _, _, _, _, v0, v1, v2, v3, l0, l1, l2, l3] = *fixed;
    let version = u32::from_le_bytes([v0, v1, v2, v3]);
    if version != VERSION {
        return Err(JournalError::OtherVersion {
            path: paths.journal.clone(),
            found: version,
            supported: VERSION,
        });
    }
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    if length > MAX_LEN - FIXED_LEN - 4 {
        return Err(JournalError::DamagedHeader { path: paths.journal.clone() });
    }
    let Some((text, rest)) = rest.split_at_checked(length) else { return Ok(HeaderState::Cut) };
    let Some(crc) = rest.first_chunk::<4>() else { return Ok(HeaderState::Cut) };
    let checked = bytes.get(..FIXED_LEN + length).unwrap_or_default();
    let description = Description::from_json(text)
        .filter(|_| crc32fast::hash(checked).to_le_bytes() == *crc)
        .ok_or_else(|| JournalError::DamagedHeader { path: paths.journal.clone() })?;
    Ok(HeaderState::Header(Header { description, length: FIXED_LEN + length + 4 }))
}

/// Returns the header of a journal whose description is damaged: none, up to the first record that is intact.
pub(super) fn salvage(bytes: &[u8]) -> Option<Header> {
    let mut records = bytes.windows(RECORD_LEN).enumerate().skip(FIXED_LEN);
    let (length, _) = records.find(|(_, bytes)| {
        bytes.first_chunk::<RECORD_LEN>().is_some_and(|bytes| Record::decode(bytes).is_some())
    })?;
    Some(Header { description: Description::default(), length })
}

// Giving a journal the description of the batch that continues it (`--allow-changes`).

/// Writes the journal with another description under a temporary name, then renames it, so that it is always complete. Returns the
/// journal, locked, and the position of its first record.
pub(super) fn redescribe(
    journal: LockedFile,
    records: u64,
    paths: &JournalPaths,
    description: &Description,
) -> Result<(LockedFile, u64), JournalError> {
    let header = encode(description).map_err(|error| JournalError::write(&paths.journal, error))?;
    let mut journal = Some(journal);
    let replaced = replace(&paths.journal, Access::Shared, Durability::PowerCut, |copy| {
        copy.try_lock()?;
        copy.write_all(&header)?;
        if let Some(journal) = &journal {
            let mut from: &File = journal;
            from.seek(SeekFrom::Start(records))?;
            io::copy(&mut from, copy)?;
        }
        // Where an open file cannot be replaced, its lock has to go before the rename. Elsewhere it goes after it, so that the
        // journal is locked at every moment.
        journal = journal.take().filter(|_| cfg!(unix));
        Ok::<_, io::Error>(())
    });
    let file = LockedFile::new(replaced.map_err(|error| JournalError::write(&paths.journal, error))?);
    drop(journal);
    Ok((file, header.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_each_difference_with_both_values() {
        let before = Description::default().with("module", "summarize").with("model", "a").with("seed", "1");
        let now = Description::default().with("module", "summarize").with("model", "b").with("input", "x");
        let lines: Vec<_> = before.differences(&now).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "model: `a` in the journal, `b` now",
                "seed: `1` in the journal, none now",
                "input: none in the journal, `x` now"
            ]
        );
        assert_eq!(before.differences(&before), []);
    }

    #[test]
    fn survives_its_way_through_json() {
        let description = Description::default().with("path", "a\"\\\nü").with("", "");
        assert_eq!(Description::from_json(description.to_json().as_bytes()), Some(description));
        for text in ["[]", r#"{"a": 1}"#, "", "{"] {
            assert_eq!(Description::from_json(text.as_bytes()), None, "{text}");
        }
    }
}
