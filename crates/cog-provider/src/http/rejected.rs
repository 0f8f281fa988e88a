//! Finds the part of a request that a provider rejected.

use cog_json::{Node, Value};

use crate::{OptionalPart, RejectedPart};

/// The members of requests that belong to optional parts.
const FIELDS: &[(&str, OptionalPart)] = &[
    ("prompt_cache_breakpoint", OptionalPart::Cache),
    ("prompt_cache_options", OptionalPart::Cache),
    ("prompt_cache_key", OptionalPart::Cache),
    ("cache_control", OptionalPart::Cache),
    ("stream_options", OptionalPart::StreamOptions),
    ("reasoning_effort", OptionalPart::Setting("effort")),
    ("effort", OptionalPart::Setting("effort")),
    ("thinking", OptionalPart::Setting("effort")),
    ("think", OptionalPart::Setting("effort")),
    ("enable_thinking", OptionalPart::Setting("effort")),
    ("thinkingConfig", OptionalPart::Setting("effort")),
    ("thinkingLevel", OptionalPart::Setting("effort")),
    ("thinkingBudget", OptionalPart::Setting("effort")),
    ("verbosity", OptionalPart::Setting("verbosity")),
    ("service_tier", OptionalPart::Setting("service_tier")),
    ("serviceTier", OptionalPart::Setting("service_tier")),
    ("temperature", OptionalPart::Setting("temperature")),
    ("seed", OptionalPart::Setting("seed")),
    ("random_seed", OptionalPart::Setting("seed")),
];

/// Texts in messages about a schema.
const SCHEMA: &[&str] = &[
    "schema",
    "response_format",
    "json_object",
    "grammar",
    "structured output",
    "text.format",
    "output_format",
];
/// The members of requests that carry a schema.
const SCHEMA_FIELDS: &[&str] = &["response_format", "responseMimeType", "format"];

/// Returns the part that the provider's message names, if the body of the request contains it.
///
/// The body, which may be large, is parsed only for a message that names a part.
pub(super) fn rejected_part(message: &str, body: &[u8]) -> Option<RejectedPart> {
    let lower = message.to_ascii_lowercase();
    let names_schema = SCHEMA.iter().any(|text| lower.contains(text));
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words: Vec<&str> = message.split(|letter| !is_letter(letter)).collect();
    let mut named = FIELDS.iter().filter(|(name, _)| words.contains(name)).peekable();
    if !names_schema && named.peek().is_none() {
        return None;
    }
    let body = Value::parse_bytes(body).ok()?;
    if names_schema && SCHEMA_FIELDS.iter().any(|name| has_member(body.node(), name)) {
        return Some(RejectedPart::Schema);
    }
    let (name, part) = named.find(|(name, _)| has_member(body.node(), name))?;
    Some(RejectedPart::Field { name, part: *part })
}

/// Returns whether an object within a value has a member with this name.
fn has_member(node: Node<'_>, name: &str) -> bool {
    node.members().any(|(key, value)| key == name || has_member(value, name))
        || node.elements().any(|element| has_member(element, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"model": "m", "messages": [{"role": "system", "content": [{"type": "text", "text": "\"seed\": 1",
        "prompt_cache_breakpoint": {"mode": "explicit"}}]}], "response_format": {"type": "json_schema", "json_schema": {}},
        "reasoning_effort": "low", "stream_options": {"include_usage": true}}"#;

    fn field(message: &str) -> Option<&'static str> {
        match rejected_part(message, BODY)? {
            RejectedPart::Field { name, .. } => Some(name),
            RejectedPart::Schema => Some("schema"),
        }
    }

    #[test]
    fn finds_the_named_member_of_the_request() {
        for (message, expected) in [
            ("Unrecognized request argument supplied: stream_options", Some("stream_options")),
            ("Extra inputs are not permitted (body.stream_options)", Some("stream_options")),
            ("Unsupported parameter: 'reasoning_effort' is not supported", Some("reasoning_effort")),
            (
                "messages.0.content.0.prompt_cache_breakpoint: Extra inputs are not permitted",
                Some("prompt_cache_breakpoint"),
            ),
            ("Invalid schema for response_format 'm'", Some("schema")),
            ("failed to parse grammar", Some("schema")),
        ] {
            assert_eq!(field(message), expected, "{message}");
        }
    }

    #[test]
    fn ignores_members_that_were_not_sent_and_other_messages() {
        for message in [
            "Unknown parameter: 'seed'",
            "Unknown parameter: 'prompt_cache_key'",
            "the stream_optionsx is wrong",
            "messages must not be empty",
            "Unknown parameter: 'model'",
        ] {
            assert_eq!(field(message), None, "{message}");
        }
        assert_eq!(rejected_part("the schema is wrong", br#"{"model": "m"}"#), None);
        assert_eq!(rejected_part("stream_options", b"no JSON"), None);
    }
}
