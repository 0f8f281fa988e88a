//! The output contract as text: the last part of the system message (docs/spec/modules.md, *What the model
//! receives*).

use std::fmt::Write as _;

use cog_module::Module;
use cog_schema::Contract;
use cog_spec::{Code, EnumStrategy, Manifest, Strictness, Tier};

/// Returns the prompt section about the answer format, which follows the module's prompt.
///
/// `contract` describes the model's text. The media in `fields` are inserted later. If the provider shows the schema to the
/// model (`shows_schema`), the text explains the members and does not repeat the schema.
pub(crate) fn output_contract(
    module: &Module,
    contract: &Contract,
    fields: &[String],
    shows_schema: bool,
) -> String {
    let mut text = String::from("\n\n## Answer format\n\n");
    text.push_str(match shows_schema {
        true => "Reply with one JSON object in the format of the response schema.",
        false => "Reply with one JSON object. Write nothing before or after it, and no code fence.",
    });
    text.push('\n');
    if module.manifest.format.asks_for_envelope() {
        members(&mut text, &module.manifest, shows_schema);
    }
    if !shows_schema {
        schemas(&mut text, contract);
    }
    if module.manifest.format.asks_for_envelope() {
        codes(&mut text, &module.manifest, contract);
    } else {
        required_fields(&mut text, &module.manifest);
    }
    media(&mut text, fields);
    limits(&mut text, &module.manifest);
    text
}

/// Explains the members of the envelope.
fn members(text: &mut String, manifest: &Manifest, shows_schema: bool) {
    let emits = &manifest.context.emits;
    text.push_str(match (shows_schema, emits.is_empty()) {
        (true, _) => "This is what its members mean:\n\n",
        (false, true) => "It has these four members, in this order:\n\n",
        (false, false) => "It has these five members, in this order:\n\n",
    });
    text.push_str(
        "- `ok`: `true` if you can do the task, otherwise `false`.\n\
         - `meta`: `confidence` is a number from 0 to 1 that states how certain you are. `risk` is the harm that acting on \
         the answer could cause: `none`, `low`, `medium` or `high`. `explain` summarizes the answer in at most 280 \
         characters.\n\
         - `data`: your answer, or `null` if `ok` is `false`. Its `rationale` explains how you arrived at the answer.\n\
         - `error`: `null` if `ok` is `true`, otherwise an object with `code` and `message`.\n",
    );
    if !emits.is_empty() {
        let names: Vec<String> = emits.iter().map(|emitted| format!("`{}`", emitted.name)).collect();
        let _ = writeln!(
            text,
            "- `_emitted_context`: what later calls should know, an object with the members {}. Leave out those that you \
             have nothing for. An answer with `ok: false` has no such member.",
            names.join(", ")
        );
    }
}

fn schemas(text: &mut String, contract: &Contract) {
    for (name, schema) in contract.prompt_schemas() {
        let _ = match name {
            "" => write!(text, "\nThe object must match this JSON Schema:\n\n{schema}\n"),
            name => write!(text, "\n`{name}` must match this JSON Schema:\n\n{schema}\n"),
        };
    }
}

/// Lists the codes that the model may report.
fn codes(text: &mut String, manifest: &Manifest, contract: &Contract) {
    text.push_str("\nIf you cannot do the task, set `error.code` to one of these codes:\n\n");
    for code in contract.model_codes() {
        match condition(manifest, &code) {
            Some(condition) => _ = writeln!(text, "- `{code}`: {condition}"),
            None => _ = writeln!(text, "- `{code}`"),
        }
    }
    if manifest.tier == Some(Tier::Exec) {
        text.push_str(
            "\nA program acts on your answer without a review. If you are less than 90% certain, state a `confidence` below \
             0.9.\n",
        );
    }
}

/// Returns when to report a code.
fn condition<'a>(manifest: &'a Manifest, code: &str) -> Option<&'a str> {
    let declared = manifest.error_codes.iter().find(|(known, _)| known == code);
    let standard: Option<Code> = code.parse().ok().or_else(|| Code::from_text(code));
    let offered = || Code::OF_MODELS.iter().find(|(known, _)| Some(*known) == standard);
    declared.map(|(_, meaning)| meaning.as_str()).or_else(|| offered().map(|(_, condition)| *condition))
}

/// Explains the fields that formats without an envelope require.
fn required_fields(text: &mut String, manifest: &Manifest) {
    if manifest.constraints.require_rationale {
        text.push_str("\n`rationale` explains how you arrived at the answer.\n");
    }
    if manifest.constraints.require_confidence {
        text.push_str("\n`confidence` is a number from 0 to 1 that states how certain you are.\n");
    }
}

/// Names the media fields that the model must not write in its text.
fn media(text: &mut String, fields: &[String]) {
    if !fields.is_empty() {
        let names: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
        let _ = write!(
            text,
            "\nSend the images, audio and video that you generate next to the JSON, never inside it. Leave out {}: the \
             media are inserted there.\n",
            names.join(", ")
        );
    }
}

/// Adds the rules beyond the schema: custom fields and enum values, insights, and things not to do.
fn limits(text: &mut String, manifest: &Manifest) {
    if manifest.strictness == Strictness::High {
        text.push_str("\nDo not add fields that the schema does not define.\n");
    }
    if manifest.enums.strategy == EnumStrategy::Strict {
        text.push_str("\nIf the schema lists the values of a field, use one of them.\n");
    }
    let overflow = &manifest.overflow;
    if overflow.enabled && manifest.format.asks_for_envelope() {
        let _ = write!(
            text,
            "\nObservations that are worth reporting but fit no other field go into `data.extensions.insights`: at most \
             {} objects, each with `text` and `suggested_mapping` (the field that the schema should have for it).\n",
            overflow.max_items
        );
    }
    let forbidden = forbidden(manifest);
    if !forbidden.is_empty() {
        text.push_str("\nThe following are not allowed:\n\n");
        for item in forbidden {
            let _ = writeln!(text, "- {item}");
        }
    }
}

fn forbidden(manifest: &Manifest) -> Vec<&str> {
    let constraints = &manifest.constraints;
    let denied = manifest.policies.denied;
    let by_manifest = [
        (constraints.no_network || denied.network, "using the network"),
        (denied.filesystem_write, "writing files"),
        (constraints.no_side_effects || denied.side_effects, "causing side effects"),
        (denied.code_execution, "running code"),
        (constraints.no_inventing_data, "inventing data that is not in the input"),
    ];
    let by_manifest = by_manifest.into_iter().filter(|(set, _)| *set).map(|(_, words)| words);
    manifest.excludes.iter().map(String::as_str).chain(by_manifest).collect()
}
