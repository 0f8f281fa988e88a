//! Reads and checks the arguments of a call, before its tool runs.

use cog_json::{Limits, Parser, Tolerance, Value};
use cog_schema::Violation;
use cog_spec::Code;

use crate::tool::{ToolError, ToolInfo};

/// The maximum number of violations in a message; the details contain all of them.
const MAX_LISTED: usize = 20;

/// Reads the arguments of a call. An empty text is an empty object, as vendors send it for a tool without parameters.
///
/// # Errors
/// E1000 for a string that is not a JSON object or has duplicate keys, E1001 with every violation of the schema.
pub(super) fn read(info: &ToolInfo, text: &str, max_bytes: usize) -> Result<Value, ToolError> {
    let value = parse(text, max_bytes)?;
    let violations = info.schema.check(value.node());
    if violations.is_empty() {
        return Ok(value);
    }
    // Strict dialects have no optional members: a null replaces one that is omitted.
    match info.schema.without_nulls(value.node()) {
        Some(value) if info.schema.check(value.node()).is_empty() => Ok(value),
        _ => Err(violated(&violations)),
    }
}

/// Returns arguments as a provider accepts them: the text of a JSON object.
pub(super) fn for_message(text: &str) -> &str {
    let is_object = Value::parse(text).is_ok_and(|value| value.is_object());
    if is_object { text } else { "{}" }
}

fn parse(text: &str, max_bytes: usize) -> Result<Value, ToolError> {
    if text.trim().is_empty() {
        return Value::parse("{}").map_err(|error| not_json(&error.to_string()));
    }
    if text.len() > max_bytes {
        let message = format!("the arguments have {} bytes; at most {max_bytes} are allowed", text.len());
        return Err(ToolError::with_code(Code::InputTooLarge, message));
    }
    let mut parser = Parser::strict(Limits::default());
    let pushed = parser.push(text.as_bytes(), &mut |_| {});
    let read = pushed.and_then(|()| parser.finish(&mut |_| {}));
    read.map_err(|error| not_json(&error.to_string()))?;
    if parser.deviations().iter().any(|found| found.rule == Tolerance::DuplicateKey) {
        return Err(not_json("a key occurs twice in one object"));
    }
    let value = parser.into_value().unwrap_or_default();
    if value.is_object() { Ok(value) } else { Err(not_json("they are not an object")) }
}

fn not_json(reason: &str) -> ToolError {
    let message = format!(
        "the arguments must be one JSON object: {reason}. Nothing was executed; send the call again."
    );
    ToolError::with_code(Code::ParseError, message)
}

fn violated(violations: &[Violation]) -> ToolError {
    let list = violations.iter().take(MAX_LISTED);
    let list: Vec<_> = list.map(|found| format!("{}: {}", found.path, found.message)).collect();
    let more = if violations.len() > MAX_LISTED { "; …" } else { "" };
    let message = format!("the arguments violate the schema of the tool: {}{more}", list.join("; "));
    let details = serde_json::json!({ "violations": violations });
    ToolError { details: Some(Value::from(details)), ..ToolError::with_code(Code::InvalidInput, message) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn info() -> ToolInfo {
        let parameters = json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": { "a": { "type": "integer" }, "b": { "type": "string" } },
        });
        ToolInfo::new("t", "Does it.", &Value::from(parameters)).unwrap()
    }

    fn error(text: &str) -> ToolError {
        read(&info(), text, 1000).unwrap_err()
    }

    #[test]
    fn every_violation_is_reported() {
        let error = error(r#"{"b": 1, "c": 2}"#);
        assert_eq!(error.code, Some(Code::InvalidInput.into()));
        let details = error.details.unwrap().to_serde();
        let mut paths: Vec<_> =
            details["violations"].as_array().unwrap().iter().map(|it| &it["path"]).collect();
        paths.sort_by_key(|path| path.to_string());
        assert_eq!(paths, [&json!("arguments.a"), &json!("arguments.b"), &json!("arguments.c")]);
    }

    #[test]
    fn null_of_an_optional_member_is_removed() {
        assert_eq!(read(&info(), r#"{"a": 1, "b": null}"#, 1000).unwrap().to_serde(), json!({ "a": 1 }));
        assert!(read(&info(), r#"{"a": null}"#, 1000).is_err());
    }

    #[test]
    fn numbers_stay_as_they_were_written() {
        let parameters = Value::parse(
            r#"{"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {}}"#,
        );
        let info = ToolInfo::new("t", "Does it.", &parameters.unwrap()).unwrap();
        let numbers =
            r#""id":12345678901234567890123,"d":3.14159265358979323846,"amount":[100.00,{"x":-0.0}]"#;
        let read = read(&info, &format!(r#"{{"b":null,{numbers}}}"#), 1000).unwrap();
        assert_eq!(read.to_string(), format!("{{{numbers}}}"));
    }

    #[test]
    fn rejects_texts_that_are_not_one_object() {
        for text in [r#"{"a": 1"#, "[1]", "7", r#"{"a": 1} {"a": 2}"#, r#"{"a": 1, "a": 2}"#, "{'a': 1}"] {
            assert_eq!(error(text).code, Some(Code::ParseError.into()), "{text}");
        }
        let long = format!(r#"{{"a": 1, "b": "{}"}}"#, "x".repeat(1000));
        assert_eq!(error(&long).code, Some(Code::InputTooLarge.into()));
    }

    #[test]
    fn empty_text_is_an_empty_object() {
        let info = ToolInfo::new("t", "Does it.", &Value::parse("{}").unwrap()).unwrap();
        assert_eq!(read(&info, "", 1000).unwrap().to_serde(), json!({}));
        assert_eq!(
            (for_message(""), for_message(r#"{"a""#), for_message(r#"{"a":1}"#)),
            ("{}", "{}", r#"{"a":1}"#)
        );
    }
}
