//! The cases of each level, which are part of the program.

use std::collections::BTreeMap;

use cog_spec::{Code, ErrorBody};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    parts::{Base, ModuleParts},
    reply::Reply,
    shorthand,
};

/// The cases: `cargo xtask generate` collects them from `conformance/cases`.
const CASES: &str = include_str!("cases.json");

/// The cases of all levels.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suite {
    pub(super) base: Base,
    pub(super) levels: Vec<Level>,
}

/// The cases of one level.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Level {
    pub(super) level: u8,
    pub(super) title: String,
    pub(super) cases: Vec<Case>,
}

/// A case: a module, the replies of the model, and requests to the runtime (docs/conformance-cases.md).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// Its file and name: `O/exec-refuses-below-0.9`.
    pub(super) name: String,
    /// The entries of the checklist.
    pub(super) codes: Vec<String>,
    /// Whether the level can be reached without it.
    #[serde(default)]
    pub(super) optional: bool,
    #[serde(default)]
    module: Option<ModuleParts>,
    #[serde(default)]
    modules: BTreeMap<String, ModuleParts>,
    #[serde(default)]
    reply: Option<Reply>,
    #[serde(default)]
    replies: Vec<Reply>,
    /// The body of one request to execute the module.
    #[serde(default)]
    input: Option<Value>,
    /// The arguments of a server; always empty.
    #[serde(default, rename = "serve")]
    _serve: Vec<String>,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(default)]
    expect: Map<String, Value>,
}

/// A request, and what is expected of its response.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// `POST /v1/modules/m/execute`.
    pub(super) request: String,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) body: Option<Value>,
    #[serde(default)]
    pub(super) expect: Map<String, Value>,
}

impl Step {
    /// Creates a request without expectations.
    pub(super) fn get(path: &str) -> Self {
        Self { request: format!("GET {path}"), headers: BTreeMap::new(), body: None, expect: Map::new() }
    }
}

impl Suite {
    /// Reads the cases of the program.
    ///
    /// # Errors
    /// E4000 if they are not valid.
    pub(super) fn read() -> Result<Self, ErrorBody> {
        let invalid = |error: serde_json::Error| {
            ErrorBody::new(Code::InternalError, format!("the built-in cases are not valid: {error}"))
        };
        let cases: Value = serde_json::from_str(CASES).map_err(invalid)?;
        serde_json::from_value(shorthand::expanded(cases)).map_err(invalid)
    }

    /// Returns the modules of all cases by name.
    pub(super) fn modules(&self) -> BTreeMap<String, ModuleParts> {
        let mut modules = BTreeMap::new();
        for (_, case, name) in self.cases() {
            let own = case.module.iter().map(|parts| (name.clone(), parts));
            let others = case.modules.iter().map(|(name, parts)| (name.clone(), parts));
            modules.extend(own.chain(others).map(|(name, parts)| {
                let parts = self.base.module.changed(parts).named(&name);
                (name, parts)
            }));
        }
        modules
    }

    /// Returns each case with its level and the name of its module.
    pub(super) fn cases(&self) -> impl Iterator<Item = (&Level, &Case, String)> {
        self.levels.iter().flat_map(|level| {
            let cases = (1..).zip(&level.cases);
            cases.map(move |(index, case)| (level, case, format!("level{}-{index:02}", level.level)))
        })
    }
}

impl Case {
    /// Returns the replies of the model in the form of its script.
    pub(super) fn replies(&self, base: &Base) -> Vec<Value> {
        self.reply.iter().chain(&self.replies).map(|reply| reply.script(&base.reply)).collect()
    }

    /// Returns the requests. `m` in a path is the module of the case.
    pub(super) fn steps(&self, module: &str) -> Vec<Step> {
        let path = format!("/v1/modules/{module}");
        let execute = self.input.as_ref().map(|input| Step {
            request: "POST /v1/modules/m/execute".to_owned(),
            headers: BTreeMap::new(),
            body: Some(serde_json::json!({ "input": input })),
            expect: expectation(&self.expect),
        });
        let steps = execute.into_iter().chain(self.steps.iter().cloned());
        let with_name = |step: Step| Step {
            request: match step.request.strip_suffix("/v1/modules/m") {
                Some(method) => format!("{method}{path}"),
                None => step.request.replace("/v1/modules/m/", &format!("{path}/")),
            },
            ..step
        };
        steps.map(with_name).collect()
    }
}

/// Translates what is expected of `cog run` to a response: the exit code becomes a status.
fn expectation(expect: &Map<String, Value>) -> Map<String, Value> {
    let translated = expect.iter().map(|(what, expected)| match (what.as_str(), expected.as_u64()) {
        ("exit", Some(0)) => ("status".to_owned(), serde_json::json!({ "$min": 200, "$max": 299 })),
        ("exit", _) => ("status".to_owned(), serde_json::json!({ "$min": 400 })),
        ("stdout", _) => ("body".to_owned(), expected.clone()),
        _ => (what.clone(), expected.clone()),
    });
    translated.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::conformance::expect::Received;

    #[test]
    fn cases_are_valid() {
        let suite = Suite::read().unwrap();
        let levels: Vec<u8> = suite.levels.iter().map(|level| level.level).collect();
        assert_eq!(levels, [1, 2, 3, 4]);
        for (_, case, name) in suite.cases() {
            assert!(!case.codes.is_empty(), "{}", case.name);
            let mut replies = case.reply.iter().chain(&case.replies);
            assert!(replies.all(|reply| !reply.0.contains_key("protocol")), "{}", case.name);
            let steps = case.steps(&name);
            assert!(!steps.is_empty(), "{}", case.name);
            for (what, expected) in steps.iter().flat_map(|step| &step.expect) {
                assert!(Received::default().check(what, expected).is_some(), "{}: {what}", case.name);
            }
        }
    }

    #[test]
    fn modules_of_a_name_are_the_same() {
        let suite = Suite::read().unwrap();
        let modules = suite.modules();
        for (_, case, _) in suite.cases() {
            for (name, parts) in &case.modules {
                let parts = suite.base.module.changed(parts).named(name);
                let stored = &modules[name];
                assert_eq!(stored.manifest(), parts.manifest(), "{name}");
                assert_eq!((&stored.schema, &stored.prompt), (&parts.schema, &parts.prompt), "{name}");
            }
        }
    }
}
