/// `context`: the context that a module accepts and emits (ruling R10, docs/spec/context.md).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextRule {
    /// Whether children receive a copy (`fork`) instead of the parent's context (`main`).
    pub fork: bool,
    /// The types of context that the module reads.
    pub accepts: Vec<AcceptedContext>,
    /// The types of context that the module emits.
    pub emits: Vec<EmittedContext>,
}

/// An item of `context.accepts`: a type of context that a module reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcceptedContext {
    /// The name of the type, a member of `_context`.
    pub name: String,
    /// A run without it fails.
    pub required: bool,
    /// The maximum number of turns of a conversation; the oldest are dropped first.
    pub max_turns: Option<u64>,
    /// The members that the model receives; all if there is no list.
    pub fields: Option<Vec<String>>,
    /// The file of its schema.
    pub schema: Option<String>,
    /// The maximum age in seconds of a stored value; none if the age does not matter.
    pub ttl: Option<u64>,
    /// The module whose emitted context is read if the input has none.
    pub from_module: Option<String>,
}

/// An item of `context.emits`: a type of context that a module emits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmittedContext {
    /// The name of the type, a member of `_emitted_context`.
    pub name: String,
    /// How long it is stored.
    pub ttl: ContextTtl,
    /// The pattern of the key under which it is stored.
    pub key_pattern: String,
    /// The file of its schema.
    pub schema: Option<String>,
}

/// How long emitted context is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContextTtl {
    /// Not at all: it is part of this answer only (`0`).
    #[default]
    Request,
    /// This number of seconds.
    Seconds(u64),
    /// Without an expiry (`-1`).
    Unlimited,
}

impl ContextRule {
    /// The maximum size in bytes of `_context`, and of `_emitted_context`, as JSON.
    pub const MAX_BYTES: usize = 1 << 20;

    /// The types of the specification. A module may declare others.
    pub const TYPES: [&str; 6] = [
        "conversation_history",
        "user_profile",
        "session_state",
        "previous_result",
        "analysis_cache",
        "environment",
    ];

    /// Returns the declaration of a type that the module reads.
    pub fn accepted(&self, name: &str) -> Option<&AcceptedContext> {
        self.accepts.iter().find(|accepted| accepted.name == name)
    }

    /// Returns the declaration of a type that the module emits.
    pub fn emitted(&self, name: &str) -> Option<&EmittedContext> {
        self.emits.iter().find(|emitted| emitted.name == name)
    }
}

impl EmittedContext {
    /// The default of `key_pattern`.
    pub const DEFAULT_KEY: &str = "${module}";

    /// The placeholders of `key_pattern`.
    pub const PLACEHOLDERS: [&str; 4] = ["${module}", "${input_hash}", "${user_id}", "${session_id}"];
}

impl ContextTtl {
    /// Returns the time to live that a manifest states in seconds; -1 is unlimited.
    pub fn from_seconds(seconds: i64) -> Self {
        match u64::try_from(seconds) {
            Ok(0) => Self::Request,
            Ok(seconds) => Self::Seconds(seconds),
            Err(_) => Self::Unlimited,
        }
    }

    /// Returns the seconds as a manifest states them.
    pub fn seconds(self) -> i64 {
        match self {
            Self::Request => 0,
            Self::Seconds(seconds) => i64::try_from(seconds).unwrap_or(i64::MAX),
            Self::Unlimited => -1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_found_by_name() {
        let accepted = |name: &str| AcceptedContext { name: name.to_owned(), ..AcceptedContext::default() };
        let emitted = |name: &str| EmittedContext {
            name: name.to_owned(),
            ttl: ContextTtl::Request,
            key_pattern: EmittedContext::DEFAULT_KEY.to_owned(),
            schema: None,
        };
        let rule = ContextRule {
            accepts: vec![accepted("a"), accepted("b")],
            emits: vec![emitted("c"), emitted("d")],
            ..ContextRule::default()
        };
        assert_eq!((rule.accepted("b"), rule.accepted("c")), (Some(&accepted("b")), None));
        assert_eq!((rule.emitted("d"), rule.emitted("a")), (Some(&emitted("d")), None));
    }

    #[test]
    fn seconds_of_a_manifest_are_read_and_written() {
        let times = [(0, ContextTtl::Request), (60, ContextTtl::Seconds(60)), (-1, ContextTtl::Unlimited)];
        for (seconds, ttl) in times {
            assert_eq!((ContextTtl::from_seconds(seconds), ttl.seconds()), (ttl, seconds));
        }
    }
}
