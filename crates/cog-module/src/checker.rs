use cog_json::{Node, Value};
use cog_schema::{Contract, Rules};
use cog_spec::{Format, Manifest};

/// Returns the violations of a value against a standalone schema.
///
/// # Errors
/// What is wrong with the schema.
pub(crate) fn violations(schema: &serde_json::Value, node: Node<'_>) -> Result<Vec<String>, String> {
    let document = serde_json::json!({ "input": { "properties": { "value": schema } } });
    let rules = Rules::from(&Manifest::with_defaults("check", Format::V22, None));
    let contract = Contract::compile(&document, &rules).map_err(|problems| {
        problems.into_iter().next().map_or_else(String::new, |problem| problem.message)
    })?;
    let wrapped = Value::from(serde_json::json!({ "value": node.to_serde() }));
    Ok(contract.check_input(wrapped.node()).into_iter().map(|violation| violation.message).collect())
}
