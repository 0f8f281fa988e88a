//! Cassettes: requests and the raw bytes of their replies, kept and played (docs/spec/golden-tests.md).
//!
//! A cassette is a directory. `NNNN.json` holds a request and the head of its reply; `NNNN.ndjson` the body,
//! `{"t_ms", "b64"}` for each piece as it came. A reply is found by the hash of the request's body, and by
//! the end of its path, where Gemini names the model. Of several equal requests each gets the next of the
//! replies, and after the last the first again.

mod files;
mod mask;
mod record;
mod replay;

pub(crate) use record::Recorder;
pub(crate) use replay::Replayer;

use std::path::Path;

use cog_json::{Node, ToJson, Value, Writer};
use sha2::{Digest, Sha256};

use crate::{ProviderError, WireRequest, transport::KEPT_HEADERS};

/// How fast a recording is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pace {
    /// All at once.
    #[default]
    AtOnce,
    /// With the pauses it was recorded with.
    AsRecorded,
}

/// Whom a cassette was recorded of. A replay asks the same vendor for the same model, since both show in
/// the requests by which it finds its replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The vendor's name, `openai`.
    pub provider: String,
    /// The model that was asked.
    pub model: String,
}

impl Recording {
    /// Reads whom the cassette in a directory was recorded of.
    ///
    /// # Errors
    /// A directory that holds no recording, or one that does not say.
    pub fn read(directory: &Path) -> Result<Self, ProviderError> {
        let numbers = files::numbers(directory).map_err(|error| unusable(directory, error))?;
        let first = numbers.first().ok_or_else(|| unusable(directory, "it holds no recording"))?;
        let path = files::head(directory, *first);
        let text = files::read(&path).map_err(|error| unusable(&path, error))?;
        let head = Value::parse(&text).map_err(|error| unusable(&path, error))?;
        let field = |key: &str| head.get(key).and_then(Node::as_str).map(str::to_owned);
        let recording =
            field("provider").zip(field("model")).map(|(provider, model)| Self { provider, model });
        recording.ok_or_else(|| unusable(&path, "no recording: provider or model is missing"))
    }
}

/// `NNNN.json`.
struct Head<'a> {
    recording: &'a Recording,
    request: &'a WireRequest,
    status: u16,
    headers: &'a [(&'static str, String)],
}

impl ToJson for Head<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("provider", &self.recording.provider);
            w.field("model", &self.recording.model);
            w.field("method", self.request.method);
            w.field("path", path_of(&self.request.url));
            w.key("headers");
            let auth = self.request.auth.as_ref().map(|(name, _)| (*name, "***".to_owned()));
            pairs(w, self.request.headers.iter().chain(&auth));
            match Value::parse_bytes(&self.request.body) {
                Ok(body) => w.field("body", &body),
                Err(_) => w.field("body", &*String::from_utf8_lossy(&self.request.body)),
            };
            w.field("status", &self.status);
            w.key("reply_headers");
            pairs(w, self.headers.iter());
        });
    }
}

fn pairs<'a>(w: &mut Writer<'_>, pairs: impl Iterator<Item = &'a (&'static str, String)>) {
    w.object(|w| {
        for (name, value) in pairs {
            w.field(name, value);
        }
    });
}

/// What stands behind the host. Nothing of the address before it is kept.
fn path_of(url: &str) -> &str {
    let behind = url.split_once("://").map_or(url, |(_, behind)| behind);
    behind.find('/').and_then(|start| behind.get(start..)).unwrap_or("/")
}

/// What a reply was recorded with.
struct Recorded {
    key: Key,
    status: u16,
    headers: Vec<(&'static str, String)>,
}

impl Recorded {
    fn read(node: Node<'_>) -> Option<Self> {
        let body = node.get("body")?;
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        let headers = node.get("reply_headers")?;
        let header = |name: &'static str| Some((name, headers.get(name)?.as_str()?.to_owned()));
        Some(Self {
            key: Key::new(node.get("path")?.as_str()?, body.as_bytes()),
            status: u16::try_from(node.get("status")?.as_u64()?).ok()?,
            headers: KEPT_HEADERS.into_iter().filter_map(header).collect(),
        })
    }
}

/// What equal requests have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    /// The end of the path. What stands before it belongs to the address, which may differ.
    endpoint: String,
    /// SHA-256 of the body, in hexadecimal.
    hash: String,
}

impl Key {
    fn new(path: &str, body: &[u8]) -> Self {
        let endpoint = path.rsplit('/').next().unwrap_or_default().to_owned();
        let hash = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { endpoint, hash }
    }
}

fn unusable(directory: &Path, message: impl ToString) -> ProviderError {
    ProviderError::Cassette { directory: directory.to_owned(), message: message.to_string() }
}

#[cfg(test)]
mod tests;
