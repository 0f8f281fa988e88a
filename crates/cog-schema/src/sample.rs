//! Generates answers from a schema, for the offline provider and for tests. They are seeded, and checked like other
//! answers before they are returned.

mod scalars;

use cog_json::Value as Tree;
use fastrand::Rng;
use serde_json::{Map, Value, json};

use self::scalars::size;
use crate::{
    contract::{Contract, Part},
    engine::Pattern,
    graph::is_output,
    project::{flattened, merge},
    subschema::names,
};

/// The maximum number of attempts to generate a valid sample: `not`, `if` and `dependencies` are not considered.
const ATTEMPTS: u64 = 24;

impl Contract {
    /// Returns data that satisfies the contract, equal for equal seeds; none if no attempt is valid.
    pub fn sample(&self, seed: u64) -> Option<Tree> {
        self.first_of(
            seed,
            |sampler| self.sampled_data(sampler),
            |data| self.check_data(data.node()).violations.is_empty(),
        )
    }

    /// Returns an input that satisfies the contract, as [`Contract::sample`].
    pub fn sample_input(&self, seed: u64) -> Option<Tree> {
        self.first_of(
            seed,
            |sampler| sampler.part(self.input.as_ref()),
            |input| self.check_input(input.node()).is_empty(),
        )
    }

    fn first_of(
        &self,
        seed: u64,
        sampled: impl Fn(&mut Sampler<'_>) -> Option<Value>,
        is_valid: impl Fn(&Tree) -> bool,
    ) -> Option<Tree> {
        (0..ATTEMPTS)
            .filter_map(|attempt| {
                sampled(&mut Sampler::new(self.document(), seed.wrapping_add(attempt << 32)))
            })
            .map(Tree::from)
            .find(|value| is_valid(value))
    }

    fn sampled_data(&self, sampler: &mut Sampler<'_>) -> Option<Value> {
        let mut data = sampler.part(self.data.as_ref())?;
        if let Some(members) = data.as_object_mut()
            && self.rules.format.asks_for_envelope()
        {
            members.entry("rationale").or_insert_with(|| Value::from(scalars::RATIONALE));
        }
        Some(data)
    }
}

/// Returns a value for the schema at a pointer of any document, equal for equal seeds. It is not checked.
pub(crate) fn sample_at(document: &Value, pointer: &str, seed: u64) -> Option<Value> {
    Sampler::new(document, seed).at(pointer)
}

impl Sampler<'_> {
    /// Returns a sample of a part; an empty object if it is absent.
    fn part(&mut self, part: Option<&Part>) -> Option<Value> {
        match part {
            Some(part) => self.at(&part.pointer),
            None => Some(Value::Object(serde_json::Map::new())),
        }
    }
}

// Small media files for samples.

/// A file: its type, its base64, and its properties.
struct Sample {
    media_type: &'static str,
    data: &'static str,
    facts: &'static [(&'static str, u64)],
}

const MEDIA: [Sample; 2] = [
    // A chessboard.
    Sample {
        media_type: "image/png",
        data: "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQAQAAAAA3iMLMAAAAE0lEQVR42mPg52eAow8fEAiHOAAqXw/xPczXZQAAAABJRU5ErkJggg==",
        facts: &[("width", 16), ("height", 16)],
    },
    // Two milliseconds of silence.
    Sample {
        media_type: "audio/wav",
        data: "UklGRjQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YRAAAACAgICAgICAgICAgICAgICA",
        facts: &[("duration_ms", 2)],
    },
];

/// Returns a file that a media schema accepts, if there is one.
fn media_file(members: &Map<String, Value>) -> Option<Value> {
    let properties = members.get("properties")?.as_object()?;
    let allows =
        |member: &str, value: &str| properties.get(member).is_none_or(|schema| accepts(schema, value));
    let sample = MEDIA.iter().find(|sample| allows("media_type", sample.media_type))?;
    if !allows("type", "base64") {
        return None;
    }
    let mut value = json!({ "type": "base64", "media_type": sample.media_type, "data": sample.data });
    let facts = sample.facts.iter().filter(|(name, _)| properties.contains_key(*name));
    value.as_object_mut()?.extend(facts.map(|(name, fact)| ((*name).to_owned(), Value::from(*fact))));
    Some(value)
}

