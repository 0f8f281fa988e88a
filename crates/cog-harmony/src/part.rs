use cog_json::Value;
use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::other::{member, write_members, write_number, write_optional, write_other};

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
    /// `{type: file, file: {file_data, filename?}}`: an unchanged document or video, as OpenAI sends it.
    File(FilePart),
    /// `{type: file, file: {file_id | url, media_type?, filename?}}`: a file that the provider has, or fetches.
    FileReference(FileReferencePart),
    /// `{type: refusal, refusal}`: the text with which a model refuses, as OpenAI sends it.
    Refusal(RefusalPart),
    /// `{type: native, native: {provider, item}}`: a part that only one provider reads.
    Native(NativePart),
}

impl Part {
    /// Creates a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextPart { text: text.into(), ..TextPart::default() })
    }

    /// Creates an image part that the provider fetches from a URL.
    pub fn image_at(url: impl Into<String>) -> Self {
        Self::Image(ImagePart { url: url.into(), ..ImagePart::default() })
    }

    /// Creates an image, audio or file part, depending on the media type. `data` is base64.
    pub fn media(media_type: &str, data: String) -> Self {
        match media_type.split_once('/') {
            Some(("image", _)) => Self::image_at(format!("data:{media_type};base64,{data}")),
            Some(("audio", format)) => {
                let format = if format == "mpeg" { "mp3" } else { format };
                Self::Audio(AudioPart { data, format: format.to_owned(), ..AudioPart::default() })
            }
            _ => Self::File(FilePart { media_type: media_type.to_owned(), data, ..FilePart::default() }),
        }
    }

    /// Returns the text of a text part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(part) => Some(&part.text),
            _ => None,
        }
    }

    /// Returns the length in bytes of the part's text, URL or base64 data.
    pub fn content_len(&self) -> usize {
        match self {
            Self::Text(part) => part.text.len(),
            Self::Image(part) => part.url.len(),
            Self::Audio(part) => part.data.len(),
            Self::File(part) => part.data.len(),
            Self::FileReference(_) | Self::Native(_) => 0,
            Self::Refusal(part) => part.refusal.len(),
        }
    }

    /// Returns the type of the part in a message.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Image(_) => "image_url",
            Self::Audio(_) => "input_audio",
            Self::File(_) | Self::FileReference(_) => "file",
            Self::Refusal(_) => "refusal",
            Self::Native(_) => "native",
        }
    }

    /// Returns the members that the type of the part does not name, as an object.
    pub fn other(&self) -> &Option<Value> {
        match self {
            Self::Text(part) => &part.other,
            Self::Image(part) => &part.other,
            Self::Audio(part) => &part.other,
            Self::File(part) => &part.other,
            Self::FileReference(part) => &part.other,
            Self::Refusal(part) => &part.other,
            Self::Native(part) => &part.other,
        }
    }
}

/// The content of a text part.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// The index among the parts, if the sender numbers them.
    pub index: Option<u64>,
    /// The members that this type does not name, as an object. They are written back unchanged.
    pub other: Option<Value>,
}

/// An image by URL; a `data:` URL contains the image itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImagePart {
    /// The URL, with the scheme `https:` or `data:`.
    pub url: String,
    /// The level of detail at which the model reads the image.
    pub detail: Option<Detail>,
    /// The rotation in degrees before the model reads the image.
    pub rotation: Option<f64>,
    /// The position of the image in a video.
    pub video: Option<VideoFrame>,
    /// The members that this type does not name, as an object; unknown members of `image_url` and `video_metadata` are in its members
    /// of the same name.
    pub other: Option<Value>,
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

    /// Returns the level with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|detail| detail.as_str() == name)
    }
}

/// `video_metadata` of a frame.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VideoFrame {
    /// The identifier of the video.
    pub video_id: Option<String>,
    /// The time from the start of the video, in seconds.
    pub timestamp_sec: f64,
    /// The number of the frame in the video, from 0.
    pub frame_index: Option<u64>,
}

/// Audio, with its bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AudioPart {
    /// The bytes as base64: raw PCM or a compressed format.
    pub data: String,
    /// The format: `wav`, `mp3`, …
    pub format: String,
    /// The sample rate in samples per second.
    pub sample_rate: Option<u64>,
    /// The members that this type does not name, as an object; unknown members of `input_audio` are in its member `input_audio`.
    pub other: Option<Value>,
}

/// A file, with its bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FilePart {
    /// The media type, such as `application/pdf`.
    pub media_type: String,
    /// The bytes as base64.
    pub data: String,
    /// The name of the file.
    pub filename: Option<String>,
    /// The members that this type does not name, as an object; unknown members of `file` are in its member `file`.
    pub other: Option<Value>,
}

/// A file that is not in the message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileReferencePart {
    /// Where the file is.
    pub source: FileSource,
    /// The media type, if it is known.
    pub media_type: Option<String>,
    /// The name of the file.
    pub filename: Option<String>,
    /// The members that this type does not name, as an object; unknown members of `file` are in its member `file`.
    pub other: Option<Value>,
}

