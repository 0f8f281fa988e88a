//! The keys of stored context (docs/spec/context.md, `key_pattern`).

use std::sync::OnceLock;

use cog_json::{ToJson as _, Value};
use cog_spec::EmittedContext;
use sha2::{Digest as _, Sha256};

/// The owner of runs that have none, such as those of the command line.
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
            _ => self.input_hash.get_or_init(|| hex(&canonical(self.input.to_serde()))),
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

/// Returns the SHA-256 of a text in hexadecimal.
pub(super) fn hex(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns JSON in which the members of each object are sorted.
fn canonical(mut value: serde_json::Value) -> String {
    value.sort_all_objects();
    Value::from(value).to_json()
}

#[cfg(test)]
mod tests {
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
