use cog_json::{ToJson, Writer};

/// A part of a message's content (appendix A.1.2).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// `{type: text, text, index?}`.
    Text(TextPart),
    /// `{type: image_url, image_url: {…}, video_metadata?}`: an image, or a frame of a video.
    Image(ImagePart),
    /// `{type: input_audio, input_audio: {…}}`.
    Audio(AudioPart),
    /// `{type: file, file: {…}}`: an unchanged document or video. The appendix has no such part; it is only sent to
    /// providers that accept files, and never read from an input.
    File(FilePart),
}

impl Part {
    /// Creates a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextPart { text: text.into(), index: None })
    }

    /// Creates an image part that the provider fetches from a URL.
    pub fn image_at(url: impl Into<String>) -> Self {
        Self::Image(ImagePart { url: url.into(), detail: None, rotation: None, video: None })
    }

    /// Creates an image, audio or file part, depending on the media type. `data` is base64.
    pub fn media(media_type: &str, data: String) -> Self {
        match media_type.split_once('/') {
            Some(("image", _)) => Self::image_at(format!("data:{media_type};base64,{data}")),
            Some(("audio", format)) => {
                let format = if format == "mpeg" { "mp3" } else { format };
                Self::Audio(AudioPart { data, format: format.to_owned(), sample_rate: None })
            }
            _ => Self::File(FilePart { media_type: media_type.to_owned(), data }),
        }
    }

    /// Returns the text of a text part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(part) => Some(&part.text),
            Self::Image(_) | Self::Audio(_) | Self::File(_) => None,
        }
    }
}

/// The content of a text part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// The index among the parts, if the sender numbers them.
    pub index: Option<u64>,
}

/// An image by URL; a `data:` URL contains the image itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ImagePart {
    /// The URL, with the scheme `https:` or `data:`.
    pub url: String,
    /// The level of detail at which the model reads the image.
    pub detail: Option<Detail>,
    /// The rotation in degrees before the model reads the image.
    pub rotation: Option<f64>,
    /// The position of the image in a video.
    pub video: Option<VideoFrame>,
}

/// The level of detail at which a model reads an image (appendix A.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Low resolution: 85 tokens.
    Low,
    /// High resolution: tokens by tiles.
    High,
    /// The provider's default.
    Auto,
}

impl Detail {
    /// Every level, in the order of the appendix.
    pub const ALL: [Detail; 3] = [Detail::Low, Detail::High, Detail::Auto];

    /// Returns the name in a part.
    pub const fn as_str(self) -> &'static str {
        match self {
            Detail::Low => "low",
            Detail::High => "high",
            Detail::Auto => "auto",
        }
    }
}

/// `video_metadata` of a frame.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VideoFrame {
    /// The identifier of the video.
    pub video_id: Option<String>,
    /// The time from the start of the video, in seconds.
    pub timestamp_sec: f64,
    /// The index of the frame.
    pub frame_index: Option<u64>,
}

/// Audio, with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AudioPart {
    /// The bytes as base64: raw PCM or a compressed format.
    pub data: String,
    /// The format: `wav`, `mp3`, …
    pub format: String,
    /// The sample rate in samples per second.
    pub sample_rate: Option<u64>,
}

/// A file, with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// The media type, such as `application/pdf`.
    pub media_type: String,
    /// The bytes as base64.
    pub data: String,
}

impl ToJson for Part {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| match self {
            Self::Text(part) => {
                w.field("type", "text");
                w.field("text", &part.text);
                w.optional("index", &part.index);
            }
            Self::Image(part) => {
                w.field("type", "image_url");
                w.field("image_url", &ImageUrl(part));
                w.optional("video_metadata", &part.video);
            }
            Self::Audio(part) => {
                w.field("type", "input_audio");
                w.field("input_audio", part);
            }
            Self::File(part) => {
                w.field("type", "file");
                w.field("file", part);
            }
        });
    }
}

struct ImageUrl<'a>(&'a ImagePart);

impl ToJson for ImageUrl<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("url", &self.0.url);
            w.optional("detail", &self.0.detail.map(Detail::as_str));
            w.optional("rotation", &self.0.rotation);
        });
    }
}

impl ToJson for VideoFrame {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.optional("video_id", &self.video_id);
            w.field("timestamp_sec", &self.timestamp_sec);
            w.optional("frame_index", &self.frame_index);
        });
    }
}

impl ToJson for AudioPart {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("data", &self.data);
            w.field("format", &self.format);
            w.optional("sample_rate", &self.sample_rate);
        });
    }
}

impl ToJson for FilePart {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("media_type", &self.media_type);
            w.field("data", &self.data);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_becomes_the_part_of_its_type() {
        for (media_type, expected) in [
            ("image/png", r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ=="}}"#),
            ("audio/mpeg", r#"{"type":"input_audio","input_audio":{"data":"QQ==","format":"mp3"}}"#),
            ("application/pdf", r#"{"type":"file","file":{"media_type":"application/pdf","data":"QQ=="}}"#),
        ] {
            assert_eq!(Part::media(media_type, "QQ==".to_owned()).to_json(), expected);
        }
    }
}
