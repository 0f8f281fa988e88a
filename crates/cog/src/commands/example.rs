//! Example commands that run a module with valid input.

use cog_json::{Node, Value};
use cog_module::{
    Module,
    golden::{self, GoldenCase},
};
use cog_spec::{Code, Envelope, ErrorBody, Outcome};

use super::info::Fields;
use crate::args::InputArgs;

/// The maximum length of an example input that is still readable, in bytes.
const READABLE: usize = 400;

/// Adds an example command to an error about the input that has no suggestion.
pub(super) fn advise(error: ErrorBody, args: &InputArgs, module: &Module) -> ErrorBody {
    let is_about_input = [Code::InvalidInput, Code::MissingRequiredField, Code::TypeMismatch]
        .into_iter()
        .any(|code| error.code == code.into());
    if error.suggestion.is_some() || !is_about_input {
        return error;
    }
    let name = quoted(args.module());
    if !args.is_empty() {
        return error.suggest(format!("`cog info {name}` shows the input."));
    }
    let fields = Fields::for_input(module).names().join(", ");
    let example = run(args.module(), module);
    error.suggest(format!("Give an input with {fields} (* = required), for example `{example}`."))
}

/// Adds an example command to the error of an envelope.
pub(super) fn advised(mut envelope: Envelope, args: &InputArgs, module: &Module) -> Envelope {
    if let Outcome::Failure { error, .. } = &mut envelope.outcome {
        *error = advise(error.clone(), args, module);
    }
    envelope
}

/// Returns a command that runs the module with valid input.
pub(super) fn run(module_name: &str, module: &Module) -> String {
    let name = quoted(module_name);
    if module.contract.requires_packet() {
        let agent = &module.manifest.name;
        return format!("cog handoff new --from me --to {agent} --objective \"…\" | cog run {name} -");
    }
    if takes_text_alone(module) {
        return format!("cog run {name} --args \"…\"");
    }
    match sample(module) {
        Some(input) => format!("cog run {name} --input-json '{input}'"),
        None => format!("cog run {name} input.json"),
    }
}

/// Whether `--args` alone is a valid input.
fn takes_text_alone(module: &Module) -> bool {
    let contract = &module.contract;
    contract.args_target().is_ok_and(|field| {
        let input = Value::from(serde_json::json!({ field: "…" }));
        contract.check_input(input.node()).iter().all(|found| found.rule != "required")
    })
}

/// Returns the shortest input of a golden test that succeeds, or an input generated from the schema, unless it is long.
fn sample(module: &Module) -> Option<String> {
    let golden = golden::discover(module).cases.into_iter().filter(succeeds).map(|case| case.input);
    let fits = |input: &Value| module.contract.check_input(input.node()).is_empty();
    let readable = |text: &String| text.len() <= READABLE && !text.contains('\'');
    let golden = golden.filter(fits).map(|input| input.to_string()).filter(readable);
    let made_up = || module.contract.sample_input(0).map(|input| input.to_string()).filter(readable);
    golden.min_by_key(String::len).or_else(made_up)
}

/// Returns whether the expected answer of a case is not an error.
fn succeeds(case: &GoldenCase) -> bool {
    let answer = case.expected.answer().and_then(|answer| answer.get("ok"));
    answer.and_then(Node::as_bool) != Some(false)
}

/// Quotes an argument for a shell.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_./".contains(c));
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
