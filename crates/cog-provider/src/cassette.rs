//! Cassettes: recorded requests and the raw bytes of their replies (docs/spec/golden-tests.md).
//!
//! A cassette is a directory. `NNNN.json` contains a request and the status and headers of its reply. `NNNN.ndjson`
//! contains the body as one `{"t_ms", "b64"}` object per chunk received.
//! A reply is found by the hash of the request body and the end of the request path, where Gemini names the model.
//! Equal requests get their replies in recorded order, and start over after the last one.

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

/// The speed at which a recording is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pace {
    /// Without pauses.
    #[default]
    Immediate,
    /// With the recorded pauses.
    AsRecorded,
}

/// The provider and model that a cassette was recorded from. A replay uses the same provider and model, since both are
/// part of the requests that identify the replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The vendor's name, `openai`.
    pub provider: String,
    /// The name of the model.
    pub model: String,
}

impl Recording {
    /// Reads the provider and model of the cassette in a directory.
    ///
    /// # Errors
    /// Fails if the directory contains no recording, or if the recording does not name its provider and model.
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

/// The contents of `NNNN.json`.
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

/// Returns the path and query of a URL. The scheme and host are not stored.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').and_then(|start| rest.get(start..)).unwrap_or("/")
}

/// The request key, status and headers of a recorded reply.
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

/// The key under which equal requests are grouped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    /// The end of the path. The rest of the path belongs to the base URL, which may differ.
    endpoint: String,
    /// The SHA-256 of the body, in hexadecimal.
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
