//! What to type so that a module gets an input it takes.

use cog_json::{Node, Value};
use cog_module::{
    Module,
    golden::{self, GoldenCase},
};
use cog_spec::{Code, Envelope, ErrorBody, Outcome};

use super::info::Fields;
use crate::args::InputArgs;

/// The longest example of an input that can still be read and typed, in bytes.
const READABLE: usize = 400;

/// Tells what to type, where an input does not fit and nothing better is known to be done about it.
pub(super) fn advise(error: ErrorBody, args: &InputArgs, module: &Module) -> ErrorBody {
    let is_about_input = [Code::InvalidInput, Code::MissingRequiredField, Code::TypeMismatch]
        .into_iter()
        .any(|code| error.code == code.into());
    if error.suggestion.is_some() || !is_about_input {
        return error;
    }
    let name = quoted(&args.module);
    if !args.is_empty() {
        return error.suggest(format!("`cog info {name}` shows the input"));
    }
    let fields = Fields::of_input(module).names().join(", ");
    let example = run(&args.module, module);
    error.suggest(format!("give an input with {fields} (* = required), for example: {example}"))
}

/// The same for the error of an envelope.
pub(super) fn advised(mut envelope: Envelope, args: &InputArgs, module: &Module) -> Envelope {
    if let Outcome::Failure { error, .. } = &mut envelope.outcome {
        *error = advise(error.clone(), args, module);
    }
    envelope
}

/// A command that runs the module with an input that it takes.
pub(super) fn run(asked: &str, module: &Module) -> String {
    let name = quoted(asked);
    if takes_text_alone(module) {
        return format!("cog run {name} --args \"…\"");
    }
    match sample(module) {
        Some(input) => format!("cog run {name} --input-json '{input}'"),
        None => format!("cog run {name} input.json"),
    }
}

/// Whether one text makes a whole input.
fn takes_text_alone(module: &Module) -> bool {
    let contract = &module.contract;
    contract.args_target().is_ok_and(|field| {
        let input = Value::from(serde_json::json!({ field: "…" }));
        contract.check_input(input.node()).iter().all(|found| found.rule != "required")
    })
}

/// The shortest input of a golden test that succeeds, else one made up from the schema; none where all
/// are long.
fn sample(module: &Module) -> Option<String> {
    let succeeds = |case: &GoldenCase| {
        let answer = case.expected.answer().and_then(|answer| answer.get("ok"));
        answer.and_then(Node::as_bool) != Some(false)
    };
    let golden = golden::discover(module).cases.into_iter().filter(succeeds).map(|case| case.input);
    let fits = |input: &Value| module.contract.check_input(input.node()).is_empty();
    let readable = |text: &String| text.len() <= READABLE && !text.contains('\'');
    let golden = golden.filter(fits).map(|input| input.to_string()).filter(readable);
    let made_up = || module.contract.sample_input(0).map(|input| input.to_string()).filter(readable);
    golden.min_by_key(String::len).or_else(made_up)
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./".contains(c));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
