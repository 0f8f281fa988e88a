//! The parameters of a request: each is read, a label, or refused by its name.

use cog_json::Node;
use cog_run::RunOptions;
use cog_spec::Code;

use super::error::OpenAiError;

/// What becomes of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// It is read.
    Read,
    /// A name or a note for a vendor, which changes no answer.
    Label,
    /// Only these values as JSON, which change nothing.
    Only(&'static str),
}

/// The parameters of a chat completion that are accepted. Null is accepted for each.
const CHAT: &[(&str, Rule)] = &[
    ("model", Rule::Read),
    ("messages", Rule::Read),
    ("response_format", Rule::Read),
    ("reasoning_effort", Rule::Read),
    ("verbosity", Rule::Read),
    ("service_tier", Rule::Read),
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
    ("stream", Rule::Only("false")),
    ("temperature", Rule::Only("1")),
    ("top_p", Rule::Only("1")),
];

/// What to do about a parameter that is refused.
fn advice(name: &str) -> &'static str {
    match name {
        "tools" | "tool_choice" | "parallel_tool_calls" | "functions" | "function_call" => {
            "Remove it: the manifest of the module lists its tools, and the runtime calls them."
        }
        "n" => "Send n requests.",
        "max_tokens" | "max_completion_tokens" | "stop" => {
            "Remove it: an answer that ends early does not fit the schema of the module."
        }
        _ => "Remove it: the module and the settings of the server decide.",
    }
}

/// Checks that no parameter would be ignored.
///
/// # Errors
/// E1004 with the name of the first one.
pub(super) fn check(request: Node<'_>) -> Result<(), OpenAiError> {
    for (name, value) in request.members().filter(|(_, value)| !value.is_null()) {
        let rule = CHAT.iter().find(|(known, _)| *known == name).map(|(_, rule)| *rule);
        let message = match rule {
            Some(Rule::Read | Rule::Label) => continue,
            Some(Rule::Only(only)) if is(value, only) => continue,
            Some(Rule::Only(only)) => format!("`{name}` is not supported, except {only}"),
            None => format!("`{}` is not supported", shown(name)),
        };
        return Err(OpenAiError::new(Code::UnsupportedValue, shown(name), message).suggest(advice(name)));
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

/// Sets the options that a request has parameters for.
///
/// # Errors
/// E1004 with the allowed values.
pub(super) fn set_options(request: Node<'_>, options: &mut RunOptions) -> Result<(), OpenAiError> {
    let generation = &mut options.generation;
    generation.effort = keyword(request, "reasoning_effort")?;
    generation.verbosity = keyword(request, "verbosity")?;
    if text(request, "service_tier")? != Some("default") {
        generation.service_tier = keyword(request, "service_tier")?;
    }
    Ok(())
}

/// Returns a parameter that is text.
///
/// # Errors
/// E1003 for another type.
pub(super) fn text<'a>(request: Node<'a>, name: &str) -> Result<Option<&'a str>, OpenAiError> {
    let Some(value) = request.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    let not_text = || OpenAiError::new(Code::TypeMismatch, name, format!("`{name}` must be a string"));
    value.as_str().map(Some).ok_or_else(not_text)
}

fn keyword<T: std::str::FromStr<Err = cog_spec::ParseEnumError>>(
    request: Node<'_>,
    name: &str,
) -> Result<Option<T>, OpenAiError> {
    let Some(value) = text(request, name)? else { return Ok(None) };
    let value = value
        .parse()
        .map_err(|error| OpenAiError::new(Code::UnsupportedValue, name, format!("`{name}`: {error}")))?;
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    fn refused(request: &str) -> Option<String> {
        let value = Value::parse(request).unwrap();
        check(value.node()).err().map(|error| format!("{error:?}"))
    }

    #[test]
    fn parameters_that_change_nothing_are_accepted() {
        for request in [
            r#"{"n": 1, "temperature": 1.0, "top_p": 1, "store": false, "stream": false}"#,
            r#"{"tools": null, "max_tokens": null, "seed": null}"#,
            r#"{"user": "me", "metadata": {"a": "b"}, "modalities": ["text"]}"#,
        ] {
            assert_eq!(refused(request), None, "{request}");
        }
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
            ("modalities", r#"["text", "audio"]"#),
        ] {
            let error = refused(&format!("{{\"{name}\": {value}}}")).unwrap();
            assert!(error.contains("E1004") || error.contains("UnsupportedValue"), "{error}");
            assert!(error.contains(&format!("`{name}` is not supported")), "{error}");
        }
    }

    #[test]
    fn options_have_the_values_of_the_runtime() {
        let request = Value::parse(r#"{"reasoning_effort": "low", "service_tier": "default"}"#).unwrap();
        let mut options = RunOptions::default();
        set_options(request.node(), &mut options).unwrap();
        assert_eq!(options.generation.effort.map(|effort| effort.as_str()), Some("low"));
        assert_eq!(options.generation.service_tier, None);
        let request = Value::parse(r#"{"verbosity": "loud"}"#).unwrap();
        let error = format!("{:?}", set_options(request.node(), &mut options).unwrap_err());
        assert!(error.contains("low, medium, high"), "{error}");
    }
}
