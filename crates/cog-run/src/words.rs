//! The output contract as text: the last part of the system message (docs/spec/modules.md, *What the model
//! receives*).

use std::fmt::Write as _;

use cog_module::Module;
use cog_schema::Contract;
use cog_spec::{Code, EnumStrategy, Manifest, Strictness, Tier};

/// Returns the prompt section about the answer format, which follows the module's prompt.
///
/// `contract` describes the model's text. The media in `fields` are inserted later.
pub(crate) fn output_contract(module: &Module, contract: &Contract, fields: &[String]) -> String {
    let mut text = String::from("\n\n## Answer format\n\n");
    text.push_str("Answer with one JSON object and nothing else: no text around it, no code fence.\n");
    if module.manifest.format.asks_for_envelope() {
        envelope(&mut text, module, contract);
    } else {
        bare(&mut text, module, contract);
    }
    media(&mut text, fields);
    limits(&mut text, &module.manifest);
    text
}

fn envelope(text: &mut String, module: &Module, contract: &Contract) {
    let manifest = &module.manifest;
    text.push_str(
        "It has four members, in this order:\n\
         - `ok`: true if you can answer, false if you cannot.\n\
         - `meta`: `confidence` (0 to 1, how sure you are), `risk` (none, low, medium or high: how much harm \
         acting on the answer can do) and `explain` (the answer in at most 280 characters).\n\
         - `data`: the answer if `ok` is true, else null. `data.rationale` says how you came to it.\n\
         - `error`: null if `ok` is true, else `code` and `message`.\n",
    );
    schema(text, "data", contract.data_schema());
    text.push_str("\nCodes of `error`: ");
    let standard =
        [Code::NoActionPossible, Code::SemanticConflict, Code::AmbiguousInput, Code::InsufficientContext];
    for code in standard {
        let _ = write!(text, "{code} ({}) ", code.meaning());
    }
    for (code, meaning) in &manifest.error_codes {
        let _ = write!(text, "{code} ({meaning}) ");
    }
    text.push('\n');
    if manifest.tier == Some(Tier::Exec) {
        text.push_str("\nThe answer is acted on by a program: if you are not at least 0.9 sure, say so in `confidence`.\n");
    }
}

fn bare(text: &mut String, module: &Module, contract: &Contract) {
    schema(text, "the object", contract.data_schema());
    let constraints = &module.manifest.constraints;
    if constraints.require_rationale {
        text.push_str("\n`rationale` must say how you came to the answer.\n");
    }
    if constraints.require_confidence {
        text.push_str("\n`confidence` must say how sure you are, 0 to 1.\n");
    }
}

/// Adds the media fields that the model must not write in its text.
fn media(text: &mut String, fields: &[String]) {
    if !fields.is_empty() {
        let names: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
        let _ = write!(
            text,
            "\nImages, sound and video that you make come beside the JSON, never inside it: do not write {} yourself, \
             they are filled in.\n",
            names.join(", ")
        );
    }
}

fn schema(text: &mut String, what: &str, schema: Option<&serde_json::Value>) {
    if let Some(schema) = schema {
        let _ = write!(text, "\nThe JSON Schema of {what}:\n\n{schema}\n");
    }
}

/// Adds the rules beyond the schema: custom fields and enum values, insights, and things not to do.
fn limits(text: &mut String, manifest: &Manifest) {
    if manifest.strictness == Strictness::High {
        text.push_str("\nUse no field that the schema does not name.\n");
    }
    if manifest.enums.strategy == EnumStrategy::Strict {
        text.push_str("\nUse no word that an enum does not list.\n");
    }
    let overflow = &manifest.overflow;
    if overflow.enabled && manifest.format.asks_for_envelope() {
        let _ = write!(
            text,
            "\nWhat is worth saying but has no place in the schema goes to `data.extensions.insights`: at most {} \
             objects of `text` and `suggested_mapping` (the field that the schema should have for it).\n",
            overflow.max_items
        );
    }
    let forbidden = forbidden(manifest);
    if !forbidden.is_empty() {
        text.push_str("\nYou must not:\n");
        for item in forbidden {
            let _ = writeln!(text, "- {item}");
        }
    }
}

fn forbidden(manifest: &Manifest) -> Vec<&str> {
    let constraints = &manifest.constraints;
    let by_constraint = [
        (constraints.no_network, "use the network"),
        (constraints.no_side_effects, "cause side effects"),
        (constraints.no_inventing_data, "invent data that the input does not hold"),
    ];
    let constraints = by_constraint.into_iter().filter(|(set, _)| *set).map(|(_, words)| words);
    manifest.excludes.iter().map(String::as_str).chain(constraints).collect()
}
