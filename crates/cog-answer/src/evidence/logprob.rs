//! How probable the model found its answer, from the tokens that the engine reports.

use std::{collections::BTreeMap, ops::Range};

use cog_json::{Limits, Node, Reader, Value};
use cog_schema::{Member, Shape};
use cog_spec::{FieldProbabilities, TokenProbability};

/// The bytes of text after which tokens are no longer recorded. An answer that is longer has no probability.
const MAX_TEXT: usize = 64 * 1024;

/// The characters of a JSON number.
const NUMBER: &[char] = &['-', '+', '.', 'e', 'E', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'];

/// The tokens of a reply, in their order.
#[derive(Debug, Default)]
pub(crate) struct TokenLog {
    tokens: Vec<TokenProbability>,
    bytes: usize,
}

impl TokenLog {
    pub(crate) fn push(&mut self, tokens: Vec<TokenProbability>) {
        self.bytes += tokens.iter().map(|token| token.text.len()).sum::<usize>();
        match self.bytes <= MAX_TEXT {
            true => self.tokens.extend(tokens),
            false => self.tokens = Vec::new(),
        }
    }

    /// Returns the probability of each deciding field of an answer: of its enums, booleans and numbers. None if there is no such
    /// field, or if a token is missing. The probability of a field is its share of what the contract allows at its place: an engine
    /// that enforces a grammar reports what the model would have written without it.
    pub(crate) fn probabilities(
        &self,
        answer: &Value,
        is_in_envelope: bool,
        shape: &Shape<'_>,
    ) -> Option<FieldProbabilities> {
        let text: String = self.tokens.iter().map(|token| token.text.as_str()).collect();
        let mut reader = Reader::new(Limits::default());
        let root = reader.read(&text).ok()?;
        // A reply that was repaired, or whose tokens did not all arrive, is not the text of these tokens. In some dialects, the
        // answer is the only member of the reply.
        let mut wrapped = root.members().map(|(_, member)| member);
        let wrapped = wrapped.next().filter(|_| wrapped.next().is_none());
        let root = [Some(root), wrapped].into_iter().flatten().find(|root| *root == answer.node())?;
        let data = if is_in_envelope { root.get("data")? } else { root };
        let mut fields = BTreeMap::new();
        for (name, node) in data.members() {
            let Member::Known(member) = shape.member(name) else { continue };
            if let Some(field) = Field::new(node, &member, &text) {
                fields.insert(name.to_owned(), rounded(self.probability(&field)?));
            }
        }
        let value = rounded(fields.values().product());
        (!fields.is_empty()).then_some(FieldProbabilities { value, fields })
    }

    fn probability(&self, field: &Field<'_>) -> Option<f64> {
        let mut probability = 1.0;
        let mut start = 0;
        for token in &self.tokens {
            let end = start + token.text.len();
            // The token after the value decides that it ends there.
            if end > field.range.start && start <= field.range.end {
                probability *= field.share(token, start)?;
            }
            start = end;
        }
        Some(probability).filter(|value: &f64| value.is_finite())
    }
}

/// A deciding field in the text of an answer.
struct Field<'a> {
    /// The text of the answer.
    text: &'a str,
    /// The bytes of the value, without quotes.
    range: Range<usize>,
    /// The values that the contract allows; none of a number.
    values: Vec<String>,
    /// Whether the value stands between quotes.
    is_string: bool,
}

impl<'a> Field<'a> {
    /// Returns a field that decides; none of any other, and of one whose text is not its value.
    fn new(node: Node<'_>, shape: &Shape<'_>, text: &'a str) -> Option<Self> {
        let start = node.offset();
        let range = match node.literal_range() {
            Some(range) => range,
            None if node.as_bool().is_some() || node.as_number().is_some() => {
                let rest = text.get(start..)?;
                start..start + rest.find([',', '}', ' ', '\n', '\r', '\t']).unwrap_or(rest.len())
            }
            None => return None,
        };
        let is_string = node.is_string();
        let values: Vec<String> = match shape.listed_values() {
            Some(listed) => listed.into_iter().filter_map(|value| written(value, is_string)).collect(),
            None if node.as_bool().is_some() => vec!["true".to_owned(), "false".to_owned()],
            None if node.as_number().is_some() => Vec::new(),
            None => return None,
        };
        Some(Self { text, range, values, is_string })
    }

