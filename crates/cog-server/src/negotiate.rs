//! The choice between one envelope and a stream: SPEC 8.2, docs/spec/streaming.md, rulings R54 and R55.

use axum::http::{HeaderMap, header};
use cog_spec::{Code, ErrorBody, ResponseMode, Warning};

use crate::{
    error::ApiError,
    request::{Mode, Options},
    transport::Wire,
};

/// The header that selects the mode. It overrides everything else.
const MODE_HEADER: &str = "x-cognitive-response-mode";
/// The value of `X-Cognitive-Warning` for a fallback (docs/spec/streaming.md).
const UNAVAILABLE: &str = "STREAMING_UNAVAILABLE; fallback=sync; reason=module_mode_sync";

/// How a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// One envelope.
    Envelope,
    /// One envelope although the client requested a stream: W4010 (ruling R55).
    EnvelopeInstead,
    /// A stream.
    Stream(Wire),
}

/// What a request contains about its response mode.
pub(crate) struct ResponsePreference<'a> {
    /// Its headers.
    pub(crate) headers: &'a HeaderMap,
    /// Its query string.
    pub(crate) query: Option<&'a str>,
    /// Its `_options`.
    pub(crate) options: &'a Options,
}

impl ResponsePreference<'_> {
    /// Returns how a module of this mode answers the request.
    ///
    /// # Errors
    /// E1004 for an unknown mode; E4010 where the request requires a stream and the module has none.
    pub(crate) fn delivery(&self, module: ResponseMode) -> Result<Delivery, ApiError> {
        let accept = Accept::from_headers(self.headers);
        let requested = match self.requested()? {
            Some(mode) => Some(mode),
            None => accept.preferred().map(Preferred::mode),
        };
        match (requested, module) {
            (Some(Mode::Sync), _) | (None, ResponseMode::Sync | ResponseMode::Both) => Ok(Delivery::Envelope),
            (Some(Mode::Streaming), ResponseMode::Sync) => self.fall_back(),
            (Some(Mode::Streaming), _) | (None, ResponseMode::Streaming) => {
                Ok(Delivery::Stream(accept.wire()))
            }
        }
    }

    /// The mode that the request names, by precedence: header, body, query. An invalid value is an error even where another
    /// one takes precedence.
    fn requested(&self) -> Result<Option<Mode>, ApiError> {
        let header = self.headers.get(MODE_HEADER).map(|value| value.to_str().unwrap_or("?"));
        let header =
            header.map(|value| Mode::read(value, "the header X-Cognitive-Response-Mode")).transpose()?;
        let query = self.query.and_then(|query| parameter(query, "response_mode"));
        let query = query.map(|value| Mode::read(value, "the query parameter response_mode")).transpose()?;
        Ok(header.or(self.options.requested()).or(query))
    }

    fn fall_back(&self) -> Result<Delivery, ApiError> {
        match self.options.require_streaming {
            true => Err(not_streaming()),
            false => Ok(Delivery::EnvelopeInstead),
        }
    }
}

/// E4010: the module returns one envelope only.
pub(crate) fn not_streaming() -> ApiError {
    let message = "the module does not stream (`response.mode: sync`), but the request requires a stream";
    ErrorBody::new(Code::StreamingNotSupported, message)
        .suggest("Remove require_streaming, or use a module whose mode is streaming or both.")
        .into()
}

impl Delivery {
    /// The warning of the fallback.
    pub(crate) fn warning(self) -> Option<Warning> {
        (self == Self::EnvelopeInstead).then(Warning::sync_instead_of_stream)
    }

    /// The warning as a header.
    pub(crate) fn warning_header(self) -> Option<&'static str> {
        (self == Self::EnvelopeInstead).then_some(UNAVAILABLE)
    }
}

/// The value of a query parameter, undecoded.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, it)| it)
}

// The header `Accept` (RFC 9110 section 12.5.1), for the formats of a run.

/// The preferences of a client among the three response formats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Accept {
    json: Rank,
    sse: Rank,
    ndjson: Rank,
}

