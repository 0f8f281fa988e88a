use std::{cell::RefCell, collections::BTreeSet, ops::Range, str::FromStr};

use cog_schema::nearest;
use cog_spec::ParseEnumError;

use crate::{
    Rule, Severity,
    diagnostic::{Findings, shown},
    yaml::{Content, Entry, Node},
};

/// The keys of a mapping, read one by one.
///
/// A key that is read is a known key: [`Fields::finish`] warns about all others and suggests the nearest known key.
pub(super) struct Fields<'a> {
    entries: &'a [Entry],
    /// The path of this mapping: empty at the root, otherwise `overflow.`.
    prefix: String,
    known: RefCell<BTreeSet<&'a str>>,
    findings: &'a Findings<'a>,
}

/// Where to find the list of keys.
const KEYS: &str = "Run `cog schema manifest` to list all keys.";

/// Returns where to set what authors expect in a manifest.
fn elsewhere(key: &str) -> Option<String> {
    let flag = match key {
        "model" | "models" => "--model or LLM_MODEL",
        "provider" | "providers" => "--provider or LLM_PROVIDER",
        "timeout" => "--timeout or COG_TIMEOUT",
        _ => return None,
    };
    Some(format!("A run chooses it, with {flag}."))
}

/// Keys of sections that authors write at the top level.
const SECTION_KEYS: [(&str, &[&str]); 7] = [
    ("response", &["mode", "chunk_type", "buffer_size", "on_violation", "max_attempts"]),
    ("generation", &["temperature", "max_tokens", "seed", "stop", "effort", "verbosity", "service_tier"]),
    ("enums", &["strategy", "unknown_tag"]),
    ("meta", &["risk_rule"]),
    ("confidence", &["gate"]),
    ("policies", &["network", "filesystem_write", "side_effects", "code_execution"]),
    ("overflow", &["max_items", "require_suggested_mapping", "recoverable"]),
];

impl<'a> Fields<'a> {
    /// Returns the keys of the document; none, with an error, if it is not a mapping.
    pub(super) fn from_root(root: &'a Node, findings: &'a Findings<'a>) -> Self {
        let entries = match &root.content {
            Content::Map(entries) => entries.as_slice(),
            _ => {
                let message = format!("the manifest is {}, not a mapping of keys to values", root.kind());
                let help = format!("Start with `name:`. {KEYS}");
                findings.error(Rule::ManifestShape, root.span.clone(), message, Some(help));
                &[]
            }
        };
        Self { entries, prefix: String::new(), known: RefCell::default(), findings }
    }

