//! Gemini: a job with its entries, in the body of one request.

use cog_json::Node;

use super::{
    entry::{self, EntryError, object, write_body},
    interface::BatchInterface,
    job::{BatchCounts, BatchJob, BatchPhase, JobPage, bare, count, plain_id, post, text},
    part::{BatchLimits, BatchPart},
    result::{BatchOutcome, BatchReply, BatchResult},
};
use crate::{WireRequest, protocol::gemini::version_path};

pub(super) struct Gemini;

/// The end of the URL of a live request, after the model.
const STREAM: &str = ":streamGenerateContent?alt=sse";
/// The states that never change, without their prefix.
const ENDED: &[&str] = &["SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"];
/// The list of results in the body of a job.
const RESULTS: &str = "/response/inlinedResponses/inlinedResponses";

/// The HTTP status for each status code of the vendor.
const STATUSES: &[(u64, u16)] =
    &[(3, 400), (5, 404), (7, 403), (8, 429), (9, 400), (11, 400), (13, 500), (14, 503), (16, 401)];

impl BatchInterface for Gemini {
    /// The vendor has no limit for the number of requests.
    fn limits(&self) -> BatchLimits {
        BatchLimits { requests: 100_000, bytes: 20_000_000 }
    }

    /// Returns the model.
    fn target(&self, request: &WireRequest) -> Option<String> {
        let (_, model) = request.url.strip_suffix(STREAM)?.rsplit_once("/models/")?;
        Some(model.to_owned())
    }

    fn entry(&self, id: &str, request: &WireRequest) -> Result<String, EntryError> {
        let body = entry::body(request)?;
        Ok(object(|w| {
            write_body(w.key("request"), &body);
            w.key("metadata").object(|w| {
                w.field("key", id);
            });
        }))
    }

    fn upload(&self, _base_url: &str, _name: &str, _part: &BatchPart) -> Option<WireRequest> {
        None
    }

    fn create(&self, base_url: &str, name: &str, part: &BatchPart, _file: &str) -> WireRequest {
        let url = format!("{}/models/{}:batchGenerateContent", versioned(base_url), part.target());
        let requests = part.entries().join(",");
        let body = format!(
            r#"{{"batch":{{"displayName":"{name}","inputConfig":{{"requests":{{"requests":[{requests}]}}}}}}}}"#
        );
        post(url, body)
    }

    fn list(&self, base_url: &str, cursor: Option<&str>) -> WireRequest {
        let token = cursor.map(|cursor| format!("&pageToken={cursor}")).unwrap_or_default();
        bare("GET", format!("{}/batches?pageSize=100{token}", versioned(base_url)))
    }

    fn page(&self, body: Node<'_>) -> JobPage {
        let list = body.get("operations").into_iter().flat_map(Node::elements);
        let next = text(body, "/nextPageToken").filter(|token| !token.is_empty());
        let next = next.map(|token| url::form_urlencoded::byte_serialize(token.as_bytes()).collect());
        JobPage { jobs: list.filter_map(|node| self.job(node)).collect(), next }
    }

    fn status(&self, base_url: &str, id: &str) -> WireRequest {
        bare("GET", format!("{}/batches/{id}", versioned(base_url)))
    }

    fn cancel(&self, base_url: &str, id: &str) -> WireRequest {
        bare("POST", format!("{}/batches/{id}:cancel", versioned(base_url)))
    }

    fn job(&self, body: Node<'_>) -> Option<BatchJob> {
        let name = text(body, "/name")?;
        let state = text(body, "/metadata/state").unwrap_or_default();
        let bare_state = state.trim_start_matches("BATCH_STATE_").trim_start_matches("JOB_STATE_");
        let is_ended = ENDED.contains(&bare_state);
        Some(BatchJob {
            id: plain_id(name.strip_prefix("batches/")?)?,
            name: text(body, "/metadata/displayName"),
            phase: if is_ended { BatchPhase::Ended } else { BatchPhase::Running },
            state,
            counts: BatchCounts {
                total: count(body, "/metadata/batchStats/requestCount"),
                succeeded: count(body, "/metadata/batchStats/successfulRequestCount"),
                failed: count(body, "/metadata/batchStats/failedRequestCount"),
            },
            files: Vec::new(),
            message: text(body, "/error/message"),
        })
    }

    /// The body of the job contains them.
    fn results(&self, base_url: &str, job: &BatchJob) -> Vec<WireRequest> {
        vec![self.status(base_url, &job.id)]
    }

    fn results_pointer(&self) -> Option<&'static str> {
        Some(RESULTS)
    }

    fn result(&self, entry: Node<'_>) -> Option<BatchResult> {
        let id = text(entry, "/metadata/key")?;
        let outcome = match (entry.get("response"), entry.get("error")) {
            (Some(response), _) => {
                BatchOutcome::Replied(BatchReply { status: 200, body: response.to_string() })
            }
            (None, Some(error)) => failed(error),
            (None, None) => BatchOutcome::Missing("no reason is given".to_owned()),
        };
        Some(BatchResult { id, outcome })
    }
}

/// Returns what became of a request with an error: `{code, message}`.
fn failed(error: Node<'_>) -> BatchOutcome {
    match count(error, "/code") {
        Some(1) => BatchOutcome::Cancelled,
        Some(4) => BatchOutcome::Expired,
        code => {
            let status = STATUSES.iter().find(|(known, _)| Some(*known) == code).map_or(500, |found| found.1);
            let body = object(|w| {
                w.key("error").object(|w| {
                    w.field("code", &u64::from(status)).optional("message", &error.get("message"));
                });
            });
            BatchOutcome::Replied(BatchReply { status, body })
        }
    }
}

fn versioned(base_url: &str) -> String {
    format!("{base_url}{}", version_path(base_url))
}
