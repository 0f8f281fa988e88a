//! A stored context.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cog_json::Value;
use cog_spec::ContextTtl;
use serde::{Deserialize, Serialize};

use super::key::hex;

/// The maximum number of entries; the oldest ones are removed.
pub(super) const MAX_ENTRIES: usize = 1_000;
/// The maximum size of all entries in bytes; the oldest ones are removed.
pub(super) const MAX_BYTES: usize = 64 << 20;
/// The maximum size of one entry in bytes, with its names.
pub(super) const MAX_ENTRY_BYTES: usize = 2 << 20;

/// The target of log events about reading and storing context, which never have its contents.
pub(super) const AUDIT: &str = "cog::context";

/// What identifies a stored context.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct EntryId {
    pub(super) owner: String,
    pub(super) module: String,
    /// The type.
    pub(super) name: String,
    pub(super) key: String,
}

/// A stored context with its times in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) id: EntryId,
    pub(super) stored_ms: u64,
    /// None without an expiry.
    pub(super) expires_ms: Option<u64>,
    pub(super) value: Value,
}

impl EntryId {
    /// Returns a name for a file: no other id has it, and it contains nothing of the id itself. It ends with a hash of the
    /// owner.
    pub(super) fn file_stem(&self) -> String {
        let parts = [&self.owner, &self.module, &self.name, &self.key];
        let hash = hex(&parts.map(|part| format!("{}:{part}", part.len())).concat());
        format!("{hash}-{}", hex(&self.owner))
    }

    /// Whether a file with this name is of the owner of this id.
    pub(super) fn has_owner_of(&self, file_stem: &str) -> bool {
        file_stem.rsplit_once('-').is_some_and(|(_, owner)| owner == hex(&self.owner))
    }
}

impl Entry {
    /// Returns a new entry; none if it must not be stored.
    pub(super) fn new(id: EntryId, ttl: ContextTtl, value: Value, now: SystemTime) -> Option<Self> {
        let stored_ms = millis(now);
        let expires_ms = match ttl {
            ContextTtl::Request => return None,
            ContextTtl::Seconds(seconds) => Some(stored_ms.saturating_add(seconds.saturating_mul(1_000))),
            ContextTtl::Unlimited => None,
        };
        Some(Self { id, stored_ms, expires_ms, value })
    }

    /// Whether the entry may be read now, by a module that accepts this age.
    pub(super) fn is_fresh(&self, max_age: Option<Duration>, now: SystemTime) -> bool {
        let now = millis(now);
        let age = u128::from(now.saturating_sub(self.stored_ms));
        self.expires_ms.is_none_or(|expires| now < expires)
            && max_age.is_none_or(|max_age| age <= max_age.as_millis())
    }
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
