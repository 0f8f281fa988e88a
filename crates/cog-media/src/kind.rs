//! The type of a media file, by content only (ruling R61).

pub(crate) mod mpeg;
pub(crate) mod ogg;

use std::path::Path;

use cog_spec::{Modality, media_type::canonical};

/// How many of the first bytes decide the type.
pub(crate) const HEAD: usize = 8192;

/// WAV with sizes of 64 bits (EBU Tech 3306). It has no registered type, and only ffmpeg reads it.
const RF64: &str = "audio/x-rf64";

/// Returns the type of content that starts with these bytes (SPEC 4.1); none if it is unknown.
///
/// WebM and MP4 count as video and Ogg as audio until the tracks are read. An ID3 tag may come before any audio; it
/// counts as MPEG audio if it does not end within these bytes.
pub fn sniff(head: &[u8]) -> Option<&'static str> {
    let head = head.get(..HEAD).unwrap_or(head);
    if let Some(found) = misread_by_infer(head) {
        return Some(found);
    }
    let Some(found) = infer::get(head) else { return unknown_to_infer(head) };
    Some(match found.mime_type() {
        "application/zip" => office_type(head).unwrap_or("application/zip"),
        "text/xml" | "text/html" => unknown_to_infer(head).unwrap_or(found.mime_type()),
        "audio/x-flac" => "audio/flac",
        "audio/x-wav" => "audio/wav",
        "audio/m4a" => "audio/mp4",
        "video/x-m4v" => "video/mp4",
        found => found,
    })
}

/// Returns the type of content that the crate `infer` takes for something else.
fn misread_by_infer(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        // Otherwise a shell script.
        [b'#', b'!', b'A', b'M', b'R', b'-', b'W', b'B', ..] => "audio/amr-wb",
        [b'R', b'F', b'6', b'4', _, _, _, _, b'W', b'A', b'V', b'E', ..]
        | [b'B', b'W', b'6', b'4', _, _, _, _, b'W', b'A', b'V', b'E', ..] => RF64,
        [b'O', b'g', b'g', b'S', ..] => match ogg::has_video(head) {
            true => "video/ogg",
            false => "audio/ogg",
        },
        _ => tagged_type(head.get(end_of_tag(head)?..)?),
    })
}

/// Returns the type of content that the crate `infer` does not know.
fn unknown_to_infer(head: &[u8]) -> Option<&'static str> {
    if memchr::memmem::find(head, b"<svg").is_some() && head.trim_ascii_start().starts_with(b"<") {
        return Some("image/svg+xml");
    }
    if has_later_pdf(head) {
        return Some("application/pdf");
    }
    match head {
        [_, _, _, _, b'f', b't', b'y', b'p', b'3', b'g', ..] => Some("video/3gpp"),
        [b'M', b'A', b'C', b' ', ..] => Some("audio/x-ape"),
        [b'M', b'P', b'+', ..] | [b'M', b'P', b'C', b'K', ..] => Some("audio/x-musepack"),
        [b'w', b'v', b'p', b'k', ..] => Some("audio/x-wavpack"),
        _ => mpeg::has_frames(head).then_some("audio/mpeg"),
    }
}

/// Returns whether a PDF begins on a later line, after a mail or the headers of a download. Readers of PDF accept that.
fn has_later_pdf(head: &[u8]) -> bool {
    let line = memchr::memmem::find(head, b"\n%PDF-").and_then(|at| head.get(at..));
    line.is_some_and(|pdf| memchr::memmem::find(pdf, b" 0 obj").is_some())
}

/// Returns where an ID3v2 tag at the start of content ends (ID3v2.4, section 3.1).
pub(crate) fn end_of_tag(head: &[u8]) -> Option<usize> {
    let [b'I', b'D', b'3', _, _, flags, size @ ..] = head.first_chunk::<10>()? else { return None };
    let size = size.iter().fold(0, |size, byte| size << 7 | usize::from(byte & 0x7f));
    let footer = if flags & 0x10 == 0 { 0 } else { 10 };
    Some(10 + size + footer)
}

/// Returns the type of what follows an ID3 tag: MPEG audio, unless it says something else.
pub(crate) fn tagged_type(after: &[u8]) -> &'static str {
    sniff(after).filter(|found| found.starts_with("audio/")).unwrap_or("audio/mpeg")
}

