//! Parts and tool calls in the formats of vendors, for requests and for converted histories.
//!
//! Each function writes the members of one object, so that its caller can add others. Which messages form a turn, and where a
//! format has results and their media, is not here: a request follows the settings of its model, and a converted history
//! what was read (docs/decisions/042-one-module-for-vendor-formats.md).

use cog_json::{Node, Value, Writer};

use crate::{
    AudioPart, Detail, FilePart, FileReferencePart, FileSource, ImagePart, Message, Part, ToolCall,
    other::member,
};

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
    let first_call = items.iter().position(|item| is_call(item, id_key)).unwrap_or(items.len());
    let (before, after) = items.split_at(first_call);
    let mut steps: Vec<Step<'_>> = before.iter().map(|item| Step::Reasoning(item.node())).collect();
    steps.push(Step::Content);
    let mut missing: Vec<&ToolCall> = message.tool_calls.iter().collect();
    for item in after {
        let id = item.get_str(id_key);
        match missing.iter().position(|call| Some(call.id.as_str()) == id) {
            Some(index) => steps.push(Step::Call(missing.remove(index), Some(item.node()))),
            None if is_call(item, id_key) => {}
            None => steps.push(Step::Reasoning(item.node())),
        }
    }
    steps.extend(missing.into_iter().map(|call| Step::Call(call, None)));
    steps
}

fn is_call(item: &Value, id_key: &str) -> bool {
    item.get(id_key).is_some() && item.get("name").is_some()
}

/// Writes the arguments of a call as an object. A model can generate invalid JSON, which becomes the member
/// `invalid_arguments`; then the function returns `false`.
pub fn write_arguments(w: &mut Writer<'_>, call: &ToolCall) -> bool {
    write_object(w, &call.arguments, "invalid_arguments")
}

/// Writes text that is a JSON object. Other text becomes the member `otherwise` of one, and empty text becomes an empty
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
    value.is_some_and(|value| value.get_str("status") == Some("error"))
}

/// Returns the media type and the base64 data of a `data:` URL.
pub fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

// Parts and calls of OpenAI's Responses.

/// Writes a part of an input: text, an image or a file. Other parts have no form. A file without a name gets the name
/// `filename`.
pub fn write_responses_part(w: &mut Writer<'_>, part: &Part, filename: Option<&str>) {
    match part {
        Part::Text(text) => drop(w.field("type", "input_text").field("text", &text.text)),
        Part::Image(image) => {
            w.field("type", "input_image");
            // A level that Harmony does not name is a member of its own.
            let own = member(&image.other, "openai_responses").and_then(|own| own.get("detail"));
            if own.is_none() {
                w.field("detail", image.detail.map_or("auto", Detail::as_str));
            }
            w.field("image_url", &image.url);
        }
        Part::File(file) => {
            w.field("type", "input_file");
            write_file(w, file, filename);
        }
        Part::FileReference(FileReferencePart { source, filename, .. }) => {
            w.field("type", "input_file").optional("filename", filename);
            match source {
                FileSource::Id(id) => w.field("file_id", id),
                FileSource::Url(url) => w.field("file_url", url),
            };
        }
        Part::Audio(_) | Part::Refusal(_) | Part::Native(_) => {}
    }
}

/// Writes an item `function_call`.
pub fn write_responses_call(w: &mut Writer<'_>, call: &ToolCall) {
    w.field("type", "function_call").field("call_id", &call.id);
    w.field("name", &call.name).field("arguments", &call.arguments);
}

// Parts and calls of OpenAI's Chat Completions.

/// Writes a part: text, an image, audio, a file or a refusal. Other parts have no form. A file without a name gets the name
/// `filename`.
pub fn write_chat_part(w: &mut Writer<'_>, part: &Part, filename: Option<&str>) {
    w.field("type", part.kind());
    match part {
        Part::Text(text) => drop(w.field("text", &text.text)),
        Part::Refusal(refusal) => drop(w.field("refusal", &refusal.refusal)),
        Part::Image(image) => w.key("image_url").object(|w| write_image(w, image)),
        Part::Audio(audio) => w.key("input_audio").object(|w| {
            w.field("data", &audio.data).field("format", &audio.format);
        }),
        Part::File(file) => w.key("file").object(|w| write_file(w, file, filename)),
        Part::FileReference(FileReferencePart { source: FileSource::Id(id), filename, .. }) => {
            w.key("file").object(|w| {
                w.field("file_id", id).optional("filename", filename);
            });
        }
        Part::FileReference(_) | Part::Native(_) => {}
    }
}

/// Writes a call.
pub fn write_chat_call(w: &mut Writer<'_>, call: &ToolCall) {
    if let Some(input) = call.custom_input() {
        w.field("id", &call.id).field("type", ToolCall::CUSTOM).key(ToolCall::CUSTOM).object(|w| {
            w.field("name", &call.name).field("input", &input);
        });
        return;
    }
    w.field("id", &call.id).field("type", "function").key("function").object(|w| {
        w.field("name", &call.name).field("arguments", &call.arguments);
    });
}

