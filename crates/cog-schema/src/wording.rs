//! Lists, quotes, names of types and suggestions for messages.

use std::cell::Cell;

/// The maximum length of a misspelt text and of a candidate, in characters.
const MAX_LENGTH: usize = 64;
/// The maximum number of candidates that one check compares, for all of its suggestions together.
const MAX_CANDIDATES: usize = 8_192;

/// Returns the candidate that a misspelt text most likely means, if one is similar.
///
/// The work is bounded: names and candidates over 64 characters, and candidates after the first 8,192, are skipped.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    Suggestions::default().nearest(text, candidates)
}

/// Returns the JSON Schema type of a value: `integer` for a number that is written without a fraction.
pub fn type_name(value: &serde_json::Value) -> &'static str {
    use serde_json::Value;

    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Finds suggestions for one check, and bounds the work for all of them together.
#[derive(Debug)]
pub(crate) struct Suggestions {
    /// The number of candidates that can still be compared.
    remaining: Cell<usize>,
}

impl Default for Suggestions {
    fn default() -> Self {
        Self { remaining: Cell::new(MAX_CANDIDATES) }
    }
}

impl Suggestions {
    /// Returns the candidate that a misspelt text most likely means, if one is similar.
    pub(crate) fn nearest<'a>(
        &self,
        text: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        let length = length(text)?;
        // Two names of one letter have nothing in common.
        let allowance = (length / 3).max(1).min(length.saturating_sub(1));
        let plain = plain(text);
        candidates
            .into_iter()
            .take_while(|_| self.spend())
            .filter(|candidate| *candidate != text)
            .filter_map(|candidate| {
                let other = self::length(candidate)?;
                let name = self::plain(candidate);
                let is_close = other.abs_diff(length) <= allowance;
                let distance = is_close.then(|| strsim::osa_distance(&plain, &name));
                // A name with the same beginning is the last choice.
                let close = distance.filter(|distance| *distance <= allowance);
                let distance = close.or_else(|| begins_like(&plain, &name).then_some(allowance))?;
                Some((distance, candidate))
            })
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, candidate)| candidate)
    }

    /// Counts one candidate. Returns whether it can be compared.
    fn spend(&self) -> bool {
        let left = self.remaining.get().checked_sub(1);
        left.inspect(|left| self.remaining.set(*left)).is_some()
    }
}

/// Returns the length of a name in characters; none if it is too long to be compared.
fn length(text: &str) -> Option<usize> {
    let length = text.chars().take(MAX_LENGTH + 1).count();
    (length <= MAX_LENGTH).then_some(length)
}

/// Returns whether one name is the beginning of the other, as `timeout` is of `timeout_ms`.
fn begins_like(one: &str, other: &str) -> bool {
    const MIN_LENGTH: usize = 4;
    one.len().min(other.len()) >= MIN_LENGTH && (one.starts_with(other) || other.starts_with(one))
}

/// Returns a name in lower case with `_` for `-`.
fn plain(text: &str) -> String {
    text.to_lowercase().replace('-', "_")
}

/// Returns a list of alternatives: `` `a`, `b` or `c` ``, at most twelve. Only these are taken from the iterator.
pub(crate) fn either(items: impl ExactSizeIterator<Item = String>) -> String {
    const MAX_SHOWN: usize = 12;
    let further = items.len().saturating_sub(MAX_SHOWN);
    let shown: Vec<String> = items.take(MAX_SHOWN).collect();
    match shown.as_slice() {
        [] => "nothing".to_owned(),
        all if further > 0 => format!("{} and {further} more", all.join(", ")),
        [only] => only.clone(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

/// Returns text in code quotes, at most 256 characters.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_SHOWN: usize = 256;
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("`{}…`", text.get(..end).unwrap_or_default()),
        None => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_similar_candidates() {
        let words = ["low", "medium", "high", "remove_redundancy"];
        assert_eq!(nearest("hihg", words), Some("high"));
        assert_eq!(nearest("Medium", words), Some("medium"));
        assert_eq!(nearest("remove-redundancies", words), Some("remove_redundancy"));
        assert_eq!(nearest("critical", words), None);
    }

    #[test]
    fn at_most_a_third_of_a_name_may_differ() {
        for (text, near) in [
            ("modle", "model"),
            ("tmeout", "timeout"),
            ("code-reviwer", "code-reviewer"),
            ("text_critic", "text-critic"),
            ("promt.md", "prompt.md"),
            // One is the beginning of the other.
            ("timeout", "timeout_ms"),
            ("stream", "streaming"),
            ("execute", "exec"),
        ] {
            assert_eq!(nearest(text, [near]), Some(near), "{text}");
        }
        assert_eq!(nearest("network_alowed", ["network", "network_allowed"]), Some("network_allowed"));
        // A common beginning does not make names similar.
        for (text, far) in [
            ("ticket-triage", "text-writer"),
            ("text-classifier", "text-writer"),
            ("upgrade", "migrate"),
            ("test-model", "test-runner"),
            ("schema.yaml", "schema.json"),
            ("a", "b"),
        ] {
            assert_eq!(nearest(text, [far]), None, "{text}");
        }
    }

    #[test]
    fn every_value_has_its_type() {
        let values = serde_json::json!([null, true, 1, 1.0, "a", [], {}]);
        let names: Vec<&str> = values.as_array().unwrap().iter().map(type_name).collect();
        assert_eq!(names, ["null", "boolean", "integer", "number", "string", "array", "object"]);
    }

    #[test]
    fn lists_are_phrases_of_at_most_twelve_items() {
        let items: Vec<String> = (0..15).map(|n| n.to_string()).collect();
        let either = |count: usize| either(items[..count].iter().cloned());
        assert_eq!((either(0).as_str(), either(1).as_str()), ("nothing", "0"));
        assert_eq!(either(3), "0, 1 or 2");
        assert!(either(12).ends_with("10 or 11"));
        assert!(either(15).ends_with("11 and 3 more"));
    }

    #[test]
    fn long_text_is_truncated_in_quotes() {
        assert_eq!(quoted(&"é".repeat(256)), format!("`{}`", "é".repeat(256)));
        assert_eq!(quoted(&"é".repeat(257)), format!("`{}…`", "é".repeat(256)));
    }

    #[test]
    fn long_text_has_no_suggestion() {
        let fits = "x".repeat(64);
        let long = "x".repeat(65);
        assert_eq!(nearest(&fits, [&*"x".repeat(63)]), Some(&*"x".repeat(63)));
        assert_eq!(nearest(&fits, [&*long]), None);
        assert_eq!(nearest(&long, [&*fits]), None);
    }

    #[test]
    fn number_of_compared_candidates_is_bounded() {
        let far = std::iter::repeat_n("something else", MAX_CANDIDATES - 1);
        let suggestions = Suggestions::default();
        assert_eq!(suggestions.nearest("hihg", far.clone()), None);
        assert_eq!(suggestions.nearest("hihg", ["high", "hgih"]), Some("high"));
        assert_eq!(suggestions.remaining.get(), 0);
        assert_eq!(suggestions.nearest("hihg", ["high"]), None);
        assert_eq!(nearest("hihg", far.chain(["high"])), Some("high"));
    }
}
