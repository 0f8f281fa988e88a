use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use cog_run::spans::SpanContext;

/// The header with the id of a request, in both directions.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The ids of a request: in the log, in the traces of the caller, in `meta`.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    /// The caller's id of the request, or a generated one.
    pub(crate) request_id: HeaderValue,
    /// The span of the caller (W3C `traceparent` and `tracestate`), to which its run belongs.
    pub(crate) parent: Option<SpanContext>,
}

/// The span of the caller, which the guard has set.
pub(crate) fn parent_span(extensions: &Extensions) -> Option<SpanContext> {
    extensions.get::<Trace>().and_then(|trace| trace.parent.clone())
}

/// The request id that the guard has set; empty where a test calls the router without a guard.
pub(crate) fn request_id(extensions: &Extensions) -> String {
    extensions.get::<Trace>().map(|trace| trace.request_id().to_owned()).unwrap_or_default()
}

/// The maximum length of a request id that is accepted.
const MAX_LEN: usize = 128;

impl Trace {
    /// Reads the ids from the headers.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let request_id =
            headers.get(REQUEST_ID).filter(|id| is_plain(id)).cloned().unwrap_or_else(generate_id);
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let parent = text("traceparent").and_then(|parent| SpanContext::parse(parent, text("tracestate")));
        Self { request_id, parent }
    }

    /// The request id as text.
    pub(crate) fn request_id(&self) -> &str {
        self.request_id.to_str().unwrap_or_default()
    }
}

/// Letters, digits and `-._:/+=`, which are safe in a log.
fn is_plain(id: &HeaderValue) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:/+=".contains(byte);
    (1..=MAX_LEN).contains(&id.len()) && id.as_bytes().iter().all(is_plain)
}

/// Generates an id that is unique in this process and unlikely in another.
fn generate_id() -> HeaderValue {
    static PROCESS: LazyLock<u32> = LazyLock::new(|| {
        let random = RandomState::new().hash_one(std::process::id()).to_be_bytes();
        random.first_chunk().map_or(0, |first| u32::from_be_bytes(*first))
    });
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let text = format!("{:08x}-{:x}", *PROCESS, NEXT.fetch_add(1, Ordering::Relaxed));
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_header(name: &'static str, value: &str) -> Trace {
        Trace::from_headers(&HeaderMap::from_iter([(HeaderName::from_static(name), value.parse().unwrap())]))
    }

    #[test]
    fn span_of_the_caller_is_used() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let found = with_header("traceparent", header).parent.unwrap();
        assert_eq!((found.traceparent().as_str(), found.state), (header, None));
        let mut headers =
            HeaderMap::from_iter([(HeaderName::from_static("traceparent"), header.parse().unwrap())]);
        headers.insert("tracestate", HeaderValue::from_static("vendor=1"));
        assert_eq!(Trace::from_headers(&headers).parent.unwrap().state.as_deref(), Some("vendor=1"));
        assert_eq!(with_header("traceparent", "00-no-no-01").parent, None);
    }

    #[test]
    fn valid_request_id_of_the_caller_is_used() {
        assert_eq!(with_header("x-request-id", "req-1:a/b").request_id(), "req-1:a/b");
        assert_eq!(with_header("x-request-id", &"a".repeat(128)).request_id(), "a".repeat(128));
        for id in ["a b", "", "a\"b", &"a".repeat(129)] {
            assert_ne!(with_header("x-request-id", id).request_id(), id);
        }
        let none = HeaderMap::new();
        assert_ne!(Trace::from_headers(&none).request_id(), Trace::from_headers(&none).request_id());
    }
}
