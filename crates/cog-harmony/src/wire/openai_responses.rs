//! Parts and calls of OpenAI's Responses.

use cog_json::Writer;

use super::openai_chat::write_file;
use crate::{Detail, FileReferencePart, FileSource, Part, ToolCall, other::member};

/// Writes a part of an input: a text, an image or a file. Other parts have no form. A file without a name gets the name
/// `filename`.
pub fn write_part(w: &mut Writer<'_>, part: &Part, filename: Option<&str>) {
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
pub fn write_call(w: &mut Writer<'_>, call: &ToolCall) {
    w.field("type", "function_call").field("call_id", &call.id);
    w.field("name", &call.name).field("arguments", &call.arguments);
}
