//! Lists the changes between two schemas of one document, each with the edit that makes it.

use serde_json::{Map, Value};

use crate::subschema::{followed_pointer, is_annotation, is_enforced, names, token};

/// One change, before it is judged.
pub(super) struct Change {
    pub(super) path: String,
    pub(super) kind: String,
    /// The edit of the copy of the old document that makes this change; none if no value depends on it.
    pub(super) edit: Option<Edit>,
    pub(super) old: Option<Value>,
    pub(super) new: Option<Value>,
}

impl Change {
    pub(super) fn without_edit(path: &str, kind: &str) -> Self {
        Self { path: path.to_owned(), kind: kind.to_owned(), edit: None, old: None, new: None }
    }
}

/// Sets or removes the value at a JSON pointer.
#[derive(Debug)]
pub(super) struct Edit {
    pointer: String,
    value: Option<Value>,
}

impl Edit {
    /// Applies the edit. Returns whether its place exists.
    pub(super) fn apply(&self, document: &mut Value) -> bool {
        let Some((parent, last)) = self.pointer.rsplit_once('/') else { return false };
        match (document.pointer_mut(parent), &self.value) {
            (Some(Value::Object(members)), Some(value)) => {
                members.insert(untoken(last), value.clone());
                true
            }
            (Some(Value::Object(members)), None) => members.shift_remove(&untoken(last)).is_some(),
            (Some(Value::Array(items)), Some(value)) => {
                let item = last.parse().ok().and_then(|index: usize| items.get_mut(index));
                item.map(|item| *item = value.clone()).is_some()
            }
            _ => false,
        }
    }
}

fn untoken(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// The maximum number of pairs of schemas that are visited.
const MAX_PAIRS: usize = 4_000;

/// Returns the changes from the schema at a pointer below `/old` to the schema at a pointer below `/new`. The edits are below
/// `/edited`, a copy of `/old`.
pub(super) fn list_changes(document: &Value, old: &str, new: &str, path: &str) -> Vec<Change> {
    let mut walk = Walk { document, seen: Vec::new(), found: Vec::new() };
    walk.pair(old, new, path);
    walk.found
}

struct Walk<'a> {
    document: &'a Value,
    /// The pairs of pointers that were visited: schemas may refer to themselves.
    seen: Vec<(String, String)>,
    found: Vec<Change>,
}

/// Two schemas that apply to the same field.
#[derive(Clone, Copy)]
struct Pair<'p, 'a> {
    old_at: &'p str,
    new_at: &'p str,
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
    path: &'p str,
}

