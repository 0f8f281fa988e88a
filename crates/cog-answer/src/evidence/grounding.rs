//! Which strings of an answer occur in its sources: the input, its documents and its citations.

use cog_json::{Node, Path};
use cog_rules::SearchText;
use cog_schema::{Contract, Member, Shape};
use cog_spec::{EvidenceRule, GroundedText, Grounding};

use super::{EXPLANATIONS, is_within, joined, logprob::rounded};

/// The maximum number of strings that are searched for.
const MAX_TEXTS: usize = 1_000;
/// The maximum size of the sources in bytes.
const MAX_SOURCES: usize = 16 << 20;
/// The maximum number of bytes that all searches of an answer read.
const MAX_SEARCHED: usize = 256 << 20;

/// Text in which the strings of an answer are searched for.
#[derive(Debug, Clone)]
pub struct GroundingSource {
    name: String,
    page: Option<u32>,
    text: SearchText,
}

impl GroundingSource {
    /// Prepares text. `name` is its path in the input, or what else a reader knows it by; `page` is its page in a document.
    pub fn new(name: impl Into<String>, page: Option<u32>, text: &str) -> Self {
        Self { name: name.into(), page, text: SearchText::new(text) }
    }

    /// Returns a source for each string of an input, with its path.
    pub fn of_input(input: Node<'_>) -> Vec<Self> {
        let mut sources = Vec::new();
        let mut path = Path::root();
        path.push_key("input");
        walk(input, &mut path, &mut |path, text| sources.push(Self::new(path.to_string(), None, text)));
        sources
    }

    /// Returns a source for the snippet of each citation of an answer.
    pub fn of_citations(data: Node<'_>) -> Vec<Self> {
        let map = data.get(cog_harmony::citation::MAP).into_iter().flat_map(Node::members);
        let snippets =
            map.filter_map(|(id, entry)| Some((id, entry.get("location")?.get_str("text_snippet")?)));
        snippets.map(|(id, text)| Self::new(format!("citation {id}"), None, text)).collect()
    }
}

fn walk(node: Node<'_>, path: &mut Path, add: &mut impl FnMut(&Path, &str)) {
    if let Some(text) = node.as_str() {
        return add(path, text);
    }
    for (key, member) in node.members() {
        path.push_key(key);
        walk(member, path, add);
        path.pop();
    }
    for (index, element) in node.elements().enumerate() {
        path.push_index(index);
        walk(element, path, add);
        path.pop();
    }
}

/// Searches for the strings of an answer in its sources, in their order. None if the answer has no string to search for.
///
/// # Errors
/// The search would read too much, with the reason.
pub fn ground(
    data: Node<'_>,
    contract: &Contract,
    rule: &EvidenceRule,
    sources: &[GroundingSource],
) -> Result<Option<Grounding>, String> {
    let size: usize = sources.iter().map(|source| source.text.len()).sum();
    if size > MAX_SOURCES {
        return Err(format!("the input has more than {} MB of text", MAX_SOURCES >> 20));
    }
    let mut collector = Collector { rule, path: Path::root(), wanted: Vec::new() };
    collector.path.push_key("data");
    collector.visit(data, contract.shape("data").as_ref(), "");
    let wanted = collector.wanted;
    if wanted.len() > MAX_TEXTS || wanted.len().saturating_mul(size) > MAX_SEARCHED {
        return Err(format!("the answer has {} strings, and the input {size} bytes of text", wanted.len()));
    }
    let mut grounding = Grounding::default();
    for text in &wanted {
        match sources.iter().find_map(|source| text.found_in(source)) {
            Some(place) => grounding.found.push(place),
            None => grounding.missing.push(text.path.clone()),
        }
    }
    grounding.texts = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
    let share = grounding.found.len() as f64 / wanted.len() as f64;
    grounding.value = rounded(share);
    Ok((!wanted.is_empty()).then_some(grounding))
}

/// A string of an answer that should occur in the sources.
struct WantedText<'a> {
    path: String,
    text: &'a str,
}

impl WantedText<'_> {
    fn found_in(&self, source: &GroundingSource) -> Option<GroundedText> {
        let range = source.text.find(self.text)?;
        Some(GroundedText {
            path: self.path.clone(),
            source: source.name.clone(),
            page: source.page,
            offset: range.start,
            length: range.end - range.start,
        })
    }
}

/// Collects the strings of an answer that should occur in its sources.
struct Collector<'a, 'r> {
    rule: &'r EvidenceRule,
    path: Path,
    wanted: Vec<WantedText<'a>>,
}

