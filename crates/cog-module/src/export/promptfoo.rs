//! A module with its golden tests as a configuration of promptfoo.

use cog_json::ToJson as _;
use serde_json::{Value, json};

use super::{ExportError, envelope_schema, expectations::expectations, yaml};
use crate::{Module, golden};

/// A configuration of promptfoo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promptfoo {
    /// The text of `promptfooconfig.yaml`.
    pub text: String,
    /// What is not in it, one line each: golden tests that could not be read, and expectations that promptfoo does not
    /// have.
    pub left_out: Vec<String>,
}

/// Returns a module and its golden tests as a configuration of promptfoo. `target` is the module for `cog run`: its
/// name, or its path from the directory of the configuration.
///
/// # Errors
/// If `target` cannot be part of a command.
pub fn promptfoo(module: &Module, target: &str) -> Result<Promptfoo, ExportError> {
    if target.contains(|c: char| c.is_control() || matches!(c, '\'' | '"' | '$' | '`' | '\\')) {
        return Err(ExportError::Path { path: target.to_owned() });
    }
    let discovery = golden::discover(module);
    let mut left_out: Vec<String> =
        discovery.problems.iter().map(|problem| problem.message.clone()).collect();
    let fields = golden::property_names(&module.schema);
    let tests: Vec<Value> = discovery
        .cases
        .iter()
        .map(|case| {
            let found = expectations(&case.expected, &fields);
            let without = found.left_out.iter().map(|key| format!("{}: promptfoo has no `{key}`", case.name));
            left_out.extend(without);
            let schemas =
                found.schemas.into_iter().map(|schema| json!({ "type": "is-json", "value": schema }));
            let judged = case.criteria.iter().map(|one| json!({ "type": "llm-rubric", "value": plain(one) }));
            json!({
                "description": case.name,
                "vars": { "input": without_tags(&case.input.to_json()) },
                "assert": schemas.chain(judged).collect::<Vec<_>>(),
            })
        })
        .collect();
    let name = &module.manifest.name;
    let config = json!({
        "description": format!("Golden tests of {name}"),
        "prompts": ["{{input}}"],
        "providers": [{ "id": command(target), "label": format!("cog run {name}") }],
        "defaultTest": { "assert": [{ "type": "is-json", "value": envelope(module) }] },
        "tests": tests,
    });
    Ok(Promptfoo { text: yaml::text(&config), left_out })
}

/// Returns the provider. promptfoo adds the prompt as the first argument, and ignores the output of a program that
/// fails: exit code 1 is an envelope with an error.
fn command(target: &str) -> String {
    format!("exec: sh -c 'cog run \"{target}\" --input-json \"$0\" || test $? -eq 1'")
}

/// Returns the schema of the envelope as text: promptfoo resolves the references of an object from the start of the
/// file.
fn envelope(module: &Module) -> String {
    without_tags(&format!("{:#}", Value::Object(envelope_schema(module))))
}

/// Returns JSON without the tags of a template, which promptfoo would replace. They can only be inside strings.
fn without_tags(json: &str) -> String {
    json.replace("{{", "{\\u007b").replace("{%", "{\\u0025").replace("{#", "{\\u0023")
}

/// Returns text without the tags of a template, which promptfoo would replace.
fn plain(text: &str) -> String {
    text.replace("{{", "{ {").replace("{%", "{ %").replace("{#", "{ #")
}
