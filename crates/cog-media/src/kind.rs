//! The type of a media file, by content only (ruling R61).

use std::path::Path;

use cog_spec::Modality;

/// How many of the first bytes decide the type.
pub(crate) const HEAD: usize = 8192;

/// Returns the type of content that starts with these bytes (SPEC 4.1); none if it is unknown.
///
/// WebM and MP4 count as video and Ogg as audio until the tracks are read.
pub fn sniff(head: &[u8]) -> Option<&'static str> {
    let head = head.get(..HEAD).unwrap_or(head);
    let Some(found) = infer::get(head) else { return unknown_to_infer(head) };
    Some(match found.mime_type() {
        "application/zip" => office_type(head).unwrap_or("application/zip"),
        "text/xml" | "text/html" => unknown_to_infer(head).unwrap_or(found.mime_type()),
        "audio/x-flac" => "audio/flac",
        "audio/x-wav" => "audio/wav",
        "audio/m4a" => "audio/mp4",
        "video/x-m4v" => "video/mp4",
        "application/ogg" | "video/ogg" | "audio/opus" => "audio/ogg",
        found => found,
    })
}

/// Returns the type of content that the crate `infer` does not know.
fn unknown_to_infer(head: &[u8]) -> Option<&'static str> {
    if memchr::memmem::find(head, b"<svg").is_some() && head.trim_ascii_start().starts_with(b"<") {
        return Some("image/svg+xml");
    }
    (head.get(4..10) == Some(b"ftyp3g")).then_some("video/3gpp")
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
    match found {
        "image/heif" | "image/heic" => "Convert it with `heif-convert IN.heic OUT.jpg`.",
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
/// photographs, and its kind.
pub(crate) fn convertible(media_type: &str) -> Option<(&'static str, Modality)> {
    const TYPES: [(&str, Modality); 8] = [
        ("audio/mp4", Modality::Audio),
        ("audio/aac", Modality::Audio),
        ("audio/flac", Modality::Audio),
        ("image/heif", Modality::Image),
        ("image/heic", Modality::Image),
        ("image/avif", Modality::Image),
        ("video/x-matroska", Modality::Video),
        ("video/x-msvideo", Modality::Video),
    ];
    TYPES.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(media_type))
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
            (b"%PDF-1.7\n", Some("application/pdf")),
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
    fn a_type_belongs_to_one_kind() {
        assert_eq!(modality_of("image/webp"), Some(Modality::Image));
        assert_eq!(modality_of("application/pdf"), Some(Modality::Document));
        assert_eq!(modality_of("image/tiff"), None);
    }
}
