//! The cache of answers: the same request to the same model is answered from disk (docs/cache.md).

mod lookup;

use std::{
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use cog_json::{ToJson as _, Value};
use cog_store::{Durability, Key, KeyedStore, Layout, Limits, Lookup, StoreError};
use serde::Deserialize as _;

use self::lookup::CachedReply;
pub(crate) use self::lookup::{CacheSink, Cached, lookup};
use crate::clock;

/// A cache of answers in a directory. Clones share it.
///
/// Only this user may read its files. Failures, runs with tools or media, and answers of tier exec are not stored, unless the
/// manifest of the module allows the last with `cache: allow`.
#[derive(Debug, Clone)]
pub struct AnswerCache {
    answers: Arc<KeyedStore>,
    max_age: Duration,
}

/// The size of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// The number of answers.
    pub answers: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// The age of the oldest one; none if there is none.
    pub oldest: Option<Duration>,
}

/// What a cache has for a key.
#[derive(Debug, PartialEq)]
pub(crate) enum Stored {
    /// A reply and its age.
    Reply(CachedReply, Duration),
    /// No reply, or one that has expired.
    Missing,
    /// A file that is not as it was stored. It is removed.
    Damaged,
    /// The directory cannot be used, for this reason.
    Unusable(String),
}

impl AnswerCache {
    /// The default maximum age of an answer: 24 hours.
    pub const DEFAULT_MAX_AGE: Duration = Duration::from_secs(24 * 3600);

    /// The default maximum size of a cache in bytes: 256 MiB.
    pub const DEFAULT_MAX_BYTES: u64 = 256 << 20;

    /// The maximum number of answers.
    const MAX_ANSWERS: usize = 10_000;

    /// The maximum size of an answer in bytes.
    const MAX_ANSWER_BYTES: u64 = 16 << 20;

