//! Golden tests from a configuration of promptfoo.

use std::path::Path;

use serde_json::{Map, Value as Json, json};

use super::{ImportedCase, answer_field};
use crate::{Diagnostic, Module, Rule as Check, golden::operator, source::Source, yaml};

/// Reads the tests of a configuration, or a list of tests. An assertion that no expected file has is left out of its case.
///
/// # Errors
/// If the text is not YAML, or has no list of tests.
pub fn promptfoo(text: &str, path: &Path, module: &Module) -> Result<Vec<ImportedCase>, Diagnostic> {
    let source = Source::new(path, text);
    let config = yaml::parse(&source)?.to_json();
    let tests = config.as_array().or_else(|| config.get("tests")?.as_array()).ok_or_else(|| {
        Diagnostic::error(Check::GoldenSyntax, path, "there is no list `tests`")
            .suggest("Write the tests into this file; a path of another file is not followed.")
    })?;
    let field = answer_field(module);
    let cases = (1..).zip(tests).map(|(number, test)| case(module, field, path, number, test));
    Ok(cases.collect())
}

fn case(module: &Module, field: Option<&str>, path: &Path, number: usize, test: &Json) -> ImportedCase {
    let mut rules = Rules { field, ..Rules::default() };
    for assertion in test.get("assert").and_then(Json::as_array).into_iter().flatten() {
        rules.add(assertion);
    }
    let input = input(module, test.get("vars").unwrap_or(&Json::Null), &mut rules.left_out);
    ImportedCase {
        location: format!("{}, test {number}", path.display()),
        name: test.get("description").and_then(Json::as_str).map(str::to_owned),
        input,
        expected: rules.expected(),
        left_out: rules.left_out,
    }
}

/// Returns the input of a test. One variable that is no field is the whole input if it is JSON, as `cog export` writes it, otherwise
/// the text of `--args`.
fn input(module: &Module, vars: &Json, left_out: &mut Vec<String>) -> Json {
    let fields = module.contract.input_fields();
    let Some(vars) = vars.as_object() else { return json!({}) };
    let is_field = |name: &str| fields.iter().any(|field| field.name == name);
    if let (1, Some((name, value))) = (vars.len(), vars.iter().next())
        && !is_field(name)
    {
        let object = value.as_str().and_then(|text| serde_json::from_str(text).ok()).filter(Json::is_object);
        if let Some(object) = object {
            return object;
        }
        if let Ok(target) = module.contract.args_target() {
            return json!({ target: value });
        }
    }
    let mut input = Map::new();
    for (name, value) in vars {
        match is_field(name) || fields.is_empty() {
            true => _ = input.insert(name.clone(), value.clone()),
            false => left_out.push(format!("the input has no field `{name}`")),
        }
    }
    Json::Object(input)
}

/// The expectations of a test.
#[derive(Debug, Default)]
struct Rules<'a> {
    /// The field that a text of promptfoo's assertions is compared with.
    field: Option<&'a str>,
    rules: Vec<(String, Rule)>,
    criteria: Vec<String>,
    left_out: Vec<String>,
}

/// What a path of the answer must satisfy.
#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Equals(Json),
    Not(Json),
    Contains(String),
    Matches(String),
    Schema(Json),
}

