//! Checks the caller's input against the module's contract.

use cog_json::{Node, Path, SerializeError, ToJson, Value, Writer};
use cog_media::MediaSource;
use cog_module::Module;
use cog_schema::Violation;
use cog_spec::{Code, ErrorBody};
use serde::Serialize;

use crate::error;

/// The input of a run.
///
/// ```
/// use cog_run::RunInput;
///
/// #[derive(serde::Serialize)]
/// struct Review {
///     code: String,
/// }
///
/// let input = RunInput::json(&Review { code: "fn main() {}".to_owned() })?;
/// let text = RunInput::text("fn main() {}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RunInput {
    /// The input as JSON.
    Json(Value),
    /// One text, which becomes the text field of the input, like `--args` (docs/spec/modules.md).
    Args(String),
    /// One text, and an object with the other fields of the input.
    ArgsWith(String, Value),
}

impl RunInput {
    /// Returns the input from a value that serde can serialize, such as a struct of the program.
    ///
    /// # Errors
    /// A value that JSON cannot represent, such as a map whose keys are not strings.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, SerializeError> {
        cog_json::to_value(value).map(Self::Json)
    }

    /// Returns the input from one text, which becomes the text field of the module's input.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Args(text.into())
    }
}

impl From<Value> for RunInput {
    fn from(input: Value) -> Self {
        Self::Json(input)
    }
}

/// An input that matches the module's schema. A prompt contains only checked input.
#[derive(Debug, Clone)]
pub(crate) struct CheckedInput {
    value: Value,
    /// The input for the prompt, with a number in place of each media item.
    prompt_value: Value,
    /// The media of the input with their paths.
    media: Vec<(Path, MediaSource)>,
    /// The value of `$ARGUMENTS` and the field of the input that contains it.
    arguments: Option<Arguments>,
}

#[derive(Debug, Clone)]
struct Arguments {
    text: String,
    field: String,
}

impl CheckedInput {
    /// Builds the input when it is given as text, and checks it.
    ///
    /// # Errors
    /// E1001 to E1004, with every violation in `details.violations`; E1005 when the input exceeds
    /// `runtime_requirements.max_input_tokens`.
    pub(crate) fn new(module: &Module, input: RunInput) -> Result<Self, ErrorBody> {
        let (value, arguments) = match input {
            RunInput::Json(value) => (value.clone(), arguments_of(&value)),
            RunInput::Args(text) => from_args(module, text, &Value::default())?,
            RunInput::ArgsWith(text, rest) => from_args(module, text, &rest)?,
        };
        let violations = module.contract.check_input(value.node());
        if !violations.is_empty() {
            return Err(violated(&violations));
        }
        let media = media_of(module, &value)?;
        let prompt_value = if media.is_empty() { value.clone() } else { numbered(&value, &media) };
        let checked = Self { value, prompt_value, media, arguments };
        checked.fits_in(module.manifest.requirements.max_input_tokens)?;
        Ok(checked)
    }

    fn fits_in(&self, limit: Option<u64>) -> Result<(), ErrorBody> {
        let Some(limit) = limit else { return Ok(()) };
        let tokens = estimate_tokens(&self.prompt_value.to_string());
        if tokens <= limit {
            return Ok(());
        }
        let message = format!(
            "the input has about {tokens} tokens (estimated), and the module accepts at most {limit}"
        );
        let details = serde_json::json!({ "estimated_tokens": tokens, "max_input_tokens": limit });
        Err(ErrorBody::new(Code::InputTooLarge, message)
            .suggest("Shorten or split the input, or raise runtime_requirements.max_input_tokens.")
            .with_details(Value::from(details)))
    }

    pub(crate) fn node(&self) -> Node<'_> {
        self.value.node()
    }

    /// Returns the input for the prompt.
    pub(crate) fn for_prompt(&self) -> &Value {
        &self.prompt_value
    }

    /// Returns the media of the input with their paths, starting at `input`.
    pub(crate) fn media(&self) -> &[(Path, MediaSource)] {
        &self.media
    }

    /// Returns the value of `$ARGUMENTS`; empty when the input has no such text.
    pub(crate) fn arguments(&self) -> &str {
        self.arguments.as_ref().map_or("", |arguments| &arguments.text)
    }

    /// Returns the input as JSON without the field of `$ARGUMENTS`; none when no field is left.
    pub(crate) fn without_arguments(&self) -> Option<String> {
        let Some(Arguments { field, .. }) = &self.arguments else {
            return Some(self.prompt_value.to_string());
        };
        let rest: Vec<_> = self.prompt_value.members().filter(|(key, _)| *key != field.as_str()).collect();
        (!rest.is_empty()).then(|| Members(rest).to_json())
    }
}