/// Returns whether `const`, `enum` and `pattern` of a schema allow a value.
fn accepts(schema: &Value, value: &str) -> bool {
    let only = schema.get("const").and_then(Value::as_str);
    let values = schema.get("enum").and_then(Value::as_array);
    let pattern = schema.get("pattern").and_then(Value::as_str);
    only.is_none_or(|only| only == value)
        && values.is_none_or(|values| values.iter().any(|one| one == value))
        && pattern.is_none_or(|pattern| Pattern::new(pattern).is_ok_and(|it| it.is_match(value)))
}

// Generates a value from a schema.

/// The maximum depth of optional members.
const OPTIONAL_DEPTH: usize = 5;
/// The maximum depth.
const MAX_DEPTH: usize = 40;
/// The maximum number of values.
// Required members can branch at every level, so a bounded depth alone would allow an exponential number.
const MAX_VALUES: usize = 2_000;

/// A seeded sampler over one document.
struct Sampler<'a> {
    document: &'a Value,
    rng: Rng,
    depth: usize,
    budget: usize,
}

impl<'a> Sampler<'a> {
    fn new(document: &'a Value, seed: u64) -> Self {
        Self { document, rng: Rng::with_seed(seed), depth: 0, budget: MAX_VALUES }
    }

    /// Returns a sample of the schema at a pointer.
    fn at(&mut self, pointer: &str) -> Option<Value> {
        let document = self.document;
        self.value(document.pointer(pointer)?, "")
    }

    /// Returns a sample of a schema. Text contains `name`, the name of its member.
    fn value(&mut self, schema: &Value, name: &str) -> Option<Value> {
        if self.depth >= MAX_DEPTH || self.budget == 0 {
            return None;
        }
        self.budget -= 1;
        self.depth += 1;
        let value = match schema {
            Value::Bool(false) => None,
            Value::Object(_) => self.sample_schema(schema, name),
            _ => Some(Value::from(scalars::plain(name))),
        };
        self.depth -= 1;
        value
    }

    fn sample_schema(&mut self, schema: &Value, name: &str) -> Option<Value> {
        let flat = self.flattened(schema);
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
            && let Some(sample) = media_file(members)
        {
            return Some(sample);
        }
        match members.get("oneOf").or_else(|| members.get("anyOf")).and_then(Value::as_array) {
            Some(branches) => self.sample_branches(members, branches, name),
            None => self.sample_kind(members, name),
        }
    }

    /// Returns a sample of any branch, merged with the other keywords. The first is as likely as all others together.
    fn sample_branches(
        &mut self,
        members: &Map<String, Value>,
        branches: &[Value],
        name: &str,
    ) -> Option<Value> {
        let start = if self.rng.bool() { 0 } else { self.rng.usize(..branches.len().max(1)) };
        let order = (start..branches.len()).chain(0..start);
        order.filter_map(|index| branches.get(index)).find_map(|branch| {
            let mut merged = match self.flattened(branch) {
                Value::Object(members) => members,
                other => return self.value(&other, name),
            };
            let others = members.iter().filter(|(keyword, _)| !matches!(keyword.as_str(), "oneOf" | "anyOf"));
            let others = others.map(|(keyword, value)| (keyword.clone(), value.clone())).collect();
            merge(&mut merged, &others, "", &mut Vec::new());
            self.value(&Value::Object(merged), name)
        })
    }

    fn sample_kind(&mut self, members: &Map<String, Value>, name: &str) -> Option<Value> {
        match self.kind(members) {
            "null" => Some(Value::Null),
            "boolean" => Some(Value::from(self.rng.bool())),
            "integer" => scalars::integer(&mut self.rng, members),
            "number" => scalars::number(&mut self.rng, members),
            "array" => self.array(members, name),
            "object" => self.object(members),
            _ => scalars::text(&mut self.rng, members, name).map(Value::from),
        }
    }

