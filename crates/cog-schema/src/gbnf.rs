//! The grammar of an answer for llama.cpp, in its format GBNF.
//!
//! The grammar that the engine makes of a schema permits white space between all tokens, which small models write at length. This
//! one has as much as the JSON that models have read: a space after a colon, and line breaks with an indentation in objects. It says
//! how long an answer can be.

mod numbers;
mod texts;

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::{
    dialect::{MAX_ITEMS, MAX_LENGTH},
    subschema::names,
};

/// The size of a grammar from which the engine needs seconds to read it, in bytes.
const MAX_GRAMMAR: usize = 256 << 10;
/// The output tokens for an answer that has no maximum length, or one that is only the bound of this program.
const FREE_TOKENS: u64 = 4_096;
/// The tokens per character of the longest answer: a character outside of ASCII is often several tokens.
const TOKENS_PER_CHAR: u64 = 2;
/// The tokens that end an answer.
const END_TOKENS: u64 = 16;

/// A grammar of a schema, with little white space between the tokens of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grammar {
    /// The rules in GBNF.
    pub text: String,
    /// The output tokens that the longest answer needs, at most.
    pub max_tokens: u64,
}

impl Grammar {
    /// Returns the grammar of a schema in the dialect of llama.cpp ([`Contract::project_form`](crate::Contract::project_form));
    /// none if it says what a grammar cannot express, or if the grammar is too large.
    pub fn new(schema: &Value) -> Option<Self> {
        let definitions = schema.get("$defs").and_then(Value::as_object);
        let mut rules = Rules { definitions, ..Rules::default() };
        let root = rules.schema(schema)?;
        let mut text = format!("root ::= {}\n", root.text);
        for (name, body) in rules.done {
            text.push_str(&format!("{name} ::= {body}\n"));
        }
        let longest = root.chars.saturating_mul(TOKENS_PER_CHAR).saturating_add(END_TOKENS);
        let max_tokens = if rules.is_free { longest.max(FREE_TOKENS) } else { longest };
        (text.len() <= MAX_GRAMMAR).then_some(Self { text, max_tokens })
    }
}

/// An expression of GBNF, with the maximum number of characters that it matches.
struct Piece {
    text: String,
    chars: u64,
}

impl Piece {
    fn new(text: impl Into<String>, chars: u64) -> Self {
        Self { text: text.into(), chars }
    }
}

/// The rules of a grammar in progress.
#[derive(Default)]
struct Rules<'a> {
    definitions: Option<&'a Map<String, Value>>,
    done: Vec<(String, String)>,
    known: HashSet<&'static str>,
    /// The rule of each definition, and its length once that is known.
    references: HashMap<&'a str, (String, Option<u64>)>,
    /// Whether an answer can have any length, apart from the bounds that the projection adds.
    is_free: bool,
}

