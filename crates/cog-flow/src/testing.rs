//! Modules in memory for tests.

use std::{collections::BTreeMap, sync::Arc};

use cog_module::{Module, ModuleFiles};

use crate::{CheckResult, Lookup, LookupError, check};

/// The parts of a composition that tests use: `reader` reads a text, `judge` judges numbers.
const PARTS: [(&str, &str); 3] = [
    (
        "reader",
        r#"{"input": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}, "limit": {"type": "integer"}}},
            "data": {"type": "object", "required": ["issues"], "properties": {
                "issues": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}, "title": {"type": "string"}}}},
                "summary": {"type": "string"}, "level": {"enum": ["low", "high"]}, "done": {"type": "boolean"}, "rationale": {"type": "string"}}}}"#,
    ),
    (
        "judge",
        r#"{"input": {"type": "object", "properties": {"text": {"type": "string"}, "ids": {"type": "array", "items": {"type": "integer"}}}},
            "data": {"type": "object", "properties": {"score": {"type": "number"}, "rationale": {"type": "string"}}}}"#,
    ),
    ("plain", r#"{"input": {}, "data": {"type": "object"}}"#),
];

/// A schema of `root` in tests.
pub(crate) const ROOT: &str = r#"{"input": {"type": "object", "properties": {"text": {"type": "string"}, "count": {"type": "integer"}}},
    "data": {"type": "object", "properties": {"score": {"type": "number"}, "issues": {"type": "array"}, "rationale": {"type": "string"}}}}"#;

/// Modules by name.
#[derive(Default)]
pub(crate) struct Modules(BTreeMap<String, Arc<Module>>);

impl Modules {
    /// Returns the parts that tests use.
    pub(crate) fn new() -> Self {
        PARTS.into_iter().fold(Self::default(), |modules, (name, schema)| {
            modules.with(name, module(name, "", "Do it.", schema))
        })
    }

    pub(crate) fn with(mut self, name: &str, module: Arc<Module>) -> Self {
        self.0.insert(name.to_owned(), module);
        self
    }

    /// Adds a module with this composition and no prompt.
    pub(crate) fn composed(self, name: &str, composition: &str) -> Self {
        let module = composed(name, composition, "");
        self.with(name, module)
    }
}

impl Lookup for Modules {
    fn find(&self, name: &str) -> Result<Arc<Module>, LookupError> {
        self.0.get(name).cloned().ok_or(LookupError::NotFound)
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

/// Returns a module of the tier exploration.
pub(crate) fn module(name: &str, more: &str, prompt: &str, schema: &str) -> Arc<Module> {
    let manifest = format!(
        "name: {name}\nversion: 1.2.0\nresponsibility: Tests\nexcludes: []\nio:\n  input: \"#/input\"\n{more}"
    );
    let files = ModuleFiles::default().with("module.yaml", manifest).with("schema.json", schema.to_owned());
    let files = files.with("prompt.md", prompt.to_owned());
    Arc::new(files.load().unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// Returns a module with the lines of a composition.
pub(crate) fn composed(name: &str, composition: &str, prompt: &str) -> Arc<Module> {
    let lines: String = composition.lines().map(|line| format!("  {line}\n")).collect();
    module(name, &format!("composition:\n{lines}"), prompt, ROOT)
}

/// Checks a composition named `root`.
pub(crate) fn checked(composition: &str, prompt: &str) -> CheckResult {
    check(composed("root", composition, prompt), &Modules::new())
}

/// Returns the findings of a composition named `root`, as `error rule: message (help)`.
pub(crate) fn findings(composition: &str, prompt: &str) -> Vec<String> {
    shown(&checked(composition, prompt))
}

/// Returns the findings of a check as text.
pub(crate) fn shown(checked: &CheckResult) -> Vec<String> {
    let show = |finding: &crate::Finding| {
        let help = finding.suggestion.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
        format!("{} {}: {}{help}", finding.severity.as_str(), finding.rule, finding.message)
    };
    checked.findings.iter().map(show).collect()
}
