//! The user at the terminal, whom MCP servers may ask for input.

use std::{
    io::{BufRead as _, IsTerminal as _, Read as _, Write as _, stderr, stdin},
    sync::{Arc, Mutex, PoisonError},
};

use cog_host::settings::Settings;
use cog_mcp::{Field, FieldKind, Person};
use serde_json::{Map, Value, json};

use crate::output::Console;

/// The maximum length of a line, in bytes.
const MAX_LINE: u64 = 64 << 10;

/// Lets the servers of the settings ask the user, if there is a terminal.
pub(super) fn offer(settings: &mut Settings, console: &Console) {
    if console.err().is_terminal && stdin().is_terminal() {
        let person: Arc<dyn Person> = Arc::new(Terminal::default());
        settings.mcp.iter_mut().for_each(|server| server.person = Some(Arc::clone(&person)));
    }
}

/// Asks one question after the other.
#[derive(Debug, Default)]
struct Terminal(Mutex<()>);

impl Person for Terminal {
    fn ask(&self, server: &str, message: &str, fields: &[Field]) -> Option<Map<String, Value>> {
        let _alone = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answers = stdin().lock();
        form(server, message, fields, &mut |question| {
            let mut err = stderr().lock();
            write!(err, "{question} ").and_then(|()| err.flush()).ok()?;
            let mut line = String::new();
            let read = (&mut answers).take(MAX_LINE).read_line(&mut line).ok()?;
            (read > 0).then(|| line.trim().to_owned())
        })
    }
}

/// Asks for each field. Whatever the server wrote is shown as text. None if the person declines, or the input ends.
fn form(
    server: &str,
    message: &str,
    fields: &[Field],
    ask: &mut dyn FnMut(&str) -> Option<String>,
) -> Option<Map<String, Value>> {
    let question = format!("The MCP server `{server}` asks: {}\nAnswer it? [y/N]", shown(message));
    if !matches!(ask(&question)?.as_str(), "y" | "Y" | "yes") {
        return None;
    }
    let mut values = Map::new();
    for field in fields {
        loop {
            let answer = ask(&format!("{}:", label(field)))?;
            if answer.is_empty() && !field.is_required {
                break;
            }
            if let Some(value) = value(&field.kind, &answer) {
                values.insert(field.name.clone(), value);
                break;
            }
        }
    }
    Some(values)
}

fn label(field: &Field) -> String {
    let kind = match &field.kind {
        FieldKind::Number => "a number".to_owned(),
        FieldKind::Integer => "an integer".to_owned(),
        FieldKind::Boolean => "y or n".to_owned(),
        FieldKind::Choice(choices) => format!("one of {}", shown(&choices.join(", "))),
        _ => String::new(),
    };
    let optional = if field.is_required { "" } else { "optional" };
    let description = shown(&field.description);
    let details = [description.as_str(), kind.as_str(), optional];
    let details: Vec<&str> = details.into_iter().filter(|text| !text.is_empty()).collect();
    let name = shown(&field.name);
    if details.is_empty() { name } else { format!("{name} ({})", details.join("; ")) }
}

/// Returns the value of an answer; none if it has another type.
fn value(kind: &FieldKind, answer: &str) -> Option<Value> {
    match kind {
        FieldKind::Number => {
            answer.parse::<f64>().ok().filter(|number| number.is_finite()).map(|it| json!(it))
        }
        FieldKind::Integer => answer.parse::<i64>().ok().map(|it| json!(it)),
        FieldKind::Boolean => match answer {
            "y" | "yes" | "true" => Some(json!(true)),
            "n" | "no" | "false" => Some(json!(false)),
            _ => None,
        },
        FieldKind::Choice(choices) => choices.iter().find(|choice| *choice == answer).map(|it| json!(it)),
        _ => (!answer.is_empty()).then(|| json!(answer)),
    }
}

/// Returns text of a server without control characters, which could change what the terminal shows.
fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, kind: FieldKind, is_required: bool) -> Field {
        Field::new(name, "", kind, is_required)
    }

    /// Returns the values, and the questions that were asked.
    fn asked(fields: &[Field], answers: &[&str]) -> (Option<Map<String, Value>>, String) {
        let mut answers = answers.iter();
        let mut questions = String::new();
        let values = form("s", "Which\u{1b}[31m one?", fields, &mut |question| {
            questions += question;
            answers.next().map(|answer| (*answer).to_owned())
        });
        (values, questions)
    }

    #[test]
    fn each_field_gets_a_value_of_its_type() {
        let choice = FieldKind::Choice(vec!["red".to_owned(), "blue".to_owned()]);
        let fields = [
            field("name", FieldKind::Text, true),
            field("age", FieldKind::Integer, true),
            field("size", FieldKind::Number, false),
            field("sure", FieldKind::Boolean, true),
            field("colour", choice, false),
        ];
        let answers = ["y", "", "Ada", "many", "36", "", "maybe", "n", "green", "blue"];
        let (values, questions) = asked(&fields, &answers);
        let expected = json!({ "name": "Ada", "age": 36, "sure": false, "colour": "blue" });
        assert_eq!(values.map(Value::Object), Some(expected), "what does not fit is asked again");
        assert!(
            !questions.contains('\u{1b}') && questions.contains("one of red, blue; optional"),
            "{questions}"
        );
    }

    #[test]
    fn person_may_decline() {
        let fields = [field("name", FieldKind::Text, true)];
        assert_eq!(asked(&fields, &["n"]).0, None);
        assert_eq!(asked(&fields, &[]).0, None);
        assert_eq!(asked(&fields, &["y"]).0, None, "the input ended");
    }
}
