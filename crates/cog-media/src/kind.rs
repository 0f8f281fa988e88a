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
    let found = infer::get(head)?.mime_type();
    Some(match found {
        "audio/x-wav" => "audio/wav",
        "audio/m4a" => "audio/mp4",
        "video/x-m4v" => "video/mp4",
        "application/ogg" | "video/ogg" | "audio/opus" => "audio/ogg",
        found => found,
    })
}

/// Returns the type that a file name extension suggests: a hint (ruling R61).
pub(crate) fn type_of_name(path: &Path) -> Option<&'static str> {
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
