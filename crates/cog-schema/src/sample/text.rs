//! Text that says it is a sample.

use fastrand::Rng;
use serde_json::{Map, Value};

use super::pattern;
use super::walk::size;

/// The rationale of every sample.
pub(super) const RATIONALE: &str = "Generated from the schema; no model was called.";

/// Text of the format, pattern or length that is asked for.
pub(super) fn text(rng: &mut Rng, members: &Map<String, Value>, name: &str) -> Option<String> {
    if let Some(sample) = members.get("format").and_then(Value::as_str).and_then(of_format) {
        return Some(sample.to_owned());
    }
    if let Some(pattern) = members.get("pattern").and_then(Value::as_str) {
        return pattern::matching(rng, pattern);
    }
    if members.get("contentEncoding").is_some_and(|encoding| encoding == "base64") {
        return Some("c2FtcGxl".to_owned());
    }
    let least = size(members, "minLength").unwrap_or(0);
    let most = size(members, "maxLength").unwrap_or(usize::MAX);
    Some(fitted(&plain(name), least, most))
}

/// A few words that name the field.
pub(super) fn plain(name: &str) -> String {
    match name {
        "rationale" => RATIONALE.to_owned(),
        "" => "sample".to_owned(),
        name => format!("sample {}", name.replace('_', " ")),
    }
}

/// Repeated until it is long enough, cut when it is too long.
fn fitted(text: &str, least: usize, most: usize) -> String {
    const MAX_LEN: usize = 100_000;
    let count = text.chars().count().clamp(least, most.max(least)).min(MAX_LEN);
    text.chars().chain([' ']).cycle().take(count).collect()
}

fn of_format(format: &str) -> Option<&'static str> {
    Some(match format {
        "date-time" => "2026-01-31T12:00:00Z",
        "date" => "2026-01-31",
        "time" => "12:00:00Z",
        "duration" => "PT1H",
        "email" | "idn-email" => "sample@example.com",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" | "uri-reference" | "iri" | "iri-reference" | "uri-template" => "https://example.com/sample",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        "json-pointer" => "/sample",
        "relative-json-pointer" => "0/sample",
        "regex" => "^sample$",
        _ => return None,
    })
}
