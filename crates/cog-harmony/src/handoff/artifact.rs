use cog_json::Node;

/// An artifact of a packet: a reference, which is not the content itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Artifact<'a> {
    /// Its name.
    pub name: &'a str,
    /// The URL or path.
    pub reference: Reference<'a>,
    /// The media type, if the sender names it.
    pub media_type: Option<&'a str>,
    /// The SHA-256 of the content in hex digits, if the sender names it.
    pub sha256: Option<&'a str>,
}

/// Where an artifact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// A URL with any scheme.
    Url(&'a str),
    /// A path.
    Path(&'a str),
}

impl<'a> Reference<'a> {
    fn new(text: &'a str) -> Self {
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
        // A scheme of one letter is a drive.
        let is_scheme = scheme.len() > 1
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        if is_scheme { Self::Url(text) } else { Self::Path(text) }
    }

    /// Returns the URL or path.
    pub const fn as_str(self) -> &'a str {
        match self {
            Self::Url(text) | Self::Path(text) => text,
        }
    }
}

impl<'a> Artifact<'a> {
    pub(super) fn read((name, node): (&'a str, Node<'a>)) -> Option<Self> {
        let text = |key: &str| node.get(key)?.as_str();
        let reference = node.as_str().or_else(|| text("url")).or_else(|| text("path"))?;
        let (media_type, sha256) = (text("media_type"), text("sha256"));
        Some(Self { name, reference: Reference::new(reference), media_type, sha256 })
    }

    /// Checks the form of an artifact: a text, or an object with `url` or `path`.
    pub(super) fn check(node: Node<'a>) -> Result<(), &'static str> {
        let Some(artifact) = Self::read(("", node)) else {
            return Err("allowed: a URL, a path, or an object with `url` or `path`");
        };
        let is_digest =
            |digest: &str| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        if artifact.reference.as_str().trim().is_empty() {
            Err("the reference is empty")
        } else if artifact.reference.as_str().starts_with("data:") {
            Err("allowed: a reference; this is the content itself")
        } else if !artifact.sha256.is_none_or(is_digest) {
            Err("`sha256` is not 64 hex digits")
        } else {
            Ok(())
        }
    }

    /// Whether the artifact is an image that a model can receive by its URL.
    pub(super) fn is_image_url(&self) -> bool {
        let Reference::Url(url) = self.reference else { return false };
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        let path = url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
        let by_name = [".png", ".jpg", ".jpeg", ".gif", ".webp"].iter().any(|ending| path.ends_with(ending));
        is_web && self.media_type.map_or(by_name, |media_type| media_type.starts_with("image/"))
    }
}
