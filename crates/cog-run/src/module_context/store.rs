//! The store of emitted context: in memory, or in a directory.

use std::{
    path::PathBuf,
    sync::{Arc, Once, OnceLock},
    time::{Duration, SystemTime},
};

use cog_json::{ToJson as _, Value};
use cog_spec::{ContextTtl, EmittedContext};
use cog_store::{Durability, KeyedStore, Layout, Limits, Lookup, StoreError};
use serde::Deserialize as _;
use sha2::{Digest as _, Sha256};

use super::{AUDIT, ContextLimits, Entry, EntryId, input_context};

/// The maximum number and bytes of all entries, and the maximum bytes of one, with its names.
const LIMITS: Limits = Limits { entries: 1_000, bytes: 64 << 20, entry_bytes: 2 << 20 };

/// The store of the context that modules emit (docs/context.md). Clones share it.
///
/// A module reads only what it declares with `from_module`, and only what runs of the same owner have stored.
#[derive(Debug, Clone)]
pub struct ContextStore {
    shared: Arc<Shared>,
    /// The limits of each owner ([`RunOptions::owner`](crate::RunOptions::owner)). By default there are only limits for all
    /// owners: 1,000 values and 64 MiB. Beyond them, the owner who has the most loses the oldest value.
    pub owner_limits: Option<ContextLimits>,
}

#[derive(Debug)]
struct Shared {
    entries: KeyedStore,
    /// Whether expired entries of earlier programs were removed.
    swept: Once,
}

/// A store in memory, which ends with this process.
impl Default for ContextStore {
    fn default() -> Self {
        Self::new(KeyedStore::in_memory(LIMITS))
    }
}

impl ContextStore {
    /// Creates a store in a directory, which is created at the first use. Only this user may read its files.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self::new(KeyedStore::in_directory(directory, Layout::Flat, Durability::Kill, LIMITS))
    }

    fn new(entries: KeyedStore) -> Self {
        Self { shared: Arc::new(Shared { entries, swept: Once::new() }), owner_limits: None }
    }

    /// Stores a context that a module emits, without secrets, unless it is for this request only.
    ///
    /// # Errors
    /// It is too large, its owner has reached a limit, or it cannot be written.
    pub(super) fn write(
        &self,
        module: &str,
        emitted: &EmittedContext,
        keys: &RunKeys,
        value: &Value,
        now: SystemTime,
    ) -> Result<(), StoreError> {
        if emitted.ttl == ContextTtl::Request {
            return Ok(());
        }
        let value = input_context::clean(value.node());
        let id = id_of(module, emitted, keys);
        let Some(entry) = Entry::new(id, emitted.ttl, value, now) else { return Ok(()) };
        let text = entry.to_json();
        let written = self.insert(&entry.id, &text, now);
        let name = &emitted.name;
        let owner = &keys.owner;
        let bytes = text.len();
        match &written {
            Ok(()) => tracing::info!(target: AUDIT, module, name, owner, bytes, "context stored"),
            Err(error) => {
                tracing::warn!(target: AUDIT, module, name, owner, bytes, %error, "context not stored");
            }
        }
        written
    }

    fn insert(&self, id: &EntryId, text: &str, now: SystemTime) -> Result<(), StoreError> {
        let Shared { entries, swept } = &*self.shared;
        let is_fresh = |bytes: &[u8]| parse(bytes).is_some_and(|entry| entry.is_fresh(None, now));
        swept.call_once(|| entries.sweep(None, is_fresh));
        let limits = self.owner_limits.map(ContextLimits::of_owner);
        match entries.insert(&id.key(), text.as_bytes(), limits, now) {
            // Expired entries count until they are removed, which reads all files of the owner.
            Err(StoreError::OwnerEntries { .. } | StoreError::OwnerBytes { .. }) => {
                entries.sweep(Some(&id.owner), is_fresh);
                entries.insert(&id.key(), text.as_bytes(), limits, now)
            }
            inserted => inserted,
        }
    }

    /// Returns the context that a module has emitted, if it is not older than `max_age`. An expired one is removed.
    pub(super) fn read(
        &self,
        module: &str,
        emitted: &EmittedContext,
        keys: &RunKeys,
        max_age: Option<Duration>,
        now: SystemTime,
    ) -> Option<Value> {
        let id = id_of(module, emitted, keys);
        let entries = &self.shared.entries;
        let bytes = match entries.get(&id.key()) {
            Ok(Lookup::Value(bytes)) => bytes,
            Ok(Lookup::Claimed | Lookup::Missing) => return None,
            Err(error) => {
                tracing::warn!(%error, "a stored context cannot be read");
                return None;
            }
        };
        // Only an edited file can be of another id.
        let entry = parse(&bytes).filter(|entry| entry.id == id)?;
        if !entry.is_fresh(None, now) {
            entries.remove(&id.key());
            return None;
        }
        entry.is_fresh(max_age, now).then_some(entry.value)
    }
}

fn id_of(module: &str, emitted: &EmittedContext, keys: &RunKeys) -> EntryId {
    EntryId {
        owner: keys.owner.clone(),
        module: module.to_owned(),
        name: emitted.name.clone(),
        key: keys.key(module, emitted),
    }
}

