//! Writing JSON.

mod serialize;

use serde::Serialize;

use crate::{
    node::Node,
    scan::string_run,
    tape::{Entry, Tag, Tape},
};

/// Appends one JSON value to a string, with its commas, colons, quotes and indentation.
///
/// ```
/// let mut out = String::new();
/// cog_json::Writer::compact(&mut out).object(|w| {
///     w.field("ok", &true);
///     w.optional("note", &None::<&str>);
///     w.key("items").array(|w| {
///         w.item(&1.5).item(&"b");
///     });
/// });
/// assert_eq!(out, r#"{"ok":true,"items":[1.5,"b"]}"#);
/// ```
pub struct Writer<'a> {
    out: &'a mut String,
    pretty: bool,
    depth: usize,
    /// This container has a child already.
    comma: bool,
    /// A key was written, and its value follows.
    after_key: bool,
    /// The string that follows is the literal of a number.
    expects_literal: bool,
}

impl<'a> Writer<'a> {
    /// Creates a writer without white space.
    pub fn compact(out: &'a mut String) -> Self {
        Writer { out, pretty: false, depth: 0, comma: false, after_key: false, expects_literal: false }
    }

    /// Creates a writer with line breaks, indented by two spaces.
    pub fn pretty(out: &'a mut String) -> Self {
        Writer { pretty: true, ..Self::compact(out) }
    }

    /// Writes an object; `members` writes what is in it, with [`field`](Self::field),
    /// [`optional`](Self::optional) or [`key`](Self::key).
    pub fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.open('{');
        members(self);
        self.close('}');
    }

    /// Writes an array; `items` writes what is in it.
    pub fn array(&mut self, items: impl FnOnce(&mut Self)) {
        self.open('[');
        items(self);
        self.close(']');
    }

    /// Writes a member.
    pub fn field(&mut self, key: &str, value: &(impl ToJson + ?Sized)) -> &mut Self {
        value.write_json(self.key(key));
        self
    }

    /// Writes a member, unless it is `None`.
    pub fn optional(&mut self, key: &str, value: &Option<impl ToJson>) -> &mut Self {
        match value {
            Some(value) => self.field(key, value),
            None => self,
        }
    }

    /// Writes a key; the next value is its value.
    pub fn key(&mut self, key: &str) -> &mut Self {
        self.separate();
        write_string(key, self.out);
        self.end_key();
        self
    }

    /// Writes an element.
    pub fn item(&mut self, value: &(impl ToJson + ?Sized)) -> &mut Self {
        value.write_json(self);
        self
    }

    /// Writes a string.
    pub fn string(&mut self, text: &str) {
        self.separate();
        write_string(text, self.out);
    }

    /// Writes a string that is in parts, without a copy of all of them.
    pub fn string_of(&mut self, parts: &[&str]) {
        self.separate();
        self.out.push('"');
        parts.iter().for_each(|part| write_escaped(part, self.out));
        self.out.push('"');
    }

    /// Writes `true` or `false`.
    pub fn bool(&mut self, value: bool) {
        self.literal(if value { "true" } else { "false" });
    }

    /// Writes `null`.
    pub fn null(&mut self) {
        self.literal("null");
    }

    /// Writes a value that serde can serialize, or `null` if its serialization fails.
    pub(crate) fn value(&mut self, value: &(impl Serialize + ?Sized)) {
        let start = self.out.len();
        let depth = self.depth;
        let comma = self.comma;
        let after_key = self.after_key;
        if value.serialize(&mut *self).is_err() {
            // It may have failed after a part of it was written.
            self.out.truncate(start);
            self.depth = depth;
            self.comma = comma;
            self.after_key = after_key;
            self.expects_literal = false;
            self.null();
        }
    }

    /// Writes a value of a tree, without recursion, and with the literals of its numbers. Incomplete containers and strings
    /// are closed.
    pub fn node(&mut self, node: Node<'_>) {
        write(node, self);
    }

    /// Writes a number or literal verbatim.
    fn literal(&mut self, text: &str) {
        self.separate();
        self.out.push_str(text);
    }

    fn end_key(&mut self) {
        self.out.push_str(if self.pretty { ": " } else { ":" });
        self.after_key = true;
    }

    fn open(&mut self, bracket: char) {
        self.separate();
        self.out.push(bracket);
        self.depth += 1;
        self.comma = false;
    }

    fn close(&mut self, bracket: char) {
        self.depth = self.depth.saturating_sub(1);
        if self.comma {
            self.indent();
        }
        self.out.push(bracket);
        self.comma = true;
    }

    /// Writes the separator before the next value or key.
    fn separate(&mut self) {
        if std::mem::take(&mut self.after_key) {
            return;
        }
        if std::mem::replace(&mut self.comma, true) {
            self.out.push(',');
        }
        if self.depth > 0 {
            self.indent();
        }
    }

    fn indent(&mut self) {
        if self.pretty {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n("  ", self.depth));
        }
    }
}

