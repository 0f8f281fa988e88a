//! The results of calls as the model receives them: JSON with `status`, then media (appendix A.2.2).
//!
//! Media are what their content says they are. A result over the size limit is shortened, and one with media that the model does
//! not accept says so: a call that took effect never ends the run.

use cog_harmony::{Message, Part, Role, ToolCall, wire::data_url};
use cog_json::{ToJson as _, Value, Writer};
use cog_media::{Store, decode_base64, modality_of, sniff};
use cog_provider::ProviderInfo;
use cog_spec::{Modality, Usage, Warning, WarningCode};

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

/// A call that has a result.
pub(super) struct Done {
    pub(super) message: Message,
    /// The status is `success`, or the type of the error.
    pub(super) note: CallNote,
    pub(super) usage: Option<Usage>,
    pub(super) is_high_risk: bool,
}

impl Done {
    /// Returns the result of a call of at most `max` bytes.
    pub(super) fn success(call: &ToolCall, output: ToolOutput, max: usize) -> Self {
        let ToolOutput { value, parts, usage, is_high_risk } = output;
        let content = success(value, parts, max);
        Self { usage, is_high_risk, ..Self::new(call, content, "success".to_owned()) }
    }

    /// Returns the error of a call of at most `max` bytes.
    pub(super) fn failure(call: &ToolCall, mut error: ToolError, max: usize) -> Self {
        let status = match &error.code {
            Some(code) => format!("{} {}", code.as_str(), error.error_type),
            None => error.error_type.clone(),
        };
        let usage = error.usage.take().map(|usage| *usage);
        Self { usage, ..Self::new(call, failure(error, max), status) }
    }

    fn new(call: &ToolCall, content: Vec<Part>, status: String) -> Self {
        let note = CallNote { id: call.id.clone(), tool: call.name.clone(), status };
        Self { message: message(call, content), note, usage: None, is_high_risk: false }
    }
}

/// Returns the content of a successful result: `{status: success, …}`, then its other parts.
fn success(value: Option<Value>, parts: Vec<Part>, max: usize) -> Vec<Part> {
    let value = value.map(|value| shortened_value(value, max));
    let room = max.saturating_sub(value.as_ref().map_or(0, |value| value.to_json().len()));
    let (parts, left_out) = checked(parts, room);
    let text = json(|w| {
        let object = value.as_ref().filter(|value| value.is_object() && !is_ambiguous(value, &left_out));
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
        w.optional("left_out", &left_out);
    });
    [Part::text(text)].into_iter().chain(parts).collect()
}

/// Returns whether the members of a result would say what only the runtime says: that the call failed or waits, or what was left
/// out. A status of its own is the tool's, as in the example of appendix A.2.3.
fn is_ambiguous(object: &Value, left_out: &Option<Vec<String>>) -> bool {
    let status = object.get("status").and_then(|status| status.as_str());
    matches!(status, Some("error" | "halted")) || (left_out.is_some() && object.get("left_out").is_some())
}

/// Returns the content of a failure: `{status: error, error_type, message}`, then its other parts.
fn failure(error: ToolError, max: usize) -> Vec<Part> {
    let ToolError { error_type, message, code, details, parts, .. } = error;
    let message = shortened(message, max);
    let room = max.saturating_sub(message.len());
    let details = details.map(|details| shortened_value(details, room));
    let room = room.saturating_sub(details.as_ref().map_or(0, |details| details.to_json().len()));
    let (parts, left_out) = checked(parts, room);
    let text = json(|w| {
        w.field("status", "error");
        w.field("error_type", &error_type);
        w.optional("code", &code.as_ref().map(|code| code.as_str().to_owned()));
        w.field("message", &message);
        w.optional("details", &details);
        w.optional("left_out", &left_out);
    });
    [Part::text(text)].into_iter().chain(parts).collect()
}