fn parse(bytes: &[u8]) -> Option<Entry> {
    let value = Value::parse_bytes(bytes).ok()?;
    Entry::deserialize(value.node()).ok()
}

// The keys of stored context (docs/spec/context.md, `key_pattern`).

/// The owner of runs that have none, such as runs of the command line.
const LOCAL: &str = "local";

/// The values of the placeholders of key patterns in one run.
#[derive(Debug, Clone)]
pub(crate) struct RunKeys {
    /// The owner of the stored context.
    pub(super) owner: String,
    session_id: String,
    input: Value,
    /// The hash of the input, computed when a key needs it.
    input_hash: OnceLock<String>,
}

impl RunKeys {
    /// Returns the values for a run with this input, which does not contain `_context`.
    pub(crate) fn new(owner: Option<&str>, session_id: &str, input: Value) -> Self {
        Self {
            owner: owner.unwrap_or(LOCAL).to_owned(),
            session_id: session_id.to_owned(),
            input,
            input_hash: OnceLock::new(),
        }
    }

    /// Returns the owner of the stored context.
    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns the value of a placeholder.
    fn value_of<'a>(&'a self, placeholder: &str, module: &'a str) -> &'a str {
        match placeholder {
            "${module}" => module,
            "${user_id}" => &self.owner,
            "${session_id}" => &self.session_id,
            _ => self.input_hash.get_or_init(|| hex(&self.input.node().to_sorted_json())),
        }
    }

    /// Returns the key of a context that a module emits.
    pub(super) fn key(&self, module: &str, emitted: &EmittedContext) -> String {
        let mut key = String::new();
        let mut rest = emitted.key_pattern.as_str();
        while let Some((before, from)) = rest.find("${").and_then(|at| rest.split_at_checked(at)) {
            key.push_str(before);
            let mut known = EmittedContext::PLACEHOLDERS.iter();
            let found = known.find_map(|name| Some((name, from.strip_prefix(name)?)));
            rest = match found {
                Some((name, after)) => {
                    key.push_str(self.value_of(name, module));
                    after
                }
                None => {
                    key.push_str("${");
                    from.get(2..).unwrap_or_default()
                }
            };
        }
        key.push_str(rest);
        key
    }
}

