//! Responses from envelopes and other documents.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};
use cog_json::{Node, ToJson, Writer};
use cog_spec::{Code, Envelope, ErrorOrigin, Meta};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// The header of an answer that did not pass its gate (docs/calibration.md).
const GATE: HeaderName = HeaderName::from_static("x-cognitive-gate");
const REVIEW: HeaderValue = HeaderValue::from_static("review");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// The initial capacity of a response body, in bytes. A usual envelope fits.
const USUAL: usize = 2048;

/// Returns the envelope with the status of its error (docs/spec/errors.md).
pub(crate) fn envelope(envelope: &Envelope) -> Response {
    with_status(status(envelope), envelope)
}

/// Returns the envelope with this status.
pub(crate) fn with_status(status: StatusCode, envelope: &Envelope) -> Response {
    let mut response = json(status, envelope);
    if let Some(seconds) = retry_after(envelope) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if envelope.is_ok() {
        mark(&mut response, &envelope.meta);
    }
    response
}

/// Adds the header of an answer that did not pass its gate.
pub(crate) fn mark(response: &mut Response, meta: &Meta) {
    if meta.runtime.wants_review() {
        response.headers_mut().insert(GATE, REVIEW);
    }
}

/// Returns a document as JSON. Caches do not store it.
pub(crate) fn json(status: StatusCode, document: &(impl ToJson + ?Sized)) -> Response {
    let mut text = String::with_capacity(USUAL);
    document.write_json(&mut Writer::compact(&mut text));
    text.push('\n');
    written(status, text)
}

/// Returns a document whose text is JSON already.
pub(crate) fn written(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    response
}

/// Returns the status of an envelope: 200, or the status of its error. What a model reports is an answer, so it is 422, whatever its
/// code: the request was valid, and the provider did not fail (ruling R88).
pub(crate) fn status(envelope: &Envelope) -> StatusCode {
    match envelope.error() {
        None => StatusCode::OK,
        Some(error) if error.origin == ErrorOrigin::Model => StatusCode::UNPROCESSABLE_ENTITY,
        Some(error) => {
            StatusCode::from_u16(error.code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

/// The seconds of `Retry-After`: what the provider reports, or 1 where the limit has no time.
fn retry_after(envelope: &Envelope) -> Option<u64> {
    let error = envelope.error()?;
    let seconds = error.detail("retry_after_ms").and_then(Node::as_u64);
    let seconds = seconds.map(|ms| ms.div_ceil(1000).max(1));
    seconds.or_else(|| error.has_failed_with(Code::RateLimited).then_some(1))
}

#[cfg(test)]
mod tests {
    use cog_json::Value;
    use cog_spec::{ErrorBody, GateReport, Risk};

    use super::*;

    #[test]
    fn failure_has_status_and_retry_after() {
        let error = ErrorBody::new(Code::RateLimited, "slowly");
        let response = envelope(&Envelope::failure(error.clone()));
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "1");
        let details = Value::from(serde_json::json!({ "retry_after_ms": 2500 }));
        let response = envelope(&Envelope::failure(error.with_details(details)));
        assert_eq!(response.headers()["retry-after"], "3");
    }

    #[test]
    fn answer_below_its_gate_has_a_header() {
        for (gate, expected) in [(None, None), (Some(true), None), (Some(false), Some("review"))] {
            let mut meta = Meta::new(Some(0.6), Risk::Low, "Done.");
            meta.runtime.gate = gate.map(|passed| GateReport { accuracy: 0.9, threshold: Some(0.7), passed });
            let response = envelope(&Envelope::success(meta, Value::default()));
            assert_eq!(response.status(), 200);
            let header = response.headers().get("x-cognitive-gate");
            assert_eq!(header.and_then(|value| value.to_str().ok()), expected);
        }
    }

    #[test]
    fn what_a_model_reports_is_unprocessable_whatever_its_code() {
        let details = Value::from(serde_json::json!({ "retry_after_ms": 2500 }));
        for code in Code::ALL {
            let error = ErrorBody::new(*code, "no").with_details(details.clone());
            let response = envelope(&Envelope::failure(error.clone()));
            assert_eq!(response.status(), code.http_status(), "{code}");
            let response = envelope(&Envelope::failure(error.with_origin(ErrorOrigin::Model)));
            assert_eq!(response.status(), 422, "{code}");
            assert_eq!(response.headers().get("retry-after"), None, "{code}");
        }
    }
}
