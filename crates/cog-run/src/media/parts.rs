//! Prepared media as parts of a message.

use std::io::Read as _;

use cog_harmony::{Detail, Part, VideoFrame};
use cog_media::{MediaError, Part as PreparedPart, Prepared, Processed, encode_base64};

/// Returns the message parts of all media. Each follows a line with its number in the input.
///
/// # Errors
/// The media cannot be read from disk.
pub(crate) fn parts_of(all: &[Processed]) -> Result<Vec<Part>, MediaError> {
    let mut parts = Vec::new();
    for (index, processed) in all.iter().enumerate() {
        for prepared in &processed.sent {
            parts.push(Part::text(label(index + 1, processed, prepared)));
            parts.push(part(index + 1, processed, prepared)?);
        }
    }
    Ok(parts)
}

fn label(number: usize, processed: &Processed, prepared: &Prepared) -> String {
    let media_type = processed.media.media_type();
    match prepared.part {
        PreparedPart::Frame { at_ms, .. } => {
            format!("[media {number}: {media_type}, frame at {}.{:03} s]", at_ms / 1000, at_ms % 1000)
        }
        PreparedPart::Audio => format!("[media {number}: {media_type}, its sound]"),
        PreparedPart::Text => format!("[media {number}: {media_type}, its text]"),
        PreparedPart::Page { number: page } => format!("[media {number}: {media_type}, page {page}]"),
        _ => format!("[media {number}: {media_type}]"),
    }
}

fn part(number: usize, processed: &Processed, prepared: &Prepared) -> Result<Part, MediaError> {
    if prepared.part == PreparedPart::Text {
        let mut text = String::new();
        prepared.stored.reader().read_to_string(&mut text)?;
        return Ok(Part::text(text));
    }
    let mut part = match &prepared.url {
        Some(url) => Part::image_at(url),
        None => Part::media(prepared.media_type, encode_base64(&prepared.stored)?),
    };
    if let Part::Image(image) = &mut part {
        image.detail = processed.media.detail().and_then(detail);
        image.video = frame(number, prepared.part);
    }
    Ok(part)
}

fn detail(detail: cog_media::Detail) -> Option<Detail> {
    Detail::ALL.into_iter().find(|known| known.as_str() == detail.as_str())
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a video are far below 2^52")]
fn frame(number: usize, part: PreparedPart) -> Option<VideoFrame> {
    let PreparedPart::Frame { at_ms, number: frame_index } = part else { return None };
    let timestamp_sec = at_ms as f64 / 1000.0;
    Some(VideoFrame { video_id: Some(format!("media {number}")), timestamp_sec, frame_index })
}

#[cfg(test)]
mod tests {
    use cog_media::{Expected, MediaCapabilities, MediaRules, Store, check, decode_base64, normalise};

    use super::*;

    #[tokio::test]
    async fn image_with_a_url_is_not_sent_as_base64() {
        let pixel = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";
        let (stored, rules) = (decode_base64(pixel, Store::with_limit(100)).unwrap(), MediaRules::default());
        let media = check(stored, &Expected::default(), &rules, None).await.unwrap();
        let inside = normalise(&media, &MediaCapabilities::default(), &rules).unwrap();
        let url = Some("https://example.com/a.gif".to_owned());
        let sent = vec![Prepared { url, ..inside.clone() }, inside];
        let parts = parts_of(&[Processed { path: cog_json::Path::root(), media, sent }]).unwrap();
        let urls: Vec<_> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Image(image) => Some(image.url.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(urls, ["https://example.com/a.gif", &format!("data:image/gif;base64,{pixel}")]);
    }
}
