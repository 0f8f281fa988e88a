//! Batch jobs of the mock, whose state is stored in a directory, so that it survives a restart.
//!
//! The entries are answered when a job ends, in reverse order, by the replies of the mock. Texts in an entry change its
//! result: `MOCK-EXPIRED`, `MOCK-CANCELLED`, `MOCK-LOST`, `MOCK-TWICE`, and `MOCK-STRANGER` for a further result with an unknown ID.

mod anthropic;
mod gemini;
mod openai;
mod state;

use serde_json::Value;

pub(crate) use self::state::Request;
pub use self::state::{BatchStep, Batches};
use crate::Reply;

/// Answers a request to a batch interface: the step, and the body. None if the path is another.
pub(crate) fn respond(
    batches: &Batches,
    request: &Request<'_>,
    answer: &mut dyn FnMut(&Value) -> Reply,
) -> Option<(BatchStep, String)> {
    openai::respond(batches, request, answer)
        .or_else(|| anthropic::respond(batches, request, answer))
        .or_else(|| gemini::respond(batches, request, answer))
}
