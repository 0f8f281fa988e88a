//! The batch interfaces of vendors: jobs of many requests, answered within a day at half the price.
//!
//! This module performs no I/O. [`BatchInterface`] maps the request of a live call to an entry of a job, and the entry
//! of a result to the reply that a live call would get, so that the normal decoder of the protocol reads it.

mod anthropic;
mod gemini;
mod openai;

use bytes::Bytes;
use cog_json::{Node, Value, Writer};
use cog_spec::Code;
use thiserror::Error;

use crate::{ProviderError, WireRequest};

/// The vendors with a batch interface.
pub const BATCH_VENDORS: &[&str] = &["openai", "anthropic", "gemini"];

/// Returns the batch interface of a vendor.
pub fn batch_interface(vendor: &str) -> Option<&'static dyn BatchInterface> {
    match vendor {
        "openai" => Some(&openai::OpenAi),
        "anthropic" => Some(&anthropic::Anthropic),
        "gemini" => Some(&gemini::Gemini),
        _ => None,
    }
}

// Bodies of entries.

/// The reason why a job cannot contain a request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EntryError {
    /// The vendor has no batches for the endpoint.
    #[error("the vendor has no batches for this kind of request")]
    Endpoint,
    /// A class of service, which batches do not have.
    #[error("a batch has no `service_tier`: it is a class of service itself")]
    ServiceTier,
    /// The request is larger than a job.
    #[error("the request has {bytes} bytes, but a job accepts at most {limit}")]
    TooLarge {
        /// The size of the request, in bytes.
        bytes: usize,
        /// The maximum size of a job, in bytes.
        limit: usize,
    },
}

impl EntryError {
    /// Returns the error code of the specification.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Endpoint => Code::MultimodalNotSupported,
            Self::ServiceTier => Code::UnsupportedValue,
            Self::TooLarge { .. } => Code::InputTooLarge,
        }
    }
}

/// The members of a body that only a stream has.
const STREAM_MEMBERS: &[&str] = &["stream", "stream_options"];
/// The members that set a class of service.
const TIER_MEMBERS: &[&str] = &["service_tier", "serviceTier"];

/// Writes the body of a request without what belongs to a stream.
fn write_body(w: &mut Writer<'_>, body: &Value) {
    w.object(|w| {
        for (key, value) in body.members().filter(|(key, _)| !STREAM_MEMBERS.contains(key)) {
            w.key(key).node(value);
        }
    });
}

/// Returns the body of a request.
fn body(request: &WireRequest) -> Result<Value, EntryError> {
    let body = Value::parse_bytes(&request.body).unwrap_or_default();
    match TIER_MEMBERS.iter().any(|key| body.get(key).is_some()) {
        true => Err(EntryError::ServiceTier),
        false => Ok(body),
    }
}

/// Returns an object, as JSON.
fn object(members: impl FnOnce(&mut Writer<'_>)) -> String {
    let mut out = String::new();
    Writer::compact(&mut out).object(members);
    out
}

// The result of one request of a job.

/// The result of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchResult {
    /// The ID of the entry.
    pub id: String,
    /// What became of it.
    pub outcome: BatchOutcome,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchOutcome {
    /// It was answered, or rejected.
    Replied(BatchReply),
    /// The job ended before its turn.
    Expired,
    /// The job was cancelled before its turn.
    Cancelled,
    /// The job ended without a result for it, with the vendor's reason.
    Missing(String),
}

/// The reply that a live call would get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchReply {
    /// The HTTP status.
    pub status: u16,
    /// The body, as JSON.
    pub body: String,
}

impl BatchOutcome {
    /// Returns the reply, which may be an error of the vendor.
    ///
    /// # Errors
    /// The request has no reply. Each of these can be sent again.
    pub fn reply(self) -> Result<BatchReply, ProviderError> {
        let (code, message) = match self {
            Self::Replied(reply) => return Ok(reply),
            Self::Expired => (Code::Timeout, "the batch job expired before it answered the row".to_owned()),
            Self::Cancelled => {
                (Code::StreamInterrupted, "the batch job was cancelled before it answered the row".to_owned())
            }
            Self::Missing(reason) => {
                (Code::StreamInterrupted, format!("the batch job has no answer for the row: {reason}"))
            }
        };
        Err(ProviderError::Other { code, message })
    }
}

