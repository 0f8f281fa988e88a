//! From what the caller gives to an input that fits the module's contract.

use cog_json::{Node, ToJson, Value, Writer};
use cog_module::Module;
use cog_schema::Violation;
use cog_spec::{Code, ErrorBody};

/// What a run is given.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RunInput {
    /// The input as JSON.
    Json(Value),
    /// The text of `--args`, from which the input is built (supplement section 3).
    Args(String),
}

/// An input that fits the module's schema. Nothing else reaches a prompt.
#[derive(Debug, Clone)]
pub(crate) struct CheckedInput {
    value: Value,
    /// What `$ARGUMENTS` stands for, and the field of the input that holds it.
    arguments: Option<Arguments>,
}

#[derive(Debug, Clone)]
struct Arguments {
    text: String,
    field: String,
}

impl CheckedInput {
    /// Builds the input where it is given as text, and checks it.
    ///
    /// # Errors
    /// E1001 to E1004, with every violation in `details.violations`; E1005 where the input is longer
    /// than `runtime_requirements.max_input_tokens`.
    pub(crate) fn new(module: &Module, input: RunInput) -> Result<Self, ErrorBody> {
        let checked = match input {
            RunInput::Json(value) => Self { arguments: arguments_of(&value), value },
            RunInput::Args(text) => Self::from_args(module, text)?,
        };
        let violations = module.contract.check_input(checked.value.node());
        if !violations.is_empty() {
            return Err(violated(&violations));
        }
        checked.fits_in(module.manifest.requirements.max_input_tokens)?;
        Ok(checked)
    }

    fn from_args(module: &Module, text: String) -> Result<Self, ErrorBody> {
        let field = module.contract.args_target().map_err(|candidates| ambiguous(&candidates))?;
        let value = Value::from(serde_json::json!({ field: text }));
        Ok(Self { value, arguments: Some(Arguments { text, field: field.to_owned() }) })
    }

    fn fits_in(&self, limit: Option<u64>) -> Result<(), ErrorBody> {
        let Some(limit) = limit else { return Ok(()) };
        let tokens = estimate_tokens(&self.value.to_string());
        if tokens <= limit {
            return Ok(());
        }
        let message = format!("the input has about {tokens} tokens (estimated), the module takes {limit}");
        let details = serde_json::json!({ "estimated_tokens": tokens, "max_input_tokens": limit });
        Err(ErrorBody::new(Code::InputTooLarge, message)
            .suggest("shorten or split the input, or raise runtime_requirements.max_input_tokens")
            .with_details(Value::from(details)))
    }

    pub(crate) fn node(&self) -> Node<'_> {
        self.value.node()
    }

    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// What `$ARGUMENTS` stands for; empty where the input has no such text.
    pub(crate) fn arguments(&self) -> &str {
        self.arguments.as_ref().map_or("", |arguments| &arguments.text)
    }

    /// The input as JSON without the field that `$ARGUMENTS` took up; none where nothing is left.
    pub(crate) fn without_arguments(&self) -> Option<String> {
        let Some(Arguments { field, .. }) = &self.arguments else { return Some(self.value.to_string()) };
        let rest: Vec<_> = self.value.members().filter(|(key, _)| *key != field.as_str()).collect();
        (!rest.is_empty()).then(|| Members(rest).to_json())
    }
}

struct Members<'a>(Vec<(&'a str, Node<'a>)>);

impl ToJson for Members<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            for (key, value) in &self.0 {
                w.field(key, value);
            }
        });
    }
}

/// The input's own `$ARGUMENTS` or `query`.
fn arguments_of(input: &Value) -> Option<Arguments> {
    ["$ARGUMENTS", "query"].into_iter().find_map(|field| {
        let text = input.get(field)?.as_str()?.to_owned();
        Some(Arguments { text, field: field.to_owned() })
    })
}

/// About how many tokens a text has: a fourth of its bytes, which is what vendors' own rules of thumb say.
fn estimate_tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

fn ambiguous(candidates: &[String]) -> ErrorBody {
    let message = match candidates {
        [] => "--args needs a text field, and the input schema has none".to_owned(),
        _ => format!("--args could mean any of these fields: {}", candidates.join(", ")),
    };
    ErrorBody::new(Code::InvalidInput, message)
        .suggest("give the input as JSON: --input-json '{…}' or a file")
}

/// How many violations a message tells; `details.violations` has all of them.
const TOLD: usize = 20;

/// The error of an input that does not fit: one code where all violations agree, else E1001.
fn violated(violations: &[Violation]) -> ErrorBody {
    let code = match violations {
        [first, rest @ ..] if rest.iter().all(|other| other.code == first.code) => first.code,
        _ => Code::InvalidInput,
    };
    let message = match violations {
        [only] => format!("{}: {}", only.path, only.message),
        many => {
            let list: Vec<_> =
                many.iter().take(TOLD).map(|found| format!("{}: {}", found.path, found.message)).collect();
            let more = if many.len() > TOLD { "; …" } else { "" };
            format!("the input does not fit its schema in {} places: {}{more}", many.len(), list.join("; "))
        }
    };
    let mut error = ErrorBody::new(code, message).with_details(Value::from(
        serde_json::json!({ "violations": violations.iter().map(entry).collect::<Vec<_>>() }),
    ));
    error.suggestion = violations.iter().find_map(|found| found.suggestion.clone());
    error
}

fn entry(violation: &Violation) -> serde_json::Value {
    serde_json::json!({
        "path": violation.path,
        "rule": violation.rule,
        "message": violation.message,
        "code": violation.code.as_str(),
    })
}
