//! Chooses the form in which a model is asked for its answer (ruling R91).

use std::fmt;

use cog_json::{Node, Object, ToJson, Value};
use cog_module::{Module, forms::FormEntry, golden};
use cog_spec::{
    Ask, Dialect, Form, FormsFile, MeasuredForm, Modality, RationalePlace, Tier, Warning, WarningCode,
    mask_secrets,
};

/// Who is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskedModel<'a> {
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    /// The dialect of the schema that the model receives.
    pub(crate) dialect: Dialect,
}

/// A form, and why it was chosen.
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) form: &'static Form,
    pub(crate) reason: Reason<'a>,
    /// What was named or measured and does not apply.
    pub(crate) warning: Option<Warning>,
}

impl Choice<'_> {
    /// Returns the choice for a run whose budget allows only one call: a form in which the model explains its answer itself.
    pub(crate) fn in_one_call(self, module: &Module, obstacles: &Obstacles) -> Self {
        if self.form.rationale != RationalePlace::Afterwards || !module.contract.requires_rationale() {
            return self;
        }
        let form = if obstacles.of(Form::DATA).is_none() { Form::DATA } else { Form::ENVELOPE };
        let warning = matches!(self.reason, Reason::Named).then(|| {
            let message =
                format!("The model is asked in the form `{form}`, not `{}`: {ONE_CALL}.", self.form);
            Warning::new(WarningCode::SettingOmitted, message)
        });
        Choice { form, reason: Reason::Rule(ONE_CALL), warning: self.warning.or(warning) }
    }
}

const ONE_CALL: &str = "the budget of the run has no call left for the rationale";

/// Why a form was chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reason<'a> {
    /// An option, the manifest or a setting names it.
    Named,
    /// `forms.json` of the module has it.
    Measured(&'a MeasuredForm),
    /// What else decides, in words.
    Rule(&'static str),
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named => f.write_str("an option, the manifest or a setting names it"),
            Self::Measured(MeasuredForm { provider, model, cases, right, .. }) => write!(
                f,
                "{} of the module has it for {provider}/{model}: {right} of {cases} golden tests right",
                FormsFile::NAME
            ),
            Self::Rule(words) => f.write_str(words),
        }
    }
}

/// Chooses the form for a model: the one that the caller, the manifest or the settings name, otherwise the one that was measured to
/// be best, otherwise the default. A form in which the module cannot be asked is not chosen.
pub(crate) fn choose<'a>(
    ask: Ask,
    module: &'a Module,
    obstacles: &Obstacles,
    asked: AskedModel<'_>,
) -> Choice<'a> {
    match ask {
        Ask::Form(form) => named(form, obstacles),
        Ask::Auto => match module.forms.find(asked.provider, asked.model) {
            FormEntry::Measured(measured) => match obstacles.of(measured.form) {
                None => Choice { form: measured.form, reason: Reason::Measured(measured), warning: None },
                Some(reason) => {
                    ignored(module, obstacles, asked, &format!("names `{}`, but {reason}", measured.form))
                }
            },
            FormEntry::Missing => default_for(module, obstacles, asked.dialect),
            FormEntry::Outdated => ignored(
                module,
                obstacles,
                asked,
                "was measured before the prompt or the schema changed; measure again with `cog test MODULE --forms --keep`",
            ),
            FormEntry::Edited => ignored(module, obstacles, asked, "was edited; `cog validate` shows where"),
            FormEntry::Broken => {
                ignored(module, obstacles, asked, "cannot be read; `cog validate` shows why")
            }
        },
    }
}

fn named<'a>(form: &'static Form, obstacles: &Obstacles) -> Choice<'a> {
    let Some(reason) = obstacles.of(form) else {
        return Choice { form, reason: Reason::Named, warning: None };
    };
    let message = format!("The model is asked in the form `envelope`, not `{form}`: {reason}.");
    let warning = Some(Warning::new(WarningCode::SettingOmitted, message));
    Choice { form: Form::ENVELOPE, reason: Reason::Rule(reason), warning }
}

