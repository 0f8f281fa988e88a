//! OpenAI: a file of lines, and a job that names it.

use bytes::Bytes;
use cog_json::Node;

use super::{
    BatchCounts, BatchInterface, BatchJob, BatchLimits, BatchOutcome, BatchPart, BatchPhase, BatchReply,
    BatchResult, EntryError, JobPage, Upload, bare, count, id, object, post, text, write_body,
};
use crate::WireRequest;
use crate::batch;

pub(super) struct OpenAi;

/// The endpoints that a job can have, by the end of the URL of a live request.
const ENDPOINTS: &[(&str, &str)] = &[
    ("/responses", "/v1/responses"),
    ("/chat/completions", "/v1/chat/completions"),
    ("/images/generations", "/v1/images/generations"),
];
/// The code of a job that is over the limit of the tokens in the queue of an account.
const QUEUE_FULL: &str = "token_limit_exceeded";
/// The states that never change.
const ENDED: &[&str] = &["completed", "failed", "expired", "cancelled"];

impl BatchInterface for OpenAi {
    fn limits(&self) -> BatchLimits {
        BatchLimits { requests: 50_000, bytes: 200_000_000 }
    }

    fn target(&self, request: &WireRequest) -> Option<String> {
        let found = ENDPOINTS.iter().find(|(end, _)| request.url.ends_with(end))?;
        Some(found.1.to_owned())
    }

    fn entry(&self, id: &str, request: &WireRequest) -> Result<String, EntryError> {
        let endpoint = self.target(request).ok_or(EntryError::Endpoint)?;
        let body = batch::body(request)?;
        Ok(object(|w| {
            w.field("custom_id", id).field("method", "POST").field("url", &endpoint);
            write_body(w.key("body"), &body);
        }))
    }

    /// The entries contain no line break, so they cannot contain the boundary.
    fn upload(&self, base_url: &str, name: &str, part: &BatchPart) -> Option<Upload> {
        let mut request = bare("POST", format!("{base_url}/files"));
        let boundary = format!("boundary.{name}");
        let head = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--{boundary}\r\n\
             content-disposition: form-data; name=\"file\"; filename=\"{name}.jsonl\"\r\n\
             content-type: application/jsonl\r\n\r\n"
        );
        let mut body = head;
        for entry in part.entries() {
            body.push_str(entry);
            body.push('\n');
        }
        body.push_str(&format!("\r\n--{boundary}--\r\n"));
        request.headers.push(("content-type", format!("multipart/form-data; boundary={boundary}")));
        request.body = Bytes::from(body);
        Some(Upload { request, content: None })
    }

    fn create(&self, base_url: &str, name: &str, part: &BatchPart, file: &str) -> WireRequest {
        let body = object(|w| {
            w.field("input_file_id", file).field("endpoint", part.target());
            w.field("completion_window", "24h");
            w.key("metadata").object(|w| {
                w.field("cog_job", name);
            });
        });
        post(format!("{base_url}/batches"), body)
    }

    fn list(&self, base_url: &str, cursor: Option<&str>) -> WireRequest {
        let after = cursor.map(|cursor| format!("&after={cursor}")).unwrap_or_default();
        bare("GET", format!("{base_url}/batches?limit=100{after}"))
    }

    fn page(&self, body: Node<'_>) -> JobPage {
        let list = body.get("data").into_iter().flat_map(Node::elements);
        let jobs: Vec<_> = list.filter_map(|node| self.job(node)).collect();
        let has_more = body.get("has_more").and_then(Node::as_bool) == Some(true);
        let next = jobs.last().filter(|_| has_more).map(|job| job.id.clone());
        JobPage { jobs, next }
    }

    fn status(&self, base_url: &str, id: &str) -> WireRequest {
        bare("GET", format!("{base_url}/batches/{id}"))
    }

    fn cancel(&self, base_url: &str, id: &str) -> WireRequest {
        bare("POST", format!("{base_url}/batches/{id}/cancel"))
    }

    fn delete(&self, base_url: &str, file: &str) -> Option<WireRequest> {
        Some(bare("DELETE", format!("{base_url}/files/{file}")))
    }

    fn job(&self, body: Node<'_>) -> Option<BatchJob> {
        let state = text(body, "/status").unwrap_or_default();
        let is_ended = ENDED.contains(&state.as_str());
        Some(BatchJob {
            id: id(body, "/id")?,
            name: text(body, "/metadata/cog_job"),
            phase: if is_ended { BatchPhase::Ended } else { BatchPhase::Running },
            state,
            counts: BatchCounts {
                total: count(body, "/request_counts/total"),
                succeeded: count(body, "/request_counts/completed"),
                failed: count(body, "/request_counts/failed"),
            },
            files: ["/output_file_id", "/error_file_id"].iter().filter_map(|key| id(body, key)).collect(),
            upload: id(body, "/input_file_id"),
            is_refused: text(body, "/errors/data/0/code").as_deref() == Some(QUEUE_FULL),
            message: text(body, "/errors/data/0/message"),
        })
    }

    fn results(&self, base_url: &str, job: &BatchJob) -> Vec<WireRequest> {
        job.files.iter().map(|file| bare("GET", format!("{base_url}/files/{file}/content"))).collect()
    }

    /// Reads a line of the file of answers, or of the file of errors.
    fn result(&self, entry: Node<'_>) -> Option<BatchResult> {
        let id = text(entry, "/custom_id")?;
        let response = entry.get("response").filter(|response| response.is_object());
        let outcome = match (response, text(entry, "/error/code").as_deref()) {
            (Some(response), _) => BatchOutcome::Replied(BatchReply {
                status: u16::try_from(count(response, "/status_code")?).ok()?,
                body: response.get("body")?.to_string(),
            }),
            (None, Some("batch_expired")) => BatchOutcome::Expired,
            (None, Some("batch_cancelled")) => BatchOutcome::Cancelled,
            (None, code) => {
                let message = text(entry, "/error/message").or_else(|| code.map(str::to_owned));
                BatchOutcome::Missing(message.unwrap_or_else(|| "no reason is given".to_owned()))
            }
        };
        Some(BatchResult { id, outcome })
    }
}
