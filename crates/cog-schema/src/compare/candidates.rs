//! Varies samples at the places and by the values that schemas name: a search for counterexamples where no schema describes them.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value, json};

use crate::subschema::{children, referred};

/// The values that two schemas name.
pub(super) struct Candidates {
    values: Vec<Value>,
    names: Vec<String>,
    lengths: Vec<usize>,
}

/// The maximum number of schemas that are read for values.
const MAX_SCHEMAS: usize = 2_000;
/// The maximum number of values, names and lengths.
const MAX_NAMED: usize = 48;
/// The maximum length of a text or list that is made to exceed a limit.
const MAX_LENGTH: usize = 5_000;
/// The maximum number of variants of one sample.
const MAX_VARIANTS: usize = 2_000;

impl Candidates {
    /// Collects the values that the schemas at pointers of a document name.
    pub(super) fn new(document: &Value, roots: &[&str]) -> Self {
        let mut values = vec![
            json!(null),
            json!(true),
            json!(0),
            json!(1),
            json!(-1),
            json!(0.5),
            json!(""),
            json!("x"),
            json!([]),
            json!({}),
        ];
        let mut names = BTreeSet::from(["other".to_owned()]);
        let mut lengths = BTreeSet::new();
        let mut open: Vec<String> = roots.iter().map(|root| (*root).to_owned()).collect();
        let mut seen = BTreeSet::new();
        while let Some(pointer) = open.pop() {
            if seen.len() >= MAX_SCHEMAS || !seen.insert(pointer.clone()) {
                continue;
            }
            let Some(schema) = document.pointer(&pointer) else { continue };
            open.extend(referred(schema));
            open.extend(children(schema).iter().map(|child| format!("{pointer}{}", child.pointer)));
            for (keyword, value) in schema.as_object().into_iter().flatten() {
                read_keyword(keyword, value, &mut values, &mut names, &mut lengths);
            }
        }
        values.truncate(MAX_NAMED);
        Self {
            values,
            names: names.into_iter().take(MAX_NAMED).collect(),
            lengths: lengths.into_iter().filter(|length| *length <= MAX_LENGTH).take(MAX_NAMED).collect(),
        }
    }

    /// Passes variants of a value on until one is enough.
    pub(super) fn each_variant(&self, sample: &Value, act: &mut dyn FnMut(&Value) -> bool) {
        let mut remaining = MAX_VARIANTS;
        for pointer in places(sample) {
            let Some(place) = sample.pointer(&pointer) else { continue };
            for replacement in self.replacements(place) {
                let mut variant = sample.clone();
                if let Some(slot) = variant.pointer_mut(&pointer) {
                    *slot = replacement;
                }
                remaining = remaining.saturating_sub(1);
                if remaining == 0 || !act(&variant) {
                    return;
                }
            }
        }
    }

    fn replacements(&self, place: &Value) -> Vec<Value> {
        let mut all = match place {
            Value::Object(members) => self.objects(members),
            Value::Array(items) => self.lists(items),
            _ => Vec::new(),
        };
        all.extend(self.values.iter().cloned());
        all.extend(self.lengths.iter().map(|length| Value::from("x".repeat(*length))));
        all.extend(self.values.iter().map(|value| json!([value])));
        all
    }

    /// Returns an object without one of its members, or with one more.
    fn objects(&self, members: &Map<String, Value>) -> Vec<Value> {
        let mut all = Vec::new();
        for name in members.keys() {
            let mut fewer = members.clone();
            fewer.shift_remove(name);
            all.push(Value::Object(fewer));
        }
        for name in self.names.iter().filter(|name| !members.contains_key(*name)) {
            for value in [json!(null), json!("x"), json!(1), json!({}), json!([])] {
                let mut more = members.clone();
                more.insert(name.clone(), value);
                all.push(Value::Object(more));
            }
        }
        all
    }

    /// Returns lists of other lengths, with items that repeat.
    fn lists(&self, items: &[Value]) -> Vec<Value> {
        let lengths = self.lengths.iter().copied().chain([items.len() + 1, items.len().saturating_sub(1)]);
        let repeated = lengths.map(|length| items.iter().cycle().take(length).cloned().collect());
        repeated.map(Value::Array).collect()
    }
}

fn read_keyword(
    keyword: &str,
    value: &Value,
    values: &mut Vec<Value>,
    names: &mut BTreeSet<String>,
    lengths: &mut BTreeSet<usize>,
) {
    match (keyword, value) {
        ("const", value) => values.push(value.clone()),
        ("enum", Value::Array(all)) => values.extend(all.iter().cloned()),
        ("properties", Value::Object(members)) => names.extend(members.keys().cloned()),
        ("required", Value::Array(all)) => {
            names.extend(all.iter().filter_map(Value::as_str).map(str::to_owned));
        }
        ("minLength" | "maxLength" | "minItems" | "maxItems", Value::Number(limit)) => {
            if let Some(limit) = limit.as_u64().and_then(|limit| usize::try_from(limit).ok()) {
                lengths.extend([limit.saturating_sub(1), limit, limit.saturating_add(1)]);
            }
        }
        (
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf",
            Value::Number(limit),
        ) => {
            values.extend(around(limit));
        }
        _ => {}
    }
}

/// Returns numbers around a limit.
fn around(limit: &Number) -> Vec<Value> {
    let mut all = vec![Value::Number(limit.clone())];
    if let Some(whole) = limit.as_i64() {
        all.extend([whole.saturating_sub(1), whole.saturating_add(1)].map(Value::from));
    }
    if let Some(real) = limit.as_f64() {
        all.extend([real - 0.5, real + 0.5].map(Value::from));
    }
    all
}

/// The maximum number of places in a sample that are varied.
const MAX_PLACES: usize = 64;

/// Returns the pointers of the values in a value, the outer ones first.
fn places(sample: &Value) -> Vec<String> {
    let mut places = vec![String::new()];
    let mut next = 0;
    while let Some(pointer) = places.get(next).cloned() {
        next += 1;
        let inner: Vec<String> = match sample.pointer(&pointer) {
            Some(Value::Object(members)) => members.keys().map(|key| crate::subschema::token(key)).collect(),
            Some(Value::Array(items)) => (0..items.len()).map(|index| index.to_string()).collect(),
            _ => Vec::new(),
        };
        let room = MAX_PLACES.saturating_sub(places.len());
        places.extend(inner.into_iter().take(room).map(|token| format!("{pointer}/{token}")));
    }
    places
}
