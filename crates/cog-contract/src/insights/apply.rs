//! Edits the text of `schema.json` for a proposal, and changes nothing else in it.

use std::ops::Range;

use serde_json::{Value, json};
use thiserror::Error;

use super::{Proposal, ProposalKind};

/// Why a proposal cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// It says what to look at, and not what to write.
    #[error("it does not say what to write")]
    Open,
    /// The schema does not have its place.
    #[error("the schema has no {what} for `{path}`")]
    NoPlace {
        /// What is missing.
        what: &'static str,
        /// The path.
        path: String,
    },
    /// The text is not JSON.
    #[error("the schema is not valid JSON")]
    Syntax,
}

/// An edited schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// Its text.
    pub text: String,
    /// The JSON pointer of what was changed.
    pub pointer: String,
}

/// Applies a proposal to the text of `schema.json`: adds the value of an enum or an optional field, or sets a bound.
///
/// # Errors
/// If the proposal is of another kind, or the schema has no place for it.
pub fn apply(schema: &str, proposal: &Proposal) -> Result<Edited, ApplyError> {
    let document: Value = serde_json::from_str(schema).map_err(|_| ApplyError::Syntax)?;
    let no_place = |what| ApplyError::NoPlace { what, path: proposal.path.clone() };
    let Some(value) = &proposal.value else { return Err(ApplyError::Open) };
    let (pointer, member) = match proposal.kind {
        ProposalKind::EnumValue => {
            let (pointer, schema) = schema_of(&document, &proposal.path).ok_or_else(|| no_place("field"))?;
            (enum_of(&document, &pointer, schema).ok_or_else(|| no_place("enum"))?, value.to_string())
        }
        ProposalKind::Field => {
            let (outer, name) = proposal.path.rsplit_once('.').ok_or_else(|| no_place("field"))?;
            let (pointer, schema) = schema_of(&document, outer).ok_or_else(|| no_place("object"))?;
            schema.get("properties").ok_or_else(|| no_place("`properties`"))?;
            let name = name.trim_end_matches("[]");
            (format!("{pointer}/properties"), format!("{}: {}", json!(name), spaced(value)))
        }
        ProposalKind::Bound => {
            let (pointer, own) = schema_of(&document, &proposal.path).ok_or_else(|| no_place("field"))?;
            let (keyword, bound) =
                value.as_object().and_then(|one| one.iter().next()).ok_or_else(|| no_place("bound"))?;
            if own.get(keyword).is_some() {
                let pointer = format!("{pointer}/{keyword}");
                let text = replaced(schema, &pointer, &bound.to_string()).ok_or_else(|| no_place("bound"))?;
                return Ok(Edited { text, pointer });
            }
            (pointer, format!("{}: {bound}", json!(keyword)))
        }
        ProposalKind::Prompt => return Err(ApplyError::Open),
    };
    let text = appended(schema, &pointer, &member).ok_or_else(|| no_place("list"))?;
    Ok(Edited { text, pointer })
}

/// Returns the text with another value at a pointer.
fn replaced(text: &str, pointer: &str, value: &str) -> Option<String> {
    let span = Scanner { text, at: 0 }.find(pointer)?;
    let mut edited = text.to_owned();
    edited.replace_range(span, value);
    serde_json::from_str::<Value>(&edited).ok().map(|_| edited)
}

/// Returns a small value as people write it: `{ "type": "string" }`.
fn spaced(value: &Value) -> String {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let members: Vec<_> =
                members.iter().map(|(key, value)| format!("{}: {value}", json!(key))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        other => other.to_string(),
    }
}

/// Returns the schema of a field such as `data.issues[].title`, with its JSON pointer. References are followed.
pub(super) fn schema_of<'a>(document: &'a Value, path: &str) -> Option<(String, &'a Value)> {
    let mut pointer = String::new();
    for (index, step) in path.split('.').enumerate() {
        let name = step.trim_end_matches("[]");
        let token = name.replace('~', "~0").replace('/', "~1");
        pointer = match index {
            // The older name of the data.
            0 if name == "data" && document.get("data").is_none() => {
                followed(document, "/output".to_owned())?
            }
            0 => followed(document, format!("/{token}"))?,
            _ => followed(document, format!("{pointer}/properties/{token}"))?,
        };
        for _ in 0..step.matches("[]").count() {
            pointer = followed(document, format!("{pointer}/items"))?;
        }
    }
    let schema = document.pointer(&pointer)?;
    Some((pointer, schema))
}

