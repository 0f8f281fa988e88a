//! The definitions of a projected schema: all references point to `$defs`.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};

/// The definitions that a projection refers to: finished, or still to be projected.
#[derive(Debug, Default)]
pub(super) struct Defs {
    names: HashMap<String, String>,
    open: VecDeque<String>,
    finished: Map<String, Value>,
}

impl Defs {
    /// Returns a reference to the schema at a pointer of the document.
    pub(super) fn refer(&mut self, target: &str) -> Value {
        let name = match self.names.get(target) {
            Some(name) => name.clone(),
            None => self.add_target(target),
        };
        json!({ "$ref": format!("#/$defs/{name}") })
    }

    /// Returns pointer and name of the next schema to project.
    pub(super) fn next(&mut self) -> Option<(String, String)> {
        let target = self.open.pop_front()?;
        let name = self.names.get(&target)?.clone();
        Some((target, name))
    }

    /// Adds a projected definition.
    pub(super) fn add(&mut self, name: String, schema: Value) {
        self.finished.insert(name, schema);
    }

    pub(super) fn into_map(self) -> Map<String, Value> {
        self.finished
    }

    fn add_target(&mut self, target: &str) -> String {
        let plain = plain_name(target);
        let taken: HashSet<&String> = self.names.values().collect();
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        let name = candidates.find(|name| !taken.contains(name)).unwrap_or(plain);
        self.names.insert(target.to_owned(), name.clone());
        self.open.push_back(target.to_owned());
        name
    }
}

/// Returns a name that every provider accepts: `Issue` for `/$defs/Issue`, `data_properties_x` for other pointers.
fn plain_name(target: &str) -> String {
    let short =
        target.strip_prefix("/$defs/").or_else(|| target.strip_prefix("/definitions/")).unwrap_or(target);
    let plain: String = short
        .trim_start_matches('/')
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() { char } else { '_' })
        .collect();
    if plain.is_empty() { "root".to_owned() } else { plain }
}

/// Returns whether any definition is recursive; with `in_required`, through required members only.
pub(super) fn is_recursive(definitions: &Map<String, Value>, in_required: bool) -> bool {
    definitions.keys().any(|name| {
        let mut seen = HashSet::new();
        let mut open = references(definitions.get(name), in_required);
        while let Some(next) = open.pop() {
            if next == *name {
                return true;
            }
            if seen.insert(next.clone()) {
                open.extend(references(definitions.get(&next), in_required));
            }
        }
        false
    })
}

/// Returns the names of the definitions that a schema refers to; with `in_required`, without those of optional members.
fn references(schema: Option<&Value>, in_required: bool) -> Vec<String> {
    let mut names = Vec::new();
    let mut open: Vec<&Value> = schema.into_iter().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                let reference = members.get("$ref").and_then(Value::as_str);
                names.extend(reference.and_then(|text| text.strip_prefix("#/$defs/")).map(str::to_owned));
                let keywords = members.iter().filter(|(keyword, _)| *keyword != "properties");
                open.extend(keywords.map(|(_, value)| value));
                open.extend(properties(members, in_required));
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    names
}

/// Returns the schemas of an object's members; with `in_required`, of the required ones.
fn properties(members: &Map<String, Value>, in_required: bool) -> impl Iterator<Item = &Value> {
    let required = members.get("required").and_then(Value::as_array);
    let is_required = move |name: &String| required.is_some_and(|keys| keys.iter().any(|key| key == name));
    let properties = members.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.filter(move |(name, _)| !in_required || is_required(name)).map(|(_, schema)| schema)
}