/// Returns the SHA-256 of a string in hexadecimal.
pub(super) fn hex(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const START: SystemTime = SystemTime::UNIX_EPOCH;

    fn emitted(ttl: ContextTtl) -> EmittedContext {
        EmittedContext {
            name: "user_profile".to_owned(),
            ttl,
            key_pattern: "${module}".to_owned(),
            schema: None,
        }
    }

    fn keys(owner: &str) -> RunKeys {
        RunKeys::new(Some(owner), "sess_1", Value::null())
    }

    fn value(text: &str) -> Value {
        Value::parse(text).unwrap()
    }

    fn after(seconds: u64) -> SystemTime {
        START + Duration::from_secs(seconds)
    }

    fn stores(directory: &Path) -> [ContextStore; 2] {
        [ContextStore::default(), ContextStore::in_directory(directory.join("context"))]
    }

    #[test]
    fn context_expires() {
        let directory = tempfile::tempdir().unwrap();
        for store in stores(directory.path()) {
            let profile = emitted(ContextTtl::Seconds(10));
            store.write("m", &profile, &keys("a"), &value("1"), START).unwrap();
            let read = |max_age: Option<u64>, seconds| {
                store.read("m", &profile, &keys("a"), max_age.map(Duration::from_secs), after(seconds))
            };
            assert_eq!(read(None, 9), Some(value("1")));
            assert_eq!(read(Some(5), 6), None, "too old for this reader");
            assert_eq!(read(Some(5), 5), Some(value("1")));
            assert_eq!(read(None, 10), None);
            assert_eq!(read(None, 9), None, "an expired entry was removed");
        }
    }

    #[test]
    fn context_of_a_request_is_not_stored_and_unlimited_context_stays() {
        let directory = tempfile::tempdir().unwrap();
        for store in stores(directory.path()) {
            let request = emitted(ContextTtl::Request);
            let unlimited = emitted(ContextTtl::Unlimited);
            store.write("m", &request, &keys("a"), &value("1"), START).unwrap();
            assert_eq!(store.read("m", &request, &keys("a"), None, START), None);
            store.write("m", &unlimited, &keys("a"), &value("2"), START).unwrap();
            let late = after(100 * 365 * 24 * 3600);
            assert_eq!(store.read("m", &unlimited, &keys("a"), None, late), Some(value("2")));
        }
    }

    #[test]
    fn owners_and_modules_are_separate() {
        let directory = tempfile::tempdir().unwrap();
        for store in stores(directory.path()) {
            let profile = emitted(ContextTtl::Unlimited);
            store.write("m", &profile, &keys("a"), &value("1"), START).unwrap();
            assert_eq!(store.read("m", &profile, &keys("b"), None, START), None);
            assert_eq!(store.read("n", &profile, &keys("a"), None, START), None);
            store.write("m", &profile, &keys("b"), &value("2"), START).unwrap();
            assert_eq!(store.read("m", &profile, &keys("a"), None, START), Some(value("1")));
        }
    }

    #[test]
    fn secrets_are_not_stored() {
        let directory = tempfile::tempdir().unwrap();
        for store in stores(directory.path()) {
            let profile = emitted(ContextTtl::Unlimited);
            store.write("m", &profile, &keys("a"), &value(r#"{"password": "p", "n": 1}"#), START).unwrap();
            let read = store.read("m", &profile, &keys("a"), None, START);
            assert_eq!(read, Some(value(r#"{"password": "***", "n": 1}"#)));
        }
    }

    #[test]
    fn store_in_memory_is_bounded() {
        let store = ContextStore::default();
        let large = value(&format!("[\"{}\"]", "x y".repeat(3_000)));
        let mut last = emitted(ContextTtl::Unlimited);
        for number in 0..=LIMITS.entries {
            last.key_pattern = number.to_string();
            store.write("m", &last, &keys("a"), &large, START).unwrap();
        }
        let first = EmittedContext { key_pattern: "0".to_owned(), ..last.clone() };
        assert_eq!(store.read("m", &first, &keys("a"), None, START), None);
        assert_eq!(store.read("m", &last, &keys("a"), None, START), Some(large));
    }

    #[test]
    fn owner_has_a_limit_of_values() {
        let directory = tempfile::tempdir().unwrap();
        for store in stores(directory.path()) {
            let store = ContextStore {
                owner_limits: Some(ContextLimits { max_values: 2, ..ContextLimits::default() }),
                ..store
            };
            let write = |owner: &str, key: &str, ttl, seconds| {
                let emitted = EmittedContext { key_pattern: key.to_owned(), ..emitted(ttl) };
                store.write("m", &emitted, &keys(owner), &value("1"), after(seconds))
            };
            write("a", "1", ContextTtl::Seconds(10), 0).unwrap();
            write("a", "2", ContextTtl::Unlimited, 0).unwrap();
            let error = write("a", "3", ContextTtl::Unlimited, 0).unwrap_err();
            assert_eq!(error.to_string(), "this client has stored 2 values, the maximum");
            write("a", "2", ContextTtl::Unlimited, 0).unwrap();
            write("b", "3", ContextTtl::Unlimited, 0).unwrap();
            write("a", "3", ContextTtl::Unlimited, 10).unwrap();
            write("a", "4", ContextTtl::Unlimited, 20).unwrap_err();
        }
    }

    #[test]
    fn owner_has_a_limit_of_bytes() {
        let directory = tempfile::tempdir().unwrap();
        for store in stores(directory.path()) {
            let store = ContextStore {
                owner_limits: Some(ContextLimits { max_bytes: 1_000, ..ContextLimits::default() }),
                ..store
            };
            let write = |owner: &str, key: &str| {
                let emitted =
                    EmittedContext { key_pattern: key.to_owned(), ..emitted(ContextTtl::Unlimited) };
                store.write("m", &emitted, &keys(owner), &value(&format!("\"{}\"", "x y".repeat(150))), START)
            };
            write("a", "1").unwrap();
            let message = write("a", "2").unwrap_err().to_string();
            assert!(message.contains("exceed the maximum of 1000"), "{message}");
            write("a", "1").unwrap();
            write("b", "2").unwrap();
        }
    }

    #[test]
    fn damaged_file_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let profile = emitted(ContextTtl::Unlimited);
        let store = ContextStore::in_directory(directory.path());
        store.write("m", &profile, &keys("a"), &value("1"), START).unwrap();
        let file = std::fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
        for text in ["", "{", "[]", r#"{"id": {}, "stored_ms": 1, "value": 2}"#] {
            cog_module::files::write_atomic(&file, text).unwrap();
            assert_eq!(store.read("m", &profile, &keys("a"), None, START), None);
        }
    }
}

#[cfg(test)]
mod key_tests {
    use cog_spec::ContextTtl;

    use super::*;

    fn key(pattern: &str, input: &str) -> String {
        let emitted = EmittedContext {
            name: "x".to_owned(),
            ttl: ContextTtl::Unlimited,
            key_pattern: pattern.to_owned(),
            schema: None,
        };
        RunKeys::new(Some("token:ada"), "sess_1", Value::parse(input).unwrap()).key("m", &emitted)
    }

    #[test]
    fn placeholders_are_replaced_once() {
        assert_eq!(key("${module}:${user_id}:${session_id}", "{}"), "m:token:ada:sess_1");
        assert_eq!(key("a ${other} ${", "{}"), "a ${other} ${");
        assert_eq!(key("", "{}"), "");
    }

    #[test]
    fn input_hash_does_not_depend_on_the_order_of_members() {
        let first = key("${input_hash}", r#"{"a": 1, "b": {"c": 2, "d": 3}}"#);
        assert_eq!(first, key("${input_hash}", r#"{"b": {"d": 3, "c": 2}, "a": 1}"#));
        assert_ne!(first, key("${input_hash}", r#"{"a": 2, "b": {"c": 2, "d": 3}}"#));
        assert_eq!(first.len(), 64);
    }
}