// What a batch interface does.

/// The batch interface of a vendor.
pub trait BatchInterface: Send + Sync {
    /// Returns the limits of a job.
    fn limits(&self) -> BatchLimits;

    /// Returns what all requests of a job have in common: an endpoint or a model. None if the vendor has no batches for
    /// such a request.
    fn target(&self, request: &WireRequest) -> Option<String>;

    /// Returns the entry for a request, as JSON. The answer is not streamed.
    ///
    /// # Errors
    /// Fails if a job cannot contain the request.
    fn entry(&self, id: &str, request: &WireRequest) -> Result<String, EntryError>;

    /// Returns how the entries are uploaded; `None` if [`BatchInterface::create`] sends them.
    fn upload(&self, base_url: &str, name: &str, part: &BatchPart) -> Option<Upload>;

    /// Reads the ID of the uploaded file.
    fn file(&self, body: Node<'_>) -> Option<String> {
        id(body, "/id")
    }

    /// Returns the request that creates a job, with the ID of the uploaded file.
    fn create(&self, base_url: &str, name: &str, part: &BatchPart, file: &str) -> WireRequest;

    /// Returns the request for a page of the list of jobs, from the newest on. `cursor` comes from the page before.
    fn list(&self, base_url: &str, cursor: Option<&str>) -> WireRequest;

    /// Reads a page of the list of jobs.
    fn page(&self, body: Node<'_>) -> JobPage;

    /// Returns the request for the state of a job.
    fn status(&self, base_url: &str, id: &str) -> WireRequest;

    /// Returns the request that cancels a job.
    fn cancel(&self, base_url: &str, id: &str) -> WireRequest;

    /// Returns the request that deletes a file; `None` if the vendor deletes its files itself.
    fn delete(&self, _base_url: &str, _file: &str) -> Option<WireRequest> {
        None
    }

    /// Reads the state of a job. None if it has no ID that can be part of a path.
    fn job(&self, body: Node<'_>) -> Option<BatchJob>;

    /// Returns the requests for the results of a job that has ended.
    fn results(&self, base_url: &str, job: &BatchJob) -> Vec<WireRequest>;

    /// Returns the JSON pointer of the list of results in their body; `None` if each line is a result.
    fn results_pointer(&self, _job: &BatchJob) -> Option<&'static str> {
        None
    }

    /// Reads a result. None if it has no ID.
    fn result(&self, entry: Node<'_>) -> Option<BatchResult>;

    /// Returns whether a job has the name that [`BatchInterface::create`] gives it.
    fn has_names(&self) -> bool {
        true
    }

    /// Adds the entry for a request to a part. Returns false if the part has no room for it, or has requests to another
    /// endpoint or model.
    ///
    /// # Errors
    /// Fails if no job can contain the request.
    fn add(&self, part: &mut BatchPart, id: &str, request: &WireRequest) -> Result<bool, EntryError> {
        let target = self.target(request).ok_or(EntryError::Endpoint)?;
        part.push(target, self.entry(id, request)?)
    }
}

// The state of a job.

/// A job at the vendor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchJob {
    /// Its ID.
    pub id: String,
    /// The name that [`BatchInterface::create`] gave it.
    pub name: Option<String>,
    /// Its state, as the vendor names it. A state may be unknown.
    pub state: String,
    /// Whether it has ended.
    pub phase: BatchPhase,
    /// The numbers of its requests, as far as the vendor reports them.
    pub counts: BatchCounts,
    /// The IDs of the files with its results.
    pub files: Vec<String>,
    /// The ID of the file with its entries, as far as the vendor reports it.
    pub upload: Option<String>,
    /// Whether the vendor refused the complete job because its queue for the account was full. It can be sent again later.
    pub is_refused: bool,
    /// The vendor's error for the complete job.
    pub message: Option<String>,
}

/// Whether a job has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BatchPhase {
    /// It may still change. An unknown state is one of these.
    #[default]
    Running,
    /// It never changes again. Requests without a result get none.
    Ended,
}