    /// Returns the share of the value among all that the contract allows, at the place of a token that begins at `start`.
    fn share(&self, token: &TokenProbability, start: usize) -> Option<f64> {
        let lead = self.text.get(start..self.range.start.max(start))?;
        let written = self.text.get(self.range.start..start.max(self.range.start))?;
        let value = self.text.get(self.range.clone())?;
        let chosen = token.logprob.exp();
        let mut of_value = chosen;
        let mut of_all = chosen;
        for (text, logprob) in &token.alternatives {
            let Some(next) = text.strip_prefix(lead).filter(|_| *text != token.text) else { continue };
            // Another token may write the same value: a part of it, or its end with what follows.
            if self.leads_to(value, written, next) {
                of_value += logprob.exp();
                of_all += logprob.exp();
            } else if self.is_allowed(written, next) {
                of_all += logprob.exp();
            }
        }
        Some(of_value / of_all).filter(|share| share.is_finite())
    }

    /// Returns whether `next`, after the part of a value that is written, continues with this value or ends it.
    fn leads_to(&self, value: &str, written: &str, next: &str) -> bool {
        let Some(tail) = value.strip_prefix(written).filter(|_| !next.is_empty()) else { return false };
        tail.starts_with(next) || next.strip_prefix(tail).is_some_and(|rest| self.may_end(rest))
    }

    fn is_allowed(&self, written: &str, next: &str) -> bool {
        match self.values.is_empty() {
            true => next.starts_with(NUMBER) || (!written.is_empty() && self.may_end(next)),
            false => self.values.iter().any(|value| self.leads_to(value, written, next)),
        }
    }

    /// Returns whether text that begins like this ends a value.
    fn may_end(&self, rest: &str) -> bool {
        match self.is_string {
            true => rest.starts_with('"'),
            false => rest.starts_with([',', '}', ' ', '\n', '\r', '\t']),
        }
    }
}

/// Returns how a value of an enum is written, without quotes; none of a value of another type.
fn written(value: &serde_json::Value, is_string: bool) -> Option<String> {
    match value {
        serde_json::Value::String(text) => is_string.then(|| text.clone()),
        other => (!is_string).then(|| other.to_string()),
    }
}