/// Returns the content of a call that waits for a confirmation.
pub(super) fn halted() -> Vec<Part> {
    vec![Part::text(json(|w| {
        w.field("status", "halted");
        w.field("reason", CONFIRMATION_REQUIRED);
        w.field("message", HALTED);
    }))]
}

fn json(members: impl FnOnce(&mut Writer<'_>)) -> String {
    let mut text = String::new();
    Writer::compact(&mut text).object(members);
    text
}

// Results that are too long.

/// Returns a value of at most about `max` bytes of JSON. A longer one becomes a string.
fn shortened_value(value: Value, max: usize) -> Value {
    match value.as_str().map(str::to_owned) {
        Some(text) if text.len() > max => serde_json::Value::from(shortened(text, max)).into(),
        Some(_) => value,
        None => {
            let text = value.to_json();
            if text.len() > max { serde_json::Value::from(shortened(text, max)).into() } else { value }
        }
    }
}

/// Shortens a string in its middle: its beginning says what it is, and its end how it ended.
fn shortened(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    let start = text.floor_char_boundary(max / 2);
    let end = text.ceil_char_boundary(text.len() - max / 2);
    let [first, last] = [text.get(..start), text.get(end..)].map(Option::unwrap_or_default);
    format!(
        "{first}\n[{} of {} bytes are left out here; request a smaller part]\n{last}",
        end - start,
        text.len()
    )
}

// Media.

/// Returns the media of a result by their content, as many as `room` bytes hold, and a sentence about each of the others.
fn checked(parts: Vec<Part>, mut room: usize) -> (Vec<Part>, Option<Vec<String>>) {
    let mut left_out = Vec::new();
    let mut kept = Vec::new();
    for part in parts {
        let size = part.content_len();
        match by_content(part) {
            Ok(_) if size > room => {
                left_out.push(format!("media of {size} bytes: over the size limit of results"));
            }
            Ok(part) => {
                room -= size;
                kept.push(part);
            }
            Err(reason) => left_out.push(reason),
        }
    }
    (kept, Some(left_out).filter(|left_out| !left_out.is_empty()))
}

/// Returns a part with the media type of its content.
fn by_content(part: Part) -> Result<Part, String> {
    let Some((declared, data)) = inline(&part) else { return Ok(part) };
    let decoded = decode_base64(data, Store::with_limit(u64::MAX));
    let bytes = decoded.map_err(|error| format!("{declared}: {error}"))?;
    match sniff(bytes.head()) {
        Some(found) if found == declared => Ok(part),
        Some(found) => Ok(Part::media(found, data.to_owned())),
        None if declared.starts_with("text/") => Ok(part),
        None => Err(format!("{declared}, {} bytes: the content has another, unknown type", bytes.len())),
    }
}

/// The characters of base64 whose bytes decide the type of a file.
const HEAD: usize = 8192 / 3 * 4;

/// Returns the type of a media file from its base64; none if the text is not base64, or not of a known file.
pub fn media_type_of_base64(text: &str) -> Option<&'static str> {
    let head = text.get(..HEAD.min(text.len()))?;
    let bytes = decode_base64(head, Store::with_limit(u64::MAX)).ok()?;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    sniff(bytes.head()).filter(|_| text.bytes().all(is_base64))
}

/// Returns the media type and the base64 of a part that contains its data.
fn inline(part: &Part) -> Option<(String, &str)> {
    match part {
        Part::Image(image) => data_url(&image.url).map(|(media_type, data)| (media_type.to_owned(), data)),
        Part::Audio(audio) => {
            let format = if audio.format == "mp3" { "mpeg" } else { &audio.format };
            Some((format!("audio/{format}"), &audio.data))
        }
        Part::File(file) => Some((file.media_type.clone(), &file.data)),
        _ => None,
    }
}

