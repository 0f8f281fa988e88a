//! The parameters of a request: each is read, a label, or refused by its name.

use cog_json::Node;
use cog_spec::Code;

use super::OpenAiError;

/// How a parameter is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// It is read.
    Read,
    /// A name or a note for a vendor, which changes no answer.
    Label,
    /// Only this value as JSON, which changes nothing.
    Only(&'static str),
}

/// The parameters that an object may have, each with its rule. Null is accepted for each.
pub(super) type Parameters = [(&'static str, Rule)];

/// The parameters of a chat completion.
pub(super) const CHAT: &Parameters = &[
    ("model", Rule::Read),
    ("messages", Rule::Read),
    ("response_format", Rule::Read),
    ("reasoning_effort", Rule::Read),
    ("verbosity", Rule::Read),
    ("service_tier", Rule::Read),
    ("stream", Rule::Read),
    ("stream_options", Rule::Read),
    ("metadata", Rule::Label),
    ("prompt_cache_key", Rule::Label),
    ("safety_identifier", Rule::Label),
    ("user", Rule::Label),
    ("frequency_penalty", Rule::Only("0")),
    ("logprobs", Rule::Only("false")),
    ("modalities", Rule::Only(r#"["text"]"#)),
    ("n", Rule::Only("1")),
    ("presence_penalty", Rule::Only("0")),
    ("store", Rule::Only("false")),
    ("temperature", Rule::Only("1")),
    ("top_p", Rule::Only("1")),
];

/// The parameters of a response.
pub(super) const RESPONSES: &Parameters = &[
    ("model", Rule::Read),
    ("input", Rule::Read),
    ("text", Rule::Read),
    ("reasoning", Rule::Read),
    ("service_tier", Rule::Read),
    ("stream", Rule::Read),
    ("stream_options", Rule::Read),
    ("metadata", Rule::Label),
    ("prompt_cache_key", Rule::Label),
    ("safety_identifier", Rule::Label),
    ("user", Rule::Label),
    ("background", Rule::Only("false")),
    ("include", Rule::Only("[]")),
    ("store", Rule::Only("false")),
    ("temperature", Rule::Only("1")),
    ("top_logprobs", Rule::Only("0")),
    ("top_p", Rule::Only("1")),
    ("truncation", Rule::Only("\"disabled\"")),
];

/// Returns what to do about a parameter that is refused.
fn advice(name: &str) -> &'static str {
    match name {
        "tools"
        | "tool_choice"
        | "parallel_tool_calls"
        | "max_tool_calls"
        | "functions"
        | "function_call" => {
            "Remove it: the manifest of the module lists its tools, and the runtime calls them."
        }
        "n" => "Send n requests.",
        "max_tokens" | "max_completion_tokens" | "max_output_tokens" | "stop" => {
            "Remove it: an answer that ends early does not fit the schema of the module."
        }
        "instructions" | "prompt" => {
            "Remove it: a module has its own prompt. A text for the module belongs into a field of the input."
        }
        "previous_response_id" | "conversation" => {
            "Send the earlier messages in `input`: no response is stored."
        }
        "store" => "Remove it: no response is stored.",
        "background" => {
            "Remove it. POST /v1/modules/NAME/execute with `_options.detach` runs in the background."
        }
        _ => "Remove it: the module and the settings of the server decide.",
    }
}

/// Checks that no parameter would be ignored. `prefix` is the path before the names.
///
/// # Errors
/// E1004 with the name of the first one.
pub(super) fn check(object: Node<'_>, prefix: &str, rules: &Parameters) -> Result<(), OpenAiError> {
    for (key, value) in object.members().filter(|(_, value)| !value.is_null()) {
        let rule = rules.iter().find(|(known, _)| *known == key).map(|(_, rule)| *rule);
        let name = format!("{prefix}{}", shown(key));
        let message = match rule {
            Some(Rule::Read | Rule::Label) => continue,
            Some(Rule::Only(only)) if is(value, only) => continue,
            Some(Rule::Only(only)) => format!("`{name}` is not supported, except {only}"),
            None => format!("`{name}` is not supported"),
        };
        return Err(OpenAiError::new(Code::UnsupportedValue, name, message).suggest(advice(key)));
    }
    Ok(())
}

/// Whether a value is this JSON. Numbers are compared by their value: a client may send `1.0`.
fn is(value: Node<'_>, json: &str) -> bool {
    match (value.as_f64(), json.parse::<f64>()) {
        (Some(found), Ok(only)) => (found - only).abs() < f64::EPSILON,
        _ => value.to_value().to_string() == json,
    }
}

/// Returns the beginning of a name that a client has sent.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(60).collect()
}

/// Returns a parameter that is an object, after a check of its members.
///
/// # Errors
/// E1003 for another type, E1004 for a member that would be ignored.
pub(super) fn object<'a>(
    outer: Node<'a>,
    name: &str,
    rules: &Parameters,
) -> Result<Option<Node<'a>>, OpenAiError> {
    let Some(value) = outer.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    if !value.is_object() {
        return Err(mistyped(name, "an object"));
    }
    check(value, &format!("{name}."), rules)?;
    Ok(Some(value))
}

