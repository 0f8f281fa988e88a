use std::path::PathBuf;

use cog_json::{Node, Value};
use cog_spec::media_type::says_nothing;

use crate::{Checksum, MediaError, MediaRules, kind::is_named};

/// The source of a media file, and what the caller declared about it (SPEC 4.2, docs/spec/media.md).
#[derive(Debug, Clone)]
pub struct MediaSource {
    /// The location of its bytes.
    pub location: MediaLocation,
    /// The declared type; the content must match (ruling R61).
    pub media_type: Option<String>,
    /// The expected checksum.
    pub checksum: Option<Checksum>,
    /// The requested level of detail of an image.
    pub detail: Option<Detail>,
    /// The rotation to apply to an image.
    pub rotation: Rotation,
}

/// The location of a media file's bytes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum MediaLocation {
    /// A URL (SPEC 4.2.1).
    Url(String),
    /// Base64 in the input (SPEC 4.2.2): a string that shares the input's memory.
    Base64(Value),
    /// A file, absolute or relative to the module's directory (SPEC 4.2.3).
    File(PathBuf),
    /// A file, absolute or relative to the working directory: an artifact of a handoff packet.
    Artifact(PathBuf),
    /// A previous upload (docs/spec/media.md).
    Upload(String),
}

/// The level of detail at which a model reads an image; providers charge by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detail {
    /// The provider decides.
    Auto,
    /// Low detail, few tokens.
    Low,
    /// High detail.
    High,
}

/// A clockwise rotation in degrees: 0, 90, 180 or 270.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rotation(u16);

impl MediaSource {
    /// Creates a source without further declarations.
    pub fn new(location: MediaLocation) -> Self {
        Self { location, media_type: None, checksum: None, detail: None, rotation: Rotation::default() }
    }

    /// Reads the source at a node of the input.
    ///
    /// # Errors
    /// [`MediaError::InvalidSource`] if it is not a valid source.
    pub fn read(input: &Value, node: Node<'_>) -> Result<Self, MediaError> {
        let location = location(input, node)?;
        let media_type = match node.get("media_type") {
            Some(named) => {
                let named = named.as_str().ok_or(invalid("`media_type` must be a string"))?;
                Some(named.to_owned()).filter(|named| !says_nothing(named))
            }
            None if matches!(location, MediaLocation::Base64(_)) => {
                return Err(invalid("base64 requires `media_type`"));
            }
            None => None,
        };
        Ok(Self {
            media_type,
            checksum: node.get("checksum").map(Checksum::read).transpose()?,
            detail: node.get("detail").map(Detail::read).transpose()?,
            rotation: node.get("rotation").map(Rotation::read).transpose()?.unwrap_or_default(),
            ..Self::new(location)
        })
    }
}

impl MediaSource {
    /// Checks the declared type against the rules; nothing is opened.
    ///
    /// # Errors
    /// [`MediaError::Unsupported`].
    pub fn check(&self, rules: &MediaRules) -> Result<(), MediaError> {
        let allowed = rules.media_types();
        match &self.media_type {
            Some(declared)
                if !allowed.iter().any(|allowed| is_named(allowed, declared))
                    && !rules.converts(declared) =>
            {
                Err(MediaError::unsupported(Some(declared), &allowed))
            }
            _ => Ok(()),
        }
    }
}

impl MediaLocation {
    /// Returns the `type` of such a source.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Url(_) => "url",
            Self::Base64(_) => "base64",
            Self::File(_) | Self::Artifact(_) => "file",
            Self::Upload(_) => "upload_ref",
        }
    }
}

fn location(input: &Value, node: Node<'_>) -> Result<MediaLocation, MediaError> {
    match text(node, "type", "`type` is missing")?.as_str() {
        "url" => Ok(MediaLocation::Url(text(node, "url", "url requires `url`")?)),
        "base64" => {
            // A file of megabytes: it shares the memory of the input.
            let data = node.get("data").filter(|data| data.is_string());
            Ok(MediaLocation::Base64(input.child(data.ok_or_else(|| invalid("base64 requires `data`"))?)))
        }
        "file" => Ok(MediaLocation::File(text(node, "path", "file requires `path`")?.into())),
        "upload_ref" => {
            Ok(MediaLocation::Upload(text(node, "upload_id", "upload_ref requires `upload_id`")?))
        }
        _ => Err(invalid("`type` must be url, base64, file or upload_ref")),
    }
}

/// Returns a member that is a string.
fn text(node: Node<'_>, key: &str, absent: &'static str) -> Result<String, MediaError> {
    Ok(node.get_str(key).ok_or_else(|| invalid(absent))?.to_owned())
}

impl Detail {
    /// Returns the value that providers use.
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
            _ => Err(invalid("`detail` must be auto, low or high")),
        }
    }
}

impl Rotation {
    /// Returns the rotation in degrees, clockwise.
    pub fn degrees(self) -> u16 {
        self.0
    }

    fn read(node: Node<'_>) -> Result<Self, MediaError> {
        match node.as_u64() {
            Some(degrees @ (0 | 90 | 180 | 270)) => Ok(Self(u16::try_from(degrees).unwrap_or_default())),
            _ => Err(invalid("`rotation` must be 0, 90, 180 or 270")),
        }
    }
}

fn invalid(what: &'static str) -> MediaError {
    MediaError::InvalidSource { what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<MediaSource, MediaError> {
        let input = Value::parse(text).unwrap();
        MediaSource::read(&input, input.node())
    }

    #[test]
    fn reads_each_kind_of_source() {
        for (text, kind) in [
            (r#"{"type":"url","url":"https://x.test/a.png"}"#, "url"),
            (r#"{"type":"base64","media_type":"image/png","data":"QQ=="}"#, "base64"),
            (r#"{"type":"file","path":"a.png","media_type":"image/png"}"#, "file"),
            (r#"{"type":"upload_ref","upload_id":"upl_1"}"#, "upload_ref"),
        ] {
            assert_eq!(read(text).unwrap().location.kind(), kind);
        }
    }

    #[test]
    fn reads_optional_members() {
        let source = read(
            r#"{"type":"file","path":"a.png","detail":"low","rotation":90,
                "checksum":{"algorithm":"crc32","value":"0000ABCD"}}"#,
        );
        let source = source.unwrap();
        assert_eq!((source.detail, source.rotation.degrees()), (Some(Detail::Low), 90));
        assert_eq!(source.checksum.unwrap().algorithm(), "crc32");
    }

    #[test]
    fn rejects_invalid_sources() {
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
            assert!(matches!(read(text), Err(MediaError::InvalidSource { .. })), "{text}");
        }
    }
}
