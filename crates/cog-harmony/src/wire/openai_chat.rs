//! Parts and calls of OpenAI's Chat Completions.

use cog_json::Writer;

use crate::{Detail, FilePart, FileReferencePart, FileSource, ImagePart, Part, ToolCall, other::member};

/// Writes a part: a text, an image, audio, a file or a refusal. Other parts have no form. A file without a name gets the name
/// `filename`.
pub fn write_part(w: &mut Writer<'_>, part: &Part, filename: Option<&str>) {
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
pub fn write_call(w: &mut Writer<'_>, call: &ToolCall) {
    w.field("id", &call.id).field("type", "function").key("function").object(|w| {
        w.field("name", &call.name).field("arguments", &call.arguments);
    });
}

/// Writes a file with its bytes, as both of OpenAI's protocols do.
pub(super) fn write_file(w: &mut Writer<'_>, file: &FilePart, filename: Option<&str>) {
    w.optional("filename", &file.filename.as_deref().or(filename));
    w.key("file_data").string_of(&["data:", &file.media_type, ";base64,", &file.data]);
}

fn write_image(w: &mut Writer<'_>, image: &ImagePart) {
    let original = member(&image.other, "image_url").and_then(|image| image.get("detail")?.as_str());
    w.field("url", &image.url).optional("detail", &image.detail.map(Detail::as_str).or(original));
}