/// Returns the type of an office document, whose archive names its parts.
fn office_type(head: &[u8]) -> Option<&'static str> {
    const TYPES: [(&[u8], &str); 3] = [
        (b"word/", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        (b"xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        (b"ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ];
    let found = TYPES.iter().find(|(part, _)| memchr::memmem::find(head, part).is_some());
    found.map(|(_, media_type)| *media_type)
}

/// Describes content of no known type for a message.
pub(crate) fn describe_unknown(head: &[u8]) -> Option<&'static str> {
    match head.get(..HEAD).unwrap_or(head) {
        [] => Some("an empty file"),
        head if is_text(head) => Some("plain text"),
        _ => None,
    }
}

fn is_text(head: &[u8]) -> bool {
    match std::str::from_utf8(head) {
        Ok(text) => !text.contains('\0'),
        // The last character may be cut off.
        Err(error) => error.error_len().is_none() && error.valid_up_to() > 0 && !head.contains(&0),
    }
}

/// Returns how to convert a file of an unsupported type.
pub(crate) fn conversion(found: &str) -> &'static str {
    match container_of(found) {
        "image/heif" => "Convert it with `heif-convert IN.heic OUT.jpg`.",
        "image/avif" => "Convert it with `avifdec IN.avif OUT.png`.",
        "image/svg+xml" => "Convert it with `rsvg-convert IN.svg -o OUT.png`.",
        "plain text" => "Send text in a text field of the input.",
        "an empty file" => "Send a file with content.",
        _ if found.starts_with("image/") => "Convert it with `magick IN OUT.png`.",
        _ if found.starts_with("audio/") => "Convert it with `ffmpeg -i IN OUT.mp3`.",
        _ if found.starts_with("video/") => "Convert it with `ffmpeg -i IN OUT.mp4`.",
        _ if found.contains("officedocument")
            || found.contains("opendocument")
            || found == "application/msword" =>
        {
            "Convert it with `soffice --headless --convert-to pdf IN`."
        }
        _ => "Convert it to one of the allowed types.",
    }
}

/// Returns a type that no provider accepts and ffmpeg converts, such as the type of voice memos or of a phone's
/// photographs, and its kind. MPEG audio, WAV and Ogg are among them for the codecs that only ffmpeg decodes.
pub(crate) fn convertible(media_type: &str) -> Option<(&'static str, Modality)> {
    const TYPES: [(&str, Modality); 12] = [
        ("audio/mpeg", Modality::Audio),
        ("audio/mp4", Modality::Audio),
        ("audio/aac", Modality::Audio),
        ("audio/flac", Modality::Audio),
        ("audio/wav", Modality::Audio),
        ("audio/ogg", Modality::Audio),
        (RF64, Modality::Audio),
        ("image/heif", Modality::Image),
        ("image/avif", Modality::Image),
        ("video/ogg", Modality::Video),
        ("video/x-matroska", Modality::Video),
        ("video/x-msvideo", Modality::Video),
    ];
    TYPES.into_iter().find(|(known, _)| *known == media_type)
}

/// Names a type with a codec that is not supported in it, for messages: `audio/wav with GSM`.
pub(crate) fn with_codec(media_type: &str, codec: &str) -> String {
    format!("{media_type} with {codec}")
}

/// Returns the type without the codec that [`with_codec`] added.
pub(crate) fn container_of(found: &str) -> &str {
    found.split_once(" with ").map_or(found, |(media_type, _)| media_type)
}

/// Returns whether content of this type is what a name means. A container counts as video until its tracks are read, so
/// the name of the video type also means a recording of sound in it.
pub(crate) fn is_named(media_type: &str, named: &str) -> bool {
    let named = canonical(named);
    let media_type = canonical(media_type);
    let container = named.strip_prefix("video/").filter(|name| matches!(*name, "webm" | "mp4" | "ogg"));
    named == media_type || container.is_some() && container == media_type.strip_prefix("audio/")
}

/// Returns the audio type of a video container, for files that turn out to have no video track.
pub(crate) fn audio_type(found: &'static str) -> Option<&'static str> {
    match found {
        "video/webm" => Some("audio/webm"),
        "video/mp4" | "video/quicktime" => Some("audio/mp4"),
        _ => None,
    }
}

/// Returns the type that a file name extension suggests: a hint (ruling R61).
pub fn type_of_name(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "ogg" | "oga" | "opus" => "audio/ogg",
        "mp4" | "m4v" => "video/mp4",
        "mov" => "video/quicktime",
        "pdf" => "application/pdf",
        _ => return None,
    })
}

