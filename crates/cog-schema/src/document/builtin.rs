//! The definitions of the runtime, which a schema refers to without defining them.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{handoff, media};

const KEYWORDS: [&str; 2] = ["$defs", "definitions"];

/// The pointers of the definitions of a handoff that were added to a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Handoffs {
    /// What a module emits.
    pub(crate) contexts: Vec<String>,
    /// The packet that a module receives.
    pub(crate) packets: Vec<String>,
}

/// Adds the definitions that the document refers to without defining them.
pub(super) fn define(document: &mut Value) -> Handoffs {
    let missing = missing(document);
    let mut added = Handoffs::default();
    let takes_packet = missing.iter().any(|(_, name)| *name == handoff::PACKET);
    for (keyword, name) in missing {
        let pointer = format!("/{keyword}/{name}");
        let definition = match name {
            media::INPUT => media::input(false),
            media::OUTPUT => media::output(),
            handoff::PACKET => {
                added.packets.push(pointer);
                handoff::packet()
            }
            _ => {
                added.contexts.push(pointer);
                handoff::context(!takes_packet)
            }
        };
        insert(document, keyword, name, definition);
    }
    added
}

fn insert(document: &mut Value, keyword: &str, name: &str, definition: Value) {
    let Some(members) = document.as_object_mut() else { return };
    let definitions = members.entry(keyword).or_insert_with(|| Value::Object(Map::new()));
    if let Some(definitions) = definitions.as_object_mut() {
        definitions.insert(name.to_owned(), definition);
    }
}

/// Returns the definitions that are missing, each with the keyword that it is below.
fn missing(document: &Value) -> Vec<(&'static str, &'static str)> {
    let references = references(document);
    let is_missing = |keyword: &str, name: &str| {
        let pointer = format!("/{keyword}/{name}");
        references.contains(format!("#{pointer}").as_str()) && document.pointer(&pointer).is_none()
    };
    let names = [media::INPUT, media::OUTPUT, handoff::CONTEXT, handoff::PACKET];
    let known = KEYWORDS.into_iter().flat_map(|keyword| names.map(|name| (keyword, name)));
    known.filter(|(keyword, name)| is_missing(keyword, name)).collect()
}

/// Returns the references in a document.
fn references(document: &Value) -> HashSet<&str> {
    let mut references = HashSet::new();
    let mut open = vec![document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                references.extend(members.get("$ref").and_then(Value::as_str));
                open.extend(members.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    references
}
