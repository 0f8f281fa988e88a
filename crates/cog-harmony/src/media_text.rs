//! Media as text.

use crate::{
    AudioPart, FilePart, FileReferencePart, FileSource, ImagePart, Part,
    tokens::{Size, image_size},
};

/// The maximum characters of a URL or name.
const MAX_CHARS: usize = 120;

/// Returns what a media part is (`image`, `audio` or `file`) and its type, name or URL; none for another part.
pub(crate) fn media_text(part: &Part) -> Option<(&'static str, String)> {
    Some(match part {
        Part::Image(image) => ("image", image_of(image)),
        Part::Audio(AudioPart { format, .. }) => ("audio", short(format)),
        Part::File(file) => ("file", file_of(file)),
        Part::FileReference(file) => ("file", reference_of(file)),
        Part::Text(_) | Part::Refusal(_) | Part::Native(_) => return None,
    })
}

fn image_of(image: &ImagePart) -> String {
    let source = source_of(&image.url);
    let Some(frame) = &image.video else { return source };
    let video = frame.video_id.as_deref().map(|id| format!(" of {}", short(id))).unwrap_or_default();
    format!("frame at {} s{video}, {source}", frame.timestamp_sec)
}

/// Returns the type and dimensions of an image in a `data:` URL, and any other URL without its query.
fn source_of(url: &str) -> String {
    let Some(media_type) = url.strip_prefix("data:").and_then(|rest| rest.split([';', ',']).next()) else {
        return short(url.split(['?', '#']).next().unwrap_or_default());
    };
    let size = image_size(url).map(|Size { width, height }| format!(", {width}x{height}"));
    format!("{}{}", short(media_type), size.unwrap_or_default())
}

fn file_of(file: &FilePart) -> String {
    named(file.filename.as_deref(), Some(&file.media_type))
}

fn reference_of(file: &FileReferencePart) -> String {
    let source = match &file.source {
        FileSource::Id(id) => id,
        FileSource::Url(url) => url.split(['?', '#']).next().unwrap_or_default(),
    };
    named(Some(file.filename.as_deref().unwrap_or(source)), file.media_type.as_deref())
}

fn named(name: Option<&str>, media_type: Option<&str>) -> String {
    name.into_iter().chain(media_type).map(short).collect::<Vec<_>>().join(", ")
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VideoFrame;

    #[test]
    fn texts_describe_the_part() {
        let gif = "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";
        let video =
            VideoFrame { video_id: Some("vid_abc".to_owned()), timestamp_sec: 12.5, frame_index: None };
        let mut frame = Part::image_at("https://x.test/f.jpg");
        if let Part::Image(image) = &mut frame {
            image.video = Some(video);
        }
        let file = |source, media_type: Option<&str>| {
            let media_type = media_type.map(str::to_owned);
            Part::FileReference(FileReferencePart { source, media_type, filename: None, other: None })
        };
        for (part, expected) in [
            (Part::image_at("https://x.test/a.png?X-Signature=s3cret#x"), ("image", "https://x.test/a.png")),
            (Part::image_at(gif), ("image", "image/gif, 1x1")),
            (Part::image_at("data:,"), ("image", "")),
            (frame, ("image", "frame at 12.5 s of vid_abc, https://x.test/f.jpg")),
            (Part::media("audio/wav", "AAAA".to_owned()), ("audio", "wav")),
            (Part::media("application/pdf", "AAAA".to_owned()), ("file", "application/pdf")),
            (
                file(FileSource::Url("https://x.test/a.pdf?sig=s3cret".to_owned()), None),
                ("file", "https://x.test/a.pdf"),
            ),
            (file(FileSource::Id("f".to_owned()), Some("text/csv")), ("file", "f, text/csv")),
        ] {
            let (kind, text) = media_text(&part).unwrap();
            assert_eq!((kind, text.as_str()), expected);
        }
        assert_eq!(media_text(&Part::text("a")), None);
        let (_, long) = media_text(&Part::image_at(format!("https://x.test/{}", "é".repeat(500)))).unwrap();
        assert_eq!(long.chars().count(), MAX_CHARS + 1);
    }
}