impl Rules<'_> {
    fn add(&mut self, assertion: &Json) {
        let kind = assertion.get("type").and_then(Json::as_str).unwrap_or_default();
        let value = assertion.get("value");
        let text = value.and_then(Json::as_str);
        let is_added = match (kind, text) {
            ("llm-rubric" | "model-graded-closedqa", Some(text)) => {
                self.criteria.push(text.to_owned());
                true
            }
            ("is-json", _) => value.is_none_or(|schema| self.schema(schema)),
            ("equals", _) => value.is_some_and(|value| self.equals(value)),
            ("not-equals", Some(text)) => self.on_field(Rule::Not(text.into())),
            ("contains", Some(text)) => self.on_field(Rule::Contains(text.to_owned())),
            ("contains-all", _) => {
                let parts = value.and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
                let texts: Vec<&str> = parts.iter().filter_map(Json::as_str).collect();
                !texts.is_empty()
                    && texts.iter().all(|text| self.on_field(Rule::Contains((*text).to_owned())))
            }
            ("regex", Some(text)) => self.on_field(Rule::Matches(text.to_owned())),
            _ => false,
        };
        if !is_added {
            let kind = if kind.is_empty() { "without a type" } else { kind };
            self.left_out.push(format!("assertion `{kind}` has no counterpart"));
        }
    }

    /// A rule about the answer, if one field holds it.
    fn on_field(&mut self, rule: Rule) -> bool {
        let Some(field) = self.field else { return false };
        self.rules.push((field.to_owned(), rule));
        true
    }

    /// A value for the whole answer, or for its only field.
    fn equals(&mut self, value: &Json) -> bool {
        let parsed = value.as_str().and_then(|text| serde_json::from_str(text).ok());
        match parsed.as_ref().unwrap_or(value) {
            Json::Object(members) => {
                let members = members.iter().map(|(name, value)| (name.clone(), Rule::Equals(value.clone())));
                self.rules.extend(members);
                true
            }
            _ => self.on_field(Rule::Equals(value.clone())),
        }
    }

    /// A schema of the envelope that names one path, as `cog export` writes it.
    fn schema(&mut self, schema: &Json) -> bool {
        let mut path = Vec::new();
        let mut schema = schema;
        while let Some((name, inner)) = only_property(schema) {
            path.push(name);
            schema = inner;
        }
        if path.first() == Some(&"data") {
            path.remove(0);
        }
        if path.is_empty() {
            return false;
        }
        let rule = match schema.as_object() {
            Some(members) if members.len() == 1 && members.contains_key("const") => {
                Rule::Equals(members.get("const").cloned().unwrap_or_default())
            }
            _ => Rule::Schema(schema.clone()),
        };
        self.rules.push((path.join("."), rule));
        true
    }

    /// Returns the content of an expected file: rules where each has its own key, otherwise schemas.
    fn expected(&self) -> Json {
        let mut expected = Map::new();
        match self.simple() {
            Some(rules) => _ = expected.insert("_validate".to_owned(), Json::Object(rules)),
            None => _ = expected.insert("$validate".to_owned(), Json::Object(self.schemas())),
        }
        if !self.criteria.is_empty() {
            expected.insert("$judge".to_owned(), self.criteria.clone().into());
        }
        Json::Object(expected)
    }

    fn simple(&self) -> Option<Map<String, Json>> {
        let mut rules = Map::new();
        for (path, rule) in &self.rules {
            let (key, value) = match rule {
                // A field whose name ends as a rule does would be read as one.
                Rule::Equals(_) if operator(path).is_some() => return None,
                Rule::Equals(value) => (path.clone(), value.clone()),
                Rule::Not(value) => (format!("{path}_not"), value.clone()),
                Rule::Contains(text) => (format!("{path}_contains"), text.as_str().into()),
                Rule::Matches(pattern) => (format!("{path}_matches"), pattern.as_str().into()),
                Rule::Schema(_) => return None,
            };
            if rules.insert(key, value).is_some() {
                return None;
            }
        }
        if rules.is_empty() {
            rules.insert("ok".to_owned(), true.into());
        }
        Some(rules)
    }

    fn schemas(&self) -> Map<String, Json> {
        let mut schemas: Map<String, Json> = Map::new();
        for (path, rule) in &self.rules {
            let schema = rule.schema();
            match schemas.get_mut(path).and_then(|it| it.get_mut("allOf")).and_then(Json::as_array_mut) {
                Some(all) => all.push(schema),
                None => _ = schemas.insert(path.clone(), json!({ "allOf": [schema] })),
            }
        }
        schemas
    }
}

impl Rule {
    fn schema(&self) -> Json {
        match self {
            Self::Equals(value) => json!({ "const": value }),
            Self::Not(value) => json!({ "not": { "const": value } }),
            Self::Contains(text) => json!({ "type": "string", "pattern": escaped(text) }),
            Self::Matches(pattern) => json!({ "type": "string", "pattern": pattern }),
            Self::Schema(schema) => schema.clone(),
        }
    }
}

/// Returns a regular expression for the text.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        if r"\.+*?()|[]{}^$/".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// Returns the property of a schema that requires an object with one property, and nothing else.
fn only_property(schema: &Json) -> Option<(&str, &Json)> {
    let members = schema.as_object()?;
    let has_only = members.keys().all(|key| matches!(key.as_str(), "type" | "required" | "properties"));
    let mut properties = schema.get("properties")?.as_object()?.iter();
    let (name, inner) = properties.next()?;
    let is_single = has_only && properties.next().is_none();
    let is_required = schema.get("required") == Some(&json!([name]));
    (is_single && is_required).then_some((name, inner))
}
