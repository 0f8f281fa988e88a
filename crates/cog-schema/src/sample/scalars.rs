//! Samples of numbers and text.

use fastrand::Rng;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value};

/// The rationale of every sample.
pub(super) const RATIONALE: &str = "Generated from the schema; no model was called.";

/// Returns text with the format, pattern or length of a schema.
pub(super) fn text(rng: &mut Rng, members: &Map<String, Value>, name: &str) -> Option<String> {
    if let Some(sample) = members.get("format").and_then(Value::as_str).and_then(with_format) {
        return Some(sample.to_owned());
    }
    if let Some(pattern) = members.get("pattern").and_then(Value::as_str) {
        return matching(rng, pattern);
    }
    if members.get("contentEncoding").is_some_and(|encoding| encoding == "base64") {
        return Some("c2FtcGxl".to_owned());
    }
    let min = size(members, "minLength").unwrap_or(0);
    let max = size(members, "maxLength").unwrap_or(usize::MAX);
    Some(fitted(&plain(name), min, max))
}

/// Returns a text with the name of the field.
pub(super) fn plain(name: &str) -> String {
    match name {
        "rationale" => RATIONALE.to_owned(),
        "" => "sample".to_owned(),
        name => format!("sample {}", name.replace('_', " ")),
    }
}

/// Repeats or truncates a text to a length within the limits.
fn fitted(text: &str, min: usize, max: usize) -> String {
    const MAX_LEN: usize = 100_000;
    let count = text.chars().count().clamp(min, max.max(min)).min(MAX_LEN);
    text.chars().chain([' ']).cycle().take(count).collect()
}

fn with_format(format: &str) -> Option<&'static str> {
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

/// The maximum repetitions of a pattern beyond its minimum.
const MAX_REPEATS: u32 = 3;
/// The maximum bytes of a text for a pattern.
const MAX_MATCHING: usize = 10_000;

/// Returns a text that a pattern without look-around matches; none if the pattern is invalid.
fn matching(rng: &mut Rng, pattern: &str) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let mut text = String::new();
    push(rng, &hir, &mut text)?;
    Some(text)
}

fn push(rng: &mut Rng, hir: &Hir, text: &mut String) -> Option<()> {
    if text.len() > MAX_MATCHING {
        return None;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => text.push(char_of(rng, class)?),
        HirKind::Repetition(repetition) => {
            let max = repetition
                .max
                .unwrap_or(repetition.min + MAX_REPEATS)
                .min(repetition.min.saturating_add(MAX_REPEATS));
            for _ in 0..rng.u32(repetition.min..=max) {
                push(rng, &repetition.sub, text)?;
            }
        }
        HirKind::Capture(capture) => push(rng, &capture.sub, text)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| push(rng, part, text))?,
        HirKind::Alternation(parts) => push(rng, rng.clone().choice(parts)?, text)?,
    }
    Some(())
}

/// Returns a letter or digit of a class, otherwise its first character.
fn char_of(rng: &mut Rng, class: &Class) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.ranges().iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => {
            class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
    };
    let is_in = |char: &char| ranges.iter().any(|(start, end)| (start..=end).contains(&char));
    let plain: Vec<char> = ('a'..='z').chain('0'..='9').chain('A'..='Z').filter(is_in).collect();
    rng.choice(plain).or_else(|| ranges.first().map(|(start, _)| *start))
}

/// The maximum distance of a sample from a single limit.
const RANGE: f64 = 100.0;

/// Returns an integer within the limits, and a multiple if the schema requires one.
pub(super) fn integer(rng: &mut Rng, members: &Map<String, Value>) -> Option<Value> {
    let (low, high) = range(members, |_| 1.0);
    let (low, high) = (low.ceil(), high.floor());
    if low > high || low.abs() > 9e15 || high.abs() > 9e15 {
        return None;
    }
    let value = rng.i64(low as i64..=high as i64);
    match limit(members, "multipleOf") {
        Some(step) if step >= 1.0 => {
            multiple(value as f64, step, low, high).map(|value| Value::from(value as i64))
        }
        _ => Some(Value::from(value)),
    }
}

/// Returns a number within the limits, with two decimals if possible.
pub(super) fn number(rng: &mut Rng, members: &Map<String, Value>) -> Option<Value> {
    let (low, high) = range(members, |limit| 1e-9 * limit.abs().max(1.0));
    if low > high {
        return None;
    }
    let value = low + rng.f64() * (high - low);
    let value = match limit(members, "multipleOf") {
        Some(step) => multiple(value, step, low, high)?,
        None => ((value * 100.0).round() / 100.0).clamp(low, high),
    };
    Some(Value::from(value))
}

/// Returns the limits: exclusive ones are moved by a `step`, and an absent one is near the other.
fn range(members: &Map<String, Value>, step: impl Fn(f64) -> f64) -> (f64, f64) {
    let above = limit(members, "exclusiveMinimum").map(|limit| limit + step(limit));
    let below = limit(members, "exclusiveMaximum").map(|limit| limit - step(limit));
    let low = [limit(members, "minimum"), above].into_iter().flatten().reduce(f64::max);
    let high = [limit(members, "maximum"), below].into_iter().flatten().reduce(f64::min);
    match (low, high) {
        (Some(low), Some(high)) => (low, high),
        (Some(low), None) => (low, low + RANGE),
        (None, Some(high)) => (high - RANGE, high),
        (None, None) => (0.0, RANGE),
    }
}

fn multiple(value: f64, step: f64, low: f64, high: f64) -> Option<f64> {
    let down = (value / step).floor() * step;
    [down, down + step].into_iter().find(|value| (low..=high).contains(value))
}

fn limit(members: &Map<String, Value>, keyword: &str) -> Option<f64> {
    members.get(keyword).and_then(Value::as_f64)
}

/// Returns a size limit.
pub(super) fn size(members: &Map<String, Value>, keyword: &str) -> Option<usize> {
    members.get(keyword).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok())
}
