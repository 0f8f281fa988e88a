//! Writing a subtree in the order of the tape, without recursion.

use crate::node::Node;
use crate::tape::{Entry, Tag, Tape};
use crate::write::Writer;

pub(super) fn write(root: Node<'_>, w: &mut Writer<'_>) {
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
