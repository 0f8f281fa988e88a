//! Chooses the form in which a model is asked for its answer (ruling R91).

use cog_json::{Node, ToJson, Value};
use cog_module::{Module, golden};
use cog_spec::{Ask, Dialect, Form, Modality, RationalePlace, Tier, mask_secrets};

/// A form, and why it was chosen.
pub(crate) struct Choice {
    pub(crate) form: &'static Form,
    pub(crate) reason: &'static str,
}

/// Chooses the form for a request in a dialect: what the caller, the manifest or the settings name if the module can be asked in
/// it, otherwise the default.
pub(crate) fn choose(ask: Ask, module: &Module, dialect: Dialect) -> Choice {
    let choice = match ask {
        Ask::Form(form) => Choice { form, reason: "an option, the manifest or a setting names it" },
        Ask::Auto => default_for(module, dialect),
    };
    match obstacle(choice.form, module) {
        None => choice,
        Some(reason) => Choice { form: Form::ENVELOPE, reason },
    }
}

/// Returns the form for a module and a model of which nothing was measured.
///
/// Small models answer by chance when they write a meta and a rationale before their answer, and they run where an engine
/// enforces a grammar. For hosted models nothing shows that another form is better.
fn default_for(module: &Module, dialect: Dialect) -> Choice {
    match (dialect, module.manifest.tier) {
        (Dialect::LlamaCpp, Some(Tier::Exec)) => Choice {
            form: Form::ENVELOPE,
            reason: "in tier exec, only a model that states its confidence can pass the gate",
        },
        (Dialect::LlamaCpp, _) => {
            Choice { form: Form::ANSWER, reason: "the engine enforces a grammar, and its models are small" }
        }
        _ => Choice {
            form: Form::ENVELOPE,
            reason: "it is the default where no grammar of a local engine holds the answer",
        },
    }
}

/// Returns why a module cannot be asked in a form; none if it can.
pub(crate) fn obstacle(form: &Form, module: &Module) -> Option<&'static str> {
    let manifest = &module.manifest;
    if !manifest.format.asks_for_envelope() || !form.is_data() {
        return None; // a model of an older format writes its data in every form
    }
    if !manifest.context.emits.is_empty() {
        return Some("the module emits context, which stands in the envelope");
    }
    if manifest.constraints.require_confidence {
        return Some("the module requires a confidence of the model");
    }
    if manifest.modalities.output.iter().any(|kind| *kind != Modality::Text) {
        return Some("the module generates media");
    }
    if !module.contract.check_meta(filled_meta().node()).is_empty() {
        return Some("the module's schema of `meta` requires what only a model can state");
    }
    let has_text = || module.contract.accepts_rationale_text();
    if form.rationale == RationalePlace::Afterwards && manifest.needs_rationale && !has_text() {
        return Some("the module's rationale is no text, so no second call can add it");
    }
    None
}

