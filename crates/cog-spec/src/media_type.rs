//! The names of media types, as people, browsers and servers write them (ruling R61).

use crate::Modality;

/// The pattern of the names that [`is_media`] accepts. JSON Schema has no flag for capitals.
pub const PATTERN: &str = concat!(
    r"^\s*((([Ii][Mm][Aa][Gg][Ee]|[Aa][Uu][Dd][Ii][Oo]|[Vv][Ii][Dd][Ee][Oo])/[A-Za-z0-9!#$&^_.+-]+",
    r"|[Aa][Pp][Pp][Ll][Ii][Cc][Aa][Tt][Ii][Oo][Nn]/([Oo][Gg][Gg]|[Mm][Pp]4|([Xx]-)?[Pp][Dd][Ff]|[Aa][Cc][Rr][Oo][Bb][Aa][Tt])",
    r"|[Tt][Ee][Xx][Tt]/[Pp][Dd][Ff]",
    r"|([Aa][Pp][Pp][Ll][Ii][Cc][Aa][Tt][Ii][Oo][Nn]|[Bb][Ii][Nn][Aa][Rr][Yy])/[Oo][Cc][Tt][Ee][Tt]-[Ss][Tt][Rr][Ee][Aa][Mm])\s*)?(;.*)?$",
);

/// The pattern of the names of images, audio and video, for a module that accepts no documents.
pub const PATTERN_WITHOUT_DOCUMENTS: &str = concat!(
    r"^\s*((([Ii][Mm][Aa][Gg][Ee]|[Aa][Uu][Dd][Ii][Oo]|[Vv][Ii][Dd][Ee][Oo])/[A-Za-z0-9!#$&^_.+-]+",
    r"|[Aa][Pp][Pp][Ll][Ii][Cc][Aa][Tt][Ii][Oo][Nn]/([Oo][Gg][Gg]|[Mm][Pp]4)",
    r"|([Aa][Pp][Pp][Ll][Ii][Cc][Aa][Tt][Ii][Oo][Nn]|[Bb][Ii][Nn][Aa][Rr][Yy])/[Oo][Cc][Tt][Ee][Tt]-[Ss][Tt][Rr][Ee][Aa][Mm])\s*)?(;.*)?$",
);

/// Returns whether a name means a type of an image, of audio, of video or of a document, or leaves it open. The runtime may not
/// support the type.
pub fn is_media(named: &str) -> bool {
    if says_nothing(named) {
        return true;
    }
    let name = canonical(named);
    let subtype = ["image/", "audio/", "video/"].iter().find_map(|kind| name.strip_prefix(kind));
    let is_token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    subtype.is_some_and(is_token) || Modality::Document.media_types().contains(&name.as_str())
}

/// Returns whether a name leaves the type open: browsers and servers send these for files that they do not know.
pub fn says_nothing(named: &str) -> bool {
    matches!(canonical(named).as_str(), "" | "application/octet-stream" | "binary/octet-stream")
}

/// Returns the type that a name means: without parameters, in lower case, under the name that content is found by.
///
/// Browsers, servers and libraries write many names for one type: `image/jpg`, `audio/x-wav`, `audio/webm;codecs=opus`.
pub fn canonical(named: &str) -> String {
    let name = named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    // `x-` and `vnd.` once marked types that were not registered, and programs write either or neither.
    let bare = name.replacen("/x-", "/", 1).replacen("/vnd.", "/", 1);
    let registered = match bare.as_str() {
        "image/jpeg" | "image/jpg" | "image/pjpeg" | "image/jfif" => "image/jpeg",
        "image/png" => "image/png",
        "image/gif" => "image/gif",
        "image/webp" => "image/webp",
        "image/heif" | "image/heic" | "image/heic-sequence" | "image/heif-sequence" => "image/heif",
        "image/avif" | "image/avif-sequence" => "image/avif",
        "audio/mpeg" | "audio/mp3" | "audio/mpeg3" | "audio/mpeg-3" | "audio/mpg" | "audio/mpga" => {
            "audio/mpeg"
        }
        "audio/wav" | "audio/wave" | "audio/pn-wav" | "audio/rf64" => "audio/wav",
        "audio/ogg" | "audio/opus" | "audio/vorbis" | "audio/speex" | "audio/oga" | "application/ogg" => {
            "audio/ogg"
        }
        "audio/webm" => "audio/webm",
        "audio/mp4" | "audio/m4a" | "audio/mp4a-latm" => "audio/mp4",
        "audio/aac" | "audio/aacp" | "audio/hx-aac-adts" => "audio/aac",
        "audio/flac" => "audio/flac",
        "video/mp4" | "video/m4v" | "application/mp4" => "video/mp4",
        "video/quicktime" | "video/mov" => "video/quicktime",
        "video/webm" => "video/webm",
        "video/ogg" | "video/ogv" | "video/theora" => "video/ogg",
        "video/matroska" | "video/mkv" => "video/x-matroska",
        "video/avi" | "video/msvideo" => "video/x-msvideo",
        "application/pdf" | "application/acrobat" | "text/pdf" => "application/pdf",
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
