//! The header `Accept` (RFC 9110 section 12.5.1), for the formats of a run.

use axum::http::{HeaderMap, header};

use crate::{request::Mode, transport::Wire};

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
                // The most specific range of a format counts.
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