/// The numbers of requests in a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BatchCounts {
    /// All requests.
    pub total: Option<u64>,
    /// Those with an answer.
    pub succeeded: Option<u64>,
    /// Those without one: failed, cancelled or expired.
    pub failed: Option<u64>,
}

/// A page of the list of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobPage {
    /// The jobs, from the newest on.
    pub jobs: Vec<BatchJob>,
    /// What the request for the next page contains; `None` on the last page.
    pub next: Option<String>,
}

/// Returns a string member.
fn text(node: Node<'_>, pointer: &str) -> Option<String> {
    Some(node.pointer(pointer)?.as_str()?.to_owned())
}

/// Returns a string member that can be part of a path.
fn id(node: Node<'_>, pointer: &str) -> Option<String> {
    plain_id(node.pointer(pointer)?.as_str()?)
}

/// Returns an ID that can be part of a path.
fn plain_id(id: &str) -> Option<String> {
    // It becomes part of a URL that receives the key, so `..` and `/` in a reply must not lead elsewhere.
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    let is_valid = is_plain && !id.is_empty() && !id.starts_with('.') && id.len() <= 256;
    is_valid.then(|| id.to_owned())
}

/// Returns a count, which Gemini sends as a string.
fn count(node: Node<'_>, pointer: &str) -> Option<u64> {
    let count = node.pointer(pointer)?;
    count.as_u64().or_else(|| count.as_str()?.parse().ok())
}

/// Returns the requests in these states together; `None` if the vendor reports none of them.
fn sum(node: Node<'_>, pointers: &[&str]) -> Option<u64> {
    pointers.iter().filter_map(|pointer| count(node, pointer)).reduce(u64::saturating_add)
}

/// Returns a request without a body.
fn bare(method: &'static str, url: String) -> WireRequest {
    WireRequest {
        method,
        url,
        headers: vec![("accept", "application/json".to_owned())],
        auth: None,
        body: Bytes::new(),
    }
}

/// Returns a request with a body of JSON.
fn post(url: String, body: String) -> WireRequest {
    let mut request = bare("POST", url);
    request.headers.push(("content-type", "application/json".to_owned()));
    request.body = Bytes::from(body);
    request
}

// The entries of one job.

/// The limits of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// The maximum number of requests.
    pub requests: usize,
    /// The maximum size, in bytes.
    pub bytes: usize,
}

impl BatchLimits {
    /// Returns the lower of two limits.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Self { requests: self.requests.min(other.requests), bytes: self.bytes.min(other.bytes) }
    }
}

/// The entries of one job, within its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchPart {
    limits: BatchLimits,
    target: String,
    entries: Vec<String>,
    bytes: usize,
}

/// The bytes of a request around its entries.
const FRAME: usize = 1_024;

impl BatchPart {
    /// Creates a part without entries.
    #[must_use]
    pub fn new(limits: BatchLimits) -> Self {
        Self { limits, target: String::new(), entries: Vec::new(), bytes: FRAME }
    }

    /// Adds an entry. Returns false if the part has no room for it, or has requests to another endpoint or model.
    ///
    /// # Errors
    /// Fails if no part can contain the entry.
    pub fn push(&mut self, target: String, entry: String) -> Result<bool, EntryError> {
        let size = entry.len() + 1;
        if FRAME + size > self.limits.bytes {
            return Err(EntryError::TooLarge { bytes: entry.len(), limit: self.limits.bytes });
        }
        let is_full = self.entries.len() >= self.limits.requests || self.bytes + size > self.limits.bytes;
        if !self.entries.is_empty() && (is_full || self.target != target) {
            return Ok(false);
        }
        self.bytes += size;
        self.target = target;
        self.entries.push(entry);
        Ok(true)
    }

    /// Returns the size of the entries, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the endpoint or the model of the requests.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the entries, in order.
    #[must_use]
    pub fn entries(&self) -> &[String] {
        &self.entries
    }
}

/// The upload of the entries.
#[derive(Debug, Clone, PartialEq)]
pub struct Upload {
    /// The first request.
    pub request: WireRequest,
    /// What is sent to the URL in the reply to the first request; none if that contains it.
    pub content: Option<Bytes>,
}
