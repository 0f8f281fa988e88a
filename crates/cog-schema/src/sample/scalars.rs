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

/// Returns a string with the name of the field.
pub(super) fn plain(name: &str) -> String {
    match name {
        "rationale" => RATIONALE.to_owned(),
        "" => "sample".to_owned(),
        name => format!("sample {}", name.replace('_', " ")),
    }
}

/// Repeats or truncates a string to a length within the limits.
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
/// The maximum bytes of a string for a pattern.
const MAX_MATCHING: usize = 10_000;

/// Returns a string that a pattern without look-around matches; none if the pattern is invalid.
fn matching(rng: &mut Rng, pattern: &str) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let mut text = String::new();
    push(rng, &hir, &mut text)?;
    Some(text)
}

fn push(rng: &mut Rng, hir: &Hir, text: &mut String) -> Option<()> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => text.push(char_of(rng, class)?),
        HirKind::Repetition(repetition) => {
            let most = repetition.min.saturating_add(MAX_REPEATS);
            let max = repetition.max.map_or(most, |max| max.min(most));
            for _ in 0..rng.u32(repetition.min..=max) {
                push(rng, &repetition.sub, text)?;
            }
        }
        HirKind::Capture(capture) => push(rng, &capture.sub, text)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| push(rng, part, text))?,
        HirKind::Alternation(parts) => push(rng, rng.clone().choice(parts)?, text)?,
    }
    (text.len() <= MAX_MATCHING).then_some(())
}

/// Returns a letter or digit of a class, otherwise its first character.
fn char_of(rng: &mut Rng, class: &Class) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.ranges().iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => {
            class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
    };
    let mut plain: Vec<char> = ('a'..='z').chain('0'..='9').chain('A'..='Z').collect();
    plain.retain(|char| ranges.iter().any(|(start, end)| (start..=end).contains(&char)));
    rng.choice(plain).or_else(|| ranges.first().map(|(start, _)| *start))
}

/// The maximum distance of a sample from a single limit.
const RANGE: f64 = 100.0;

