//! Parts with media: images by URL, frames in place of video, audio as base64.

use cog_json::Node;

use crate::{
    problem::{Path, Problems},
    read::shown,
    rules::{AUDIO_DATA, AUDIO_RATE, IMAGE_INLINE, IMAGE_TYPE, PART_MODEL},
    wire::data_url,
};

/// The parts that a model accepts, beside text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartSupport {
    /// The name of the model in messages, `mistral/mistral-large-latest`.
    pub model: String,
    /// Whether it accepts images.
    pub images: bool,
    /// Whether it fetches images by URL.
    pub image_urls: bool,
    /// Whether it accepts audio.
    pub audio: bool,
    /// Whether it accepts documents.
    pub documents: bool,
}

pub(super) fn check(
    message: Node<'_>,
    path: &Path<'_>,
    model: Option<&PartSupport>,
    problems: &mut Problems,
) {
    let path = path.key("content");
    let parts = message.get("content").into_iter().flat_map(Node::elements);
    for (index, part) in parts.enumerate() {
        let path = path.index(index);
        match part.get("type").and_then(Node::as_str) {
            Some("image_url") => check_image(part, &path, problems),
            Some("input_audio") => check_audio(part, &path, problems),
            _ => {}
        }
        if let Some(reason) = model.and_then(|model| model.refuses(part)) {
            problems.add(&path, &PART_MODEL, reason);
        }
    }
}

/// Extensions of files that are not images.
const VIDEOS: [&str; 7] = [".mp4", ".mov", ".webm", ".mkv", ".avi", ".m4v", ".mpeg"];

fn check_image(part: Node<'_>, path: &Path<'_>, problems: &mut Problems) {
    let Some(url) = part.get("image_url").and_then(|image| image.get("url")?.as_str()) else { return };
    let path = path.key("image_url");
    let path = path.key("url");
    if let Some((media_type, data)) = data_url(url) {
        if media_type.starts_with("image/") {
            let message = format!("the image is inline, {} bytes of base64", data.len());
            problems.add(&path, &IMAGE_INLINE, message);
        } else {
            problems.add(&path, &IMAGE_TYPE, format!("found {}, expected an image", shown(media_type)));
        }
        return;
    }
    let file = url.split(['?', '#']).next().unwrap_or_default();
    let start = file.len().saturating_sub(5);
    let end = file.get(start..).unwrap_or_default().to_ascii_lowercase();
    if let Some(extension) = VIDEOS.iter().find(|extension| end.ends_with(**extension)) {
        problems.add(&path, &IMAGE_TYPE, format!("found a video (`{extension}`), expected an image"));
    }
}

fn check_audio(part: Node<'_>, path: &Path<'_>, problems: &mut Problems) {
    let Some(audio) = part.get("input_audio") else { return };
    let path = path.key("input_audio");
    let is_base64 =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    let data = audio.get("data").and_then(Node::as_str).unwrap_or_default();
    if let Some(at) = data.bytes().position(|byte| !is_base64(byte)) {
        problems.add(
            &path.key("data"),
            &AUDIO_DATA,
            format!("found a character at byte {at} that is not base64"),
        );
    }
    let format = audio.get("format").and_then(Node::as_str).unwrap_or_default();
    let is_raw = ["pcm", "l16", "raw"].iter().any(|raw| format.starts_with(raw));
    if is_raw && audio.get("sample_rate").is_none_or(Node::is_null) {
        problems.add(
            &path.key("sample_rate"),
            &AUDIO_RATE,
            format!("missing; {} has no header", shown(format)),
        );
    }
}

impl PartSupport {
    /// Returns why the model refuses a part.
    fn refuses(&self, part: Node<'_>) -> Option<String> {
        let model = &self.model;
        match part.get("type").and_then(Node::as_str)? {
            "image_url" if !self.images => Some(format!("{model} accepts no images")),
            "image_url" if !self.image_urls => {
                let url = part.get("image_url")?.get("url")?.as_str()?;
                data_url(url).is_none().then(|| format!("{model} accepts images only as base64"))
            }
            "input_audio" if !self.audio => Some(format!("{model} accepts no audio")),
            "file" if !self.documents => Some(format!("{model} accepts no files")),
            _ => None,
        }
    }
}