/// The maximum number of references that are followed: a longer chain is a circle.
const MAX_CHAIN: usize = 64;

fn followed(document: &Value, mut pointer: String) -> Option<String> {
    for _ in 0..MAX_CHAIN {
        let schema = document.pointer(&pointer)?;
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => pointer = reference.strip_prefix('#')?.to_owned(),
            None => return Some(pointer),
        }
    }
    None
}

/// Returns the pointer of the enum of a schema, which may be one of several alternatives.
pub(super) fn enum_of(document: &Value, pointer: &str, schema: &Value) -> Option<String> {
    if schema.get("enum").is_some_and(Value::is_array) {
        return Some(format!("{pointer}/enum"));
    }
    ["anyOf", "oneOf"].into_iter().find_map(|keyword| {
        let branches = schema.get(keyword)?.as_array()?;
        (0..branches.len()).find_map(|index| {
            let branch = followed(document, format!("{pointer}/{keyword}/{index}"))?;
            document.pointer(&branch)?.get("enum")?.as_array()?;
            Some(format!("{branch}/enum"))
        })
    })
}

/// Returns the text with one more member at the end of the list or object at a pointer, in the form of the others.
fn appended(text: &str, pointer: &str, member: &str) -> Option<String> {
    let span = Scanner { text, at: 0 }.find(pointer)?;
    let inside = text.get(span.start + 1..span.end - 1)?;
    let end = span.start + 1 + inside.trim_end().len();
    let first = inside.len() - inside.trim_start().len();
    // The white space before the first member also separates the others.
    let before_first = inside.get(..first).unwrap_or_default();
    let addition = match (inside.trim().is_empty(), before_first.contains('\n')) {
        (true, _) => member.to_owned(),
        (false, true) => format!(",{before_first}{member}"),
        (false, false) => format!(", {member}"),
    };
    let head = text.get(..end)?;
    let tail = text.get(end..)?;
    let edited = format!("{head}{addition}{tail}");
    // What is written must be JSON again.
    serde_json::from_str::<Value>(&edited).ok().map(|_| edited)
}

/// Finds values in text that is known to be JSON.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl Scanner<'_> {
    /// Returns the bytes of the value at a pointer.
    fn find(mut self, pointer: &str) -> Option<Range<usize>> {
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            self.space();
            match self.byte()? {
                b'{' => self.enter_member(&token)?,
                b'[' => self.enter_item(token.parse().ok()?)?,
                _ => return None,
            }
        }
        self.space();
        let start = self.at;
        self.skip()?;
        Some(start..self.at)
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while self.byte().is_some_and(|byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b':')) {
            self.at += 1;
        }
    }

    /// Goes to the value of a member. The last of equal names counts.
    fn enter_member(&mut self, name: &str) -> Option<()> {
        self.at += 1;
        let mut found = None;
        loop {
            self.space();
            let start = self.at;
            if self.byte()? == b'}' {
                self.at = found?;
                return Some(());
            }
            self.skip()?;
            let key: String = serde_json::from_str(self.text.get(start..self.at)?).ok()?;
            self.space();
            if key == name {
                found = Some(self.at);
            }
            self.skip()?;
        }
    }

    /// Goes to an item of a list.
    fn enter_item(&mut self, index: usize) -> Option<()> {
        self.at += 1;
        for _ in 0..index {
            self.space();
            self.skip()?;
        }
        self.space();
        (self.byte()? != b']').then_some(())
    }

    /// Goes behind a value.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.byte()? {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                byte if byte.is_ascii_whitespace() || matches!(byte, b',' | b':') => self.at += 1,
                _ => self.word(),
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.byte()? {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                _ => self.at += 1,
            }
        }
    }

    /// Goes behind a number, `true`, `false` or `null`.
    fn word(&mut self) {
        while self
            .byte()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        {
            self.at += 1;
        }
    }
}
