//! Media in an input, as far as they can be judged by what is said of them (SPEC 4.2).

use cog_json::{Node, Path, Segment};
use cog_module::Module;
use cog_spec::{Code, ErrorBody, Manifest, MediaSource};

use crate::input::CheckedInput;

/// Refuses an input with media: those that the module does not take, those that cannot be decoded, and, for now,
/// every other, because this runtime sends text alone (SPEC 8.2).
pub(crate) fn refuse(module: &Module, input: &CheckedInput) -> Result<(), ErrorBody> {
    let places = module.contract.media_paths(input.node());
    for place in &places {
        if let Some(source) = source(input.node(), place) {
            check(&module.manifest, place, &source)?;
        }
    }
    let Some(first) = places.first() else { return Ok(()) };
    let message = format!("{first} is a medium, and this runtime takes text alone");
    Err(ErrorBody::new(Code::MultimodalNotSupported, message)
        .suggest("this version does not send media to models yet"))
}

/// The source at a place; places start at `input`.
fn source(input: Node<'_>, place: &Path) -> Option<MediaSource> {
    let mut segments = place.segments().skip(1);
    let node = segments.try_fold(input, |node, segment| match segment {
        Segment::Key(key) => node.get(key),
        Segment::Index(index) => node.at(index),
    })?;
    MediaSource::read(node)
}

fn check(manifest: &Manifest, place: &Path, source: &MediaSource) -> Result<(), ErrorBody> {
    match source {
        MediaSource::Base64 { media_type, data } => {
            supported(manifest, place, media_type)?;
            decodable(place, data)
        }
        MediaSource::Url { media_type: Some(media_type), .. } => supported(manifest, place, media_type),
        _ => Ok(()),
    }
}

fn supported(manifest: &Manifest, place: &Path, media_type: &str) -> Result<(), ErrorBody> {
    let types = manifest.modalities.input.iter().flat_map(|modality| modality.media_types());
    let types: Vec<&str> = types.copied().collect();
    if types.contains(&media_type.to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    let allowed = if types.is_empty() { "text alone".to_owned() } else { types.join(", ") };
    let message = format!("{place}.media_type: {} takes no {media_type}; allowed: {allowed}", manifest.name);
    Err(ErrorBody::new(Code::UnsupportedMediaType, message).suggest("convert it to one of the allowed types"))
}

/// Whether text is base64 (RFC 4648 section 4): its alphabet, padded, without line breaks.
fn decodable(place: &Path, data: &str) -> Result<(), ErrorBody> {
    let digits = data.trim_end_matches('=');
    let is_padded = data.len().is_multiple_of(4) && data.len() - digits.len() <= 2;
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    if is_padded && !digits.is_empty() && digits.bytes().all(is_digit) {
        return Ok(());
    }
    let message = format!("{place}.data is no base64");
    Err(ErrorBody::new(Code::MediaDecodeFailed, message)
        .suggest("use the alphabet of RFC 4648 section 4, with padding and without line breaks"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_told_from_what_is_none() {
        for good in ["QQ==", "QUI=", "QUJD", "+/+/"] {
            assert!(decodable(&Path::root(), good).is_ok(), "{good}");
        }
        for bad in ["", "QQ", "QQ=", "Q===", "QU=J", "QQ==\n", "-_-_", "***="] {
            assert!(decodable(&Path::root(), bad).is_err(), "{bad}");
        }
    }
}
