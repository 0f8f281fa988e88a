//! The texts that replace media.

use crate::{AudioPart, FilePart, FileReferencePart, FileSource, ImagePart, Part, tokens::image_size};

/// The maximum characters of a URL or name in a marker.
const MAX_CHARS: usize = 120;

/// Returns the text that replaces a media part; none for a part that is not one.
pub(crate) fn marker(part: &Part) -> Option<String> {
    Some(match part {
        Part::Image(image) => format!("[image removed: {}]", image_of(image)),
        Part::Audio(AudioPart { format, .. }) => format!("[audio removed: {}]", short(format)),
        Part::File(file) => format!("[file removed: {}]", file_of(file)),
        Part::FileReference(file) => format!("[file removed: {}]", reference_of(file)),
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
    let size = image_size(url).map(|(width, height)| format!(", {width}x{height}"));
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
    fn markers_describe_the_part() {
        let gif = "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";
        let video =
            VideoFrame { video_id: Some("vid_abc".to_owned()), timestamp_sec: 12.5, frame_index: None };
        let mut frame = Part::image_at("https://x.test/f.jpg");
        if let Part::Image(image) = &mut frame {
            image.video = Some(video);
        }
        for (part, expected) in [
            (
                Part::image_at("https://x.test/a.png?X-Signature=s3cret#x"),
                "[image removed: https://x.test/a.png]",
            ),
            (Part::image_at(gif), "[image removed: image/gif, 1x1]"),
            (Part::image_at("data:,"), "[image removed: ]"),
            (frame, "[image removed: frame at 12.5 s of vid_abc, https://x.test/f.jpg]"),
            (Part::media("audio/wav", "AAAA".to_owned()), "[audio removed: wav]"),
            (Part::media("application/pdf", "AAAA".to_owned()), "[file removed: application/pdf]"),
        ] {
            assert_eq!(marker(&part).as_deref(), Some(expected));
        }
        assert_eq!(marker(&Part::text("a")), None);
        let long = marker(&Part::image_at(format!("https://x.test/{}", "é".repeat(500)))).unwrap();
        assert_eq!(long.chars().count(), "[image removed: …]".chars().count() + MAX_CHARS);
    }
}