/// Returns the default, with a warning that the file does not count.
fn ignored<'a>(module: &Module, obstacles: &Obstacles, asked: AskedModel<'_>, why: &str) -> Choice<'a> {
    let default = default_for(module, obstacles, asked.dialect);
    let AskedModel { provider, model, .. } = asked;
    let message = format!(
        "The model is asked in the form `{}`: {} of {} {why} ({provider}/{model}).",
        default.form,
        FormsFile::NAME,
        module.manifest.name
    );
    Choice { warning: Some(Warning::new(WarningCode::FormsIgnored, message)), ..default }
}

/// Returns whether the prompt of a run may need examples, before it is known who is asked.
pub(crate) fn may_have_examples(ask: Ask, module: &Module) -> bool {
    match ask {
        Ask::Form(form) => form.examples > 0,
        Ask::Auto => module.forms.use_examples(),
    }
}

/// Why a module cannot be asked in some of the forms.
pub(crate) struct Obstacles(Vec<Option<&'static str>>);

impl Obstacles {
    pub(crate) fn new(module: &Module) -> Self {
        Self(Form::ALL.iter().map(|form| obstacle(form, module)).collect())
    }

    /// Returns why the module cannot be asked in a form; none if it can.
    pub(crate) fn of(&self, form: &Form) -> Option<&'static str> {
        self.0.get(form.index()).copied().flatten()
    }
}

/// Returns the form for a module and a model of which nothing was measured.
///
/// Small models answer by chance when they write a meta and a rationale before their answer, and they run where an engine
/// enforces a grammar. For hosted models nothing shows that another form is better.
fn default_for<'a>(module: &Module, obstacles: &Obstacles, dialect: Dialect) -> Choice<'a> {
    let (form, reason) = match (dialect, module.manifest.tier) {
        (Dialect::LlamaCpp, Some(Tier::Exec)) => (Form::ENVELOPE, NEEDS_CONFIDENCE),
        (Dialect::LlamaCpp, _) => match obstacles.of(Form::ANSWER) {
            None => (Form::ANSWER, "the engine enforces a grammar, and its models are small"),
            Some(reason) => (Form::ENVELOPE, reason),
        },
        _ => (Form::ENVELOPE, "it is the default where no grammar of a local engine holds the answer"),
    };
    Choice { form, reason: Reason::Rule(reason), warning: None }
}

const NEEDS_CONFIDENCE: &str = "in tier exec, only a model that states its confidence can pass the gate";

/// Returns why the golden tests of a module say nothing about a form; none if they do.
pub(crate) fn why_unmeasurable(
    form: &Form,
    module: &Module,
    obstacles: &Obstacles,
    examples: &[Example],
) -> Option<&'static str> {
    if let Some(reason) = obstacles.of(form) {
        return Some(reason);
    }
    if form.is_data() && module.manifest.tier == Some(Tier::Exec) {
        return Some(NEEDS_CONFIDENCE);
    }
    // Each golden test gets the answers of the others.
    (form.examples > 0 && examples.len() < 2)
        .then_some("the module has fewer than two golden answers that can be examples")
}

fn obstacle(form: &Form, module: &Module) -> Option<&'static str> {
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
    let mut names =
        module.contract.shape("data").map(|data| data.member_names()).unwrap_or_default().into_iter();
    if form.rationale == RationalePlace::Afterwards && names.all(|name| name == "rationale") {
        return Some("the module's data have no field except the rationale");
    }
    let has_text = || module.contract.accepts_rationale_text();
    if form.rationale == RationalePlace::Afterwards && module.contract.requires_rationale() && !has_text() {
        return Some("the module's rationale is no text, so no second call can add it");
    }
    None
}

