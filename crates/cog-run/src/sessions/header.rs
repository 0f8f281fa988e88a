use std::time::Duration;

use cog_json::Value;

use super::{info::SessionState, internal_options, log::Log, spec::RunSpec};
use crate::RunOptions;

/// A session that was read from its file.
pub(crate) struct Found {
    pub(crate) header: Header,
    pub(crate) log: Log,
    pub(crate) state: SessionState,
    /// The time since the file was last written.
    pub(crate) age: Duration,
}

/// The header line of a session's file.
pub(crate) struct Header {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) detached: bool,
    pub(crate) created_ms: u64,
    pub(crate) partial_allowed: bool,
    pub(crate) spec: RunSpec,
}

impl Header {
    pub(crate) fn read(line: &str) -> Option<Self> {
        let value = Value::parse(line).ok().filter(|value| value.get("cog_session").is_some())?;
        let text = |key| Some(value.get(key)?.as_str()?.to_owned());
        let mut options = RunOptions::read(value.get("options")?, &[]).ok()?;
        if let Some(internal_options) = value.get("internal_options") {
            internal_options::read(internal_options, &mut options)?;
        }
        let input = value.child(value.get("input")?);
        Some(Self {
            id: text("session_id")?,
            owner: text("owner")?,
            detached: value.get("detached")?.as_bool()?,
            created_ms: value.get("created_ms")?.as_u64()?,
            partial_allowed: value
                .get("partial_allowed")
                .is_none_or(|allowed| allowed.as_bool() == Some(true)),
            spec: RunSpec { module: text("module")?, input, options },
        })
    }
}
