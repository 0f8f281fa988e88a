//! From a schema to a value that should fit it.

use fastrand::Rng;
use serde_json::{Map, Value};

use super::{medium, number, text};
use crate::project::{flattened, merge};
use crate::shape::is_output;

/// Deeper than this, only what must be there is sampled.
const ROOMY_DEPTH: usize = 5;
/// Deeper than this, nothing is.
const DEPTH: usize = 40;
/// Values in all.
const BUDGET: usize = 2_000;

/// A seeded sampler over one document.
pub(super) struct Sampler<'a> {
    document: &'a Value,
    pub(super) rng: Rng,
    depth: usize,
    budget: usize,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(document: &'a Value, seed: u64) -> Self {
        Self { document, rng: Rng::with_seed(seed), depth: 0, budget: BUDGET }
    }

    /// A sample of the schema at a pointer.
    pub(super) fn at(&mut self, pointer: &str) -> Option<Value> {
        let document = self.document;
        self.value(document.pointer(pointer)?, "")
    }

    /// A sample of a schema; `name` is the member it is for, which text then mentions.
    fn value(&mut self, schema: &Value, name: &str) -> Option<Value> {
        if self.depth >= DEPTH || self.budget == 0 {
            return None;
        }
        self.budget -= 1;
        self.depth += 1;
        let value = match schema {
            Value::Bool(false) => None,
            Value::Object(_) => self.of_object(schema, name),
            _ => Some(Value::from(text::plain(name))),
        };
        self.depth -= 1;
        value
    }

    fn of_object(&mut self, schema: &Value, name: &str) -> Option<Value> {
        let flat = flattened(self.document, schema);
        let members = flat.as_object()?;
        if let Some(value) = members.get("const") {
            return Some(value.clone());
        }
        for keyword in ["enum", "examples"] {
            if let Some(values) =
                members.get(keyword).and_then(Value::as_array).filter(|values| !values.is_empty())
            {
                return values.get(self.rng.usize(..values.len())).cloned();
            }
        }
        if is_output("", &flat)
            && let Some(medium) = medium::medium(members)
        {
            return Some(medium);
        }
        match members.get("oneOf").or_else(|| members.get("anyOf")).and_then(Value::as_array) {
            Some(branches) => self.of_branches(members, branches, name),
            None => self.of_kind(members, name),
        }
    }

    /// Any branch, with what stands beside the choice; the first is as likely as all others together.
    fn of_branches(&mut self, members: &Map<String, Value>, branches: &[Value], name: &str) -> Option<Value> {
        let start = if self.rng.bool() { 0 } else { self.rng.usize(..branches.len().max(1)) };
        let order = (start..branches.len()).chain(0..start);
        order.filter_map(|index| branches.get(index)).find_map(|branch| {
            let mut whole = match flattened(self.document, branch) {
                Value::Object(members) => members,
                other => return self.value(&other, name),
            };
            let beside = members.iter().filter(|(keyword, _)| !matches!(keyword.as_str(), "oneOf" | "anyOf"));
            merge(&mut whole, &beside.map(|(keyword, value)| (keyword.clone(), value.clone())).collect());
            self.value(&Value::Object(whole), name)
        })
    }

    fn of_kind(&mut self, members: &Map<String, Value>, name: &str) -> Option<Value> {
        match self.kind(members) {
            "null" => Some(Value::Null),
            "boolean" => Some(Value::from(self.rng.bool())),
            "integer" => number::integer(&mut self.rng, members),
            "number" => number::number(&mut self.rng, members),
            "array" => self.array(members, name),
            "object" => self.object(members),
            _ => text::text(&mut self.rng, members, name).map(Value::from),
        }
    }

    /// One of the types, rather not null; where none is given, the one that the keywords speak of.
    fn kind<'s>(&mut self, members: &'s Map<String, Value>) -> &'s str {
        match members.get("type") {
            Some(Value::String(kind)) => kind,
            Some(Value::Array(kinds)) => {
                let kinds: Vec<&str> =
                    kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect();
                self.rng.choice(kinds).unwrap_or("null")
            }
            _ if has(members, &["properties", "required", "additionalProperties", "minProperties"]) => {
                "object"
            }
            _ if has(members, &["items", "minItems", "maxItems", "uniqueItems", "contains"]) => "array",
            _ if has(
                members,
                &["minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"],
            ) =>
            {
                "number"
            }
            _ => "string",
        }
    }

    fn array(&mut self, members: &Map<String, Value>, name: &str) -> Option<Value> {
        let least = size(members, "minItems").unwrap_or(0);
        let most = size(members, "maxItems").unwrap_or(usize::MAX);
        let wanted = if self.is_roomy() { self.rng.usize(1..=3) } else { 0 };
        let count = wanted.clamp(least, most.max(least));
        let mut items: Vec<Value> = Vec::new();
        if let Some(schema) = members.get("contains") {
            items.push(self.value(schema, name)?);
        }
        let is_unique = members.get("uniqueItems") == Some(&Value::Bool(true));
        let mut tries = 0;
        while items.len() < count && tries < 4 * count {
            tries += 1;
            let item = self.item(members, items.len(), name)?;
            if !(is_unique && items.contains(&item)) {
                items.push(item);
            }
        }
        Some(Value::Array(items))
    }

    fn item(&mut self, members: &Map<String, Value>, index: usize, name: &str) -> Option<Value> {
        let schema = match members.get("items") {
            Some(Value::Array(tuple)) => tuple.get(index).or_else(|| members.get("additionalItems")),
            other => other,
        };
        self.value(schema.unwrap_or(&Value::Bool(true)), name)
    }

    fn object(&mut self, members: &Map<String, Value>) -> Option<Value> {
        let required: Vec<&str> = members
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut object = Map::new();
        for (name, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let is_required = required.contains(&name.as_str());
            let is_wanted = is_required || (self.is_roomy() && self.rng.u8(..4) > 0);
            if !is_wanted {
                continue;
            }
            match self.value(schema, name) {
                Some(value) => drop(object.insert(name.clone(), value)),
                None if is_required => return None,
                None => {}
            }
        }
        for name in required {
            if !object.contains_key(name) {
                let value =
                    self.value(members.get("additionalProperties").unwrap_or(&Value::Bool(true)), name)?;
                object.insert(name.to_owned(), value);
            }
        }
        Some(Value::Object(object))
    }

    fn is_roomy(&self) -> bool {
        self.depth <= ROOMY_DEPTH
    }
}

fn has(members: &Map<String, Value>, keywords: &[&str]) -> bool {
    keywords.iter().any(|keyword| members.contains_key(*keyword))
}

/// A limit of size.
pub(super) fn size(members: &Map<String, Value>, keyword: &str) -> Option<usize> {
    members.get(keyword).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok())
}