/// Leaves out the media in the results of tools that a model does not accept, and says so in the result. Returns a warning about the
/// first.
pub(crate) fn fit_media(info: &ProviderInfo, model: &str, messages: &mut [Message]) -> Option<Warning> {
    let accepted = info.input_media(model);
    let accepts = |part: &Part| match inline(part) {
        Some((media_type, _)) => {
            let kind = modality_of(&media_type);
            kind.is_some_and(|kind| accepted.contains(&kind)) && info.formats.types.contains(&&*media_type)
        }
        None => match part {
            Part::Image(_) => info.formats.by_url && accepted.contains(&Modality::Image),
            _ => true,
        },
    };
    let model = info.model_or_default(model);
    let mut warning = None;
    for message in messages.iter_mut().filter(|message| message.role == Role::Tool) {
        let all = std::mem::take(&mut message.content);
        let (kept, refused): (Vec<Part>, Vec<Part>) = all.into_iter().partition(accepts);
        message.content = kept;
        if refused.is_empty() {
            continue;
        }
        let about = |part: &Part| match inline(part) {
            Some((media_type, data)) => format!("{media_type}, {} bytes", data.len() / 4 * 3),
            None => "an image at a URL".to_owned(),
        };
        let reasons = refused.iter().map(|part| format!("{}: {model} does not accept it", about(part)));
        let reasons: Vec<String> = reasons.collect();
        warning.get_or_insert_with(|| {
            let tool = message.name.as_deref().unwrap_or_default();
            let name = &info.name;
            let text = format!("media of `{tool}` were not sent to {name}/{model}: {}", reasons.join("; "));
            Warning::new(WarningCode::ResultMediaMoved, text)
        });
        note(&mut message.content, &reasons);
    }
    warning
}