impl<'a> Walk<'a> {
    fn pair(&mut self, old: &str, new: &str, path: &str) {
        let old_at = followed_pointer(self.document, old);
        let new_at = followed_pointer(self.document, new);
        let pair = (old_at.clone(), new_at.clone());
        if self.seen.len() >= MAX_PAIRS || self.seen.contains(&pair) {
            return;
        }
        self.seen.push(pair);
        let (Some(old), Some(new)) = (self.document.pointer(&old_at), self.document.pointer(&new_at)) else {
            return;
        };
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => {
                self.keywords(Pair { old_at: &old_at, new_at: &new_at, old, new, path });
            }
            _ if old == new => {}
            _ => self.found.push(Change {
                edit: Some(edit(&old_at, Some(new.clone()))),
                old: Some(old.clone()),
                new: Some(new.clone()),
                ..Change::without_edit(path, "schema_changed")
            }),
        }
    }

    fn keywords(&mut self, pair: Pair<'_, 'a>) {
        let added = pair.new.keys().filter(|keyword| !pair.old.contains_key(*keyword));
        for keyword in pair.old.keys().chain(added) {
            match keyword.as_str() {
                "$defs" | "definitions" => {}
                "properties" => self.members(keyword, pair, true),
                "patternProperties" => self.members(keyword, pair, false),
                "required" | "enum" => self.listed(keyword, pair),
                _ => self.keyword(keyword, pair),
            }
        }
    }

    /// Compares the fields of an object.
    fn members(&mut self, keyword: &str, pair: Pair<'_, 'a>, are_named: bool) {
        let empty = Map::new();
        let old = pair.old.get(keyword).and_then(Value::as_object).unwrap_or(&empty);
        let new = pair.new.get(keyword).and_then(Value::as_object).unwrap_or(&empty);
        for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
            let path = below(pair.path, if are_named { name } else { "*" });
            match (old.get(name), new.get(name)) {
                (Some(_), Some(_)) => {
                    let below = format!("/{keyword}/{}", token(name));
                    self.pair(&format!("{}{below}", pair.old_at), &format!("{}{below}", pair.new_at), &path);
                }
                (before, after) => {
                    let mut members = old.clone();
                    match after {
                        Some(schema) => drop(members.insert(name.clone(), schema.clone())),
                        None => drop(members.shift_remove(name)),
                    }
                    let kind = if before.is_some() { "field_removed" } else { "field_added" };
                    self.add(&path, kind, pair.set(keyword, Value::Object(members)), None, None);
                }
            }
        }
    }

    /// Compares a list whose order does not matter, value by value.
    fn listed(&mut self, keyword: &str, pair: Pair<'_, 'a>) {
        let (Some(old), Some(new)) = (pair.old.get(keyword), pair.new.get(keyword)) else {
            match (keyword, pair.old.get(keyword), pair.new.get(keyword)) {
                ("required", old, new) => self.required(pair, old, new),
                _ => self.keyword(keyword, pair),
            }
            return;
        };
        if keyword == "required" {
            return self.required(pair, Some(old), Some(new));
        }
        let (Some(old), Some(new)) = (old.as_array(), new.as_array()) else { return };
        for value in old.iter().filter(|value| !new.contains(value)) {
            let rest = old.iter().filter(|other| *other != value).cloned().collect();
            let edit = pair.set(keyword, Value::Array(rest));
            self.add(pair.path, "enum_value_removed", edit, Some(value), None);
        }
        for value in new.iter().filter(|value| !old.contains(value)) {
            let all = old.iter().chain([value]).cloned().collect();
            let edit = pair.set(keyword, Value::Array(all));
            self.add(pair.path, "enum_value_added", edit, None, Some(value));
        }
    }

    fn required(&mut self, pair: Pair<'_, 'a>, old: Option<&Value>, new: Option<&Value>) {
        let (old, new): (Vec<&str>, Vec<&str>) = (names(old).collect(), names(new).collect());
        for name in old.iter().filter(|name| !new.contains(name)) {
            let rest: Vec<&str> = old.iter().filter(|other| *other != name).copied().collect();
            let edit = pair.set("required", Value::from(rest));
            self.add(&below(pair.path, name), "required_removed", edit, None, None);
        }
        for name in new.iter().filter(|name| !old.contains(name)) {
            let all: Vec<&str> = old.iter().chain([name]).copied().collect();
            let edit = pair.set("required", Value::from(all));
            self.add(&below(pair.path, name), "required_added", edit, None, None);
        }
    }

    fn keyword(&mut self, keyword: &str, pair: Pair<'_, 'a>) {
        let old = pair.old.get(keyword);
        let new = pair.new.get(keyword);
        match (old, new) {
            (Some(old), Some(new)) if self.inner(keyword, old, new, pair) || are_equal(keyword, old, new) => {
            }
            _ => {
                let is_enforced =
                    |value: Option<&Value>| value.is_some_and(|value| is_enforced(keyword, value));
                let verb = match (old, new) {
                    (None, _) => "added",
                    (_, None) => "removed",
                    _ => "changed",
                };
                let kind = format!("{}_{verb}", snake(keyword));
                if is_annotation(keyword) || !(is_enforced(old) || is_enforced(new)) {
                    let change = Change::without_edit(pair.path, &kind);
                    self.found.push(Change { old: short(old), new: short(new), ..change });
                } else {
                    let edit = edit(&format!("{}/{}", pair.old_at, token(keyword)), new.cloned());
                    self.add(pair.path, &kind, edit, old, new);
                }
            }
        }
    }

    /// Compares the schemas in a keyword, if both have as many. Returns whether it did.
    fn inner(&mut self, keyword: &str, old: &Value, new: &Value, pair: Pair<'_, 'a>) -> bool {
        let path = match keyword {
            "items" | "additionalItems" | "contains" => format!("{}[]", pair.path),
            "additionalProperties" => below(pair.path, "*"),
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "propertyNames" => {
                pair.path.to_owned()
            }
            _ => return false,
        };
        let old_at = format!("{}/{keyword}", pair.old_at);
        let new_at = format!("{}/{keyword}", pair.new_at);
        match (old, new) {
            (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
                for index in 0..old.len() {
                    self.pair(&format!("{old_at}/{index}"), &format!("{new_at}/{index}"), &path);
                }
            }
            (Value::Array(_), _) | (_, Value::Array(_)) => return false,
            _ => self.pair(&old_at, &new_at, &path),
        }
        true
    }

    fn add(&mut self, path: &str, kind: &str, edit: Edit, old: Option<&Value>, new: Option<&Value>) {
        let change = Change::without_edit(path, kind);
        self.found.push(Change { edit: Some(edit), old: short(old), new: short(new), ..change });
    }
}

impl Pair<'_, '_> {
    /// Returns the edit that sets a keyword of the old schema.
    fn set(&self, keyword: &str, value: Value) -> Edit {
        edit(&format!("{}/{}", self.old_at, token(keyword)), Some(value))
    }
}

/// Returns an edit of the copy of the old document.
fn edit(pointer: &str, value: Option<Value>) -> Edit {
    Edit { pointer: pointer.replacen(super::OLD, super::EDITED, 1), value }
}

/// Returns whether two values of a keyword mean the same.
fn are_equal(keyword: &str, old: &Value, new: &Value) -> bool {
    match (keyword, old, new) {
        ("type", Value::Array(old), Value::Array(new)) => {
            old.len() == new.len() && old.iter().all(|one| new.contains(one))
        }
        _ => old == new,
    }
}

/// The maximum length of a keyword's value in a report, as JSON.
const MAX_SHOWN: usize = 200;

/// Returns a value that is short enough to be shown.
fn short(value: Option<&Value>) -> Option<Value> {
    value.filter(|value| value.to_string().len() <= MAX_SHOWN).cloned()
}

fn below(path: &str, name: &str) -> String {
    format!("{path}.{name}")
}

/// Returns the name of a keyword as the start of a kind: `maxLength` is `max_length`.
fn snake(keyword: &str) -> String {
    let mut snake = String::with_capacity(keyword.len() + 2);
    for letter in keyword.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
