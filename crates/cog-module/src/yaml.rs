//! Parses YAML into a tree with the location of every key and value.
//!
//! The tree is untyped on purpose: a typed parser would stop at the first invalid value, and would turn the version
//! `1.10` into a number.

use std::{fmt, ops::Range};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{
    DefaultMessageFormatter, Error, Location, MessageFormatter as _, Options, Spanned, UserMessageFormatter,
    alias_limits, budget, options,
};

use crate::{Diagnostic, Rule, diagnostic::shown, source::Source};

/// A value and its byte range.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) content: Content,
    /// The range of its use; for a list or a mapping only the start.
    pub(crate) span: Range<usize>,
    /// The range where it is written, which differs for an alias.
    pub(crate) written: Range<usize>,
}

/// The content of a value.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) span: Range<usize>,
    pub(crate) value: Node,
}

/// The limits of a manifest.
const MAX_NODES: usize = 20_000;
const MAX_ALIASES: usize = 100;
const MAX_DEPTH: usize = 32;

/// Parses a document within its limits.
pub(crate) fn parse(source: &Source) -> Result<Node, Diagnostic> {
    serde_saphyr::from_str_with_options(&source.text, limits()).map_err(|error| explain(source, &error))
}

impl Node {
    /// Returns its type for a message: "a list".
    pub(crate) fn kind(&self) -> &'static str {
        match self.content {
            Content::Null => "empty",
            Content::Bool(_) => "a boolean",
            Content::Number(_) => "a number",
            Content::Text(_) => "a string",
            Content::List(_) => "a list",
            Content::Map(_) => "a mapping",
        }
    }

    /// Returns the value of a key, if this is a mapping.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        let Content::Map(entries) = &self.content else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Returns it as JSON. The recursion is as deep as the document, whose depth is limited.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.content {
            Content::Null => serde_json::Value::Null,
            Content::Bool(value) => (*value).into(),
            Content::Number(number) => number.clone().into(),
            Content::Text(text) => text.as_str().into(),
            Content::List(items) => items.iter().map(Self::to_json).collect(),
            Content::Map(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self { content: spanned.value, span: bytes(spanned.referenced), written: bytes(spanned.defined) })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        // JSON has no infinity: as text it fails where a number is expected, at its location.
        let number = serde_json::Number::from_f64(value);
        Ok(number.map_or_else(|| Content::Text(value.to_string()), Content::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Content::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key::<Spanned<String>>()? {
            let value = access.next_value()?;
            entries.push(Entry { span: bytes(key.referenced), key: key.value, value });
        }
        Ok(Content::Map(entries))
    }
}

fn limits() -> Options {
    options! {
        budget: budget! { max_nodes: MAX_NODES, max_aliases: MAX_ALIASES, max_depth: MAX_DEPTH,
                          flow_nesting_limit: MAX_DEPTH },
        // A few aliases of aliases can stand for billions of values: what counts is what they expand to.
        alias_limits: alias_limits! { max_total_replayed_events: MAX_NODES },
        // YAML 1.1 reads the words `yes`, `no` and `on` as booleans; in a manifest they are words.
        strict_booleans: true,
        // The diagnostic shows the line itself, with its own markers.
        with_snippet: false,
    }
}

fn bytes(location: Location) -> Range<usize> {
    let start = to_usize(location.span().byte_offset());
    start..start + to_usize(location.span().byte_len())
}

fn to_usize(number: Option<u64>) -> usize {
    number.and_then(|number| usize::try_from(number).ok()).unwrap_or_default()
}