/// Returns a parameter that is text. `prefix` is the path before its name.
///
/// # Errors
/// E1003 for another type.
pub(super) fn text<'a>(object: Node<'a>, prefix: &str, name: &str) -> Result<Option<&'a str>, OpenAiError> {
    let Some(value) = object.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    value.as_str().map(Some).ok_or_else(|| mistyped(&format!("{prefix}{name}"), "a string"))
}

/// Returns a parameter that is true or false, and false if it is absent.
///
/// # Errors
/// E1003 for another type.
pub(super) fn flag(object: Node<'_>, prefix: &str, name: &str) -> Result<bool, OpenAiError> {
    let Some(value) = object.get(name).filter(|value| !value.is_null()) else { return Ok(false) };
    value.as_bool().ok_or_else(|| mistyped(&format!("{prefix}{name}"), "true or false"))
}

/// Returns a parameter that is one of a list of words.
///
/// # Errors
/// E1003 for another type, E1004 with the allowed words.
pub(super) fn keyword<T: std::str::FromStr<Err = cog_spec::ParseEnumError>>(
    object: Node<'_>,
    prefix: &str,
    name: &str,
) -> Result<Option<T>, OpenAiError> {
    let Some(value) = text(object, prefix, name)? else { return Ok(None) };
    let name = format!("{prefix}{name}");
    value
        .parse()
        .map(Some)
        .map_err(|error| OpenAiError::new(Code::UnsupportedValue, &name, format!("`{name}`: {error}")))
}

fn mistyped(name: &str, expected: &str) -> OpenAiError {
    OpenAiError::new(Code::TypeMismatch, name, format!("`{name}` must be {expected}"))
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    fn refused(request: &str, rules: &Parameters) -> Option<String> {
        let value = Value::parse(request).unwrap();
        check(value.node(), "", rules).err().map(|error| format!("{error:?}"))
    }

    #[test]
    fn parameters_that_change_nothing_are_accepted() {
        for request in [
            r#"{"temperature": 1.0, "top_p": 1, "store": false, "stream": false}"#,
            r#"{"tools": null, "max_tokens": null, "seed": null}"#,
            r#"{"user": "me", "metadata": {"a": "b"}}"#,
        ] {
            assert_eq!(refused(request, CHAT), None, "{request}");
            assert_eq!(refused(request, RESPONSES), None, "{request}");
        }
        assert_eq!(refused(r#"{"n": 1, "modalities": ["text"]}"#, CHAT), None);
        assert_eq!(refused(r#"{"include": [], "truncation": "disabled"}"#, RESPONSES), None);
    }

    #[test]
    fn other_parameters_are_refused_by_name() {
        for (name, value) in [
            ("n", "2"),
            ("temperature", "0"),
            ("tools", "[]"),
            ("max_tokens", "10"),
            ("seed", "1"),
            ("made_up", "true"),
            ("store", "true"),
            ("instructions", "\"be kind\""),
            ("modalities", r#"["text", "audio"]"#),
        ] {
            for rules in [CHAT, RESPONSES] {
                let error = refused(&format!("{{\"{name}\": {value}}}"), rules).unwrap();
                assert!(error.contains("E1004") || error.contains("UnsupportedValue"), "{error}");
                assert!(error.contains(&format!("`{name}` is not supported")), "{error}");
            }
        }
    }

    #[test]
    fn members_are_checked_with_their_path() {
        let request =
            Value::parse(r#"{"reasoning": {"effort": "low", "summary": "auto"}, "text": 5}"#).unwrap();
        let rules: &Parameters = &[("effort", Rule::Read)];
        let error = object(request.node(), "reasoning", rules).unwrap_err();
        assert!(format!("{error:?}").contains("`reasoning.summary` is not supported"), "{error:?}");
        let error = object(request.node(), "text", rules).unwrap_err();
        assert!(format!("{error:?}").contains("`text` must be an object"), "{error:?}");
        assert!(object(request.node(), "other", rules).unwrap().is_none());
    }
}
