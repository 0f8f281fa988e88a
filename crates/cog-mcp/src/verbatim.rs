//! Arguments and results as they were written.
//!
//! `rmcp` holds both as `serde_json::Value`, which rounds numbers and drops duplicate keys. So they pass through it as text: arguments
//! as an object with one member, structured content as a string. The text enters a message after `rmcp` has written it, and leaves it
//! before `rmcp` reads it.

use std::{borrow::Cow, str};

use cog_json::{Limits, Parser, ToJson as _, Tolerance, Value};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The member with the text of the arguments.
const TEXT: &str = "$cog_text";
/// How an object with this member begins. JSON has these bytes nowhere else, since a string contains no bare quotation mark.
const START: &str = r#"{"$cog_text":"#;

/// Returns arguments as `rmcp` holds them.
pub(crate) fn arguments(arguments: &Value) -> JsonObject {
    let text = if arguments.is_object() { arguments.to_json() } else { "{}".to_owned() };
    JsonObject::from_iter([(TEXT.to_owned(), text.into())])
}

/// Returns a message to a server with its arguments as they were written.
pub(crate) fn outgoing(message: &str) -> Cow<'_, str> {
    let expanded = || {
        let (before, rest) = message.split_once(START)?;
        let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let text = strings.next()?.ok()?;
        let after = rest.get(strings.byte_offset()..)?.strip_prefix('}')?;
        Some(Cow::Owned([before, &text, after].concat()))
    };
    expanded().unwrap_or(Cow::Borrowed(message))
}

/// A message of a server, as far as its numbers matter.
#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallResult<'a> {
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
}

/// Returns a message of a server whose structured content is the string of its text.
pub(crate) fn incoming(message: &str) -> Cow<'_, str> {
    let packed = || {
        let result = serde_json::from_str::<Reply<'_>>(message).ok()?.result?;
        let text = serde_json::from_str::<CallResult<'_>>(result.get()).ok()?.structured?.get();
        // The text is a part of the message.
        let start = text.as_ptr().addr().checked_sub(message.as_ptr().addr())?;
        let (before, after) = (message.get(..start)?, message.get(start + text.len()..)?);
        Some(Cow::Owned([before, &text.to_json(), after].concat()))
    };
    packed().unwrap_or(Cow::Borrowed(message))
}

/// Returns structured content from what `rmcp` holds. One with a key that occurs twice in an object stays a text: the model
/// sees all of it.
pub(crate) fn structured(content: serde_json::Value) -> Value {
    match content {
        serde_json::Value::String(text) => parse(&text).unwrap_or_else(|| string(text)),
        other => Value::from(other),
    }
}

/// Returns the result of a tool whose content is text: an object if the text is one, otherwise the text.
pub(crate) fn result(text: String) -> Value {
    parse(&text).filter(Value::is_object).unwrap_or_else(|| string(text))
}

fn string(text: String) -> Value {
    serde_json::Value::String(text).into()
}

/// Parses a text; none if it is not JSON, or an object has a key twice.
fn parse(text: &str) -> Option<Value> {
    let mut parser = Parser::strict(Limits::default());
    parser.push(text.as_bytes(), &mut |_| {}).and_then(|()| parser.finish(&mut |_| {})).ok()?;
    let has_duplicate = parser.deviations().iter().any(|found| found.rule == Tolerance::DuplicateKey);
    parser.into_value().filter(|_| !has_duplicate)
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolRequestParams, ServerJsonRpcMessage};
    use serde_json::json;

    use super::*;

    const NUMBERS: &str = r#"{"id":12345678901234567890123,"d":3.14159265358979323846,"a":[100.00,{"x":-0.0}],"t":"{\"$cog_text\":\"1\"}"}"#;

    #[test]
    fn arguments_reach_the_server_as_they_were_written() {
        let mut params = CallToolRequestParams::new(r#"{"$cog_text":"x"}"#);
        params.arguments = Some(arguments(&Value::parse(NUMBERS).unwrap()));
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let sent = outgoing(&message).into_owned();
        assert!(sent.contains(&format!(r#""arguments":{NUMBERS}"#)), "{sent}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&sent).unwrap()["params"]["name"],
            params.name.as_ref()
        );
        for message in [r#"{"method":"a"}"#, r#"{"$cog_text":7}"#, r#"{"$cog_text":"1""#, ""] {
            assert_eq!(outgoing(message), message);
        }
    }

    #[test]
    fn structured_content_arrives_as_it_was_written() {
        for text in [NUMBERS, "12345678901234567890123", r#""a""#, "[1.0, 1e5]", r#"{"a": 1, "a": 2}"#] {
            let result = format!(r#"{{"content":[],"structuredContent": {text} ,"isError":false}}"#);
            let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            let read: ServerJsonRpcMessage = serde_json::from_str(&incoming(&message)).unwrap();
            let read = serde_json::to_value(read).unwrap();
            let content = structured(read["result"]["structuredContent"].clone());
            let expected =
                if text.contains("a\": 2") { string(text.to_owned()) } else { Value::parse(text).unwrap() };
            assert_eq!(content.to_json(), expected.to_json());
        }
        let others = [
            r#"{"result":{"content":[]}}"#,
            r#"{"method":"structuredContent"}"#,
            "{",
            "",
            r#"{"result":null}"#,
        ];
        for message in others {
            assert_eq!(incoming(message), message);
        }
    }

    #[test]
    fn text_with_an_object_is_that_object() {
        assert_eq!(result(NUMBERS.to_owned()).to_json(), NUMBERS);
        for text in ["[1.0]", "1.0", "no JSON", r#"{"a": 1, "a": 2}"#] {
            assert_eq!(result(text.to_owned()), string(text.to_owned()));
        }
    }
}
