//! The options of a request: `_options` (docs/spec/streaming.md).

use std::{fmt::Display, str::FromStr, time::Duration};

use cog_json::{Kind, Node, ToJson, Value, Writer};
use cog_spec::{Code, ErrorBody};

use super::RunOptions;

/// The keys of `_options` that belong to a run.
const KEYS: [&str; 14] = [
    "chunk_type",
    "provider",
    "model",
    "strict",
    "timeout_ms",
    "on_violation",
    "max_attempts",
    "effort",
    "verbosity",
    "service_tier",
    "risk",
    "max_tool_rounds",
    "max_tool_calls",
    "handoff_to",
];
/// The maximum timeout that a request may set: one day in milliseconds.
const MAX_MS: u64 = 24 * 3600 * 1000;
/// The maximum number of attempts that a request may set.
const MAX_ATTEMPTS: u64 = 10;
/// The maximum number of tool calls that a request may set.
const MAX_TOOL_CALLS: u32 = 1_000;
/// The maximum length in bytes of the name of a provider, a model or an agent.
const MAX_NAME: usize = 256;

impl RunOptions {
    /// Reads the options of a request from an object. The keys in `extra` belong to the caller and are
    /// skipped.
    ///
    /// # Errors
    /// E1001 for an unknown key, a value of another type, or a number out of range. The error has the path
    /// and the allowed values.
    pub fn read(node: Node<'_>, extra: &[&str]) -> Result<Self, ErrorBody> {
        if !node.is_object() {
            return Err(error("_options", "type", format!("found {}; allowed: an object", kind_name(node))));
        }
        let mut options = Self::default();
        for (key, value) in node.members() {
            let member = Member { key, value };
            match key {
                "chunk_type" => options.chunk_type = Some(member.keyword()?),
                "provider" => options.provider = Some(member.name()?),
                "model" => options.model = Some(member.name()?),
                "strict" => options.strict = member.flag()?,
                "timeout_ms" => options.timeout = Some(Duration::from_millis(member.number(MAX_MS)?)),
                "on_violation" => options.on_violation = Some(member.keyword()?),
                "max_attempts" => options.max_attempts = member.number(MAX_ATTEMPTS)?.try_into().ok(),
                "effort" => options.generation.effort = Some(member.keyword()?),
                "verbosity" => options.generation.verbosity = Some(member.keyword()?),
                "service_tier" => options.generation.service_tier = Some(member.keyword()?),
                "risk" => options.risk = Some(member.keyword()?),
                "max_tool_rounds" => options.max_tool_rounds = Some(member.count(MAX_TOOL_CALLS)?),
                "max_tool_calls" => options.max_tool_calls = Some(member.count(MAX_TOOL_CALLS)?),
                "handoff_to" => options.handoff_to = Some(member.name()?),
                _ if extra.contains(&key) => {}
                _ => return Err(unknown(key, extra)),
            }
        }
        Ok(options)
    }
}

/// Writes the keys of `_options` that are set, at most with the maxima of a request. Options that a request cannot set are
/// omitted.
impl ToJson for RunOptions {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.optional("chunk_type", &self.chunk_type.map(|it| it.as_str()));
            w.optional("provider", &self.provider);
            w.optional("model", &self.model);
            w.optional("strict", &self.strict.then_some(true));
            let ms = self.timeout.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX).min(MAX_MS));
            w.optional("timeout_ms", &ms);
            w.optional("on_violation", &self.on_violation.map(|it| it.as_str()));
            let attempts = self.max_attempts.map(|it| u64::from(it).min(MAX_ATTEMPTS));
            w.optional("max_attempts", &attempts);
            w.optional("effort", &self.generation.effort);
            w.optional("verbosity", &self.generation.verbosity);
            w.optional("service_tier", &self.generation.service_tier);
            w.optional("risk", &self.risk);
            w.optional("max_tool_rounds", &self.max_tool_rounds.map(|it| it.min(MAX_TOOL_CALLS)));
            w.optional("max_tool_calls", &self.max_tool_calls.map(|it| it.min(MAX_TOOL_CALLS)));
            w.optional("handoff_to", &self.handoff_to);
        });
    }
}

/// A member of `_options`.
struct Member<'a> {
    key: &'a str,
    value: Node<'a>,
}

