//! Blocks of Anthropic's Messages.

use cog_json::Writer;

use super::{data_url, write_arguments};
use crate::{FileReferencePart, FileSource, Part, ToolCall};

/// Writes a block: a text, an image or a document. Other parts have no form.
pub fn write_part(w: &mut Writer<'_>, part: &Part) {
    match part {
        Part::Text(text) => drop(w.field("type", "text").field("text", &text.text)),
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
        Part::Audio(_) | Part::Refusal(_) | Part::Native(_) => {}
    }
}

/// Writes a block `tool_use`. Returns `false` for arguments that are not an object.
pub fn write_call(w: &mut Writer<'_>, call: &ToolCall) -> bool {
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
