//! The arguments of a call in a prompt, with their placeholders filled.

use cog_json::Value;
use cog_module::{Prompt, PromptPart};
use cog_run::{RunInput, composition::Parts};

use super::texts::value_of;
use crate::{Plan, Results, results::as_text};

/// The maximum length of filled arguments: 64 MB.
const MAX_LEN: usize = 64 << 20;

/// Where a text of JSON ends: inside a string, or between values.
#[derive(Debug, Clone, Copy, Default)]
struct Quotes {
    is_open: bool,
    is_escaped: bool,
}

/// Returns the input of a call: a JSON object as it is, another text as arguments. None if the text is too long.
///
/// In a text that begins with `{`, a placeholder inside a string is escaped, and one outside is a JSON value, so that no
/// value can change the members of the object.
pub(super) fn input(plan: &Plan, results: &Results, parts: &Parts, arguments: &Prompt) -> Option<RunInput> {
    let is_json = matches!(arguments.parts(), [PromptPart::Text(text), ..] if text.starts_with('{'));
    let (mut text, mut quotes) = (String::new(), Quotes::default());
    for part in arguments.parts() {
        let inserted = match part {
            PromptPart::Text(literal) => {
                quotes = quotes.after(literal);
                literal.clone()
            }
            PromptPart::Reference { module, path, .. } => {
                let found = value_of(plan, results, module, path);
                if is_json && !quotes.is_open { found.to_string() } else { as_text(found.node()) }
            }
            other => {
                let filled = parts.fill(std::slice::from_ref(other))?;
                if is_json && !quotes.is_open { value(filled) } else { filled }
            }
        };
        let is_escaped = is_json && quotes.is_open && !matches!(part, PromptPart::Text(_));
        text += &if is_escaped { escaped(&inserted) } else { inserted };
        if text.len() > MAX_LEN {
            return None;
        }
    }
    let object = Value::parse(&text).ok().filter(|value| value.node().is_object());
    Some(object.map_or(RunInput::Args(text), RunInput::Json))
}

/// Returns a text that is not JSON as a JSON string.
fn value(text: String) -> String {
    match Value::parse(&text) {
        Ok(_) => text,
        Err(_) => serde_json::Value::from(text).to_string(),
    }
}

/// Returns a text for the inside of a JSON string.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default().to_owned()
}

impl Quotes {
    fn after(self, text: &str) -> Self {
        text.bytes().fold(self, |quotes, byte| match byte {
            _ if quotes.is_escaped => Self { is_escaped: false, ..quotes },
            b'\\' if quotes.is_open => Self { is_escaped: true, ..quotes },
            b'"' => Self { is_open: !quotes.is_open, ..quotes },
            _ => quotes,
        })
    }
}