impl Member<'_> {
    fn flag(&self) -> Result<bool, ErrorBody> {
        self.value.as_bool().ok_or_else(|| self.error("type", "true or false"))
    }

    /// Returns a number from 1 to this maximum.
    fn number(&self, max: u64) -> Result<u64, ErrorBody> {
        let allowed = format!("a whole number from 1 to {max}");
        if self.value.kind() != Kind::Number {
            return Err(self.error("type", allowed));
        }
        let number = self.value.as_u64().filter(|number| (1..=max).contains(number));
        number.ok_or_else(|| self.error("bounds", allowed))
    }

    /// Returns a number from 1 to this maximum.
    fn count(&self, max: u32) -> Result<u32, ErrorBody> {
        Ok(u32::try_from(self.number(u64::from(max))?).unwrap_or(max))
    }

    fn name(&self) -> Result<String, ErrorBody> {
        let name = self.value.as_str().map(str::trim).filter(|name| !name.is_empty());
        let name = name.filter(|name| name.len() <= MAX_NAME);
        name.map(str::to_owned).ok_or_else(|| self.error("type", "a name"))
    }

    fn keyword<T: FromStr<Err = cog_spec::ParseEnumError>>(&self) -> Result<T, ErrorBody> {
        let Some(keyword) = self.value.as_str() else { return Err(self.error("type", "a string")) };
        keyword.parse().map_err(|error: cog_spec::ParseEnumError| {
            let invalid = self.error("enum", error.allowed.join(", "));
            match cog_schema::nearest(keyword, error.allowed.iter().copied()) {
                Some(near) => invalid.suggest(format!("Did you mean `{near}`?")),
                None => invalid,
            }
        })
    }

    fn error(&self, rule: &str, allowed: impl Display) -> ErrorBody {
        let found = match self.value.kind() {
            Kind::Number | Kind::String | Kind::Bool => shortened(self.value.to_json()),
            _ => kind_name(self.value).to_owned(),
        };
        error(&format!("_options.{}", self.key), rule, format!("found {found}; allowed: {allowed}"))
    }
}

fn unknown(key: &str, extra: &[&str]) -> ErrorBody {
    let mut known: Vec<&str> = KEYS.iter().chain(extra).copied().collect();
    let near = cog_schema::nearest(key, known.iter().copied());
    known.sort_unstable();
    let path = format!("_options.{}", shortened(key.to_owned()));
    let error = error(&path, "unknown", format!("unknown option; allowed: {}", known.join(", ")));
    match near {
        Some(near) => error.suggest(format!("Did you mean `{near}`?")),
        None => error,
    }
}

fn error(path: &str, rule: &str, message: String) -> ErrorBody {
    let violation = serde_json::json!({ "path": path, "rule": rule, "message": message });
    ErrorBody::new(Code::InvalidInput, format!("{path}: {message}"))
        .with_details(Value::from(serde_json::json!({ "violations": [violation] })))
}

/// Returns the first 64 characters of a value, for a message.
fn shortened(text: String) -> String {
    match text.char_indices().nth(64) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn kind_name(node: Node<'_>) -> &'static str {
    match node.kind() {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Number => "a number",
        Kind::String => "a string",
        Kind::Array => "an array",
        Kind::Object => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RunOptions, ErrorBody> {
        RunOptions::read(Value::parse(text).unwrap().node(), &["detach"])
    }

    #[test]
    fn options_read_back_as_written() {
        let text = r#"{"chunk_type":"snapshot","provider":"a,b","model":"m","strict":true,"timeout_ms":1500,"on_violation":"retry","max_attempts":3,"effort":"low","verbosity":"high","service_tier":"flex","risk":"high","max_tool_rounds":2,"max_tool_calls":5,"handoff_to":"coder"}"#;
        assert_eq!(read(text).unwrap().to_json(), text);
        assert_eq!(read("{}").unwrap().to_json(), "{}");
    }

    #[test]
    fn extra_keys_are_skipped_and_unknown_keys_are_rejected() {
        assert!(read(r#"{"detach": 1}"#).is_ok());
        let error = read(r#"{"timeout": 1}"#).unwrap_err();
        assert_eq!(error.code.as_str(), "E1001");
        assert!(error.message.starts_with("_options.timeout: "), "{}", error.message);
        assert_eq!(read(r#"{"modle": 1}"#).unwrap_err().suggestion.unwrap(), "Did you mean `model`?");
    }

    #[test]
    fn invalid_values_are_rejected() {
        let bad = [
            "[]",
            r#"{"timeout_ms": 0}"#,
            r#"{"timeout_ms": -5}"#,
            r#"{"timeout_ms": 1.5}"#,
            r#"{"timeout_ms": 86400001}"#,
            r#"{"timeout_ms": "5"}"#,
            r#"{"max_attempts": 0}"#,
            r#"{"max_attempts": 11}"#,
            r#"{"max_attempts": 1e30}"#,
            r#"{"on_violation": "ignore"}"#,
            r#"{"chunk_type": null}"#,
            r#"{"effort": "extreme"}"#,
            r#"{"verbosity": 3}"#,
            r#"{"service_tier": "default"}"#,
            r#"{"risk": "higher"}"#,
            r#"{"max_tool_rounds": 0}"#,
            r#"{"max_tool_calls": 1001}"#,
            r#"{"handoff_to": " "}"#,
            r#"{"strict": "yes"}"#,
            r#"{"model": " "}"#,
            r#"{"provider": ["a"]}"#,
        ];
        for text in bad {
            assert_eq!(read(text).map_err(|error| error.code.to_string()).unwrap_err(), "E1001", "{text}");
        }
    }
}
