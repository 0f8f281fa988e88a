//! Anthropic: a job with its entries, without a name.

use cog_json::{Node, Value};

use super::{
    BatchCounts, BatchInterface, BatchJob, BatchLimits, BatchOutcome, BatchPart, BatchPhase, BatchReply,
    BatchResult, EntryError, JobPage, Upload, bare, id, object, post, sum, text, write_body,
};
use crate::batch;
use crate::{
    WireRequest,
    protocol::{ProtocolKind, anthropic::version_path},
};

pub(super) struct Anthropic;

/// The numbers of requests, by their state.
const COUNTS: &[&str] = &[
    "/request_counts/processing",
    "/request_counts/succeeded",
    "/request_counts/errored",
    "/request_counts/canceled",
    "/request_counts/expired",
];

/// The HTTP status for each type of error.
const STATUSES: &[(&str, u16)] = &[
    ("invalid_request_error", 400),
    ("authentication_error", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("timeout_error", 504),
    ("overloaded_error", 529),
];

impl BatchInterface for Anthropic {
    fn limits(&self) -> BatchLimits {
        BatchLimits { requests: 100_000, bytes: 256_000_000 }
    }

    fn target(&self, request: &WireRequest) -> Option<String> {
        request.url.ends_with("/messages").then(|| "messages".to_owned())
    }

    fn entry(&self, id: &str, request: &WireRequest) -> Result<String, EntryError> {
        let body = batch::body(request)?;
        Ok(object(|w| {
            write_body(w.field("custom_id", id).key("params"), &body);
        }))
    }

    fn upload(&self, _base_url: &str, _name: &str, _part: &BatchPart) -> Option<Upload> {
        None
    }

    fn create(&self, base_url: &str, _name: &str, part: &BatchPart, _file: &str) -> WireRequest {
        let body = format!(r#"{{"requests":[{}]}}"#, part.entries().join(","));
        with_version(post(batches(base_url), body))
    }

    fn list(&self, base_url: &str, cursor: Option<&str>) -> WireRequest {
        let after = cursor.map(|cursor| format!("&after_id={cursor}")).unwrap_or_default();
        with_version(bare("GET", format!("{}?limit=1000{after}", batches(base_url))))
    }

    fn page(&self, body: Node<'_>) -> JobPage {
        let list = body.get("data").into_iter().flat_map(Node::elements);
        let has_more = body.get("has_more").and_then(Node::as_bool) == Some(true);
        let next = id(body, "/last_id").filter(|_| has_more);
        JobPage { jobs: list.filter_map(|node| self.job(node)).collect(), next }
    }

    fn status(&self, base_url: &str, id: &str) -> WireRequest {
        with_version(bare("GET", format!("{}/{id}", batches(base_url))))
    }

    fn cancel(&self, base_url: &str, id: &str) -> WireRequest {
        with_version(bare("POST", format!("{}/{id}/cancel", batches(base_url))))
    }

    fn job(&self, body: Node<'_>) -> Option<BatchJob> {
        let state = text(body, "/processing_status").unwrap_or_default();
        Some(BatchJob {
            id: id(body, "/id")?,
            name: None,
            phase: if state == "ended" { BatchPhase::Ended } else { BatchPhase::Running },
            state,
            counts: BatchCounts {
                total: sum(body, COUNTS),
                succeeded: sum(body, &["/request_counts/succeeded"]),
                failed: sum(body, COUNTS.get(2..).unwrap_or_default()),
            },
            files: Vec::new(),
            message: None,
            ..BatchJob::default()
        })
    }

    /// Returns the request at the operator's URL. The job names a URL too, which must not receive the key.
    fn results(&self, base_url: &str, job: &BatchJob) -> Vec<WireRequest> {
        vec![with_version(bare("GET", format!("{}/{}/results", batches(base_url), job.id)))]
    }

    fn result(&self, entry: Node<'_>) -> Option<BatchResult> {
        let id = text(entry, "/custom_id")?;
        let result = entry.get("result")?;
        let outcome = match result.get_str("type") {
            Some("succeeded") => {
                BatchOutcome::Replied(BatchReply { status: 200, body: result.get("message")?.to_string() })
            }
            Some("errored") => errored(result.get("error")),
            Some("expired") => BatchOutcome::Expired,
            Some("canceled") => BatchOutcome::Cancelled,
            other => BatchOutcome::Missing(format!("its result is `{}`", other.unwrap_or_default())),
        };
        Some(BatchResult { id, outcome })
    }

    fn has_names(&self) -> bool {
        false
    }
}

fn errored(error: Option<Node<'_>>) -> BatchOutcome {
    let kind = error.and_then(|error| error.pointer("/error/type")).and_then(Node::as_str);
    let status = STATUSES.iter().find(|(name, _)| Some(*name) == kind).map_or(500, |(_, status)| *status);
    let body = error.map_or_else(Value::null, Node::to_value).node().to_string();
    BatchOutcome::Replied(BatchReply { status, body })
}

fn batches(base_url: &str) -> String {
    format!("{base_url}{}/messages/batches", version_path(base_url))
}

fn with_version(mut request: WireRequest) -> WireRequest {
    request.headers.extend(ProtocolKind::Anthropic.protocol().headers());
    request
}
