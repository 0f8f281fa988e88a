use serde::{Serialize, Serializer};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// The index among the parts, if the sender numbers them.
    #[serde(skip_serializing_if = "Option::is_none")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
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
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct VideoFrame {
    /// The identifier of the video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_id: Option<String>,
    /// The time from the start of the video, in seconds.
    pub timestamp_sec: f64,
    /// The index of the frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_index: Option<u64>,
}

/// Audio, with its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AudioPart {
    /// The bytes as base64: raw PCM or a compressed format.
    pub data: String,
    /// The format: `wav`, `mp3`, …
    pub format: String,
    /// The sample rate in samples per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<u64>,
}

/// A file, with its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilePart {
    /// The media type, such as `application/pdf`.
    pub media_type: String,
    /// The bytes as base64.
    pub data: String,
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(part) => PartForm::Text(part),
            Self::Image(ImagePart { url, detail, rotation, video }) => PartForm::ImageUrl {
                image_url: ImageUrl { url, detail: *detail, rotation: *rotation },
                video_metadata: video.as_ref(),
            },
            Self::Audio(part) => PartForm::InputAudio { input_audio: part },
            Self::File(part) => PartForm::File { file: part },
        }
        .serialize(serializer)
    }
}

/// A part as it is written.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum PartForm<'a> {
    Text(&'a TextPart),
    ImageUrl {
        image_url: ImageUrl<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        video_metadata: Option<&'a VideoFrame>,
    },
    InputAudio {
        input_audio: &'a AudioPart,
    },
    File {
        file: &'a FilePart,
    },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<Detail>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rotation: Option<f64>,
}

#[cfg(test)]
mod tests {
    use cog_json::ToJson as _;

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