/// Returns the kind of a type of SPEC 4.1.1.
pub fn modality_of(media_type: &str) -> Option<Modality> {
    Modality::ALL.iter().copied().find(|modality| modality.media_types().contains(&media_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_decide_the_type() {
        for (head, expected) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0\0\x10JFIF\0", Some("image/jpeg")),
            (b"GIF89a\x01\0\x01\0", Some("image/gif")),
            (b"RIFF\x24\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\x24\0\0\0WAVEfmt ", Some("audio/wav")),
            (b"ID3\x04\0\0\0\0\0\0", Some("audio/mpeg")),
            (b"OggS\0\x02\0\0\0\0\0\0\0\0", Some("audio/ogg")),
            (b"ID3\x03\0\0\0\0\0\x02..fLaC\0\0\0\x22", Some("audio/flac")),
            (b"ID3\x03\0\0\0\0\0\x02..\xff\xf1\x50\x80", Some("audio/aac")),
            (b"ID3\x04\0\x10\0\0\0\x02............MAC \x96\x0f", Some("audio/x-ape")),
            (b"#!AMR-WB\n\x04", Some("audio/amr-wb")),
            (b"RF64\xff\xff\xff\xffWAVEds64", Some("audio/x-rf64")),
            (b"%PDF-1.7\n", Some("application/pdf")),
            (b"Content-Length: 9\r\n\r\n%PDF-1.7\n1 0 obj", Some("application/pdf")),
            (b"\0\0\0\x14ftypqt  \0\0\0\0qt  ", Some("video/quicktime")),
            (b"\0\0\0\x18ftypisom\0\0\x02\0isomiso2", Some("video/mp4")),
            (b"", None),
            (b"Hello", None),
            (b"fLaC\0\0\0\x22", Some("audio/flac")),
            (b"\0\0\0\x1cftypM4A \0\0\0\0", Some("audio/mp4")),
            (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", Some("image/heif")),
            (b"\0\0\0\x14ftyp3gp5\0\0\0\0", Some("video/3gpp")),
            (b"<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"/>", Some("image/svg+xml")),
            (
                b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x11\0\0\0word/document.xml",
                Some("application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
            ),
        ] {
            assert_eq!(sniff(head), expected, "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn names_mean_the_types_of_content() {
        for (named, media_type) in [
            ("image/jpg", "image/jpeg"),
            ("IMAGE/JPEG", "image/jpeg"),
            ("image/png; charset=binary", "image/png"),
            ("image/heic", "image/heif"),
            ("audio/x-wav", "audio/wav"),
            ("audio/vnd.wave;codec=1", "audio/wav"),
            ("audio/wav", "audio/x-rf64"),
            ("audio/x-wave", "audio/wav"),
            ("audio/vnd.wav", "audio/wav"),
            ("image/x-jpeg", "image/jpeg"),
            ("audio/X-MP4", "audio/mp4"),
            ("video/x-matroska", "video/x-matroska"),
            ("audio/mp3", "audio/mpeg"),
            ("audio/webm;codecs=opus", "audio/webm"),
            ("audio/ogg; codecs=opus", "audio/ogg"),
            ("audio/opus", "audio/ogg"),
            ("audio/x-m4a", "audio/mp4"),
            ("video/webm", "audio/webm"),
            ("video/x-m4v", "audio/mp4"),
            ("video/ogg", "audio/ogg"),
            ("application/x-pdf", "application/pdf"),
        ] {
            assert!(is_named(media_type, named), "{named} {media_type}");
        }
        for (named, media_type) in [
            ("image/jpeg", "image/png"),
            ("audio/webm", "video/webm"),
            ("video/quicktime", "audio/mp4"),
            ("audio/mp4", "audio/mpeg"),
            ("", "image/png"),
        ] {
            assert!(!is_named(media_type, named), "{named} {media_type}");
        }
    }

    #[test]
    fn type_after_a_long_tag_is_found() {
        let tag = [b"ID3\x03\0\0\0\x02\0\0".as_slice(), &[b'.'; 2 << 14]].concat();
        for (after, expected) in [(&b"fLaC\0\0\0\x22"[..], "audio/flac"), (b"\xff\xfb\x90", "audio/mpeg")] {
            let mut store = crate::Store::with_limit(1 << 20).in_memory(0);
            store.push(&tag).unwrap();
            store.push(after).unwrap();
            assert_eq!(crate::check::sniff_stored(&store.finish()).unwrap(), Some(expected));
        }
    }

    #[test]
    fn a_type_belongs_to_one_kind() {
        assert_eq!(modality_of("image/webp"), Some(Modality::Image));
        assert_eq!(modality_of("application/pdf"), Some(Modality::Document));
        assert_eq!(modality_of("image/tiff"), None);
    }
}