/// Where a file is that is not in the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSource {
    /// The identifier of an upload to the provider.
    Id(String),
    /// A URL that the provider fetches.
    Url(String),
}

impl Default for FileSource {
    fn default() -> Self {
        Self::Url(String::new())
    }
}

/// The text with which a model refuses.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RefusalPart {
    /// The text.
    pub refusal: String,
    /// The members that this type does not name, as an object. They are written back unchanged.
    pub other: Option<Value>,
}

/// A part in the form of the provider that sent it, such as the result of a tool that the provider ran.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NativePart {
    /// The name of the provider, `anthropic`.
    pub provider: String,
    /// The part in the provider's form.
    pub item: Value,
    /// The members that this type does not name, as an object. They are written back unchanged.
    pub other: Option<Value>,
}

// Writes parts as JSON.

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind())?;
        match self {
            Self::Text(part) => {
                map.serialize_entry("text", &part.text)?;
                write_optional(&mut map, "index", &part.index)?;
            }
            Self::Image(part) => {
                map.serialize_entry("image_url", &ImageUrl(part))?;
                if let Some(frame) = &part.video {
                    map.serialize_entry("video_metadata", &Frame(frame, &part.other))?;
                }
            }
            Self::Audio(part) => map.serialize_entry("input_audio", &Audio(part))?,
            Self::File(part) => map.serialize_entry("file", &File(part))?,
            Self::FileReference(part) => map.serialize_entry("file", &Reference(part))?,
            Self::Refusal(part) => map.serialize_entry("refusal", &part.refusal)?,
            Self::Native(part) => map.serialize_entry("native", &Native(part))?,
        }
        write_other(&mut map, self.other(), self.inner())?;
        map.end()
    }
}

impl Part {
    /// The members of `other` that belong to an object inside the part.
    const fn inner(&self) -> &'static [&'static str] {
        match self {
            Self::Image(ImagePart { video: Some(_), .. }) => &["image_url", "video_metadata"],
            Self::Image(_) => &["image_url"],
            Self::Audio(_) => &["input_audio"],
            Self::File(_) | Self::FileReference(_) => &["file"],
            Self::Native(_) => &["native"],
            Self::Text(_) | Self::Refusal(_) => &[],
        }
    }
}

/// Defines an object inside a part: its members, then those that its type does not name.
macro_rules! inner {
    ($name:ident($part:ty) $key:literal, |$map:ident, $value:ident| $members:block) => {
        struct $name<'a>(&'a $part);

        impl Serialize for $name<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $value = self.0;
                let mut $map = serializer.serialize_map(None)?;
                $members
                write_members(&mut $map, member(&$value.other, $key), &[])?;
                $map.end()
            }
        }
    };
}

inner!(ImageUrl(ImagePart) "image_url", |map, part| {
    map.serialize_entry("url", &part.url)?;
    write_optional(&mut map, "detail", &part.detail)?;
    if let Some(rotation) = part.rotation {
        write_number(&mut map, "rotation", rotation)?;
    }
});

inner!(Audio(AudioPart) "input_audio", |map, part| {
    map.serialize_entry("data", &part.data)?;
    map.serialize_entry("format", &part.format)?;
    write_optional(&mut map, "sample_rate", &part.sample_rate)?;
});

inner!(File(FilePart) "file", |map, part| {
    write_optional(&mut map, "filename", &part.filename)?;
    map.serialize_entry("file_data", &format_args!("data:{};base64,{}", part.media_type, part.data))?;
});

inner!(Reference(FileReferencePart) "file", |map, part| {
    match &part.source {
        FileSource::Id(id) => map.serialize_entry("file_id", id)?,
        FileSource::Url(url) => map.serialize_entry("url", url)?,
    }
    write_optional(&mut map, "media_type", &part.media_type)?;
    write_optional(&mut map, "filename", &part.filename)?;
});

inner!(Native(NativePart) "native", |map, part| {
    map.serialize_entry("provider", &part.provider)?;
    map.serialize_entry("item", &part.item)?;
});

/// `video_metadata`, with the members of the part that belong to it.
struct Frame<'a>(&'a VideoFrame, &'a Option<Value>);

impl Serialize for Frame<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_optional(&mut map, "video_id", &self.0.video_id)?;
        write_number(&mut map, "timestamp_sec", self.0.timestamp_sec)?;
        write_optional(&mut map, "frame_index", &self.0.frame_index)?;
        write_members(&mut map, member(self.1, "video_metadata"), &[])?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use cog_json::ToJson as _;

    use super::*;

    #[test]
    fn media_becomes_the_part_of_its_type() {
        let pdf = r#"{"type":"file","file":{"file_data":"data:application/pdf;base64,QQ=="}}"#;
        for (media_type, expected) in [
            ("image/png", r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ=="}}"#),
            ("audio/mpeg", r#"{"type":"input_audio","input_audio":{"data":"QQ==","format":"mp3"}}"#),
            ("application/pdf", pdf),
        ] {
            assert_eq!(Part::media(media_type, "QQ==".to_owned()).to_json(), expected);
        }
    }
}
