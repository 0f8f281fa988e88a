//! A recorded request and the status and headers of its reply.

use cog_json::{Node, ToJson, Value, Writer};
use sha2::{Digest, Sha256};

use super::Recording;
use crate::{WireRequest, transport::REPLY_HEADERS};

/// The contents of `NNNN.json`.
pub(super) struct Exchange<'a> {
    pub(super) recording: &'a Recording,
    pub(super) request: &'a WireRequest,
    pub(super) status: u16,
    pub(super) headers: &'a [(&'static str, String)],
}

impl ToJson for Exchange<'_> {
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
pub(super) struct Recorded {
    pub(super) key: Key,
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
}

impl Recorded {
    pub(super) fn read(node: Node<'_>) -> Option<Self> {
        let body = node.get("body")?;
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        let headers = node.get("reply_headers")?;
        let header = |name: &'static str| Some((name, headers.get(name)?.as_str()?.to_owned()));
        Some(Self {
            key: Key::new(node.get("path")?.as_str()?, body.as_bytes()),
            status: u16::try_from(node.get("status")?.as_u64()?).ok()?,
            headers: REPLY_HEADERS.into_iter().filter_map(header).collect(),
        })
    }
}

/// The key under which equal requests are grouped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The end of the path. The rest of the path belongs to the base URL, which may differ.
    pub(super) endpoint: String,
    /// The SHA-256 of the body, in hexadecimal.
    pub(super) hash: String,
}

impl Key {
    pub(super) fn new(path: &str, body: &[u8]) -> Self {
        let endpoint = path.rsplit('/').next().unwrap_or_default().to_owned();
        let hash = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { endpoint, hash }
    }
}

#[cfg(test)]
mod tests;
