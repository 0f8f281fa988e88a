//! The context of a run: what a module reads in addition to its input, and what it emits for later runs (docs/spec/context.md).

mod input_context;
mod store;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use cog_json::{Node, Object, Value};
use cog_spec::ContextTtl;
use cog_store::{Key, OwnerLimits};
use serde::{Deserialize, Serialize};

pub(crate) use self::input_context::{ContextSink, ContextSources, InputContext};
pub use self::store::ContextStore;
use self::store::hex;
use crate::clock;

// The limits of the context that one owner may store.

/// The maximum context that the runs of one owner may store.
///
/// At a limit, further values are not stored until stored ones expire. A value with the key of a stored one replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextLimits {
    /// The maximum number of values.
    pub max_values: usize,
    /// The maximum bytes of all values, with their keys.
    pub max_bytes: usize,
}

impl Default for ContextLimits {
    /// 100 values and 8 MiB.
    fn default() -> Self {
        Self { max_values: 100, max_bytes: 8 << 20 }
    }
}

impl ContextLimits {
    fn of_owner(self) -> OwnerLimits {
        OwnerLimits { entries: self.max_values, bytes: self.max_bytes as u64 }
    }
}

// The context that the modules of a composition share.

/// The type under which the result of a module is read.
const RESULT: &str = "previous_result";

/// The context of a composition: what its modules read in addition to their inputs, and what they emit.
///
/// A run with a scope reads from it what its module declares in `context.accepts`, and adds what it emits and its data, as
/// `previous_result`, when it succeeds. Clones share the context.
///
/// ```
/// use cog_run::{ContextScope, RunOptions};
///
/// let scope = ContextScope::new(None); // the `_context` of the composition's input
/// let is_fork = false; // `context.mode` of the composed module
/// let options = RunOptions { context: Some(scope.for_child(is_fork)), ..RunOptions::default() };
/// # let _ = options;
/// assert_eq!(scope.emitted(), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ContextScope {
    /// What the input of the composition gives to every module.
    given: Arc<Vec<(String, Value)>>,
    /// What the modules have added.
    added: Arc<Mutex<Vec<Added>>>,
}

/// A context that a module has added.
#[derive(Debug, Clone)]
struct Added {
    /// The type.
    name: String,
    module: String,
    value: Value,
}

impl ContextScope {
    /// Returns the scope of a composition whose input has this `_context`.
    pub fn new(context: Option<Node<'_>>) -> Self {
        Self::default().with_given(context)
    }

    /// Returns the scope of a composition within this one: with its own context instead of the context of the outer input, and
    /// with what the modules of both add.
    #[must_use]
    pub(crate) fn with_given(&self, context: Option<Node<'_>>) -> Self {
        let members = context.into_iter().flat_map(Node::members);
        let given = members.map(|(name, value)| (name.to_owned(), value.to_value())).collect();
        Self { given: Arc::new(given), added: Arc::clone(&self.added) }
    }

    /// Returns the scope for a child: the same one (`main`), or a copy that no other child sees (`fork`).
    #[must_use]
    pub fn for_child(&self, is_fork: bool) -> Self {
        let Self { given, added } = self.clone();
        let added = if is_fork { Arc::new(Mutex::new(self.lock().clone())) } else { added };
        Self { given, added }
    }

    /// Returns what the modules of this scope have emitted, by type; the last value of a type wins.
    pub fn emitted(&self) -> Option<Value> {
        let mut emitted = Object::default();
        for added in self.lock().iter().filter(|added| added.name != RESULT) {
            emitted.insert(added.name.clone(), added.value.clone());
        }
        emitted.non_empty()
    }

    /// Returns the last context of a type, of one module if it is named. The context of the input is from any module.
    fn read(&self, name: &str, from_module: Option<&str>) -> Option<Value> {
        let is_read =
            |added: &&Added| added.name == name && from_module.is_none_or(|module| added.module == module);
        let added = self.lock().iter().rev().find(is_read).map(|added| added.value.clone());
        added.or_else(|| {
            let given = self.given.iter().find(|(given, _)| given == name);
            given.map(|(_, value)| value.clone())
        })
    }

