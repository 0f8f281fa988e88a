//! A media item as it is written in an answer (SPEC 4.3).

use std::{io::Read as _, path::PathBuf};

use cog_harmony::{Detail, Part, VideoFrame};
use cog_json::{Node, ToJson, Value, Writer};
use cog_media::{Media, MediaError, MediaPart, PartKind, ProcessedMedia, StoredUrl, encode_base64};
use cog_schema::MediaSlot;

/// A media item for its location: facts of its bytes, generation parameters, and content.
pub(super) struct Output {
    pub(super) slot: MediaSlot,
    pub(super) media: Media,
    pub(super) content: Content,
    /// The generation parameters from the provider, the model first.
    pub(super) params: Vec<(&'static str, String)>,
    /// The value that the model wrote at the location. Its additional members are retained.
    pub(super) own: Option<Value>,
}

/// The content of a media item: inline or a reference.
pub(super) enum Content {
    Base64(Base64),
    File(PathBuf),
    Url(StoredUrl),
}

/// Base64 text, owned or shared with the reply.
pub(super) enum Base64 {
    Own(String),
    Shared(Value),
}

/// Members that are computed from the bytes, and not copied from the model's value.
const COMPUTED: [&str; 9] =
    ["type", "media_type", "data", "path", "url", "expires_at", "width", "height", "duration_ms"];

impl Base64 {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Own(text) => text,
            Self::Shared(value) => value.as_str().unwrap_or_default(),
        }
    }
}

impl Output {
    fn write_facts(&self, w: &mut Writer<'_>) {
        let media = self.media.info();
        let facts = [
            ("width", media.width.map(u64::from)),
            ("height", media.height.map(u64::from)),
            ("duration_ms", media.duration_ms),
        ];
        for (member, value) in facts.into_iter().filter(|(member, _)| self.slot.allows(member)) {
            w.optional(member, &value);
        }
    }

    /// Writes the provider's parameters, then the additional members of the model's value.
    fn write_params(&self, w: &mut Writer<'_>) {
        let own_params =
            self.own.iter().filter_map(|own| own.get("generation_params")).flat_map(Node::members);
        let own_params: Vec<_> =
            own_params.filter(|(name, _)| self.params.iter().all(|(known, _)| *known != *name)).collect();
        if !self.slot.allows("generation_params") || (own_params.is_empty() && self.params.is_empty()) {
            return;
        }
        w.key("generation_params").object(|w| {
            for (name, value) in &self.params {
                w.field(name, value.as_str());
            }
            for (name, value) in own_params {
                w.key(name).node(value);
            }
        });
    }
}

/// Written by hand: the members depend on the form and on the slot.
impl ToJson for Output {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            let form = match &self.content {
                Content::Base64(_) => "base64",
                Content::File(_) => "file",
                Content::Url(_) => "url",
            };
            w.field("type", form).field("media_type", self.media.media_type());
            match &self.content {
                Content::Base64(text) => w.field("data", text.as_str()),
                Content::File(path) => w.field("path", &*path.to_string_lossy()),
                Content::Url(published) => w.field("url", published.url.as_str()),
            };
            if let (Content::Url(published), true) = (&self.content, self.slot.allows("expires_at")) {
                w.field("expires_at", published.expires_at.as_str());
            }
            self.write_facts(w);
            self.write_params(w);
            for (member, value) in self.own.iter().flat_map(Value::members) {
                if !COMPUTED.contains(&member) && member != "generation_params" {
                    w.key(member).node(value);
                }
            }
        });
    }
}

// Prepared media as parts of a message.

/// Returns the message parts of all media. Each follows a line with its number in the input.
///
/// # Errors
/// The media cannot be read from disk.
pub(crate) fn parts_of(all: &[ProcessedMedia]) -> Result<Vec<Part>, MediaError> {
    let mut parts = Vec::new();
    for (index, processed) in all.iter().enumerate() {
        for prepared in &processed.sent {
            parts.push(Part::text(label(index + 1, processed, prepared)));
            parts.push(part(index + 1, processed, prepared)?);
        }
    }
    Ok(parts)
}

fn label(number: usize, processed: &ProcessedMedia, prepared: &MediaPart) -> String {
    let media_type = processed.media.media_type();
    match prepared.part {
        PartKind::Frame { at_ms, .. } => {
            format!("[media {number}: {media_type}, frame at {}.{:03} s]", at_ms / 1000, at_ms % 1000)
        }
        PartKind::Audio => format!("[media {number}: {media_type}, its sound]"),
        PartKind::Text => format!("[media {number}: {media_type}, its text]"),
        PartKind::Page { number: page } => format!("[media {number}: {media_type}, page {page}]"),
        _ => format!("[media {number}: {media_type}]"),
    }
}

fn part(number: usize, processed: &ProcessedMedia, prepared: &MediaPart) -> Result<Part, MediaError> {
    if prepared.part == PartKind::Text {
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
fn frame(number: usize, part: PartKind) -> Option<VideoFrame> {
    let PartKind::Frame { at_ms, number: frame_index } = part else { return None };
    let timestamp_sec = at_ms as f64 / 1000.0;
    Some(VideoFrame { video_id: Some(format!("media {number}")), timestamp_sec, frame_index })
}

#[cfg(test)]
mod tests {
    use cog_media::{
        MediaCapabilities, MediaDeclaration, MediaRules, Store, check, decode_base64, normalise,
    };

    use super::*;

    #[tokio::test]
    async fn image_with_a_url_is_not_sent_as_base64() {
        let pixel = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";
        let stored = decode_base64(pixel, Store::with_limit(100)).unwrap();
        let rules = MediaRules::default();
        let media = check(stored, &MediaDeclaration::default(), &rules, None).await.unwrap();
        let inside = normalise(&media, &MediaCapabilities::default(), &rules).unwrap();
        let url = Some("https://example.com/a.gif".to_owned());
        let sent = vec![MediaPart { url, ..inside.clone() }, inside];
        let parts = parts_of(&[ProcessedMedia { path: cog_json::Path::root(), media, sent }]).unwrap();
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