/// Returns a meta as it is filled where a model states none (ruling R24).
fn filled_meta() -> Value {
    Value::parse(r#"{"confidence":0.5,"risk":"medium","explain":"-"}"#).unwrap_or_default()
}

// Golden answers as examples in the prompt.

/// The maximum size of all examples of a prompt in bytes.
const MAX_EXAMPLES: usize = 4 * 1024;

/// Returns the maximum size of all examples in bytes for a context window in tokens: a quarter of it, at four bytes per token.
pub(crate) fn max_examples(window: Option<u64>) -> usize {
    let window = window.and_then(|tokens| usize::try_from(tokens).ok()).unwrap_or(usize::MAX);
    window.min(MAX_EXAMPLES)
}

/// A golden answer.
pub(crate) struct Example {
    input: Value,
    data: Value,
}

/// Returns the golden answers of a module that can be examples in a prompt. One that contains a secret cannot, and neither can one
/// whose input is an image or another file.
pub(crate) fn examples(module: &Module) -> Vec<Example> {
    if module.manifest.modalities.input.iter().any(|kind| *kind != Modality::Text) {
        return Vec::new();
    }
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

/// Returns the section of a prompt with examples of at most `max` bytes, without the one for this input: a golden test must not
/// contain its answer.
pub(crate) fn section(examples: &[Example], input: &Value, form: &Form, max: usize) -> String {
    let mut text = String::new();
    let others = examples.iter().filter(|example| example.input != *input);
    for example in others.take(form.examples) {
        let mut data = Object::from_node(example.data.node());
        if form.rationale == RationalePlace::Afterwards {
            data.remove("rationale");
            data.remove("extensions");
        }
        let data = data.to_json();
        let added = format!("Input: {}\nAnswer: {data}\n\n", example.input);
        if text.len() + added.len() > max {
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
    use cog_module::ModuleFiles;

    use super::*;

    fn files(more: &str) -> ModuleFiles {
        let manifest = format!("name: m\nversion: 1.0.0\nresponsibility: Answer\nexcludes: []\n{more}");
        let schema = r#"{"input": {"type": "object"}, "data": {"type": "object", "required": ["label"],
            "properties": {"label": {"enum": ["a", "b"]}}}}"#;
        ModuleFiles::default()
            .with("module.yaml", manifest)
            .with("prompt.md", "Answer.")
            .with("schema.json", schema)
    }

    fn module(more: &str) -> Module {
        files(more).load().unwrap()
    }

    fn choice(ask: Ask, module: &Module, dialect: Dialect) -> Choice<'_> {
        choose(ask, module, &Obstacles::new(module), AskedModel { provider: "openai", model: "m", dialect })
    }

    fn form(name: &str) -> &'static Form {
        Form::ALL.iter().find(|form| form.name == name).unwrap()
    }

    #[test]
    fn default_depends_on_engine_and_tier() {
        let decision = module("tier: decision\n");
        assert_eq!(choice(Ask::Auto, &decision, Dialect::LlamaCpp).form, Form::ANSWER);
        for dialect in [Dialect::OpenAiStrict, Dialect::JsonSchema, Dialect::JsonObject, Dialect::Prompt] {
            assert_eq!(choice(Ask::Auto, &decision, dialect).form, Form::ENVELOPE, "{dialect}");
        }
        assert_eq!(choice(Ask::Auto, &module("tier: exec\n"), Dialect::LlamaCpp).form, Form::ENVELOPE);
        assert_eq!(choice(Ask::Form(Form::DATA), &decision, Dialect::Prompt).form, Form::DATA);
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
            let choice = choice(Ask::Form(Form::DATA), &module, Dialect::Prompt);
            assert_eq!(choice.form, Form::ENVELOPE, "{more}");
            assert_eq!(choice.warning.unwrap().code, WarningCode::SettingOmitted);
        }
        assert_eq!(obstacle(Form::DATA, &module("tier: decision\n")), None);
    }

    #[test]
    fn module_without_a_deciding_field_is_not_asked_for_its_answer_alone() {
        let manifest = "name: m\nversion: 1.0.0\nresponsibility: Answer\nexcludes: []\ntier: decision\n";
        for data in [
            r#"{"type": "object", "properties": {"rationale": {"type": "string"}}}"#,
            r#"{"type": "object"}"#,
        ] {
            let schema = format!(r#"{{"input": {{"type": "object"}}, "data": {data}}}"#);
            let module = Module::from_parts(manifest, "Answer.", schema).unwrap();
            let chosen = choice(Ask::Auto, &module, Dialect::LlamaCpp);
            assert_eq!(chosen.form, Form::ENVELOPE, "{data}");
            assert!(chosen.reason.to_string().contains("no field"), "{}", chosen.reason);
            assert_eq!(choice(Ask::Form(Form::DATA), &module, Dialect::LlamaCpp).form, Form::DATA, "{data}");
        }
    }

    #[test]
    fn unreadable_file_does_not_choose_and_is_a_warning_of_auto_only() {
        let module = files("tier: decision\n").with("forms.json", "{").load().unwrap();
        let auto = choice(Ask::Auto, &module, Dialect::Prompt);
        assert_eq!(auto.form, Form::ENVELOPE);
        let warning = auto.warning.unwrap();
        assert_eq!(warning.code, WarningCode::FormsIgnored);
        assert!(warning.message.contains("forms.json of m cannot be read"), "{}", warning.message);
        assert!(choice(Ask::Form(Form::DATA), &module, Dialect::Prompt).warning.is_none());
    }

    #[test]
    fn forms_that_golden_tests_say_nothing_about_have_a_reason() {
        let example = || Example { input: Value::default(), data: Value::default() };
        let why = |form: &Form, module: &Module, examples: &[Example]| {
            why_unmeasurable(form, module, &Obstacles::new(module), examples)
        };
        let decision = module("tier: decision\n");
        assert_eq!(why(Form::DATA, &decision, &[]), None);
        assert!(why(form("data-examples"), &decision, &[example()]).is_some());
        assert_eq!(why(form("data-examples"), &decision, &[example(), example()]), None);
        let exec = module("tier: exec\n");
        assert_eq!(why(Form::DATA, &exec, &[]), Some(NEEDS_CONFIDENCE));
        assert_eq!(why(Form::ENVELOPE, &exec, &[]), None);
    }

    #[test]
    fn examples_are_those_of_other_inputs_without_a_rationale() {
        let parse = |text: &str| Value::parse(text).unwrap();
        let example = |input: &str| Example {
            input: parse(input),
            data: parse(r#"{"label": "a", "rationale": "Because."}"#),
        };
        let examples = [example(r#"{"query": "one", "n": 1}"#), example(r#"{"query": "two"}"#)];
        let form = form("answer-examples");
        // The same input, written in another way.
        let input = parse(r#"{"n": 1.0, "query": "one"}"#);
        let found = section(&examples, &input, form, MAX_EXAMPLES);
        assert_eq!(found, "\n\nExamples:\n\nInput: {\"query\":\"two\"}\nAnswer: {\"label\":\"a\"}");
        assert_eq!(section(&examples[..1], &input, form, MAX_EXAMPLES), "");
        assert_eq!(section(&examples, &input, form, 20), "", "no part of an example");
    }

    #[test]
    fn examples_use_a_quarter_of_the_window() {
        assert_eq!(
            (max_examples(None), max_examples(Some(128_000)), max_examples(Some(512))),
            (4096, 4096, 512)
        );
    }

    #[test]
    fn examples_have_no_secrets_and_no_files() {
        let cases = |module: ModuleFiles| {
            module
                .with("tests/a.input.json", r#"{"query": "one"}"#)
                .with("tests/a.expected.json", r#"{"label": "a"}"#)
                .with("tests/b.input.json", r#"{"query": "api_key=sk-abcdefghijklmnopqrstuvwx"}"#)
                .with("tests/b.expected.json", r#"{"label": "b"}"#)
                .load()
                .unwrap()
        };
        let found = examples(&cases(files("tier: decision\n")));
        assert_eq!(found.iter().map(|it| it.input.to_string()).collect::<Vec<_>>(), [r#"{"query":"one"}"#]);
        assert!(examples(&cases(files("tier: decision\nmodalities: {input: [text, image]}\n"))).is_empty());
    }
}