/// Adds to the JSON of a result what is left out.
fn note(content: &mut Vec<Part>, reasons: &[String]) {
    let text = content.first().and_then(Part::as_text).map(Value::parse);
    let object = text.and_then(Result::ok).filter(Value::is_object);
    let noted = Part::text(json(|w| {
        let before = object.iter().flat_map(Value::members).filter(|(key, _)| *key != "left_out");
        before.for_each(|(key, member)| {
            w.field(key, &member);
        });
        let earlier = object.as_ref().and_then(|object| object.get("left_out"));
        let earlier = earlier.into_iter().flat_map(|list| list.elements()).filter_map(|it| it.as_str());
        let all: Vec<&str> = earlier.chain(reasons.iter().map(String::as_str)).collect();
        w.field("left_out", &all);
    }));
    match (object.is_some(), content.first_mut()) {
        (true, Some(first)) => *first = noted,
        _ => content.push(noted),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

    fn text(content: &[Part]) -> serde_json::Value {
        serde_json::from_str(content[0].as_text().unwrap()).unwrap()
    }

    fn content(output: impl Into<ToolOutput>) -> Vec<Part> {
        let ToolOutput { value, parts, .. } = output.into();
        success(value, parts, 10_000)
    }

    fn with_parts(parts: Vec<Part>, max: usize) -> Vec<Part> {
        success(Some(json!({ "width": 3 }).into()), parts, max)
    }

    #[test]
    fn success_starts_with_its_status() {
        let output = content(json!({ "results": [1] }));
        assert_eq!(output[0].as_text().unwrap(), r#"{"status":"success","results":[1]}"#);
        assert_eq!(text(&content(json!([1]))), json!({ "status": "success", "result": [1] }));
        assert_eq!(text(&content("fine")), json!({ "status": "success", "result": "fine" }));
        assert_eq!(text(&content(ToolOutput::default())), json!({ "status": "success" }));
        let own = json!({ "status": "rendered_successfully" });
        assert_eq!(text(&content(own.clone())), own);
    }

    #[test]
    fn media_follow_the_text_with_the_type_of_their_content() {
        let at_url = Part::image_at("https://h.example/chart.png");
        let png = Part::media("image/png", PNG.to_owned());
        let mistaken = Part::media("image/jpeg", PNG.to_owned());
        let parts = with_parts(vec![at_url.clone(), mistaken, png.clone()], 1000);
        assert_eq!(text(&parts), json!({ "status": "success", "width": 3 }));
        assert_eq!(parts[1..], [at_url, png.clone(), png.clone()]);
        let broken = Part::media("image/png", "a b".to_owned());
        let unknown = Part::media("image/png", "QUJD".to_owned());
        let parts = with_parts(vec![broken, unknown, png.clone(), png], 200);
        assert_eq!(parts.len(), 2);
        let left_out = text(&parts)["left_out"].as_array().unwrap().clone();
        assert_eq!(left_out.len(), 3, "{left_out:?}");
    }

    #[test]
    fn long_result_is_shortened_in_its_middle() {
        let lines: String = (0..500).map(|line| format!("line {line}\n")).collect();
        let sent = text(&success(Some(json!(lines).into()), Vec::new(), 200));
        let sent = sent["result"].as_str().unwrap();
        assert!(sent.starts_with("line 0\nline 1\n") && sent.ends_with("line 498\nline 499\n"), "{sent}");
        assert!(sent.contains("bytes are left out here") && sent.len() < 300, "{sent}");
        let list = success(Some(json!({ "rows": vec!["äöü"; 500] }).into()), Vec::new(), 201);
        assert!(text(&list)["result"].as_str().unwrap().starts_with(r#"{"rows":["äöü""#));
        let error = ToolError { details: Some(json!(lines).into()), ..ToolError::new("E", lines.clone()) };
        let sent = text(&failure(error, 200));
        assert!(
            sent["message"].as_str().unwrap().ends_with("line 499\n") && sent.to_string().len() < 600,
            "{sent}"
        );
    }

    #[test]
    fn media_that_a_model_does_not_accept_are_left_out() {
        let png = Part::media("image/png", PNG.to_owned());
        let svg = Part::media("image/svg+xml", "PHN2Zy8+".to_owned());
        let wav = Part::media("audio/wav", "UklGRgAAAABXQVZF".to_owned());
        let call = ToolCall::new("1", "shot", "{}");
        let mut messages = [message(&call, with_parts(vec![png.clone(), svg, wav], 10_000))];
        let mut info = ProviderInfo::new("p", "m");
        info.input = &[Modality::Text, Modality::Image];
        let warning = fit_media(&info, "", &mut messages).unwrap();
        assert!(warning.message.starts_with("media of `shot` were not sent to p/m: image/svg+xml"));
        assert_eq!(messages[0].content.len(), 2);
        assert_eq!(messages[0].content[1], png);
        let sent = text(&messages[0].content);
        assert_eq!((&sent["width"], sent["left_out"].as_array().unwrap().len()), (&json!(3), 2));
        info.input = &[Modality::Text];
        assert!(
            fit_media(&info, "", &mut messages).is_some() && fit_media(&info, "", &mut messages).is_none()
        );
        let sent = text(&messages[0].content);
        assert_eq!((messages[0].content.len(), sent["left_out"].as_array().unwrap().len()), (1, 3));
    }

    #[test]
    fn failure_has_type_and_message() {
        let error = ToolError::new("InvalidDateRange", "The year 2023 is in the future.");
        let expected = json!({ "status": "error", "error_type": "InvalidDateRange",
            "message": "The year 2023 is in the future." });
        assert_eq!(text(&failure(error, 1000)), expected);
        let denied = ToolError::with_code(cog_spec::Code::PermissionDenied, "no");
        let denied = text(&failure(denied, 1000));
        assert_eq!((&denied["error_type"], &denied["code"]), (&json!("PERMISSION_DENIED"), &json!("E4007")));
        let image = Part::media("image/png", PNG.to_owned());
        let error = ToolError { parts: vec![image.clone()], ..ToolError::new("E", "see the image") };
        assert_eq!(failure(error, 1000)[1], image);
    }
}
