//! Warnings about parts of a module that have no effect.

mod prompt;

use cog_spec::{Modality, RiskRule};
use serde_json::Value;

use crate::{Diagnostic, Module, Rule, schema::SchemaSources};

/// Returns the warnings about a module that loads.
pub(crate) fn lint(module: &Module, sources: &SchemaSources) -> Vec<Diagnostic> {
    let mut found = sources.warnings(&module.contract);
    found.extend(media(module));
    found.extend(risk_rule(module));
    found.extend(prompt::lint(module));
    found
}

/// Warns about modalities that no field of the input accepts.
fn media(module: &Module) -> Option<Diagnostic> {
    let input = &module.manifest.modalities.input;
    let kinds: Vec<&str> =
        input.iter().filter(|kind| **kind != Modality::Text).map(|kind| kind.as_str()).collect();
    if kinds.is_empty() || has_media(&module.schema) {
        return None;
    }
    let message = format!("`modalities.input` lists {}, but the input has no media field", kinds.join(", "));
    let help = "Use `\"$ref\": \"#/$defs/MediaInput\"` for a media field.";
    Some(warning(module, Rule::ModalityField, message).suggest(help))
}

/// Warns about a risk rule that reads a list which the data does not have.
fn risk_rule(module: &Module) -> Option<Diagnostic> {
    if module.manifest.risk_rule != RiskRule::MaxIssuesRisk || has_field(module, "issues") {
        return None;
    }
    let message =
        "`meta.risk_rule` is `max_issues_risk`, but the data has no `issues`: the risk is always the same";
    Some(
        warning(module, Rule::RiskRuleField, message.to_owned())
            .suggest("Define `issues`, or write `explicit`."),
    )
}

/// Returns whether any schema of the module defines a field.
fn has_field(module: &Module, name: &str) -> bool {
    any_below(&module.schema, |schema| {
        schema.get("properties").is_some_and(|fields| fields.get(name).is_some())
    })
}

/// Returns whether there is a media field below a schema: a reference to `MediaInput`, its structure, or a reference to
/// `HandoffPacket`, whose artifacts can be media.
pub(crate) fn has_media(schema: &Value) -> bool {
    any_below(schema, |schema| match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => reference.ends_with("/MediaInput") || reference.ends_with("/HandoffPacket"),
        None => schema.pointer("/properties/type/const").is_some_and(|kind| kind == "base64"),
    })
}

/// Returns whether a value, or a value in it, is as described.
fn any_below(value: &Value, is_found: impl Fn(&Value) -> bool) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if is_found(value) {
            return true;
        }
        match value {
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    false
}

fn warning(module: &Module, rule: Rule, message: String) -> Diagnostic {
    Diagnostic::warning(rule, module.manifest_file(), message)
}

#[cfg(test)]
mod tests;