    /// Returns one of the types, preferably not null; without types, the one that the keywords imply.
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
        let min = size(members, "minItems").unwrap_or(0);
        let max = size(members, "maxItems").unwrap_or(usize::MAX);
        let wanted = if self.allows_optional() { self.rng.usize(1..=3) } else { 0 };
        let count = wanted.clamp(min, max.max(min));
        let mut items: Vec<Value> = Vec::new();
        if let Some(schema) = members.get("contains") {
            items.push(self.value(schema, name)?);
        }
        let is_unique = members.get("uniqueItems") == Some(&Value::Bool(true));
        // There may be too few different items: an enum of two values, and `minItems` of three.
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
        let required: Vec<&str> = names(members.get("required")).collect();
        let mut object = Map::new();
        for (name, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let is_required = required.contains(&name.as_str());
            let is_wanted = is_required || (self.allows_optional() && self.rng.u8(..4) > 0);
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

    /// Returns the schema without `$ref` and `allOf` at its top.
    fn flattened(&self, schema: &Value) -> Value {
        flattened(self.document, schema, "", &mut Vec::new())
    }

    fn allows_optional(&self) -> bool {
        self.depth <= OPTIONAL_DEPTH
    }
}

fn has(members: &Map<String, Value>, keywords: &[&str]) -> bool {
    keywords.iter().any(|keyword| members.contains_key(*keyword))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod walk_tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    /// Returns the samples of a schema for many seeds.
    fn samples(schema: &Value) -> Vec<Option<Value>> {
        (0..100).map(|seed| Sampler::new(schema, seed).at("")).collect()
    }

    fn is_kind(value: &Value, kind: &str) -> bool {
        match kind {
            "integer" => value.is_i64(),
            "number" => value.is_number(),
            kind => crate::wording::type_name(value) == kind,
        }
    }

    #[test]
    fn sample_has_the_type_that_the_schema_sets_or_implies() {
        for (schema, kind) in [
            (json!({ "type": "null" }), "null"),
            (json!({ "type": "boolean" }), "boolean"),
            (json!({ "type": "integer" }), "integer"),
            (json!({ "type": "number" }), "number"),
            (json!({ "type": "array" }), "array"),
            (json!({ "type": "object" }), "object"),
            (json!({ "type": "string" }), "string"),
            (json!({ "type": ["null", "boolean"] }), "boolean"),
            (json!({ "type": ["null"] }), "null"),
            (json!({ "required": ["a"] }), "object"),
            (json!({ "minProperties": 0 }), "object"),
            (json!({ "items": {} }), "array"),
            (json!({ "uniqueItems": true }), "array"),
            (json!({ "minimum": 1 }), "number"),
            (json!({ "exclusiveMaximum": 1 }), "number"),
            (json!({ "minLength": 3 }), "string"),
            (json!({}), "string"),
            (json!(true), "string"),
        ] {
            for found in samples(&schema) {
                assert!(found.as_ref().is_some_and(|value| is_kind(value, kind)), "{schema} {found:?}");
            }
        }
        assert!(samples(&json!(false)).iter().all(Option::is_none));
    }

    #[test]
    fn array_has_the_length_that_the_schema_requires() {
        let exact = json!({ "items": { "type": "integer" }, "minItems": 4, "maxItems": 4 });
        let different = json!({ "items": { "type": "integer", "maximum": 20, "minimum": 1 }, "uniqueItems": true, "minItems": 3 });
        for items in samples(&exact) {
            assert_eq!(items.unwrap().as_array().unwrap().len(), 4);
        }
        for items in samples(&different) {
            let items = items.unwrap();
            let numbers: BTreeSet<i64> = items.as_array().unwrap().iter().filter_map(Value::as_i64).collect();
            assert_eq!(numbers.len(), 3, "{items}");
        }
    }

    #[test]
    fn different_items_are_tried_four_times_each() {
        let schema = json!({ "items": { "const": 1 }, "uniqueItems": true, "minItems": 3, "maxItems": 3 });
        let mut sampler = Sampler::new(&schema, 0);
        assert_eq!(sampler.at(""), Some(json!([1])));
        assert_eq!(MAX_VALUES - sampler.budget, 1 + 4 * 3);
    }

    #[test]
    fn number_of_values_is_bounded() {
        let sample = |items: usize| Sampler::new(&json!({ "minItems": items }), 0).at("");
        assert_eq!(sample(MAX_VALUES - 1).unwrap().as_array().unwrap().len(), MAX_VALUES - 1);
        assert_eq!(sample(MAX_VALUES), None);
    }

    #[test]
    fn most_samples_have_an_optional_member() {
        let present = samples(&json!({ "properties": { "a": {} } }));
        let present = present.iter().filter(|one| one.as_ref().unwrap().get("a").is_some()).count();
        assert!((51..=99).contains(&present), "{present}");
        let impossible = samples(&json!({ "properties": { "a": false } }));
        assert!(impossible.iter().all(|one| *one == Some(json!({}))));
    }

    #[test]
    fn depth_of_optional_members_is_bounded() {
        let depth = |sample: Option<Value>| {
            let first = sample.unwrap();
            std::iter::successors(Some(&first), |inner| inner.get("next")).skip(1).count()
        };
        let deepest =
            samples(&json!({ "properties": { "next": { "$ref": "#" } } })).into_iter().map(depth).max();
        assert_eq!(deepest, Some(OPTIONAL_DEPTH));
    }
}
