//! The parts of a request that do not depend on the input, compiled once per module.

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use cog_module::Module;
use cog_provider::{OutputGrammar, OutputSchema};
use cog_schema::{Contract, Grammar, Loss, MemberCount};
use cog_spec::{Code, Dialect, EnumStrategy, Form, Manifest, Strictness, Subject, Tier, Wording};

use crate::{
    form::{self, Example, Obstacles},
    tool::ToolInfo,
};

/// The parts of a request to a model that do not depend on the input.
pub(crate) struct Compiled {
    /// The contract without generated media, which the model does not write as JSON. None when it is the
    /// complete contract.
    model_contract: Option<Contract>,
    /// The fields of the generated media.
    media_fields: Vec<String>,
    /// The schema of the answer in each dialect and form, created on first use.
    projected: Vec<OnceLock<ProjectedContract>>,
    /// Why the model cannot be asked in some of the forms.
    obstacles: Obstacles,
    /// The module as a tool, created on first use.
    tool: OnceLock<ToolInfo>,
    /// The golden answers that can be examples in a prompt, read on first use.
    examples: OnceLock<Vec<Example>>,
}

/// The contract in the dialect of a provider.
pub(crate) struct ProjectedContract {
    pub(crate) output: Arc<OutputSchema>,
    /// The members of its schema, of which some vendors limit the number.
    pub(crate) members: MemberCount,
    /// The constraints that the dialect cannot express.
    pub(crate) lost: Vec<Loss>,
}

impl Compiled {
    fn new(module: &Module) -> Self {
        let count = Dialect::ALL.len() * Form::ALL.len();
        let projected = std::iter::repeat_with(OnceLock::new).take(count).collect();
        let makes_media =
            module.manifest.modalities.output.iter().any(|kind| !kind.output_types().is_empty());
        let (model_contract, media_fields) =
            match makes_media.then(|| module.contract.without_media_outputs()).flatten() {
                Some((contract, fields)) => (Some(contract), fields),
                None => (None, Vec::new()),
            };
        Self {
            model_contract,
            media_fields,
            projected,
            obstacles: Obstacles::new(module),
            tool: OnceLock::new(),
            examples: OnceLock::new(),
        }
    }

    /// Returns why the model cannot be asked in some of the forms.
    pub(crate) fn obstacles(&self) -> &Obstacles {
        &self.obstacles
    }

    /// Returns the module as a tool.
    pub(crate) fn as_tool(&self, module: &Module) -> ToolInfo {
        self.tool.get_or_init(|| ToolInfo::from_module(module)).clone()
    }

    /// Returns the golden answers that can be examples in a prompt.
    pub(crate) fn examples(&self, module: &Module) -> &[Example] {
        self.examples.get_or_init(|| form::examples(module))
    }

    /// Returns what a model is asked for in a dialect and a form.
    pub(crate) fn projected(
        &self,
        module: &Module,
        dialect: Dialect,
        form: &'static Form,
    ) -> Option<&ProjectedContract> {
        let index = Dialect::ALL.iter().position(|known| *known == dialect)? * Form::ALL.len() + form.index();
        Some(self.projected.get(index)?.get_or_init(|| self.project(module, dialect, form)))
    }

    fn project(&self, module: &Module, dialect: Dialect, form: &'static Form) -> ProjectedContract {
        let contract = self.model_contract.as_ref().unwrap_or(&module.contract);
        let projection = contract.project_form(dialect, form);
        let words = match (form.wording, projection.schema.is_some()) {
            // A grammar holds the format, but not what the module must not do.
            (Wording::Grammar, true) => {
                not_allowed(&module.manifest).map_or_else(String::new, |section| format!("\n\n{section}"))
            }
            (Wording::Grammar, false) => short_contract(module, contract, form),
            (Wording::Full, _) => {
                output_contract(module, contract, &self.media_fields, form, projection.is_shown)
            }
        };
        let members = projection.members();
        let output = OutputSchema {
            name: module.manifest.name.clone(),
            form,
            dialect: projection.dialect,
            grammar: grammar(projection.dialect, projection.schema.as_ref()),
            schema: projection.schema.map(cog_json::Value::from),
            instructions: words.into(),
        };
        ProjectedContract { output: Arc::new(output), members, lost: projection.lost }
    }
}

/// Returns the grammar of a schema, for engines whose dialect has one.
pub(crate) fn grammar(dialect: Dialect, schema: Option<&serde_json::Value>) -> Option<OutputGrammar> {
    let Grammar { text, max_tokens, .. } = Grammar::new(schema.filter(|_| dialect == Dialect::LlamaCpp)?)?;
    Some(OutputGrammar { text, max_tokens })
}

/// The modules that were used, each compiled once.
#[derive(Default)]
pub(crate) struct Compilations(Mutex<HashMap<usize, Entry>>);

type Entry = (Weak<Module>, Arc<Compiled>);

impl Compilations {
    /// Returns the compiled parts of this module, and compiles them on first use.
    ///
    /// The key is the address of the module. The [`Weak`] of an entry prevents that this address is reused.
    pub(crate) fn get(&self, module: &Arc<Module>) -> Arc<Compiled> {
        let address = Arc::as_ptr(module).addr();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, compiled)) = known.get(&address) {
            return Arc::clone(compiled);
        }
        known.retain(|_, (module, _)| module.strong_count() > 0);
        let compiled = Arc::new(Compiled::new(module));
        known.insert(address, (Arc::downgrade(module), Arc::clone(&compiled)));
        compiled
    }
}

// The output contract as text: the last part of the system message (docs/spec/modules.md, *What the model receives*).