impl<'a> Rules<'a> {
    fn schema(&mut self, schema: &'a Value) -> Option<Piece> {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(true) => return Some(self.anything()),
            _ => return None,
        };
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            return self.reference(reference.strip_prefix("#/$defs/")?);
        }
        if let Some(branches) = members.get("anyOf").or_else(|| members.get("oneOf")) {
            let branches: Option<Vec<Piece>> =
                branches.as_array()?.iter().map(|branch| self.schema(branch)).collect();
            return choice(branches?);
        }
        if let Some(value) = members.get("const") {
            return Some(literal(&value.to_string()));
        }
        if let Some(values) = members.get("enum").and_then(Value::as_array) {
            return choice(values.iter().map(|value| literal(&value.to_string())).collect());
        }
        match members.get("type") {
            Some(Value::String(kind)) => self.value(kind, members),
            Some(Value::Array(kinds)) => {
                let kinds: Option<Vec<Piece>> =
                    kinds.iter().map(|kind| self.value(kind.as_str()?, members)).collect();
                choice(kinds?)
            }
            Some(_) => None,
            None => Some(self.anything()),
        }
    }

    /// Returns the rule of a definition. The length of a recursive one is not known.
    fn reference(&mut self, name: &'a str) -> Option<Piece> {
        if let Some((rule, chars)) = self.references.get(name) {
            self.is_free |= chars.is_none();
            return Some(Piece::new(rule.clone(), chars.unwrap_or(0)));
        }
        let schema = self.definitions?.get(name)?;
        let rule = format!("def-{}", self.references.len());
        self.references.insert(name, (rule.clone(), None));
        let body = self.schema(schema)?;
        self.references.insert(name, (rule.clone(), Some(body.chars)));
        self.done.push((rule.clone(), body.text));
        Some(Piece::new(rule, body.chars))
    }

    fn value(&mut self, kind: &str, members: &'a Map<String, Value>) -> Option<Piece> {
        match kind {
            "null" => Some(literal("null")),
            "boolean" => choice(vec![literal("true"), literal("false")]),
            "integer" => numbers::integer(members),
            "number" => Some(numbers::number()),
            "string" => self.string(members),
            "array" => self.array(members),
            "object" => self.object(members),
            _ => None,
        }
    }

    fn string(&mut self, members: &Map<String, Value>) -> Option<Piece> {
        if let Some(pattern) = members.get("pattern").and_then(Value::as_str) {
            let piece = texts::pattern(pattern)?;
            self.is_free |= piece.chars == u64::MAX;
            return Some(Piece { chars: if piece.chars == u64::MAX { 0 } else { piece.chars }, ..piece });
        }
        if let Some(format) = members.get("format").and_then(Value::as_str) {
            return texts::format(format);
        }
        self.define(texts::CHAR);
        let min = members.get("minLength").and_then(Value::as_u64).unwrap_or(0);
        let max = members.get("maxLength").and_then(Value::as_u64);
        self.is_free |= max.is_none_or(|max| max >= MAX_LENGTH);
        let text = match max {
            Some(max) => format!(r#""\"" char{{{min},{max}}} "\"""#),
            None => format!(r#""\"" char{{{min},}} "\"""#),
        };
        Some(Piece::new(text, max.filter(|max| *max < MAX_LENGTH).unwrap_or(0) + 2))
    }

    fn array(&mut self, members: &'a Map<String, Value>) -> Option<Piece> {
        let items = match members.get("items") {
            Some(Value::Array(positions)) => {
                let items: Option<Vec<Piece>> = positions.iter().map(|item| self.schema(item)).collect();
                return Some(tuple(&items?));
            }
            Some(items) => self.schema(items)?,
            None => self.anything(),
        };
        let min = members.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let max = members.get("maxItems").and_then(Value::as_u64);
        if max == Some(0) {
            return Some(literal("[]"));
        }
        // The bound that the projection adds says nothing about the length of an answer.
        let counted = max.filter(|max| *max < MAX_ITEMS);
        self.is_free |= counted.is_none();
        let item = self.add(items.text);
        let further = min.saturating_sub(1);
        let list = match max {
            Some(1) => item,
            Some(max) => format!(r#"{item} ("," {item}){{{further},{}}}"#, max - 1),
            None => format!(r#"{item} ("," {item}){{{further},}}"#),
        };
        let list = if min == 0 { format!("({list})?") } else { list };
        let chars = counted.unwrap_or(0).saturating_mul(items.chars.saturating_add(1)).saturating_add(2);
        Some(Piece::new(format!(r#""[" {list} "]""#), chars))
    }

    fn object(&mut self, members: &'a Map<String, Value>) -> Option<Piece> {
        let properties = members.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty());
        let additional = members.get("additionalProperties");
        let Some(properties) = properties else {
            return match additional {
                Some(Value::Bool(false)) => Some(literal("{}")),
                Some(values @ Value::Object(_)) => self.map(values),
                _ => Some(self.any_object()),
            };
        };
        // A grammar cannot say that a name is none of these.
        if additional.is_some_and(|additional| *additional != Value::Bool(false)) {
            return None;
        }
        let required: HashSet<&str> = names(members.get("required")).collect();
        let mut all = Vec::new();
        for (name, schema) in properties {
            let value = self.schema(schema)?;
            let key = literal(&format!("{}: ", Value::from(name.as_str())));
            let chars = key.chars.saturating_add(value.chars).saturating_add(BREAK_CHARS);
            let text = format!("{} {}", key.text, value.text);
            all.push((Piece::new(text, chars), required.contains(name.as_str())));
        }
        Some(self.members(all))
    }

    /// Returns an object of these members in their order; each is paired with whether it is required.
    fn members(&mut self, mut members: Vec<(Piece, bool)>) -> Piece {
        self.define(BREAK);
        let chars = members.iter().fold(2, |sum: u64, (one, _)| sum.saturating_add(one.chars + 1));
        let first_required = members.iter().position(|(_, is_required)| *is_required);
        let leading = first_required.unwrap_or(members.len());
        // What is written several times below becomes a rule, so that the grammar grows with the number of members.
        if leading > 0 {
            for (member, _) in members.iter_mut().take(leading + 1) {
                member.text = self.add(std::mem::take(&mut member.text));
            }
        }
        let mut rest = String::new();
        let mut starts = Vec::new();
        for (index, (member, is_required)) in members.iter().enumerate().rev() {
            if index <= leading {
                starts.push(format!("{}{rest}", member.text));
            }
            rest = match is_required {
                true => format!(r#" "," break {}{rest}"#, member.text),
                false => format!(r#" ("," break {})?{rest}"#, member.text),
            };
            if index <= leading && index > 0 {
                rest = format!(" {}", self.add(rest.trim_start().to_owned()));
            }
        }
        starts.reverse();
        let body = match starts.as_slice() {
            [only] if first_required.is_some() => only.clone(),
            _ if first_required.is_some() => format!("({})", starts.join(" | ")),
            _ => format!("({})?", starts.join(" | ")),
        };
        Piece::new(format!(r#""{{" break {body} break "}}""#), chars.saturating_add(BREAK_CHARS))
    }

    /// Returns an object of any names.
    fn map(&mut self, values: &'a Value) -> Option<Piece> {
        self.is_free = true;
        self.define(texts::CHAR);
        let value = self.schema(values)?;
        let member = self.add(format!(r#""\"" char{{1,{MAX_LENGTH}}} "\": " {}"#, value.text));
        Some(Piece::new(format!(r#""{{" ({member} ("," {member})*)? "}}""#), 2))
    }

    fn anything(&mut self) -> Piece {
        self.is_free = true;
        for rule in [texts::CHAR, texts::TEXT, numbers::NUMBER, VALUE, OBJECT, ARRAY] {
            self.define(rule);
        }
        Piece::new("value", 4)
    }

    fn any_object(&mut self) -> Piece {
        Piece::new("object", self.anything().chars)
    }

    /// Adds a rule with a new name, which it returns.
    fn add(&mut self, body: String) -> String {
        let name = format!("r{}", self.done.len());
        self.done.push((name.clone(), body));
        name
    }

    /// Adds a rule that several values share.
    fn define(&mut self, (name, body): (&'static str, &str)) {
        if self.known.insert(name) {
            self.done.push((name.to_owned(), body.to_owned()));
        }
    }
}

/// A line break with an indentation, or none.
const BREAK: (&str, &str) = ("break", r"([\n] [ ]{0,6})?");
/// What a break takes of the length of an answer: the engine has it as one token.
const BREAK_CHARS: u64 = 1;
const VALUE: (&str, &str) = ("value", r#"object | array | text | number | "true" | "false" | "null""#);
const OBJECT: (&str, &str) = ("object", r#""{" (text ": " value ("," text ": " value)*)? "}""#);
const ARRAY: (&str, &str) = ("array", r#""[" (value ("," value)*)? "]""#);

fn tuple(items: &[Piece]) -> Piece {
    let texts: Vec<&str> = items.iter().map(|item| item.text.as_str()).collect();
    let chars = items.iter().fold(2, |sum: u64, item| sum.saturating_add(item.chars + 1));
    Piece::new(format!(r#""[" {} "]""#, texts.join(r#" "," "#)), chars)
}

/// Returns a choice; none of no branches.
fn choice(mut branches: Vec<Piece>) -> Option<Piece> {
    let chars = branches.iter().map(|branch| branch.chars).max()?;
    if branches.len() == 1 {
        return branches.pop();
    }
    let texts: Vec<String> = branches.into_iter().map(|branch| branch.text).collect();
    Some(Piece::new(format!("({})", texts.join(" | ")), chars))
}

/// Returns exactly this text of JSON.
fn literal(text: &str) -> Piece {
    let quoted = text.replace('\\', r"\\").replace('"', r#"\""#);
    Piece::new(format!("\"{quoted}\""), text.chars().count() as u64)
}

#[cfg(test)]
mod tests;
