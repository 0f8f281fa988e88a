//! Writes parts as JSON.

use cog_json::Value;
use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::{
    AudioPart, FilePart, FileReferencePart, FileSource, ImagePart, NativePart, Part, VideoFrame,
    other::{member, write_members, write_number, write_optional, write_other},
};

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