    /// Creates a cache in a directory, which is created at the first use.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self::with_limits(directory, Self::DEFAULT_MAX_AGE, Self::DEFAULT_MAX_BYTES)
    }

    /// Creates a cache whose answers expire after `max_age`, and whose oldest answers are removed over `max_bytes`.
    pub fn with_limits(directory: impl Into<PathBuf>, max_age: Duration, max_bytes: u64) -> Self {
        let limits =
            Limits { entries: Self::MAX_ANSWERS, bytes: max_bytes, entry_bytes: Self::MAX_ANSWER_BYTES };
        // Without a sync: after a power cut, an answer that is not whole is found to be damaged, and the model is called again.
        let answers = KeyedStore::in_directory(directory, Layout::Flat, Durability::Kill, limits);
        Self { answers: Arc::new(answers), max_age }
    }

    /// Returns the size of the cache. One whose directory does not exist is empty.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn stats(&self) -> io::Result<CacheStats> {
        self.stats_at(clock::now())
    }

    fn stats_at(&self, now: SystemTime) -> io::Result<CacheStats> {
        let size = self.answers.size()?;
        Ok(CacheStats {
            answers: size.entries,
            bytes: size.bytes,
            oldest: size.oldest.map(|oldest| now.duration_since(oldest).unwrap_or_default()),
        })
    }

    /// Removes every answer. Returns how many there were.
    ///
    /// # Errors
    /// The directory cannot be read, or a file cannot be removed.
    pub fn clear(&self) -> io::Result<usize> {
        self.answers.clear()
    }

    /// Returns a stored reply and its age, unless it has expired or is damaged.
    pub(crate) fn read(&self, key: &str, now: SystemTime) -> Stored {
        let bytes = match self.answers.get(&Key::new(None, key)) {
            Ok(Lookup::Value(bytes)) => bytes,
            Ok(Lookup::Missing | Lookup::Claimed) => return Stored::Missing,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return self.discard(key, &error.to_string());
            }
            Err(error) => return Stored::Unusable(error.to_string()),
        };
        let reply =
            Value::parse_bytes(&bytes).ok().and_then(|value| CachedReply::deserialize(value.node()).ok());
        let Some(reply) = reply.filter(|reply| reply.is_intact(key)) else {
            return self.discard(key, "it is not as it was stored");
        };
        // A reply from the future was stored before the clock was set back: its age is unknown.
        match clock::millis(now).checked_sub(reply.stored_ms).map(Duration::from_millis) {
            Some(age) if age <= self.max_age => Stored::Reply(reply, age),
            _ => {
                self.answers.remove(&Key::new(None, key));
                Stored::Missing
            }
        }
    }

    fn discard(&self, key: &str, reason: &str) -> Stored {
        tracing::warn!(key, reason, "a stored answer is damaged");
        self.answers.remove(&Key::new(None, key));
        Stored::Damaged
    }

    /// Stores a reply.
    ///
    /// # Errors
    /// It is too large, or it cannot be written.
    pub(crate) fn write(&self, key: &str, reply: &CachedReply) -> Result<(), StoreError> {
        self.answers.insert(&Key::new(None, key), reply.to_json().as_bytes(), None, clock::now())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests damage files")]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn reply(at: u64) -> CachedReply {
        CachedReply::new(KEY, at * 1_000, Some("m".to_owned()), vec!["a".to_owned(), "é".to_owned()])
    }

    fn time(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn replies_expire() {
        let directory = tempfile::tempdir().unwrap();
        let cache = AnswerCache::with_limits(directory.path(), Duration::from_secs(10), 1_000);
        assert_eq!(cache.read(KEY, time(0)), Stored::Missing);
        cache.write(KEY, &reply(5)).unwrap();
        assert_eq!(cache.read(KEY, time(15)), Stored::Reply(reply(5), Duration::from_secs(10)));
        assert_eq!(cache.read(KEY, time(16)), Stored::Missing);
        assert_eq!(cache.read(KEY, time(15)), Stored::Missing, "an expired reply was removed");
        cache.write(KEY, &reply(5)).unwrap();
        assert_eq!(cache.read(KEY, time(4)), Stored::Missing, "a reply from the future has no age");
    }

    #[test]
    fn size_is_counted_and_cleared() {
        let directory = tempfile::tempdir().unwrap();
        let cache = AnswerCache::in_directory(directory.path().join("cache"));
        assert_eq!(cache.stats_at(time(0)).unwrap().answers, 0);
        cache.write(KEY, &reply(5)).unwrap();
        let stats = cache.stats_at(time(0)).unwrap();
        assert_eq!((stats.answers, stats.bytes), (1, reply(5).to_json().len() as u64));
        assert_eq!(cache.clear().unwrap(), 1);
        assert_eq!(cache.stats_at(time(0)).unwrap().oldest, None);
    }

    #[test]
    fn file_is_no_cache() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "text").unwrap();
        let cache = AnswerCache::in_directory(&path);
        assert!(cache.stats().is_err() && cache.clear().is_err());
        assert!(cache.write(KEY, &reply(5)).is_err());
    }

    #[test]
    fn damaged_reply_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let cache = AnswerCache::in_directory(directory.path());
        let path = directory.path().join(format!("{KEY}.json"));
        let stored = reply(1).to_json();
        let truncated = (0..stored.len()).filter_map(|end| Some(stored.get(..end)?.as_bytes().to_vec()));
        let edited =
            ["[]", "null", r#"{"stored_ms": 1}"#, r#"{"texts": [7]}"#].map(|text| text.as_bytes().to_vec());
        let changed = [("\"a\"", "\"b\""), ("1000", "1001"), ("\"m\"", "null")]
            .map(|(old, new)| stored.replacen(old, new, 1).into_bytes());
        let renamed = CachedReply::new("another key", 1_000, None, Vec::new()).to_json().into_bytes();
        for bytes in truncated.chain(edited).chain(changed).chain([renamed, vec![0xff, 0xfe, 0]]) {
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(cache.read(KEY, time(2)), Stored::Damaged, "{}", String::from_utf8_lossy(&bytes));
            assert!(!path.exists());
        }
        std::fs::write(&path, &stored).unwrap();
        assert_eq!(cache.read(KEY, time(2)), Stored::Reply(reply(1), Duration::from_secs(1)));
    }
}