fn from_args(module: &Module, text: String, rest: &Value) -> Result<(Value, Option<Arguments>), ErrorBody> {
    let field = module.contract.args_target().map_err(|candidates| ambiguous(&candidates))?;
    let mut object = serde_json::Map::from_iter([(field.to_owned(), text.clone().into())]);
    object.extend(rest.members().map(|(key, value)| (key.to_owned(), value.to_serde())));
    let value = Value::from(serde_json::Value::Object(object));
    Ok((value, Some(Arguments { text, field: field.to_owned() })))
}

/// Returns the media of an input in its order.
fn media_of(module: &Module, input: &Value) -> Result<Vec<(Path, MediaSource)>, ErrorBody> {
    let paths = module.contract.media_paths(input.node()).into_iter();
    let source = |path: Path| {
        let node = input.pointer(pointer_in_input(&path.pointer())).unwrap_or(input.node());
        match MediaSource::read(input, node) {
            Ok(source) => Ok((path, source)),
            Err(error) => Err(error::media_rejected(&[(path, error)])),
        }
    };
    paths.map(source).collect()
}

/// Returns the input with a number in place of each media item, from 1. The message parts use the same
/// numbers.
fn numbered(input: &Value, media: &[(Path, MediaSource)]) -> Value {
    let mut json = input.to_serde();
    for (index, (path, _)) in media.iter().enumerate() {
        if let Some(slot) = json.pointer_mut(pointer_in_input(&path.pointer())) {
            *slot = serde_json::json!({ "media": index + 1 });
        }
    }
    Value::from(json)
}

/// Strips the leading `input` from a pointer.
fn pointer_in_input(pointer: &str) -> &str {
    pointer.strip_prefix("/input").unwrap_or(pointer)
}

struct Members<'a>(Vec<(&'a str, Node<'a>)>);

/// Written by hand: an object of borrowed members.
impl ToJson for Members<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            for (key, value) in &self.0 {
                w.field(key, value);
            }
        });
    }
}

/// Returns the input's own `$ARGUMENTS` or `query`.
fn arguments_of(input: &Value) -> Option<Arguments> {
    ["$ARGUMENTS", "query"].into_iter().find_map(|field| {
        let text = input.get(field)?.as_str()?.to_owned();
        Some(Arguments { text, field: field.to_owned() })
    })
}

/// Estimates the tokens of a text as a fourth of its bytes, the usual rule of thumb.
fn estimate_tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

fn ambiguous(candidates: &[String]) -> ErrorBody {
    let message = match candidates {
        [] => "--args needs a text field, but the input schema has none".to_owned(),
        _ => format!("--args is ambiguous: it could set any of the fields {}", candidates.join(", ")),
    };
    ErrorBody::new(Code::InvalidInput, message)
        .suggest("Pass the input as JSON: --input-json '{…}' or a file.")
}

/// The maximum number of violations in a message; `details.violations` contains all of them.
const MAX_LISTED: usize = 20;

/// Returns the error of an invalid input. The code is that of the violations when all agree, otherwise E1001.
fn violated(violations: &[Violation]) -> ErrorBody {
    let code = match violations {
        [first, rest @ ..] if rest.iter().all(|other| other.code == first.code) => first.code,
        _ => Code::InvalidInput,
    };
    let message = match violations {
        [only] => format!("{}: {}", only.path, only.message),
        many => {
            let list: Vec<_> = many
                .iter()
                .take(MAX_LISTED)
                .map(|found| format!("{}: {}", found.path, found.message))
                .collect();
            let more = if many.len() > MAX_LISTED { "; …" } else { "" };
            format!("the input violates its schema in {} locations: {}{more}", many.len(), list.join("; "))
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