/// Returns an integer within the limits, and a multiple if the schema requires one.
pub(super) fn integer(rng: &mut Rng, members: &Map<String, Value>) -> Option<Value> {
    let (low, high) = range(members, |_| 1.0);
    let low = low.ceil();
    let high = high.floor();
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::Pattern;
    use crate::subschema::FORMATS;

    const SEEDS: u64 = 50;

    /// Returns the samples of a schema for many seeds.
    fn samples<T>(
        schema: Value,
        sample: impl Fn(&mut Rng, &Map<String, Value>) -> Option<T>,
    ) -> Vec<Option<T>> {
        (0..SEEDS).map(|seed| sample(&mut Rng::with_seed(seed), schema.as_object().unwrap())).collect()
    }

    fn texts(schema: Value) -> Vec<Option<String>> {
        samples(schema, |rng, schema| text(rng, schema, "name"))
    }

    fn all(value: Value) -> Vec<Option<Value>> {
        (0..SEEDS).map(|_| Some(value.clone())).collect()
    }

    #[test]
    fn text_has_the_format() {
        for format in FORMATS.into_iter().chain(["idn-email", "idn-hostname"]) {
            let found = texts(json!({ "format": format })).remove(0).unwrap();
            let checked = json!({ "type": "string", "format": format.trim_start_matches("idn-") });
            let contract = crate::search::tests::contract(checked);
            let value = cog_json::Value::from(Value::from(found.as_str()));
            assert_eq!(contract.check_data(value.node()).violations, vec![], "{format}");
            assert_ne!(found, plain("name"), "{format}");
        }
        assert_eq!(texts(json!({ "format": "other" }))[0].as_deref(), Some("sample name"));
    }

    #[test]
    fn text_with_an_encoding_is_base64() {
        let text = |encoding| texts(json!({ "contentEncoding": encoding })).remove(0).unwrap();
        assert_eq!(base64_simd::STANDARD.decode_to_vec(text("base64")).unwrap(), b"sample");
        assert_eq!(text("7bit"), "sample name");
    }

    #[test]
    fn pattern_is_matched_with_a_few_repetitions() {
        let mut lengths: Vec<usize> =
            texts(json!({ "pattern": "^x*$" })).into_iter().map(|text| text.unwrap().len()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        assert_eq!(lengths, [0, 1, 2, 3]);
        for pattern in ["^(ab|[0-9]{2,}-)+.?$", "^a{2,3}b+$"] {
            let matches = Pattern::new(pattern).unwrap();
            assert!(
                texts(json!({ "pattern": pattern }))
                    .iter()
                    .all(|text| matches.is_match(text.as_ref().unwrap()))
            );
        }
    }

    #[test]
    fn text_for_a_pattern_has_a_maximum_length() {
        let length = |pattern: &str| Some(matching(&mut Rng::with_seed(0), pattern)?.len());
        assert_eq!(length("^a{10000}$"), Some(MAX_MATCHING));
        for long in ["^a{10001}$", "^a{4294967295}$", "^a{4294967295,}$", "^((a{1000}){1000}){1000}$"] {
            assert_eq!(length(long), None, "{long}");
        }
    }

    #[test]
    fn integer_is_within_the_limits() {
        for (schema, only) in [
            (json!({ "minimum": 5, "maximum": 5 }), 5_i64),
            (json!({ "minimum": 4.5, "maximum": 5.5 }), 5_i64),
            (json!({ "exclusiveMinimum": 3, "maximum": 4 }), 4_i64),
            (json!({ "minimum": 3, "exclusiveMaximum": 4 }), 3_i64),
            (json!({ "minimum": 1, "maximum": 9, "multipleOf": 5 }), 5_i64),
            (json!({ "minimum": 63, "maximum": 63, "multipleOf": 0.7 }), 63_i64),
            (json!({ "minimum": 9e15, "maximum": 9e15 }), 9_000_000_000_000_000_i64),
            (json!({ "minimum": -9e15, "maximum": -9e15 }), -9_000_000_000_000_000_i64),
        ] {
            assert_eq!(samples(schema.clone(), integer), all(json!(only)), "{schema}");
        }
    }

    #[test]
    fn unsatisfiable_limits_have_no_sample() {
        for limits in [
            json!({ "minimum": 3, "maximum": 2 }),
            json!({ "minimum": 3.1, "maximum": 3.9 }),
            json!({ "minimum": 6, "maximum": 9, "multipleOf": 5 }),
            json!({ "minimum": -1e16, "maximum": 0 }),
            json!({ "minimum": 0, "maximum": 1e16 }),
        ] {
            assert!(samples(limits.clone(), integer).iter().all(Option::is_none), "{limits}");
        }
        for limits in [
            json!({ "minimum": 3, "maximum": 2 }),
            json!({ "exclusiveMinimum": 1e12, "maximum": 1e12 }),
            json!({ "minimum": 6, "maximum": 9, "multipleOf": 5 }),
        ] {
            assert!(samples(limits.clone(), number).iter().all(Option::is_none), "{limits}");
        }
    }

    #[test]
    fn numbers_have_two_decimals_and_fill_the_range() {
        for (low, high) in [(0.0, 1.0), (0.0, 100.0), (-10.0, 10.0)] {
            let found = samples(json!({ "minimum": low, "maximum": high }), number);
            let found: Vec<f64> = found.into_iter().map(|one| one.unwrap().as_f64().unwrap()).collect();
            let middle = f64::midpoint(low, high);
            assert!(
                found.iter().all(|one| (low..=high).contains(one) && (one * 100.0).round() / 100.0 == *one)
            );
            assert!(found.iter().any(|one| low < *one && *one < middle), "{found:?}");
            assert!(found.iter().any(|one| middle < *one && *one < high), "{found:?}");
        }
    }

    #[test]
    fn number_is_within_narrow_limits() {
        for (schema, only) in [
            (json!({ "minimum": 0.125, "maximum": 0.125 }), 0.125),
            (json!({ "minimum": 1, "maximum": 1.9, "multipleOf": 0.75 }), 1.5),
        ] {
            assert_eq!(samples(schema.clone(), number), all(json!(only)), "{schema}");
        }
        for found in samples(json!({ "exclusiveMinimum": 0, "exclusiveMaximum": 0.001 }), number) {
            let found = found.unwrap().as_f64().unwrap();
            assert!(0.0 < found && found < 0.001, "{found}");
        }
    }

    #[test]
    fn absent_limit_is_near_the_other() {
        for (limits, expected) in [
            (json!({}), (0.0, 100.0)),
            (json!({ "minimum": 5 }), (5.0, 105.0)),
            (json!({ "maximum": 5 }), (-95.0, 5.0)),
            (json!({ "minimum": 5, "exclusiveMinimum": 5, "maximum": 9, "exclusiveMaximum": 8 }), (6.0, 7.0)),
        ] {
            assert_eq!(range(limits.as_object().unwrap(), |_| 1.0), expected, "{limits}");
        }
    }

    #[test]
    fn multiple_is_the_nearest_within_the_limits() {
        assert_eq!(multiple(7.0, 3.0, 0.0, 10.0), Some(6.0));
        assert_eq!(multiple(4.0, 3.0, 4.0, 10.0), Some(6.0));
        assert_eq!(multiple(4.0, 3.0, 4.0, 5.0), None);
    }
}
