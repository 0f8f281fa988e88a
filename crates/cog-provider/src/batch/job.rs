//! The state of a job.

use bytes::Bytes;
use cog_json::Node;

use crate::WireRequest;

/// A job at the vendor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchJob {
    /// Its ID.
    pub id: String,
    /// The name that [`BatchInterface::create`](super::BatchInterface::create) gave it.
    pub name: Option<String>,
    /// Its state, as the vendor names it. A state may be unknown.
    pub state: String,
    /// Whether it has ended.
    pub phase: BatchPhase,
    /// The numbers of its requests, as far as the vendor reports them.
    pub counts: BatchCounts,
    /// The IDs of the files with its results.
    pub files: Vec<String>,
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
pub(super) fn text(node: Node<'_>, pointer: &str) -> Option<String> {
    Some(node.pointer(pointer)?.as_str()?.to_owned())
}

/// Returns a string member that can be part of a path.
pub(super) fn id(node: Node<'_>, pointer: &str) -> Option<String> {
    plain_id(node.pointer(pointer)?.as_str()?)
}

/// Returns an ID that can be part of a path.
pub(super) fn plain_id(id: &str) -> Option<String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let is_valid = !id.is_empty() && !id.starts_with('.') && id.len() <= 256 && id.chars().all(is_plain);
    is_valid.then(|| id.to_owned())
}

/// Returns a count, which Gemini sends as a string.
pub(super) fn count(node: Node<'_>, pointer: &str) -> Option<u64> {
    let count = node.pointer(pointer)?;
    count.as_u64().or_else(|| count.as_str()?.parse().ok())
}

/// Returns the requests in these states together; `None` if the vendor reports none of them.
pub(super) fn sum(node: Node<'_>, pointers: &[&str]) -> Option<u64> {
    pointers.iter().filter_map(|pointer| count(node, pointer)).reduce(u64::saturating_add)
}

/// Returns a request without a body.
pub(super) fn bare(method: &'static str, url: String) -> WireRequest {
    WireRequest {
        method,
        url,
        headers: vec![("accept", "application/json".to_owned())],
        auth: None,
        body: Bytes::new(),
    }
}

/// Returns a request with a body of JSON.
pub(super) fn post(url: String, body: String) -> WireRequest {
    let mut request = bare("POST", url);
    request.headers.push(("content-type", "application/json".to_owned()));
    request.body = Bytes::from(body);
    request
}
