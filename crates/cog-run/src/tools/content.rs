//! The results of calls as the model receives them: JSON with `status` (appendix A.2.2).

use cog_harmony::{ImagePart, Message, Part, Role, ToolCall};
use cog_json::{ToJson as _, Value, Writer};
use cog_spec::Usage;

use super::state::CallNote;
use crate::tool::{ToolError, ToolOutput};

/// The message of a halted call (appendix A, exercise 2).
const HALTED: &str = "This call needs a confirmation and was not executed. You MUST request an explicit \
    confirmation (type 'YES') from the user before proceeding. Do not call this tool again until the confirmation is received.";

/// The reason of a halted call.
pub const CONFIRMATION_REQUIRED: &str = "human_confirmation_required";

/// Returns the message with the result of a call.
pub(super) fn message(call: &ToolCall, content: Vec<Part>) -> Message {
    Message {
        name: Some(call.name.clone()).filter(|name| !name.is_empty()),
        tool_call_id: Some(call.id.clone()),
        ..Message::new(Role::Tool, content)
    }
}

/// Returns the content of a successful result: `{status: success, …}`, then its other parts.
pub(super) fn success(output: ToolOutput) -> Vec<Part> {
    let text = json(|w| {
        let value = output.value.as_ref();
        let object = value.filter(|value| value.is_object());
        if object.is_none_or(|object| object.get("status").is_none()) {
            w.field("status", "success");
        }
        match object {
            Some(object) => object.members().for_each(|(key, member)| {
                w.field(key, &member);
            }),
            None => {
                w.optional("result", &value);
            }
        }
    });
    [Part::text(text)].into_iter().chain(output.parts).collect()
}

/// Returns the content of a failure: `{status: error, error_type, message}`.
pub(super) fn failure(error: &ToolError) -> Vec<Part> {
    vec![Part::text(json(|w| {
        w.field("status", "error");
        w.field("error_type", &error.error_type);
        w.optional("code", &error.code.as_ref().map(|code| code.as_str().to_owned()));
        w.field("message", &error.message);
        w.optional("details", &error.details);
    }))]
}

/// Returns the content of a call that waits for a confirmation.
pub(super) fn halted() -> Vec<Part> {
    vec![Part::text(json(|w| {
        w.field("status", "halted");
        w.field("reason", CONFIRMATION_REQUIRED);
        w.field("message", HALTED);
    }))]
}

/// Returns the size of a result in bytes.
pub(super) fn size(output: &ToolOutput) -> usize {
    let value = output.value.as_ref().map_or(0, |value: &Value| value.to_json().len());
    output.parts.iter().fold(value, |size, part| size.saturating_add(size_of(part)))
}

fn size_of(part: &Part) -> usize {
    match part {
        Part::Text(part) => part.text.len(),
        Part::Image(ImagePart { url, .. }) => url.len(),
        Part::Audio(part) => part.data.len(),
        Part::File(part) => part.data.len(),
        _ => part.to_json().len(),
    }
}

fn json(members: impl FnOnce(&mut Writer<'_>)) -> String {
    let mut text = String::new();
    Writer::compact(&mut text).object(members);
    text
}

/// A call that has a result.
pub(super) struct Done {
    pub(super) message: Message,
    /// The status is `success`, or the type of the error.
    pub(super) note: CallNote,
    pub(super) usage: Option<Usage>,
    pub(super) is_high_risk: bool,
}

impl Done {
    pub(super) fn success(call: &ToolCall, output: ToolOutput) -> Self {
        let usage = output.usage.clone();
        let is_high_risk = output.is_high_risk;
        let done = Self::new(call, success(output), "success".to_owned());
        Self { usage, is_high_risk, ..done }
    }

    pub(super) fn failure(call: &ToolCall, error: &ToolError) -> Self {
        let status = match &error.code {
            Some(code) => format!("{} {}", code.as_str(), error.error_type),
            None => error.error_type.clone(),
        };
        let usage = error.usage.as_deref().cloned();
        Self { usage, ..Self::new(call, failure(error), status) }
    }

    fn new(call: &ToolCall, content: Vec<Part>, status: String) -> Self {
        let note = CallNote { id: call.id.clone(), tool: call.name.clone(), status };
        Self { message: message(call, content), note, usage: None, is_high_risk: false }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(content: &[Part]) -> serde_json::Value {
        serde_json::from_str(content[0].as_text().unwrap()).unwrap()
    }

    #[test]
    fn success_starts_with_its_status() {
        let output = ToolOutput::from(json!({ "results": [1] }));
        assert_eq!(success(output)[0].as_text().unwrap(), r#"{"status":"success","results":[1]}"#);
        assert_eq!(text(&success(json!([1]).into())), json!({ "status": "success", "result": [1] }));
        assert_eq!(text(&success("fine".into())), json!({ "status": "success", "result": "fine" }));
        assert_eq!(text(&success(ToolOutput::default())), json!({ "status": "success" }));
        let own = json!({ "status": "rendered_successfully" });
        assert_eq!(text(&success(own.clone().into())), own);
    }

    #[test]
    fn image_follows_the_text() {
        let image = Part::image_at("https://h.example/chart.png");
        let content =
            success(ToolOutput { parts: vec![image.clone()], ..ToolOutput::from(json!({ "width": 3 })) });
        assert_eq!(text(&content), json!({ "status": "success", "width": 3 }));
        assert_eq!(content[1], image);
    }

    #[test]
    fn failure_has_type_and_message() {
        let error = ToolError::new("InvalidDateRange", "The year 2023 is in the future.");
        let expected = json!({ "status": "error", "error_type": "InvalidDateRange",
            "message": "The year 2023 is in the future." });
        assert_eq!(text(&failure(&error)), expected);
        let denied = ToolError::with_code(cog_spec::Code::PermissionDenied, "no");
        let denied = text(&failure(&denied));
        assert_eq!((&denied["error_type"], &denied["code"]), (&json!("PERMISSION_DENIED"), &json!("E4007")));
    }
}