    /// Adds the answer of a module: what it emits, and its data.
    pub(crate) fn add(&self, module: &str, emitted: Option<&Value>, data: &Value) {
        let context = emitted.into_iter().flat_map(Value::members);
        let context = context.map(|(name, value)| (name.to_owned(), value.to_value()));
        let result = (RESULT.to_owned(), data.clone());
        for (name, value) in [result].into_iter().chain(context) {
            let bytes = value.to_string().len();
            tracing::info!(target: AUDIT, module, name, bytes, "context shared");
            let module = module.to_owned();
            let mut added = self.lock();
            added.retain(|other| other.name != name || other.module != module);
            added.push(Added { name, module, value });
        }
    }

    /// Locks the context, which is consistent between any two statements.
    fn lock(&self) -> MutexGuard<'_, Vec<Added>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// A stored context.

/// The target of log events about reading and storing context, which never have its contents.
const AUDIT: &str = "cog::context";

/// What identifies a stored context.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct EntryId {
    owner: String,
    module: String,
    /// The type.
    name: String,
    key: String,
}

/// A stored context with its times in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Entry {
    id: EntryId,
    stored_ms: u64,
    /// None without an expiry.
    expires_ms: Option<u64>,
    value: Value,
}

impl EntryId {
    /// Returns the key of the entry: no other id has it, and it contains nothing of the id itself.
    fn key(&self) -> Key {
        let parts = [&self.owner, &self.module, &self.name, &self.key];
        let hash = hex(&parts.map(|part| format!("{}:{part}", part.len())).concat());
        Key::new(Some(&self.owner), hash)
    }
}

impl Entry {
    /// Returns a new entry; none if it must not be stored.
    fn new(id: EntryId, ttl: ContextTtl, value: Value, now: SystemTime) -> Option<Self> {
        let stored_ms = clock::millis(now);
        let expires_ms = match ttl {
            ContextTtl::Request => return None,
            ContextTtl::Seconds(seconds) => Some(stored_ms.saturating_add(seconds.saturating_mul(1_000))),
            ContextTtl::Unlimited => None,
        };
        Some(Self { id, stored_ms, expires_ms, value })
    }

    /// Whether the entry may be read now, by a module that accepts this age.
    fn is_fresh(&self, max_age: Option<Duration>, now: SystemTime) -> bool {
        let now = clock::millis(now);
        let age = u128::from(now.saturating_sub(self.stored_ms));
        self.expires_ms.is_none_or(|expires| now < expires)
            && max_age.is_none_or(|max_age| age <= max_age.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        Value::parse(text).unwrap()
    }

    #[test]
    fn children_of_main_see_each_other_and_those_of_fork_do_not() {
        let input = value(r#"{"user_profile": {"name": "Ada"}}"#);
        let scope = ContextScope::new(Some(input.node()));
        scope.for_child(true).add("a", None, &value("1"));
        assert_eq!(scope.read("previous_result", None), None);
        scope.for_child(false).add("a", Some(&value(r#"{"session_state": 5}"#)), &value("1"));
        let child = scope.for_child(true);
        assert_eq!(child.read("previous_result", Some("a")), Some(value("1")));
        assert_eq!(child.read("session_state", None), Some(value("5")));
        assert_eq!(child.read("user_profile", None), Some(value(r#"{"name": "Ada"}"#)));
        assert_eq!(child.read("user_profile", Some("a")), child.read("user_profile", None), "it was given");
        assert_eq!(child.read("session_state", Some("b")), None);
        assert_eq!(scope.emitted(), Some(value(r#"{"session_state": 5}"#)));
    }

    #[test]
    fn later_result_wins() {
        let scope = ContextScope::default();
        scope.add("a", None, &value("1"));
        scope.add("b", None, &value("2"));
        scope.add("a", None, &value("3"));
        assert_eq!(scope.read("previous_result", None), Some(value("3")));
        assert_eq!(scope.read("previous_result", Some("b")), Some(value("2")));
    }
}