impl<'a> Collector<'a, '_> {
    /// Visits a value. `name` is its path without the numbers of elements.
    fn visit(&mut self, node: Node<'a>, shape: Option<&Shape<'_>>, name: &str) {
        if let Some(text) = node.as_str() {
            return self.add(text, shape, name);
        }
        for (key, member) in node.members() {
            if name.is_empty() && self.rule.grounded.is_empty() && EXPLANATIONS.contains(&key) {
                continue;
            }
            let shape = match shape.map(|shape| shape.member(key)) {
                Some(Member::Known(shape)) if shape.is_media() => continue,
                Some(Member::Known(shape)) => Some(shape),
                _ => None,
            };
            self.path.push_key(key);
            self.visit(member, shape.as_ref(), &joined(name, key));
            self.path.pop();
        }
        let elements = shape.filter(|_| node.is_array()).and_then(Shape::elements);
        for (index, element) in node.elements().enumerate() {
            self.path.push_index(index);
            self.visit(element, elements.as_ref(), name);
            self.path.pop();
        }
    }

    fn add(&mut self, text: &'a str, shape: Option<&Shape<'_>>, name: &str) {
        let is_wanted = match self.rule.grounded.is_empty() {
            true => shape.is_none_or(|shape| shape.listed_values().is_none()),
            false => is_within(name, &self.rule.grounded),
        };
        // Nothing can be said about a string that has no words.
        if is_wanted && text.contains(char::is_alphanumeric) {
            self.wanted.push(WantedText { path: self.path.to_string(), text });
        }
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;
    use crate::testing::contract_of;

    const DATA: &str = r#"{
        "vendor": {"type": "string"}, "kind": {"enum": ["invoice", "receipt"]}, "rationale": {"type": "string"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"text": {"type": "string"}, "unit": {"enum": ["h"]}}}}
    }"#;

    const ANSWER: &str = r#"{"vendor": "ＡＣＭＥ  Ltd", "kind": "invoice", "rationale": "It says so.",
        "lines": [{"text": "increased costs", "unit": "h"}, {"text": "not there"}, {"text": "…"}],
        "citation_map": {"c1": {"source_id": "x", "location": {"text_snippet": "It says so."}}}}"#;

    fn grounded(named: &[&str], sources: &[GroundingSource]) -> Option<Grounding> {
        let rule = EvidenceRule {
            grounded: named.iter().map(|&it| it.to_owned()).collect(),
            ..EvidenceRule::default()
        };
        ground(Value::parse(ANSWER).unwrap().node(), &contract_of(DATA), &rule, sources).unwrap()
    }

    fn sources() -> Vec<GroundingSource> {
        let input = Value::parse(r#"{"note": {"to": ["Dear Acme Ltd,"]}}"#).unwrap();
        let mut sources = GroundingSource::of_input(input.node());
        sources.push(GroundingSource::new("input.file", Some(2), "The in-\ncreased\tcosts."));
        sources.extend(GroundingSource::of_citations(Value::parse(ANSWER).unwrap().node()));
        sources
    }

    #[test]
    fn strings_are_found_with_their_places() {
        let found = grounded(&[], &sources()).unwrap();
        assert_eq!((found.value, found.texts), (0.6667, 3));
        assert_eq!(found.missing, ["data.lines[1].text"]);
        let place = |path: &str, source: &str, page, offset, length| GroundedText {
            path: path.to_owned(),
            source: source.to_owned(),
            page,
            offset,
            length,
        };
        assert_eq!(
            found.found,
            [
                place("data.vendor", "input.note.to[0]", None, 5, 8),
                place("data.lines[0].text", "input.file", Some(2), 4, 17),
            ]
        );
    }

    #[test]
    fn manifest_can_name_the_fields() {
        let found = grounded(&["vendor", "rationale"], &sources()).unwrap();
        assert_eq!((found.value, found.texts), (1.0, 2));
        assert_eq!(found.found[1].source, "citation c1");
        assert_eq!(grounded(&["vendors"], &sources()), None);
    }

    #[test]
    fn search_is_limited() {
        let many = vec![r#""abc""#; 1_001].join(",");
        let data = Value::parse(&format!(r#"{{"list": [{many}]}}"#)).unwrap();
        assert!(ground(data.node(), &contract_of("{}"), &EvidenceRule::default(), &[]).is_err());
        // A thousand searches of a longer text would take seconds.
        let many = vec![r#""abc""#; 1_000].join(",");
        let data = Value::parse(&format!(r#"{{"list": [{many}]}}"#)).unwrap();
        let long = GroundingSource::new("input.text", None, &"a ".repeat(150_000));
        assert!(ground(data.node(), &contract_of("{}"), &EvidenceRule::default(), &[long]).is_err());
    }
}
