//! A document with messages.

use cog_json::{Node, SyntaxError, SyntaxErrorKind, ToJson, Value, Writer};

use crate::{
    Conversation, Problem,
    problem::Path,
    rules::{COMMENT, JSON, REQUIRED, TYPE},
};

/// A document with messages: an array, an object with `messages`, one message, or one message per line.
#[derive(Debug, Clone)]
pub struct Document {
    value: Value,
    lines: bool,
    /// The lines on which the removed comments began, from 1.
    comments: Vec<usize>,
}

impl Document {
    /// Reads a document. Lines are read if the first one is a complete object. A message alone is a history of one.
    ///
    /// # Errors
    /// If the text is not JSON.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let error = match Value::parse(text) {
            Ok(value) if value.is_object() && is_message(value.node()) => return array_of(&[text]),
            Ok(value) => return Ok(Self::new(value)),
            Err(error) => error,
        };
        if error.kind() == SyntaxErrorKind::Comment {
            return Err(not_json(text, 0, &error));
        }
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        match Value::parse(first) {
            Ok(value) if value.is_object() => lines(text),
            _ => Err(not_json(text, 0, &error)),
        }
    }

    /// Reads a document without its comments: `//` and `#` to the end of a line, and `/* … */`.
    ///
    /// # Errors
    /// As [`Document::parse`], for everything else.
    pub fn parse_uncommented(text: &str) -> Result<Self, Problem> {
        match Self::parse(text) {
            Err(problem) if problem.rule == &COMMENT => {
                let (text, comments) = without_comments(text);
                Ok(Self { comments, ..Self::parse(&text)? })
            }
            read => read,
        }
    }

    /// Returns the lines on which the removed comments began.
    pub(crate) fn comments(&self) -> &[usize] {
        &self.comments
    }

    /// Creates a document from a value.
    pub fn new(value: Value) -> Self {
        Self { value, lines: false, comments: Vec::new() }
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

/// Reads one message per line.
fn lines(text: &str) -> Result<Document, Problem> {
    let mut messages = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        Value::parse(line).map_err(|error| not_json(line, index, &error))?;
        messages.push(line);
    }
    array_of(&messages)
}

/// Returns the array of these messages.
fn array_of(messages: &[&str]) -> Result<Document, Problem> {
    let array = format!("[{}]", messages.join(","));
    let value = Value::parse(&array).map_err(|error| not_json(&array, 0, &error))?;
    Ok(Document { lines: true, ..Document::new(value) })
}

/// Replaces comments by spaces, so that all positions stay. Returns also the lines on which they began.
fn without_comments(text: &str) -> (String, Vec<usize>) {
    let mut out = String::with_capacity(text.len());
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => length_of_string(rest),
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if c == '#' || token.starts_with("//") || token.starts_with("/*") {
            lines.push(1 + out.matches('\n').count());
            out.extend(token.chars().map(|c| if c == '\n' { c } else { ' ' }));
        } else {
            out.push_str(token);
        }
        rest = after;
    }
    (out, lines)
}

/// Returns the length of the string at the start of text, with its quotation marks.
fn length_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !is_escaped => return at + 1,
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    text.len()
}

/// Describes text that is not JSON; it begins after `before` lines.
fn not_json(text: &str, before: usize, error: &SyntaxError) -> Problem {
    let at = error.position(text);
    let rule = if error.kind() == SyntaxErrorKind::Comment { &COMMENT } else { &JSON };
    let message = format!("not JSON: {}, at line {}, column {}", error.kind(), at.line + before, at.column);
    Problem::new(&"", rule, message)
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
            ("{\n  \"role\": \"tool\",\n  \"content\": \"{}\"\n}\n".to_owned(), 1),
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
    fn comments_are_named_and_removed() {
        let text = "[ // the history\n  {\"role\": \"user\", # who\n   \"content\": \"http://a.test/#x \\\" /* no */\" /* a\n b */}\n]";
        let problem = Document::parse(text).unwrap_err();
        assert_eq!(problem.rule.name, "comment");
        assert_eq!(problem.message, "not JSON: comments are not JSON, at line 1, column 3");
        let read = Document::parse_uncommented(text).unwrap();
        assert_eq!(read.comments, [1, 2, 3]);
        let content = read.node().pointer("/0/content").and_then(|content| content.as_str());
        assert_eq!(content, Some("http://a.test/#x \" /* no */"));
        assert_eq!(Document::parse_uncommented("[]").unwrap().comments, [] as [usize; 0]);
        // Comments between lines of messages, and text that is no comment.
        let lines =
            "{\"role\":\"user\",\"content\":\"a\"} // one\n/* two */{\"role\":\"user\",\"content\":\"b\"}";
        assert_eq!(Document::parse_uncommented(lines).unwrap().comments, [1, 2]);
        assert_eq!(Document::parse_uncommented("[/ 1]").unwrap_err().rule.name, "comment");
        assert_eq!(Document::parse_uncommented("[\"// \" 1]").unwrap_err().rule.name, "json");
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
