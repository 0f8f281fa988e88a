//! Parts of Google's Gemini.

use cog_json::Writer;

use super::{data_url, write_arguments};
use crate::{AudioPart, FileReferencePart, FileSource, Part, ToolCall};

/// Writes a part: a text, bytes, or a file at a URL. Other parts have no form.
pub fn write_part(w: &mut Writer<'_>, part: &Part) {
    match part {
        Part::Text(text) => drop(w.field("text", &text.text)),
        Part::Image(image) => match data_url(&image.url) {
            Some((media_type, data)) => write_bytes(w, media_type, data),
            None => write_file(w, &image.url, image_type(&image.url)),
        },
        Part::Audio(AudioPart { data, format, sample_rate, .. }) => {
            let rate = sample_rate.map(|rate| format!(";rate={rate}")).unwrap_or_default();
            write_bytes(w, &format!("audio/{format}{rate}"), data);
        }
        Part::File(file) => write_bytes(w, &file.media_type, &file.data),
        Part::FileReference(FileReferencePart { source: FileSource::Url(url), media_type, .. }) => {
            write_file(w, url, media_type.as_deref());
        }
        Part::FileReference(_) | Part::Refusal(_) | Part::Native(_) => {}
    }
}

/// Writes a `functionCall`. Returns `false` for arguments that are not an object.
pub fn write_call(w: &mut Writer<'_>, call: &ToolCall) -> bool {
    w.field("id", &call.id).field("name", &call.name);
    write_arguments(w.key("args"), call)
}

fn write_bytes(w: &mut Writer<'_>, media_type: &str, data: &str) {
    w.key("inlineData").object(|w| {
        w.field("mimeType", media_type).field("data", data);
    });
}

fn write_file(w: &mut Writer<'_>, url: &str, media_type: Option<&str>) {
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