/// Appends `text` as a JSON string. Only what must be escaped is escaped.
pub(crate) fn write_string(text: &str, out: &mut String) {
    out.push('"');
    write_escaped(text, out);
    out.push('"');
}

fn write_escaped(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    let mut from = 0;
    loop {
        let stop = string_run::<b'"'>(bytes, from);
        out.push_str(text.get(from..stop).unwrap_or_default());
        let Some(&byte) = bytes.get(stop) else { break };
        escape(byte, out);
        from = stop + 1;
    }
}

fn escape(byte: u8, out: &mut String) {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        0x08 => out.push_str("\\b"),
        0x0c => out.push_str("\\f"),
        _ => {
            out.push_str("\\u00");
            for nibble in [byte >> 4, byte & 0xf] {
                out.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
        }
    }
}

// Types that can be written as JSON.

/// A value that has a JSON form. Types that serde can serialize have one.
///
/// Derive `Serialize` where the members are the fields. Implement this trait by hand only where they are not: the form is
/// computed from other types (a code with its meaning, a path as text), or members appear only in some states.
pub trait ToJson {
    /// Writes exactly one value.
    fn write_json(&self, w: &mut Writer<'_>);

    /// Returns the value as compact JSON.
    fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut Writer::compact(&mut out));
        out
    }

    /// Returns the value as JSON with line breaks, indented by two spaces.
    fn to_json_pretty(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut Writer::pretty(&mut out));
        out
    }
}

/// A value whose serialization fails, such as a map with keys that are not strings, becomes `null`.
impl<T: Serialize + ?Sized> ToJson for T {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.value(self);
    }
}

/// The array of values whose JSON form is written by hand.
pub struct Array<'a, T>(pub &'a [T]);

impl<T: ToJson> ToJson for Array<'_, T> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.array(|w| {
            for value in self.0 {
                w.item(value);
            }
        });
    }
}

// Writing a subtree in the order of the tape, without recursion.

fn write(root: Node<'_>, w: &mut Writer<'_>) {
    let tape = root.tape;
    let end = tape.after(root.index);
    let mut open: Vec<(u32, char)> = Vec::new();
    let mut at = root.index;
    while at < end {
        close(&mut open, at, w);
        let entry = tape.entry(at);
        // A key whose value has not begun is the last entry of its tape.
        if entry.tag() == Tag::Key && (entry.is_shadowed() || at + 1 == end) {
            at = tape.after(at + 1);
            continue;
        }
        if let Some(bracket) = begin(tape, entry, w) {
            open.push((tape.after(at), bracket));
        }
        at += 1;
    }
    close(&mut open, u32::MAX, w);
}

/// Writes a scalar or an opening bracket; returns the closing bracket of a container.
fn begin(tape: &Tape, entry: Entry, w: &mut Writer<'_>) -> Option<char> {
    match entry.tag() {
        Tag::Key => {
            w.key(tape.string(entry));
        }
        Tag::Null => w.null(),
        Tag::False => w.bool(false),
        Tag::True => w.bool(true),
        Tag::Number => w.literal(tape.literal(entry)),
        Tag::String => w.string(tape.string(entry)),
        Tag::Array => {
            w.open('[');
            return Some(']');
        }
        Tag::Object => {
            w.open('{');
            return Some('}');
        }
    }
    None
}

/// Closes the containers that end before `at`.
fn close(open: &mut Vec<(u32, char)>, at: u32, w: &mut Writer<'_>) {
    while let Some((_, bracket)) = open.pop_if(|(end, _)| *end <= at) {
        w.close(bracket);
    }
}

#[cfg(test)]
mod tests;