/// Returns the prompt section about the answer format, which follows the module's prompt.
///
/// `contract` describes the model's text. The media in `fields` are inserted later. If the provider shows the schema to the
/// model (`shows_schema`), the text explains the members and does not repeat the schema.
pub(crate) fn output_contract(
    module: &Module,
    contract: &Contract,
    fields: &[String],
    form: &Form,
    shows_schema: bool,
) -> String {
    let mut text = String::from("\n\n## Answer format\n\n");
    text.push_str(match shows_schema {
        true => "Reply with one JSON object in the format of the response schema.",
        false => "Reply with one JSON object. Write nothing before or after it, and no code fence.",
    });
    text.push('\n');
    if module.manifest.format.asks_for_envelope() {
        members(&mut text, &module.manifest, form, shows_schema);
    }
    if !shows_schema {
        schemas(&mut text, contract, form);
    }
    if module.manifest.format.asks_for_envelope() {
        if contract.has_error_arm(form) {
            codes(&mut text, &module.manifest, contract);
        }
        confidence(&mut text, &module.manifest);
    } else {
        required_fields(&mut text, &module.manifest);
    }
    media(&mut text, fields);
    limits(&mut text, &module.manifest, form);
    text
}

/// What a model is told about `meta`.
const META: &str = "- `meta`: `confidence` is a number from 0 to 1 that states how certain you are. `risk` is the harm that acting \
                    on the answer could cause: `none`, `low`, `medium` or `high`. `explain` summarizes the answer in at most \
                    280 characters.\n";

/// Returns the short section about the answer format, for a model that writes its data alone and sees no schema.
fn short_contract(module: &Module, contract: &Contract, form: &Form) -> String {
    let mut text = String::from("\n\nReply with one JSON object.");
    // Prompts explain the members of `meta`, which is not asked for here.
    if module.prompt.text().contains("`meta.") {
        text.push_str(" Do not write `meta`.");
    }
    text.push('\n');
    schemas(&mut text, contract, form);
    if contract.has_error_arm(form) {
        let codes: Vec<String> = contract.model_codes().iter().map(|code| format!("`{code}`")).collect();
        let _ = write!(
            text,
            "\nIf you cannot do the task, reply with `{{\"error\": {{\"code\": …, \"message\": …}}}}`. The codes are {}.\n",
            codes.join(", ")
        );
    }
    limits(&mut text, &module.manifest, form);
    text
}

/// Explains the members of the envelope.
fn members(text: &mut String, manifest: &Manifest, form: &Form, shows_schema: bool) {
    let emits = &manifest.context.emits;
    let may_fail = manifest.failure.model_errors;
    let mut members = vec![match may_fail {
        true => "- `ok`: `true` if you can do the task, otherwise `false`.\n",
        false => "- `ok`: always `true`.\n",
    }];
    let data = match (may_fail, manifest.needs_rationale) {
        (true, true) => {
            "- `data`: your answer, or `null` if `ok` is `false`. Its `rationale` explains how you arrived at the answer.\n"
        }
        (false, true) => "- `data`: your answer. Its `rationale` explains how you arrived at the answer.\n",
        (true, false) => "- `data`: your answer, or `null` if `ok` is `false`.\n",
        (false, false) => "- `data`: your answer.\n",
    };
    members.extend(match form.subject {
        Subject::EnvelopeDataFirst => [data, META],
        Subject::Envelope | Subject::Data => [META, data],
    });
    if may_fail {
        members.push("- `error`: `null` if `ok` is `true`, otherwise an object with `code` and `message`.\n");
    }
    let number = match members.len() + usize::from(!emits.is_empty()) {
        3 => "three",
        4 => "four",
        _ => "five",
    };
    match shows_schema {
        true => text.push_str("This is what its members mean:\n\n"),
        false => _ = write!(text, "It has these {number} members, in this order:\n\n"),
    }
    text.extend(members);
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

fn schemas(text: &mut String, contract: &Contract, form: &Form) {
    for (name, schema) in contract.prompt_schemas(form) {
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
}

/// Asks for an honest confidence where a program acts on it.
fn confidence(text: &mut String, manifest: &Manifest) {
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
    let offered = Code::OF_MODELS.iter().find(|(known, _)| Some(*known) == standard);
    declared.map(|(_, meaning)| meaning.as_str()).or(offered.map(|(_, condition)| *condition))
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
fn limits(text: &mut String, manifest: &Manifest, form: &Form) {
    if manifest.strictness == Strictness::High {
        text.push_str("\nDo not add fields that the schema does not define.\n");
    }
    if manifest.enums.strategy == EnumStrategy::Strict {
        text.push_str("\nIf the schema lists the values of a field, use one of them.\n");
    }
    let overflow = &manifest.overflow;
    if overflow.enabled && manifest.format.asks_for_envelope() && !form.is_data() {
        let _ = write!(
            text,
            "\nObservations that are worth reporting but fit no other field go into `data.extensions.insights`: at most \
             {} objects, each with `text` and `suggested_mapping` (the field that the schema should have for it).\n",
            overflow.max_items
        );
    }
    if let Some(section) = not_allowed(manifest) {
        let _ = write!(text, "\n{section}");
    }
}

/// Returns the section about what the module must not do; none without such rules.
fn not_allowed(manifest: &Manifest) -> Option<String> {
    let forbidden = forbidden(manifest);
    let lines: String = forbidden.iter().map(|item| format!("- {item}\n")).collect();
    (!forbidden.is_empty()).then(|| format!("The following are not allowed:\n\n{lines}"))
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

#[cfg(test)]
mod tests;