/// Writes a file with its bytes, as both of OpenAI's protocols do.
fn write_file(w: &mut Writer<'_>, file: &FilePart, filename: Option<&str>) {
    w.optional("filename", &file.filename.as_deref().or(filename));
    w.key("file_data").string_of(&["data:", &file.media_type, ";base64,", &file.data]);
}

fn write_image(w: &mut Writer<'_>, image: &ImagePart) {
    let original = member(&image.other, "image_url").and_then(|image| image.get_str("detail"));
    w.field("url", &image.url).optional("detail", &image.detail.map(Detail::as_str).or(original));
}

// Blocks of Anthropic's Messages.

/// Writes a block: text, also of a refusal, an image or a document. Other parts have no form.
pub fn write_anthropic_part(w: &mut Writer<'_>, part: &Part) {
    match part {
        Part::Text(text) => drop(w.field("type", "text").field("text", &text.text)),
        Part::Refusal(refusal) => drop(w.field("type", "text").field("text", &refusal.refusal)),
        Part::Image(image) => {
            w.field("type", "image");
            write_source(w.key("source"), &image.url);
        }
        Part::File(file) => {
            w.field("type", "document").optional("title", &file.filename);
            w.key("source").object(|w| write_base64(w, &file.media_type, &file.data));
        }
        Part::FileReference(FileReferencePart { source, filename, .. }) => {
            w.field("type", "document").optional("title", filename);
            match source {
                FileSource::Url(url) => write_source(w.key("source"), url),
                FileSource::Id(id) => w.key("source").object(|w| {
                    w.field("type", "file").field("file_id", id);
                }),
            }
        }
        Part::Audio(_) | Part::Native(_) => {}
    }
}

/// Writes a block `tool_use`. Returns `false` for arguments that are not an object.
pub fn write_anthropic_call(w: &mut Writer<'_>, call: &ToolCall) -> bool {
    w.field("type", "tool_use").field("id", &call.id).field("name", &call.name);
    write_arguments(w.key("input"), call)
}

fn write_source(w: &mut Writer<'_>, url: &str) {
    w.object(|w| match data_url(url) {
        Some((media_type, data)) => write_base64(w, media_type, data),
        None => drop(w.field("type", "url").field("url", url)),
    });
}

fn write_base64(w: &mut Writer<'_>, media_type: &str, data: &str) {
    w.field("type", "base64").field("media_type", media_type).field("data", data);
}

// Parts of Google's Gemini.

/// Writes a part: text, also of a refusal, bytes, or a file at a URL. Other parts have no form.
pub fn write_gemini_part(w: &mut Writer<'_>, part: &Part) {
    match part {
        Part::Text(text) => drop(w.field("text", &text.text)),
        Part::Refusal(refusal) => drop(w.field("text", &refusal.refusal)),
        Part::Image(image) => match data_url(&image.url) {
            Some((media_type, data)) => write_bytes(w, media_type, data),
            None => write_gemini_file(w, &image.url, image_type(&image.url)),
        },
        Part::Audio(AudioPart { data, format, sample_rate, .. }) => {
            let rate = sample_rate.map(|rate| format!(";rate={rate}")).unwrap_or_default();
            write_bytes(w, &format!("audio/{format}{rate}"), data);
        }
        Part::File(file) => write_bytes(w, &file.media_type, &file.data),
        Part::FileReference(FileReferencePart { source: FileSource::Url(url), media_type, .. }) => {
            write_gemini_file(w, url, media_type.as_deref());
        }
        Part::FileReference(_) | Part::Native(_) => {}
    }
}

/// Writes a `functionCall`. Returns `false` for arguments that are not an object.
pub fn write_gemini_call(w: &mut Writer<'_>, call: &ToolCall) -> bool {
    w.field("id", &call.id).field("name", &call.name);
    write_arguments(w.key("args"), call)
}

fn write_bytes(w: &mut Writer<'_>, media_type: &str, data: &str) {
    w.key("inlineData").object(|w| {
        w.field("mimeType", media_type).field("data", data);
    });
}

fn write_gemini_file(w: &mut Writer<'_>, url: &str, media_type: Option<&str>) {
    w.key("fileData").object(|w| {
        w.field("fileUri", url).optional("mimeType", &media_type);
    });
}

/// Returns the media type of an image by the extension of its URL.
pub(crate) fn image_type(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    match path.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "webp" => Some("image/webp"),
        "gif" => Some("image/gif"),
        _ => None,
    }
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

    #[test]
    fn url_shows_the_type_of_an_image() {
        for (url, expected) in [
            ("https://e.org/a.png?b=c.pdf", Some("image/png")),
            ("https://e.org/a.JPG", Some("image/jpeg")),
            ("https://e.org/a.jpeg#x.gif", Some("image/jpeg")),
            ("https://e.org/a.b.webp", Some("image/webp")),
            ("https://e.org/a.gif", Some("image/gif")),
            ("https://e.org/a.pdf", None),
            ("a", None),
        ] {
            assert_eq!(image_type(url), expected, "{url}");
        }
    }
}