fn explain(source: &Source, error: &Error) -> Diagnostic {
    let (rule, message) = match innermost(error) {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (Rule::YamlSyntax, format!("duplicate key `{}`", shown(key)))
        }
        Error::MultipleDocuments { .. } => {
            (Rule::YamlSyntax, "a second YAML document starts here; a manifest has only one".to_owned())
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => (
            Rule::YamlLimit,
            format!(
                "the YAML exceeds a limit: {MAX_NODES} values, {MAX_ALIASES} aliases, {MAX_DEPTH} levels"
            ),
        ),
        other => match DefaultMessageFormatter.format_message(other) {
            // The library reports self-containing lists and very deep nesting with its own messages.
            message if message.contains("recursi") => (
                Rule::YamlLimit,
                "lists or mappings are nested too deeply, or one contains itself".to_owned(),
            ),
            _ => (Rule::YamlSyntax, sentence(other)),
        },
    };
    let suggestion = match rule {
        Rule::YamlLimit => "Write values without aliases and reduce the nesting.",
        _ if matches!(innermost(error), Error::DuplicateMappingKey { .. }) => "Remove or rename one of them.",
        _ => "Check the indentation, quotes and colons around this line.",
    };
    let diagnostic = Diagnostic::error(rule, &source.path, message).suggest(suggestion);
    let Some(location) = error.location().filter(|location| location.line() > 0) else { return diagnostic };
    let offset = source.offset(location.line(), location.column());
    diagnostic.at(source, offset..offset + 1)
}

/// Returns the message of a syntax error, without terms of the library.
fn sentence(error: &Error) -> String {
    let message = match error {
        Error::NullIntoString { .. } => "a key cannot be null; to use the word as a key, put it in quotes",
        Error::Unexpected { expected: "string scalar", .. } => {
            "a key must be a string, not a list or a mapping"
        }
        Error::UnknownAnchor { .. } => "the alias refers to an anchor that is not defined before it",
        Error::InvalidScalar { .. } => "the value does not have the type of its tag",
        Error::NonFiniteFloat { .. } => "the number is not finite",
        other => return UserMessageFormatter.format_message(other).into_owned(),
    };
    message.to_owned()
}

/// Returns the innermost error.
fn innermost(error: &Error) -> &Error {
    match error {
        Error::AliasError { error, .. } | Error::WithSnippet { error, .. } => innermost(error),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_text(text: &str) -> Result<Node, Diagnostic> {
        parse(&Source::new("module.yaml", text))
    }

    #[test]
    fn values_have_byte_ranges() {
        let text = "name: \u{e9}t\u{e9}\nversion: 1.10\n";
        let tree = parse_text(text).unwrap();
        let version = tree.get("version").unwrap();
        assert_eq!(&text[version.span.clone()], "1.10");
        assert!(matches!(&tree.get("name").unwrap().content, Content::Text(name) if name == "\u{e9}t\u{e9}"));
    }

    #[test]
    fn alias_has_the_range_of_its_anchor() {
        let text = "a: &x 1.50\nb: *x\n";
        let tree = parse_text(text).unwrap();
        let alias = tree.get("b").unwrap();
        assert_eq!((&text[alias.span.clone()], &text[alias.written.clone()]), ("*x", "1.50"));
    }

    #[test]
    fn rejects_duplicate_keys() {
        let error = parse_text("a: 1\na: 2\n").unwrap_err();
        assert_eq!(error.suggestion.as_deref(), Some("Remove or rename one of them."));
        assert_eq!((error.rule, error.location.unwrap().line), (Rule::YamlSyntax, 2));
    }

    #[test]
    fn messages_use_terms_of_yaml() {
        for (text, message) in [
            ("~: x\n", "a key cannot be null; to use the word as a key, put it in quotes"),
            ("? [a]: b\n", "a key must be a string, not a list or a mapping"),
            ("a: *x\n", "the alias refers to an anchor that is not defined before it"),
            ("a: !!int x\n", "the value does not have the type of its tag"),
            ("a: .nan\n", "the number is not finite"),
            ("a: {b\n", "unclosed bracket '{'"),
        ] {
            assert_eq!(parse_text(text).unwrap_err().message, message, "{text}");
        }
    }

    #[test]
    fn rejects_alias_bombs() {
        let mut text = "l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let below = format!("*l{}", level - 1);
            text.push_str(&format!("l{level}: &l{level} [{}]\n", [below.as_str(); 9].join(", ")));
        }
        let error = parse_text(&text).unwrap_err();
        assert_eq!(error.rule, Rule::YamlLimit, "{error}");
    }

    #[test]
    fn rejects_deep_nesting() {
        for text in [format!("a: {}{}", "[".repeat(100_000), "]".repeat(100_000)), "- ".repeat(10_000)] {
            let error = parse_text(&text).unwrap_err();
            assert!(matches!(error.rule, Rule::YamlLimit | Rule::YamlSyntax), "{error}");
        }
    }
}
