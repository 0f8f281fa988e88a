use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};

/// The header with the id of a request, in both directions.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The ids of a request: in the log, in the traces of the caller, in `meta`.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    /// The caller's id of the request, or a generated one.
    pub(crate) request_id: HeaderValue,
    /// The caller's trace id (W3C `traceparent`), for `meta.trace_id`.
    pub(crate) trace_id: Option<String>,
}

/// The trace id that the guard has set.
pub(crate) fn trace_id(extensions: &Extensions) -> Option<String> {
    extensions.get::<Trace>().and_then(|trace| trace.trace_id.clone())
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
        let traceparent = headers.get("traceparent").and_then(|value| value.to_str().ok());
        Self { request_id, trace_id: traceparent.and_then(parse).map(str::to_owned) }
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

/// The trace id of `VERSION-TRACE-PARENT-FLAGS` (W3C Trace Context 3.2.2).
fn parse(traceparent: &str) -> Option<&str> {
    let mut parts = traceparent.split('-');
    let (version, trace, parent) = (parts.next()?, parts.next()?, parts.next()?);
    let flags = parts.next()?;
    let is_first = version == "00";
    let is_well = is_hex(version, 2) && version != "ff" && is_hex(flags, 2);
    let has_ids = is_hex(trace, 32) && is_hex(parent, 16) && !is_zero(trace) && !is_zero(parent);
    (is_well && has_ids && !(is_first && parts.next().is_some())).then_some(trace)
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_zero(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'0')
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
    fn trace_id_of_the_caller_is_used() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let found = with_header("traceparent", &format!("00-{trace}-00f067aa0ba902b7-01"));
        assert_eq!(found.trace_id.as_deref(), Some(trace));
        let later = with_header("traceparent", &format!("01-{trace}-00f067aa0ba902b7-01-more"));
        assert_eq!(later.trace_id.as_deref(), Some(trace));
    }

    #[test]
    fn invalid_traceparent_is_ignored() {
        let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        for value in [
            "",
            "00",
            &format!("00-{trace}-{parent}"),
            &format!("00-{trace}-{parent}-01-more"),
            &format!("ff-{trace}-{parent}-01"),
            &format!("00-{}-{parent}-01", trace.to_uppercase()),
            &format!("00-{}-{parent}-01", "0".repeat(32)),
            &format!("00-{trace}-{}-01", "0".repeat(16)),
            &format!("00-{trace}0-{parent}-01"),
        ] {
            assert_eq!(with_header("traceparent", value).trace_id, None, "{value}");
        }
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
