//! Gemini: a job with its entries, in the body of one request or in a file.

use bytes::Bytes;
use cog_json::{Node, Value};

use super::{
    BatchCounts, BatchInterface, BatchJob, BatchLimits, BatchOutcome, BatchPart, BatchPhase, BatchReply,
    BatchResult, EntryError, JobPage, Upload, bare, count, object, plain_id, post, text, write_body,
};
use crate::batch;
use crate::{WireRequest, protocol::gemini::version_path};

pub(super) struct Gemini;

/// The media type of a file of entries.
const FILE_TYPE: &str = "application/jsonl";
/// The end of the URL of a live request, after the model.
const STREAM: &str = ":streamGenerateContent?alt=sse";
/// The states that never change, without their prefix.
const ENDED: &[&str] = &["SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"];
/// The maximum size of the entries in the body of a request. More of them are a file.
const INLINE: usize = 20_000_000;
/// The list of results in the body of a job.
const RESULTS: &str = "/response/inlinedResponses/inlinedResponses";

/// The HTTP status for each status code of the vendor.
const STATUSES: &[(u64, u16)] =
    &[(3, 400), (5, 404), (7, 403), (8, 429), (9, 400), (11, 400), (13, 500), (14, 503), (16, 401)];

impl BatchInterface for Gemini {
    /// The vendor has no limit for the number of requests.
    fn limits(&self) -> BatchLimits {
        BatchLimits { requests: 100_000, bytes: 2_000_000_000 }
    }

    /// Returns the model.
    fn target(&self, request: &WireRequest) -> Option<String> {
        let (_, model) = request.url.strip_suffix(STREAM)?.rsplit_once("/models/")?;
        Some(model.to_owned())
    }

    fn entry(&self, id: &str, request: &WireRequest) -> Result<String, EntryError> {
        let body = batch::body(request)?;
        Ok(object(|w| {
            write_body(w.key("request"), &body);
            w.key("metadata").object(|w| {
                w.field("key", id);
            });
        }))
    }

    fn upload(&self, base_url: &str, name: &str, part: &BatchPart) -> Option<Upload> {
        if part.bytes() <= INLINE {
            return None;
        }
        let content = lines(part);
        let body = object(|w| {
            w.key("file").object(|w| {
                w.field("displayName", name).field("mimeType", FILE_TYPE);
            });
        });
        let mut request = post(upload_url(base_url), body);
        request.headers.extend([
            ("x-goog-upload-protocol", "resumable".to_owned()),
            ("x-goog-upload-command", "start".to_owned()),
            ("x-goog-upload-header-content-length", content.len().to_string()),
            ("x-goog-upload-header-content-type", FILE_TYPE.to_owned()),
        ]);
        Some(Upload { request, content: Some(content) })
    }

    fn file(&self, body: Node<'_>) -> Option<String> {
        plain_id(body.pointer("/file/name")?.as_str()?.strip_prefix("files/")?)
    }

    fn create(&self, base_url: &str, name: &str, part: &BatchPart, file: &str) -> WireRequest {
        let url = format!("{}/models/{}:batchGenerateContent", versioned(base_url), part.target());
        let config = match file {
            "" => format!(r#"{{"requests":{{"requests":[{}]}}}}"#, part.entries().join(",")),
            file => format!(r#"{{"fileName":"files/{file}"}}"#),
        };
        post(url, format!(r#"{{"batch":{{"displayName":"{name}","inputConfig":{config}}}}}"#))
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
            files: results_file(body).into_iter().collect(),
            message: text(body, "/error/message"),
            ..BatchJob::default()
        })
    }

    /// The body of the job contains them, or a file.
    fn results(&self, base_url: &str, job: &BatchJob) -> Vec<WireRequest> {
        vec![match job.files.first() {
            Some(file) => bare("GET", format!("{}/files/{file}:download?alt=media", versioned(base_url))),
            None => self.status(base_url, &job.id),
        }]
    }

    fn results_pointer(&self, job: &BatchJob) -> Option<&'static str> {
        job.files.is_empty().then_some(RESULTS)
    }

    fn result(&self, entry: Node<'_>) -> Option<BatchResult> {
        let id = text(entry, "/metadata/key").or_else(|| text(entry, "/key"))?;
        let error = entry.get("error").or_else(|| entry.get("status"));
        let outcome = match (entry.get("response"), error) {
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

/// Returns the ID of the file with the results.
fn results_file(body: Node<'_>) -> Option<String> {
    let name =
        text(body, "/response/responsesFile").or_else(|| text(body, "/metadata/output/responsesFile"))?;
    plain_id(name.strip_prefix("files/")?)
}

/// Returns the entries as the lines of a file, with the key next to the request.
fn lines(part: &BatchPart) -> Bytes {
    let mut text = String::with_capacity(part.bytes());
    for entry in part.entries().iter().filter_map(|entry| Value::parse(entry).ok()) {
        text.push_str(&object(|w| {
            w.optional("key", &entry.node().pointer("/metadata/key"))
                .optional("request", &entry.get("request"));
        }));
        text.push('\n');
    }
    Bytes::from(text)
}

fn upload_url(base_url: &str) -> String {
    let versioned = versioned(base_url);
    match versioned.rsplit_once('/') {
        Some((root, version)) => format!("{root}/upload/{version}/files"),
        None => versioned,
    }
}

fn versioned(base_url: &str) -> String {
    format!("{base_url}{}", version_path(base_url))
}
