//! Batch jobs of the mock, whose state is stored in a directory, so that it survives a restart.
//!
//! The entries are answered when a job ends, in reverse order, by the replies of the mock. Texts in an entry change its
//! result: `MOCK-EXPIRED`, `MOCK-CANCELLED`, `MOCK-LOST`, `MOCK-TWICE`,
//! `MOCK-DIFFER` for two different results, and `MOCK-STRANGER` for a further result with an unknown ID.

mod anthropic;
mod gemini;
mod openai;
mod state;

use serde_json::Value;

pub(crate) use self::state::Request;
pub use self::state::{BatchStep, Batches};
use crate::Reply;

/// Returns the headers of the answer.
pub(crate) fn headers(request: &Request<'_>) -> Vec<(String, String)> {
    let url = gemini::upload_url(request).map(|url| ("x-goog-upload-url".to_owned(), url));
    url.into_iter().collect()
}

/// Answers a request to a batch interface: the step, the status and the body. None if the path is another.
pub(crate) fn respond(
    batches: &Batches,
    request: &Request<'_>,
    answer: &mut dyn FnMut(&Value) -> Reply,
) -> Option<(BatchStep, u16, String)> {
    if request.cancels_ended_job(batches) {
        let body =
            r#"{"error": {"code": 400, "message": "The job has ended.", "type": "invalid_request_error"}}"#;
        return Some((BatchStep::Cancel, 400, body.to_owned()));
    }
    let (step, body) = openai::respond(batches, request, answer)
        .or_else(|| anthropic::respond(batches, request, answer))
        .or_else(|| gemini::respond(batches, request, answer))?;
    Some((step, 200, batches.cut(step, body)))
}
