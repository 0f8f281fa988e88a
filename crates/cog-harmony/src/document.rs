//! A document with messages.

use cog_json::{Node, SyntaxError, ToJson, Value, Writer};

use crate::{
    Conversation, Problem,
    problem::Path,
    rules::{JSON, REQUIRED, TYPE},
};

/// A document with messages: an array, an object with `messages`, or one message per line.
#[derive(Debug, Clone)]
pub struct Document {
    value: Value,
    lines: bool,
}

impl Document {
    /// Reads a document. Lines are read if the first one is a complete object.
    ///
    /// # Errors
    /// If the text is not JSON.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let error = match Value::parse(text) {
            Ok(value) if value.is_object() && is_message(value.node()) => return lines(text),
            Ok(value) => return Ok(Self { value, lines: false }),
            Err(error) => error,
        };
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        match Value::parse(first) {
            Ok(value) if value.is_object() => lines(text),
            _ => Err(not_json(text, 0, &error)),
        }
    }

    /// Creates a document from a value.
    pub fn new(value: Value) -> Self {
        Self { value, lines: false }
    }

    /// Returns the value; for lines, the array of their messages.
    pub fn node(&self) -> Node<'_> {
        self.value.node()
    }

    /// Returns the array of messages.
    ///
    /// # Errors
    /// If there is none.
    pub fn messages(&self) -> Result<Node<'_>, Problem> {
        let node = self.node();
        let path = Path::root("messages");
        if node.is_array() {
            return Ok(node);
        }
        match node.get("messages") {
            Some(messages) if messages.is_array() => Ok(messages),
            Some(other) => {
                Err(Problem::new(&path, &TYPE, format!("found {}, expected an array", other.kind())))
            }
            None if node.is_object() => {
                Err(Problem::new(&path, &REQUIRED, "missing, expected an array of messages"))
            }
            None => Err(Problem::new(
                &path,
                &TYPE,
                format!("found {}, expected an array of messages", node.kind()),
            )),
        }
    }

    /// Returns the text of the document with other messages, in the same form.
    pub fn with_messages(&self, conversation: &Conversation) -> String {
        let messages: Vec<String> = conversation.messages().iter().map(ToJson::to_json).collect();
        self.write(&messages, &[])
    }

    /// Returns the document with other messages, in the same form.
    pub(crate) fn write(&self, messages: &[String], orphans: &[Node<'_>]) -> String {
        let mut out = String::new();
        let is_object = self.node().is_object();
        if self.lines && orphans.is_empty() {
            messages.iter().for_each(|message| out.extend([message, "\n"]));
            return out;
        }
        if !is_object && orphans.is_empty() {
            write_list(&mut out, messages);
            return out;
        }
        self.write_object(&mut out, messages, orphans);
        out
    }

    fn write_object(&self, out: &mut String, messages: &[String], orphans: &[Node<'_>]) {
        let stored = self.node().get("orphans").into_iter().flat_map(Node::elements);
        let orphans: Vec<Node<'_>> = stored.chain(orphans.iter().copied()).collect();
        out.push_str("{\"messages\":");
        write_list(out, messages);
        for (key, value) in self.node().members().filter(|(key, _)| !matches!(*key, "messages" | "orphans")) {
            out.push(',');
            Writer::compact(out).string(key);
            out.push(':');
            value.write(out);
        }
        if !orphans.is_empty() {
            out.push_str(",\"orphans\":");
            Writer::compact(out).array(|w| orphans.iter().for_each(|orphan| w.node(*orphan)));
        }
        out.push('}');
    }
}

fn write_list(out: &mut String, messages: &[String]) {
    out.push('[');
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(message);
    }
    out.push(']');
}

/// Returns whether an object is a message, and not a document with messages.
fn is_message(node: Node<'_>) -> bool {
    node.get("role").is_some() && node.get("messages").is_none()
}

/// Reads one message per line, as an array.
fn lines(text: &str) -> Result<Document, Problem> {
    let mut array = String::with_capacity(text.len() + 2);
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        Value::parse(line).map_err(|error| not_json(line, index, &error))?;
        array.push(if array.is_empty() { '[' } else { ',' });
        array.push_str(line);
    }
    array.push(']');
    let value = Value::parse(&array).map_err(|error| not_json(&array, 0, &error))?;
    Ok(Document { value, lines: true })
}

/// Describes text that is not JSON; it begins after `before` lines.
fn not_json(text: &str, before: usize, error: &SyntaxError) -> Problem {
    let at = error.position(text);
    let message = format!("not JSON: {}, at line {}, column {}", error.kind(), at.line + before, at.column);
    Problem::new(&"", &JSON, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    #[test]
    fn forms_of_a_document_have_its_messages() {
        let message = r#"{"role":"user","content":"a"}"#;
        for (text, count) in [
            ("[]".to_owned(), 0),
            (format!("[{message}]"), 1),
            (format!(r#"{{"messages":[{message}],"role":"x"}}"#), 1),
            (message.to_owned(), 1),
            (format!("\n{message}\n\n{message}"), 2),
        ] {
            assert_eq!(Document::parse(&text).unwrap().messages().unwrap().len(), count, "{text}");
        }
    }

    #[test]
    fn other_documents_are_problems() {
        for (text, rule, message) in [
            ("", "json", "not JSON"),
            ("1\n2", "json", "not JSON: "),
            ("{}\n[", "json", "not JSON: "),
            ("{}", "required", "missing, expected an array of messages"),
            ("1", "type", "found number, expected an array of messages"),
            (r#"{"messages":"x"}"#, "type", "found string, expected an array"),
        ] {
            let found = Document::parse(text).and_then(|document| document.messages().map(drop));
            let problem = found.unwrap_err();
            assert_eq!(problem.rule.name, rule, "{text}");
            assert!(problem.message.starts_with(message), "{text}: {}", problem.message);
        }
    }

    #[test]
    fn other_messages_are_written_in_the_form_of_the_document() {
        let new = r#"{"role":"user","content":[{"type":"text","text":"b"}]}"#;
        let conversation = Conversation::new([Message::user("b")]);
        for (text, expected) in [
            ("[]", format!("[{new}]")),
            (r#"{"model":"m","messages":[]}"#, format!(r#"{{"messages":[{new}],"model":"m"}}"#)),
            (r#"{"role":"user","content":"a"}"#, format!("{new}\n")),
        ] {
            assert_eq!(Document::parse(text).unwrap().with_messages(&conversation), expected);
        }
    }
}
