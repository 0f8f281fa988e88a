//! The names of media types, as people, browsers and servers write them (ruling R61).

use crate::Modality;

/// The pattern of the names that [`is_media`] accepts. JSON Schema has no flag for capitals.
pub const PATTERN: &str = concat!(
    r"^\s*(([Ii][Mm][Aa][Gg][Ee]|[Aa][Uu][Dd][Ii][Oo]|[Vv][Ii][Dd][Ee][Oo])/[A-Za-z0-9!#$&^_.+-]+",
    r"|[Aa][Pp][Pp][Ll][Ii][Cc][Aa][Tt][Ii][Oo][Nn]/([Oo][Gg][Gg]|[Mm][Pp]4|([Xx]-)?[Pp][Dd][Ff]|[Aa][Cc][Rr][Oo][Bb][Aa][Tt])",
    r"|[Tt][Ee][Xx][Tt]/[Pp][Dd][Ff])\s*(;.*)?$",
);

/// The pattern of the names of images, audio and video, for a module that accepts no documents.
pub const PATTERN_WITHOUT_DOCUMENTS: &str = concat!(
    r"^\s*(([Ii][Mm][Aa][Gg][Ee]|[Aa][Uu][Dd][Ii][Oo]|[Vv][Ii][Dd][Ee][Oo])/[A-Za-z0-9!#$&^_.+-]+",
    r"|[Aa][Pp][Pp][Ll][Ii][Cc][Aa][Tt][Ii][Oo][Nn]/([Oo][Gg][Gg]|[Mm][Pp]4))\s*(;.*)?$",
);

/// Returns whether a name means a type of an image, of audio, of video or of a document. The runtime may not support the type.
pub fn is_media(named: &str) -> bool {
    let name = canonical(named);
    let subtype = ["image/", "audio/", "video/"].iter().find_map(|kind| name.strip_prefix(kind));
    let is_token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    subtype.is_some_and(is_token) || Modality::Document.media_types().contains(&name.as_str())
}

/// Returns the type that a name means: without parameters, in lower case, under the name that content is found by.
///
/// Browsers, servers and libraries write many names for one type: `image/jpg`, `audio/x-wav`, `audio/webm;codecs=opus`.
pub fn canonical(named: &str) -> String {
    let name = named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let registered = match name.as_str() {
        "image/jpg" | "image/pjpeg" | "image/jfif" => "image/jpeg",
        "image/x-png" => "image/png",
        "image/x-webp" => "image/webp",
        "image/heic" | "image/heic-sequence" | "image/heif-sequence" => "image/heif",
        "image/avif-sequence" => "image/avif",
        "audio/mp3" | "audio/x-mp3" | "audio/x-mpeg" | "audio/mpeg3" | "audio/x-mpeg-3" | "audio/mpg"
        | "audio/mpga" => "audio/mpeg",
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" | "audio/x-pn-wav" | "audio/x-rf64" => "audio/wav",
        "audio/opus" | "audio/vorbis" | "audio/speex" | "audio/x-ogg" | "audio/oga" | "application/ogg" => {
            "audio/ogg"
        }
        "audio/x-webm" => "audio/webm",
        "audio/m4a" | "audio/x-m4a" | "audio/mp4a-latm" => "audio/mp4",
        "audio/x-aac" | "audio/aacp" | "audio/x-hx-aac-adts" => "audio/aac",
        "audio/x-flac" => "audio/flac",
        "video/m4v" | "video/x-m4v" | "video/x-mp4" | "application/mp4" => "video/mp4",
        "video/mov" | "video/x-quicktime" => "video/quicktime",
        "video/x-webm" => "video/webm",
        "video/x-ogg" | "video/ogv" | "video/theora" => "video/ogg",
        "video/matroska" | "video/mkv" | "video/x-mkv" => "video/x-matroska",
        "video/avi" | "video/msvideo" | "video/vnd.avi" => "video/x-msvideo",
        "application/x-pdf" | "application/acrobat" | "text/pdf" => "application/pdf",
        _ => return name,
    };
    registered.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_pattern_is_the_pattern() {
        let published: serde_json::Value = serde_json::from_str(crate::Schema::Media.text()).unwrap();
        assert_eq!(published.pointer("/definitions/mediaType/pattern").unwrap(), PATTERN);
    }
}
