//! Parts and tool calls in the formats of vendors, for requests and for converted histories.
//!
//! Each function writes the members of one object, so that its caller can add others. Which messages form a turn, and where a
//! format has results and their media, is not here: a request follows the settings of its model, and a converted history
//! what was read (docs/decisions.md).

pub mod anthropic;
pub mod gemini;
pub mod openai_chat;
pub mod openai_responses;

use cog_json::{Node, Value, Writer};

use crate::{Message, Part, ToolCall};

/// A step of an assistant's message, in the order in which the model generated it.
#[derive(Debug)]
pub enum Step<'a> {
    /// An item of the reasoning, to be sent back unchanged.
    Reasoning(Node<'a>),
    /// The content.
    Content,
    /// A call, with the vendor's own item of it if the reasoning has one.
    Call(&'a ToolCall, Option<Node<'a>>),
}

/// Returns the steps of an assistant's message. The items of its reasoning can contain calls, which `id_key` identifies, to show
/// the order of the items after the first call.
pub fn steps<'a>(message: &'a Message, items: &'a [Value], id_key: &str) -> Vec<Step<'a>> {
    let is_call = |item: &Value| item.get(id_key).is_some() && item.get("name").is_some();
    let (before, after) = items.split_at(items.iter().position(is_call).unwrap_or(items.len()));
    let mut steps: Vec<Step<'_>> = before.iter().map(|item| Step::Reasoning(item.node())).collect();
    steps.push(Step::Content);
    let mut missing: Vec<&ToolCall> = message.tool_calls.iter().collect();
    for item in after {
        let id = item.get(id_key).and_then(Node::as_str);
        match missing.iter().position(|call| Some(call.id.as_str()) == id) {
            Some(index) => steps.push(Step::Call(missing.remove(index), Some(item.node()))),
            None if is_call(item) => {}
            None => steps.push(Step::Reasoning(item.node())),
        }
    }
    steps.extend(missing.into_iter().map(|call| Step::Call(call, None)));
    steps
}

/// Writes the arguments of a call as an object. A model can generate invalid JSON, which becomes the member
/// `invalid_arguments`; then the function returns `false`.
pub fn write_arguments(w: &mut Writer<'_>, call: &ToolCall) -> bool {
    write_object(w, &call.arguments, "invalid_arguments")
}

/// Writes a text that is a JSON object. Any other text becomes the member `otherwise` of one, and an empty text an empty
/// object. Returns whether nothing became such a member.
pub fn write_object(w: &mut Writer<'_>, text: &str, otherwise: &str) -> bool {
    if let Some(value) = Value::parse(text).ok().filter(Value::is_object) {
        w.node(value.node());
        return true;
    }
    let is_empty = text.trim().is_empty();
    w.object(|w| {
        if !is_empty {
            w.field(otherwise, text);
        }
    });
    is_empty
}

/// Returns whether the result of a call is JSON that reports an error (appendix A.2.2).
pub fn reports_error(message: &Message) -> bool {
    let text = message.content.iter().find_map(Part::as_text).unwrap_or_default();
    let value = text.contains("\"error\"").then(|| Value::parse(text).ok()).flatten();
    value.is_some_and(|value| value.get("status").and_then(Node::as_str) == Some("error"))
}

/// Returns the media type and the base64 data of a `data:` URL.
pub fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    #[test]
    fn items_of_reasoning_show_the_order_of_calls() {
        let call = |id: &str| ToolCall::new(id, "f", "{}");
        let message = Message { tool_calls: vec![call("a"), call("b")], ..Message::assistant("x") };
        let items = Value::parse(
            r#"[{"id":"rs_1"},{"id":"b","name":"f"},{"id":"removed","name":"f"},{"name":"rs_2"}]"#,
        );
        let items: Vec<Value> = items.unwrap().node().elements().map(Node::to_value).collect();
        let steps: Vec<String> = steps(&message, &items, "id")
            .into_iter()
            .map(|step| match step {
                Step::Reasoning(item) => item.to_string(),
                Step::Content => "content".to_owned(),
                Step::Call(call, item) => format!("call {} {}", call.id, item.is_some()),
            })
            .collect();
        let expected = [r#"{"id":"rs_1"}"#, "content", "call b true", r#"{"name":"rs_2"}"#, "call a false"];
        assert_eq!(steps, expected);
    }

    #[test]
    fn text_is_written_as_an_object() {
        for (text, expected, is_kept) in [
            (r#"{"q": 1}"#, r#"{"q":1}"#, true),
            (" ", "{}", true),
            ("[1]", r#"{"text":"[1]"}"#, false),
            ("{", r#"{"text":"{"}"#, false),
        ] {
            let mut out = String::new();
            assert_eq!(write_object(&mut Writer::compact(&mut out), text, "text"), is_kept, "{text}");
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn error_of_a_tool_is_json_with_its_status() {
        for (text, expected) in [
            (r#"{"status":"error"}"#, true),
            (r#"{"status":"success","message":"error"}"#, false),
            (r#"{"error":"error"}"#, false),
            (r#""error""#, false),
            (r#"the status is "error""#, false),
            ("", false),
        ] {
            let message = Message::new(Role::Tool, vec![Part::text(text)]);
            assert_eq!(reports_error(&message), expected, "{text}");
        }
    }
}