/// Rounds to four digits: more would be noise in every envelope.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::contract_of;

    fn token(text: &str, probability: f64, others: &[(&str, f64)]) -> TokenProbability {
        let alternatives = others.iter().map(|(text, value)| ((*text).to_owned(), value.ln())).collect();
        TokenProbability { text: text.to_owned(), logprob: probability.ln(), alternatives }
    }

    fn certain(text: &str) -> TokenProbability {
        token(text, 1.0, &[])
    }

    fn found(properties: &str, tokens: Vec<TokenProbability>) -> Option<FieldProbabilities> {
        let text: String = tokens.iter().map(|token| token.text.as_str()).collect();
        let mut log = TokenLog::default();
        log.push(tokens);
        log.probabilities(
            &Value::parse(&text).unwrap(),
            false,
            &contract_of(properties).shape("data").unwrap(),
        )
    }

    fn value(properties: &str, tokens: Vec<TokenProbability>) -> f64 {
        found(properties, tokens).unwrap().value
    }

    const LABEL: &str = r#"{"label":{"enum":["good","bad","good enough"]}}"#;

    #[test]
    fn share_is_among_what_the_contract_allows() {
        // Without the grammar, the model would have begun a sentence.
        let first = || token("good", 0.3, &[("The", 0.6), ("good", 0.3), ("bad", 0.1)]);
        let end = || token("\"}", 0.1, &[(" morning", 0.7), ("\"}", 0.1), ("\",", 0.1), (" enough", 0.05)]);
        assert_eq!(value(LABEL, vec![certain("{\"label\":\""), first(), end()]), 0.6); // 3/4 of 4/5
    }

    #[test]
    fn token_may_hold_more_than_the_value() {
        let merged = token(":\"bad", 0.2, &[(":\"good", 0.2), ("bad", 0.5), (": \"", 0.1)]);
        assert_eq!(value(LABEL, vec![certain("{\"label\""), merged, certain("\"}")]), 0.5);
        let all = token("{\"label\":\"bad\"}", 0.9, &[("{}", 0.1)]);
        assert_eq!(value(LABEL, vec![all]), 1.0);
    }

    #[test]
    fn value_in_several_tokens_is_a_product() {
        let tokens = vec![
            certain("{\"label\":\""),
            token("go", 0.25, &[("go", 0.25), ("good", 0.25), ("b", 0.5)]),
            token("od", 0.8, &[("x", 0.2)]),
            certain("\"}"),
        ];
        assert_eq!(value(LABEL, tokens), 0.5);
    }

    #[test]
    fn fields_multiply_and_texts_do_not_count() {
        let properties = r#"{"yes":{"type":"boolean"},"n":{"type":"integer"},"why":{"type":"string"}}"#;
        let tokens = vec![
            certain("{\"yes\":"),
            token("true", 0.6, &[("false", 0.2), ("null", 0.2)]),
            certain(",\"n\":"),
            token("1", 0.5, &[("2", 0.5), ("\"", 0.5)]),
            token("2", 0.4, &[(",", 0.4), ("x", 0.2)]),
            certain(",\"why\":\""),
            token("Because", 0.1, &[("So", 0.9)]),
            certain("\"}"),
        ];
        let found = found(properties, tokens).unwrap();
        assert_eq!(
            found.fields.into_iter().collect::<Vec<_>>(),
            [("n".to_owned(), 0.25), ("yes".to_owned(), 0.75)]
        );
        assert_eq!(found.value, 0.1875);
    }

    #[test]
    fn data_may_be_in_an_envelope_that_is_wrapped() {
        let envelope = r#"{"ok":true,"data":{"label":"bad"}}"#;
        for (before, after) in [("", ""), ("{\"answer\":", "}")] {
            let start = format!("{before}{{\"ok\":true,\"data\":{{\"label\":\"");
            let end = format!("\"}}}}{after}");
            let mut log = TokenLog::default();
            log.push(vec![certain(&start), token("bad", 0.5, &[("good", 0.5)]), certain(&end)]);
            let contract = contract_of(LABEL);
            let found =
                log.probabilities(&Value::parse(envelope).unwrap(), true, &contract.shape("data").unwrap());
            assert_eq!(found.map(|found| found.value), Some(0.5), "{before}");
        }
    }

    #[test]
    fn nothing_is_made_up() {
        let answer = Value::parse(r#"{"label":"bad"}"#).unwrap();
        let contract = contract_of(LABEL);
        let shape = contract.shape("data").unwrap();
        let log = |tokens: Vec<TokenProbability>| {
            let mut log = TokenLog::default();
            log.push(tokens);
            log.probabilities(&answer, false, &shape)
        };
        assert!(log(vec![certain("{\"label\":\"bad\"}")]).is_some());
        assert_eq!(log(vec![]), None, "no token");
        assert_eq!(log(vec![certain("{\"label\":\"")]), None, "half of them");
        assert_eq!(log(vec![certain("{\"label\":\"good\"}")]), None, "another answer");
        assert_eq!(log(vec![token("{\"label\":\"bad\"}", f64::NAN, &[])]), None, "no number");
        assert_eq!(
            log(vec![certain(&" ".repeat(MAX_TEXT)), certain("{\"label\":\"bad\"}")]),
            None,
            "too long"
        );
        assert_eq!(found(r#"{"why":{"type":"string"}}"#, vec![certain("{\"why\":\"x\"}")]), None);
    }
}
