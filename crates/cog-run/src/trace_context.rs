//! The identity of a span, as W3C Trace Context writes it.

use std::{fmt::Write as _, sync::Arc};

/// The maximum length of a `tracestate`.
const MAX_STATE: usize = 512;
/// The flag of a span that is recorded.
const SAMPLED: u8 = 1;

/// The identity of a span: what `traceparent` and `tracestate` contain (W3C Trace Context).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanContext {
    /// The identifier of the trace; not zero.
    pub trace_id: [u8; 16],
    /// The identifier of the span; not zero.
    pub span_id: [u8; 8],
    /// Whether the span is recorded.
    pub is_sampled: bool,
    /// What other systems add to a trace, unchanged.
    pub state: Option<Arc<str>>,
}

impl SpanContext {
    /// Returns the identity of a new span, in the trace of its parent or in a new trace. None if the system has no random numbers.
    pub(crate) fn new(parent: Option<&Self>) -> Option<Self> {
        let mut trace_id = [0; 16];
        let mut span_id = [0; 8];
        getrandom::fill(&mut span_id).ok()?;
        match parent {
            Some(parent) => trace_id = parent.trace_id,
            None => getrandom::fill(&mut trace_id).ok()?,
        }
        let state = parent.and_then(|parent| parent.state.clone());
        Some(Self { trace_id, span_id, is_sampled: false, state })
    }

    /// Reads `traceparent` and `tracestate` of a caller. None for a `traceparent` that is not valid; a `tracestate` that is
    /// not valid is left out.
    #[must_use]
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let version = parts.next()?;
        let trace = parts.next()?;
        let span = parts.next()?;
        let flags = hex::<1>(parts.next()?)?;
        let is_first = version == "00";
        let is_valid = hex::<1>(version).is_some_and(|[version]| version != u8::MAX);
        if !is_valid || (is_first && parts.next().is_some()) {
            return None;
        }
        let trace_id = hex::<16>(trace)?;
        let span_id = hex::<8>(span)?;
        let is_zero = trace_id.iter().all(|byte| *byte == 0) || span_id.iter().all(|byte| *byte == 0);
        let state = tracestate.map(str::trim).filter(|state| is_plain(state)).map(Arc::from);
        (!is_zero).then_some(Self { trace_id, span_id, is_sampled: flags[0] & SAMPLED == SAMPLED, state })
    }

    /// Returns the identifier of the trace as 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> String {
        digits(&self.trace_id)
    }

    /// Returns the value of `traceparent`, for a tool that passes the trace on.
    #[must_use]
    pub fn traceparent(&self) -> String {
        let flags = if self.is_sampled { "01" } else { "00" };
        format!("00-{}-{}-{flags}", self.trace_id(), digits(&self.span_id))
    }
}

/// Whether a `tracestate` may be passed on: a proxy may reject a header with other bytes.
fn is_plain(state: &str) -> bool {
    (1..=MAX_STATE).contains(&state.len()) && state.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

fn digits(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Reads lower-case hexadecimal digits.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != N * 2 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn context_reads_back_as_written() {
        for flags in ["00", "01"] {
            let header = format!("00-{TRACE}-{SPAN}-{flags}");
            let context = SpanContext::parse(&header, Some("a=1,b=2")).unwrap();
            assert_eq!((context.traceparent(), context.trace_id()), (header, TRACE.to_owned()));
            assert_eq!(context.is_sampled, flags == "01");
            assert_eq!(context.state.as_deref(), Some("a=1,b=2"));
        }
        let later = SpanContext::parse(&format!("01-{TRACE}-{SPAN}-03-more"), None).unwrap();
        assert!(later.is_sampled && later.state.is_none());
    }

    #[test]
    fn invalid_context_is_ignored() {
        for header in [
            "",
            "00",
            &format!("00-{TRACE}-{SPAN}"),
            &format!("00-{TRACE}-{SPAN}-01-more"),
            &format!("ff-{TRACE}-{SPAN}-01"),
            &format!("0-{TRACE}-{SPAN}-01"),
            &format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            &format!("00-{}-{SPAN}-01", "0".repeat(32)),
            &format!("00-{TRACE}-{}-01", "0".repeat(16)),
            &format!("00-{TRACE}0-{SPAN}-01"),
            &format!("00-{}é-{SPAN}-01", "a".repeat(30)),
        ] {
            assert_eq!(SpanContext::parse(header, None), None, "{header}");
        }
    }

    #[test]
    fn invalid_state_is_left_out() {
        let header = format!("00-{TRACE}-{SPAN}-01");
        for state in ["", " ", "a=\n1", "a=é", &"a".repeat(513)] {
            assert_eq!(SpanContext::parse(&header, Some(state)).unwrap().state, None, "{state:?}");
        }
    }
}