/// Returns a meta as it is filled where a model states none (ruling R24).
fn filled_meta() -> Value {
    Value::parse(r#"{"confidence":0.5,"risk":"medium","explain":"-"}"#).unwrap_or_default()
}

// Golden answers as examples in the prompt.

/// The maximum size of all examples of a prompt in bytes, so that they fit the window of a small model.
const MAX_EXAMPLES: usize = 4 * 1024;

/// A golden answer.
pub(crate) struct Example {
    input: Value,
    data: Value,
}

/// Returns the golden answers of a module that can stand in a prompt. One that holds a secret cannot.
pub(crate) fn examples(module: &Module) -> Vec<Example> {
    let cases = golden::discover(module).cases.into_iter();
    let examples = cases.filter_map(|case| {
        let answer = case.expected.answer()?;
        let data = match answer.get("ok").and_then(Node::as_bool) {
            Some(true) => answer.get("data")?.to_value(),
            Some(false) => return None,
            None => answer.clone(),
        };
        Some(Example { input: case.input, data })
    });
    examples.filter(|example| !has_secret(&example.input) && !has_secret(&example.data)).collect()
}

fn has_secret(value: &Value) -> bool {
    let text = value.to_string();
    mask_secrets(&text) != text
}

/// Returns the section of a prompt with examples, without the one for this input: a golden test must not contain its answer.
pub(crate) fn section(examples: &[Example], input: Node<'_>, form: &Form) -> String {
    let mut text = String::new();
    let input = input.to_serde();
    let others = examples.iter().filter(|example| example.input.to_serde() != input);
    for example in others.take(form.examples) {
        let mut data = example.data.to_serde();
        if form.rationale == RationalePlace::Afterwards
            && let Some(members) = data.as_object_mut()
        {
            members.shift_remove("rationale");
            members.shift_remove("extensions");
        }
        let data = Value::from(data).to_json();
        let added = format!("Input: {}\nAnswer: {data}\n\n", example.input);
        if text.len() + added.len() > MAX_EXAMPLES {
            break;
        }
        text.push_str(&added);
    }
    if text.is_empty() {
        return text;
    }
    format!("\n\nExamples:\n\n{}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use cog_module::Module;

    use super::*;

    fn module(more: &str) -> Module {
        let manifest = format!("name: m\nversion: 1.0.0\nresponsibility: Answer\nexcludes: []\n{more}");
        let schema = r#"{"input": {"type": "object"}, "data": {"type": "object", "required": ["label"],
            "properties": {"label": {"enum": ["a", "b"]}}}}"#;
        Module::from_parts(manifest, "Answer.", schema).unwrap()
    }

    #[test]
    fn default_depends_on_engine_and_tier() {
        let decision = module("tier: decision\n");
        assert_eq!(choose(Ask::Auto, &decision, Dialect::LlamaCpp).form, Form::ANSWER);
        for dialect in [Dialect::OpenAiStrict, Dialect::JsonSchema, Dialect::JsonObject, Dialect::Prompt] {
            assert_eq!(choose(Ask::Auto, &decision, dialect).form, Form::ENVELOPE, "{dialect}");
        }
        assert_eq!(choose(Ask::Auto, &module("tier: exec\n"), Dialect::LlamaCpp).form, Form::ENVELOPE);
        assert_eq!(choose(Ask::Form(Form::DATA), &decision, Dialect::Prompt).form, Form::DATA);
    }

    #[test]
    fn module_that_needs_its_envelope_is_asked_for_it() {
        for more in [
            "context: {main: true, emits: [{type: notes}]}\n",
            "constraints: {require_confidence: true}\n",
            "modalities: {output: [image]}\n",
        ] {
            let module = module(&format!("tier: decision\n{more}"));
            assert!(obstacle(Form::DATA, &module).is_some(), "{more}");
            assert_eq!(
                choose(Ask::Form(Form::DATA), &module, Dialect::Prompt).form,
                Form::ENVELOPE,
                "{more}"
            );
        }
        assert_eq!(obstacle(Form::DATA, &module("tier: decision\n")), None);
    }

    #[test]
    fn examples_are_those_of_other_inputs_without_a_rationale() {
        let parse = |text: &str| Value::parse(text).unwrap();
        let example = |input: &str| Example {
            input: parse(input),
            data: parse(r#"{"label": "a", "rationale": "Because."}"#),
        };
        let examples = [example(r#"{"query": "one"}"#), example(r#"{"query": "two"}"#)];
        let form = Form::ALL.iter().find(|form| form.name == "answer-examples").unwrap();
        let section = section(&examples, parse(r#"{"query": "one"}"#).node(), form);
        assert_eq!(section, "\n\nExamples:\n\nInput: {\"query\":\"two\"}\nAnswer: {\"label\":\"a\"}");
        assert_eq!(super::section(&examples[..1], parse(r#"{"query": "one"}"#).node(), form), "");
    }
}