/// The rank of a format: its weight, then the specificity of its range. `None` where it is refused.
type Rank = Option<(u16, Closeness)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    /// `*/*`
    Anything,
    /// `text/*`
    Kind,
    /// `text/event-stream`
    Exactly,
}

/// The preferred format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preferred {
    /// One envelope.
    Json,
    /// A stream.
    Stream(Wire),
}

impl Preferred {
    pub(crate) fn mode(self) -> Mode {
        match self {
            Self::Json => Mode::Sync,
            Self::Stream(_) => Mode::Streaming,
        }
    }
}

impl Accept {
    /// Reads the headers. A header without a supported type counts as missing.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let mut accept = Self { json: None, sse: None, ndjson: None };
        let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let ranges = values.flat_map(|value| value.split(','));
        let mut closest = [None; 3];
        for (range, weight) in ranges.filter_map(range) {
            let forms = [&mut accept.json, &mut accept.sse, &mut accept.ndjson];
            for ((form, closest), names) in forms.into_iter().zip(&mut closest).zip(NAMES) {
                // The most specific range of a format counts, wherever it stands in the header (RFC 9110 section 12.5.1).
                let Some(closeness) = names.iter().filter_map(|name| matches(range, name)).max() else {
                    continue;
                };
                if closest.is_none_or(|before| closeness > before) {
                    *closest = Some(closeness);
                    *form = (weight > 0).then_some((weight, closeness));
                }
            }
        }
        accept
    }

    /// The format that ranks highest; none where an envelope and a stream rank equally.
    pub(crate) fn preferred(self) -> Option<Preferred> {
        let stream = self.sse.max(self.ndjson);
        match self.json.cmp(&stream) {
            std::cmp::Ordering::Greater => Some(Preferred::Json),
            std::cmp::Ordering::Less => Some(Preferred::Stream(self.wire())),
            // Both are named: a client that names a stream can read one.
            std::cmp::Ordering::Equal => {
                let named = stream.is_some_and(|(_, closeness)| closeness == Closeness::Exactly);
                named.then(|| Preferred::Stream(self.wire()))
            }
        }
    }

    /// The format of a stream.
    pub(crate) fn wire(self) -> Wire {
        if self.ndjson > self.sse { Wire::Ndjson } else { Wire::Sse }
    }

    /// Whether the client accepts HTML.
    pub(crate) fn is_page(headers: &HeaderMap) -> bool {
        let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut ranges = values.flat_map(|value| value.split(',')).filter_map(range);
        ranges.any(|(range, weight)| range.eq_ignore_ascii_case("text/html") && weight > 0)
    }
}

/// The names of the formats: json, sse, ndjson.
const NAMES: [&[&str]; 3] =
    [&["application/json"], &["text/event-stream"], &["application/x-ndjson", "application/ndjson"]];

/// A media range and its weight in thousandths.
fn range(text: &str) -> Option<(&str, u16)> {
    let mut parts = text.split(';').map(str::trim);
    let range = parts.next().filter(|range| !range.is_empty())?;
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    Some((range, weight.map_or(1000, thousandths)))
}

/// Parses a weight; an invalid one counts as missing.
fn thousandths(text: &str) -> u16 {
    match text.trim().parse::<f32>() {
        Ok(weight) if (0.0..=1.0).contains(&weight) => (weight * 1000.0).round() as u16,
        _ => 1000,
    }
}

/// The specificity of a range for this media type; none where it does not match.
fn matches(range: &str, name: &str) -> Option<Closeness> {
    if range == "*/*" || range == "*" {
        return Some(Closeness::Anything);
    }
    if range.eq_ignore_ascii_case(name) {
        return Some(Closeness::Exactly);
    }
    let kind = range.strip_suffix("/*")?;
    let is_kind = name.split('/').next().is_some_and(|own| own.eq_ignore_ascii_case(kind));
    is_kind.then_some(Closeness::Kind)
}

#[cfg(test)]
mod tests;
