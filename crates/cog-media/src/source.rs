use std::path::PathBuf;

use cog_json::{Node, Value};

use crate::{Checksum, MediaError, MediaRules};

/// Where a medium comes from, and what was said of it (SPEC 4.2, docs/spec/media.md).
#[derive(Debug, Clone)]
pub struct MediaSource {
    /// Where its bytes are.
    pub place: Place,
    /// Its type, where the caller says; the content must be it (ruling R61).
    pub media_type: Option<String>,
    /// What its bytes must hash to.
    pub checksum: Option<Checksum>,
    /// How closely a model is to look at an image.
    pub detail: Option<Detail>,
    /// By how much an image is turned before a model sees it.
    pub rotation: Rotation,
}

/// Where the bytes of a medium are.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Place {
    /// At an address (SPEC 4.2.1).
    Url(String),
    /// In the input itself, as base64 (SPEC 4.2.2): a string, which shares the input's memory.
    Base64(Value),
    /// In a file, absolute or relative to the module's directory (SPEC 4.2.3).
    File(PathBuf),
    /// In an upload that was made before (docs/spec/media.md).
    Upload(String),
}

/// How closely a model is to look at an image; vendors charge by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detail {
    /// As the vendor decides.
    Auto,
    /// At a glance, for few tokens.
    Low,
    /// Closely.
    High,
}

/// A turn clockwise, in degrees: 0, 90, 180 or 270.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rotation(u16);

impl MediaSource {
    /// A source of which nothing else is said.
    pub fn new(place: Place) -> Self {
        Self { place, media_type: None, checksum: None, detail: None, rotation: Rotation::default() }
    }

    /// Reads the source that stands at a node of the input.
    ///
    /// # Errors
    /// [`MediaError::NoSource`] where it has not the shape of one.
    pub fn read(input: &Value, node: Node<'_>) -> Result<Self, MediaError> {
        let place = place(input, node)?;
        let media_type = match node.get("media_type") {
            Some(named) => Some(named.as_str().ok_or(wrong("`media_type` must be a string"))?.to_owned()),
            None if matches!(place, Place::Base64(_)) => return Err(wrong("base64 requires `media_type`")),
            None => None,
        };
        Ok(Self {
            media_type,
            checksum: node.get("checksum").map(Checksum::read).transpose()?,
            detail: node.get("detail").map(Detail::read).transpose()?,
            rotation: node.get("rotation").map(Rotation::read).transpose()?.unwrap_or_default(),
            ..Self::new(place)
        })
    }
}

impl MediaSource {
    /// Whether it is said to be something that the rules take, as far as something is said; nothing is opened.
    ///
    /// # Errors
    /// [`MediaError::Unsupported`].
    pub fn check(&self, rules: &MediaRules) -> Result<(), MediaError> {
        let allowed = rules.media_types();
        match &self.media_type {
            Some(said) if !allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(said)) => {
                Err(MediaError::unsupported(Some(said), &allowed))
            }
            _ => Ok(()),
        }
    }
}

impl Place {
    /// The `type` of such a source.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Url(_) => "url",
            Self::Base64(_) => "base64",
            Self::File(_) => "file",
            Self::Upload(_) => "upload_ref",
        }
    }
}

fn place(input: &Value, node: Node<'_>) -> Result<Place, MediaError> {
    let member = |key: &str, absent: &'static str| {
        node.get(key).filter(|member| member.is_string()).ok_or_else(|| wrong(absent))
    };
    let text = |member: Node<'_>| member.as_str().unwrap_or_default().to_owned();
    match member("type", "`type` is missing")?.as_str() {
        Some("url") => Ok(Place::Url(text(member("url", "url requires `url`")?))),
        Some("base64") => Ok(Place::Base64(input.child(member("data", "base64 requires `data`")?))),
        Some("file") => Ok(Place::File(text(member("path", "file requires `path`")?).into())),
        Some("upload_ref") => {
            Ok(Place::Upload(text(member("upload_id", "upload_ref requires `upload_id`")?)))
        }
        _ => Err(wrong("`type` must be url, base64, file or upload_ref")),
    }
}

impl Detail {
    /// The word that vendors use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Low => "low",
            Self::High => "high",
        }
    }

    fn read(node: Node<'_>) -> Result<Self, MediaError> {
        match node.as_str() {
            Some("auto") => Ok(Self::Auto),
            Some("low") => Ok(Self::Low),
            Some("high") => Ok(Self::High),
            _ => Err(wrong("`detail` must be auto, low or high")),
        }
    }
}

impl Rotation {
    /// How many degrees, clockwise.
    pub fn degrees(self) -> u16 {
        self.0
    }

    fn read(node: Node<'_>) -> Result<Self, MediaError> {
        match node.as_u64() {
            Some(degrees @ (0 | 90 | 180 | 270)) => Ok(Self(u16::try_from(degrees).unwrap_or_default())),
            _ => Err(wrong("`rotation` must be 0, 90, 180 or 270")),
        }
    }
}

fn wrong(what: &'static str) -> MediaError {
    MediaError::NoSource { what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<MediaSource, MediaError> {
        let input = Value::parse(text).unwrap();
        MediaSource::read(&input, input.node())
    }

    #[test]
    fn each_kind_of_source_is_read() {
        for (text, kind) in [
            (r#"{"type":"url","url":"https://x.test/a.png"}"#, "url"),
            (r#"{"type":"base64","media_type":"image/png","data":"QQ=="}"#, "base64"),
            (r#"{"type":"file","path":"a.png","media_type":"image/png"}"#, "file"),
            (r#"{"type":"upload_ref","upload_id":"upl_1"}"#, "upload_ref"),
        ] {
            assert_eq!(read(text).unwrap().place.kind(), kind);
        }
    }

    #[test]
    fn what_is_said_of_a_medium_comes_with_it() {
        let source = read(
            r#"{"type":"file","path":"a.png","detail":"low","rotation":90,
                "checksum":{"algorithm":"crc32","value":"0000ABCD"}}"#,
        );
        let source = source.unwrap();
        assert_eq!((source.detail, source.rotation.degrees()), (Some(Detail::Low), 90));
        assert_eq!(source.checksum.unwrap().algorithm(), "crc32");
    }

    #[test]
    fn what_has_not_the_shape_of_a_source_is_refused() {
        for text in [
            r#""a.png""#,
            r#"{"type":"ftp"}"#,
            r#"{"type":"url"}"#,
            r#"{"type":"url","url":1}"#,
            r#"{"type":"base64","data":"QQ=="}"#,
            r#"{"type":"file","path":"a","rotation":45}"#,
            r#"{"type":"file","path":"a","detail":"huge"}"#,
            r#"{"type":"file","path":"a","checksum":{"algorithm":"md5","value":"12"}}"#,
        ] {
            assert!(matches!(read(text), Err(MediaError::NoSource { .. })), "{text}");
        }
    }
}