    /// Reads the mapping at a key, if there is one.
    pub(super) fn section(&self, key: &'static str, read: impl FnOnce(&Fields<'a>)) {
        let Some(node) = self.node(key) else { return };
        let Content::Map(_) = &node.content else { return self.wrong_type(key, node, "a mapping") };
        self.within(key, node, read);
    }

    /// Reads `node`, the value of `key`, as a mapping.
    pub(super) fn within(&self, key: &str, node: &'a Node, read: impl FnOnce(&Fields<'a>)) {
        let Content::Map(entries) = &node.content else { return };
        let prefix = format!("{}{key}.", self.prefix);
        let fields = Fields { entries, prefix, known: RefCell::default(), findings: self.findings };
        read(&fields);
        fields.finish();
    }

    /// Returns whether the key is present, with any value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// Returns the value of a key; none if it is absent or empty.
    pub(super) fn node(&self, key: &'static str) -> Option<&'a Node> {
        self.known.borrow_mut().insert(key);
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        (!matches!(entry.value.content, Content::Null)).then_some(&entry.value)
    }

    /// Returns all entries, for mappings whose keys the author chooses.
    pub(super) fn entries(&self) -> &'a [Entry] {
        self.entries
    }

    /// Marks a key that the author chose as known.
    pub(super) fn know(&self, key: &'a str) {
        self.known.borrow_mut().insert(key);
    }

    /// Returns a string. A number or a boolean is returned as written.
    pub(super) fn text(&self, key: &'static str) -> Option<String> {
        let node = self.node(key)?;
        let text = self.as_text(node);
        if text.is_none() {
            self.wrong_type(key, node, "a string");
        }
        text
    }

    /// Returns a string that must be present and not empty.
    pub(super) fn required_text(&self, key: &'static str) -> Option<String> {
        let text = self.text(key).filter(|text| !text.trim().is_empty());
        // A value of another type has been reported already.
        let is_of_wrong_type = self.node(key).is_some_and(|node| self.as_text(node).is_none());
        if text.is_none() && !is_of_wrong_type {
            self.missing(key, Some(format!("Add `{key}:` and a value.")));
        }
        text
    }

    /// Returns one of several keywords.
    pub(super) fn keyword<T: FromStr<Err = ParseEnumError>>(&self, key: &'static str) -> Option<T> {
        let node = self.node(key)?;
        self.parse_keyword(key, node)
    }

    /// Returns a list of keywords; each invalid one is reported.
    pub(super) fn keywords<T: FromStr<Err = ParseEnumError>>(&self, key: &'static str) -> Option<Vec<T>> {
        let items = self.list(key)?;
        Some(items.iter().filter_map(|node| self.parse_keyword(key, node)).collect())
    }

    /// Returns whether the value is the first of two keywords.
    pub(super) fn either(&self, key: &'static str, allowed: &'static [&'static str; 2]) -> Option<bool> {
        let node = self.node(key)?;
        let text = self.as_text(node).unwrap_or_default();
        let position = allowed.iter().position(|keyword| *keyword == text);
        if position.is_none() {
            self.invalid_keyword(key, node, &text, allowed);
        }
        position.map(|position| position == 0)
    }

    /// Returns a boolean.
    pub(super) fn flag(&self, key: &'static str) -> Option<bool> {
        let node = self.node(key)?;
        match node.content {
            Content::Bool(value) => Some(value),
            _ => {
                self.wrong_type(key, node, "true or false");
                None
            }
        }
    }

    /// Returns an integer of at least `min` that fits in `T`.
    pub(super) fn integer<T: TryFrom<i64>>(&self, key: &'static str, min: i64) -> Option<T> {
        let node = self.node(key)?;
        let Content::Number(number) = &node.content else {
            self.wrong_type(key, node, "an integer");
            return None;
        };
        let integer =
            number.as_i64().filter(|integer| *integer >= min).and_then(|integer| T::try_from(integer).ok());
        if integer.is_none() {
            let message =
                format!("`{}{key}` is {number}; expected an integer of at least {min}", self.prefix);
            self.findings.error(Rule::KeyValue, node.span.clone(), message, None);
        }
        integer
    }

    /// Returns a number within an inclusive range.
    pub(super) fn number(&self, key: &'static str, range: std::ops::RangeInclusive<f64>) -> Option<f64> {
        let node = self.node(key)?;
        let Content::Number(number) = &node.content else {
            self.wrong_type(key, node, "a number");
            return None;
        };
        let value = number.as_f64().filter(|value| range.contains(value));
        if value.is_none() {
            let min = range.start();
            let max = range.end();
            let message =
                format!("`{}{key}` is {number}; expected a number from {min} to {max}", self.prefix);
            self.findings.error(Rule::KeyValue, node.span.clone(), message, None);
        }
        value
    }

    /// Returns a list of strings; a single string is a list of one.
    pub(super) fn texts(&self, key: &'static str) -> Option<Vec<String>> {
        if let Some(Node { content: Content::Text(text), .. }) = self.node(key) {
            return Some(vec![text.clone()]);
        }
        let items = self.list(key)?;
        let texts = items.iter().filter_map(|node| {
            let text = self.as_text(node);
            if text.is_none() {
                let message =
                    format!("each item of `{}{key}` must be a string, found {}", self.prefix, node.kind());
                self.findings.error(Rule::KeyType, node.span.clone(), message, None);
            }
            text
        });
        Some(texts.collect())
    }

    /// Returns a list of any values.
    pub(super) fn list(&self, key: &'static str) -> Option<&'a [Node]> {
        let node = self.node(key)?;
        match &node.content {
            Content::List(items) => Some(items),
            _ => {
                self.wrong_type(key, node, "a list");
                None
            }
        }
    }

    /// Returns `version`, completed to three numbers if it is shorter (ruling R5).
    pub(super) fn version(&self) -> Option<String> {
        let text = self.required_text("version")?;
        if semver::Version::parse(&text).is_ok() {
            return Some(text);
        }
        let trimmed = text.trim_start_matches(['v', 'V']);
        let full = format!("{trimmed}{}", ".0".repeat(2_usize.saturating_sub(trimmed.matches('.').count())));
        let is_version = semver::Version::parse(&full).is_ok();
        if is_version && trimmed == text {
            let message = format!("version `{}` is incomplete; using `{}`", shown(&text), shown(&full));
            self.warning_at("version", Rule::VersionForm, message, Some(format!("Write `version: {full}`.")));
            return Some(full);
        }
        let help = is_version.then(|| format!("Write `version: {full}`."));
        let message =
            format!("`{}` is not a valid version: expected three numbers such as 1.0.0", shown(&text));
        self.error_at("version", Rule::VersionForm, message, help);
        None
    }

    /// Reports a required key that is absent or empty.
    pub(super) fn missing(&self, key: &'static str, help: Option<String>) {
        let message = format!("required key `{}{key}` is missing or empty", self.prefix);
        self.findings.error(Rule::KeyMissing, self.span_of(key), message, help);
    }

    /// Warns about an absent optional key.
    pub(super) fn missing_but_optional(&self, key: &'static str, help: Option<String>) {
        let message = format!("key `{}{key}` is missing", self.prefix);
        self.findings.warning(Rule::KeyMissing, self.span_of(key), message, help);
    }

    pub(super) fn error_at(&self, key: &str, rule: Rule, message: String, help: Option<String>) {
        self.findings.error(rule, self.value_span(key), message, help);
    }

    pub(super) fn error_in(&self, node: &Node, rule: Rule, message: String) {
        self.findings.error(rule, node.span.clone(), message, None);
    }

    pub(super) fn warning_at(&self, key: &str, rule: Rule, message: String, help: Option<String>) {
        self.findings.warning(rule, self.value_span(key), message, help);
    }

    pub(super) fn bad_test_pair(&self, node: &Node) {
        let message = "not a pair of files in the module's directory".to_owned();
        let help = "Write `tests/case1.input.json -> tests/case1.expected.json`.".to_owned();
        self.findings.error(Rule::TestPair, node.span.clone(), message, Some(help));
    }

    pub(super) fn wrong_type(&self, key: &str, node: &Node, expected: &str) {
        let message = format!("`{}{key}` is {}; expected {expected}", self.prefix, node.kind());
        self.findings.error(Rule::KeyType, node.span.clone(), message, None);
    }

    pub(super) fn invalid_keyword(&self, key: &str, node: &Node, found: &str, allowed: &[&'static str]) {
        let message = format!(
            "`{}{key}` cannot be `{}`; use one of: {}",
            self.prefix,
            shown(found),
            allowed.join(", ")
        );
        let help =
            nearest(found, allowed.iter().copied()).map(|keyword| format!("Did you mean `{keyword}`?"));
        self.findings.error(Rule::KeyValue, node.span.clone(), message, help);
    }

    /// Warns about every unknown key.
    pub(super) fn finish(&self) {
        let known = self.known.borrow();
        for entry in self.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            if self.findings.is_omitted(Severity::Warning) {
                continue;
            }
            let message = format!("unknown key `{}{}`; it is ignored", self.prefix, shown(&entry.key));
            let near = contained(&entry.key, &known).or_else(|| nearest(&entry.key, known.iter().copied()));
            let near = near.map(|key| format!("Did you mean `{key}`?"));
            // The manifest has `timeout_ms` for a part.
            let is_short = known.iter().any(|key| key.strip_prefix(entry.key.as_str()) == Some("_ms"));
            let help =
                elsewhere(&entry.key).filter(|_| !is_short).or_else(|| self.belongs(&entry.key)).or(near);
            let help = help.unwrap_or_else(|| KEYS.to_owned());
            self.findings.warning(Rule::KeyUnknown, entry.span.clone(), message, Some(help));
        }
    }

    /// Returns the section of a key that is written at the top level.
    fn belongs(&self, key: &str) -> Option<String> {
        let (section, _) = SECTION_KEYS.iter().find(|(_, keys)| keys.contains(&key))?;
        self.prefix.is_empty().then(|| format!("Indent it under `{section}:`."))
    }

    fn parse_keyword<T: FromStr<Err = ParseEnumError>>(&self, key: &str, node: &Node) -> Option<T> {
        let Some(text) = self.as_text(node) else {
            self.wrong_type(key, node, "a string");
            return None;
        };
        match text.parse() {
            Ok(keyword) => Some(keyword),
            Err(ParseEnumError { found, allowed }) => {
                self.invalid_keyword(key, node, &found, allowed);
                None
            }
        }
    }

    fn as_text(&self, node: &Node) -> Option<String> {
        match &node.content {
            Content::Text(text) => Some(text.clone()),
            Content::Number(_) | Content::Bool(_) => {
                self.findings.source().text.get(node.written.clone()).map(str::to_owned)
            }
            Content::Null | Content::List(_) | Content::Map(_) => None,
        }
    }

    fn value_span(&self, key: &str) -> Range<usize> {
        self.entries.iter().find(|entry| entry.key == key).map_or(0..0, |entry| entry.value.span.clone())
    }

    /// Returns the span of the key if it is present but empty, otherwise the start of the mapping.
    fn span_of(&self, key: &str) -> Range<usize> {
        let entry = self.entries.iter().find(|entry| entry.key == key).or(self.entries.first());
        entry.map_or(0..0, |entry| entry.span.clone())
    }
}

/// Returns the key whose words are all in the unknown key, as the words of `no_network` are in `no_external_network`.
fn contained<'k>(unknown: &str, known: &BTreeSet<&'k str>) -> Option<&'k str> {
    let words: BTreeSet<&str> = unknown.split(['_', '-']).collect();
    let known = known.iter().copied();
    known
        .filter(|key| key.contains('_') && key.split('_').all(|word| words.contains(word)))
        .max_by_key(|key| key.len())
}

/// Overwrites a default if the key is set.
pub(super) fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// Returns whether a path is relative and contains no `..`.
pub(super) fn is_within(path: &str) -> bool {
    let mut steps = std::path::Path::new(path).components();
    !path.is_empty()
        && steps.all(|step| matches!(step, std::path::Component::Normal(_) | std::path::Component::CurDir))
}
