//! A fast check of values for schemas with simple keywords.
//!
//! Most values are valid, and most schemas have simple keywords: types, enums, members. One pass over the value checks
//! them. Other schemas are left to the engine. If the fast check fails, the engine checks the complete value, so all errors
//! come from the engine.

use std::slice;

use cog_json::{Kind, Node};
use serde_json::{Map, Value};

use super::{Id, Rest, SchemaGraph, SchemaNode};
use crate::engine::short_decimal;
use crate::subschema::is_annotation;

/// The requirements of a schema that has only simple keywords.
#[derive(Debug, Clone)]
pub(super) struct FastPath {
    kinds: Kinds,
    /// The allowed strings, sorted; none if all are allowed.
    strings: Option<Vec<Box<str>>>,
    /// The allowed numbers of few digits, sorted; none if all are allowed.
    listed: Option<Vec<f64>>,
    numbers: (f64, f64),
    /// The kinds of the listed values.
    listed_kinds: Kinds,
    /// The limits of the length of a string, in characters.
    lengths: (usize, usize),
    /// The limits of the number of items.
    items: (usize, usize),
    /// One bit per required property, by position.
    required: u64,
}

/// A set of kinds of value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kinds(u16);

impl Kinds {
    const NULL: Kinds = Kinds(1);
    const FALSE: Kinds = Kinds(2);
    const TRUE: Kinds = Kinds(4);
    const INTEGER: Kinds = Kinds(8);
    const FRACTION: Kinds = Kinds(16);
    const STRING: Kinds = Kinds(32);
    const ARRAY: Kinds = Kinds(64);
    const OBJECT: Kinds = Kinds(128);
    /// Any string.
    const ANY_TEXT: Kinds = Kinds(256);
    /// Any number.
    const ANY_NUMBER: Kinds = Kinds(512);
    const NONE: Kinds = Kinds(0);
    const ALL: Kinds = Kinds(255);
    const BOOL: Kinds = Kinds::FALSE.with(Kinds::TRUE);
    const NUMBER: Kinds = Kinds::INTEGER.with(Kinds::FRACTION);

    const fn with(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    const fn has(self, other: Kinds) -> bool {
        self.0 & other.0 == other.0
    }

    const fn both(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }

    const fn meets(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    fn from_type(name: &str) -> Option<Kinds> {
        Some(match name {
            "null" => Kinds::NULL,
            "boolean" => Kinds::BOOL,
            "integer" => Kinds::INTEGER,
            "number" => Kinds::NUMBER,
            "string" => Kinds::STRING,
            "array" => Kinds::ARRAY,
            "object" => Kinds::OBJECT,
            _ => return None,
        })
    }
}

impl SchemaGraph {
    /// Returns whether a value is valid for a schema. `engine` decides for schemas without a fast path.
    ///
    /// Scalars are checked without a call.
    #[inline]
    pub(crate) fn fits(&self, id: Id, node: Node<'_>, engine: &impl Fn(Id, Node<'_>) -> bool) -> bool {
        let shape = self.get(id);
        let Some(fast_path) = &shape.fast_path else { return engine(id, node) };
        match node.kind() {
            Kind::Null => fast_path.kinds.has(Kinds::NULL),
            Kind::Bool => {
                fast_path.kinds.has(if node.as_bool() == Some(true) { Kinds::TRUE } else { Kinds::FALSE })
            }
            Kind::Number => {
                fast_path.kinds.has(Kinds::ANY_NUMBER)
                    || fast_path.accepts_number(node)
                    || fast_path.kinds.meets(Kinds::NUMBER) && engine(id, node)
            }
            Kind::String => fast_path.kinds.has(Kinds::ANY_TEXT) || fast_path.accepts_text(node),
            Kind::Array => fast_path.accepts_count(node) && self.items_fit(shape, node, engine),
            Kind::Object => {
                fast_path.kinds.has(Kinds::OBJECT) && self.members_fit(shape, fast_path, node, engine)
            }
        }
    }

    #[inline(never)]
    fn items_fit(&self, shape: &SchemaNode, array: Node<'_>, engine: &impl Fn(Id, Node<'_>) -> bool) -> bool {
        shape
            .further_items
            .is_none_or(|item| array.elements().all(|element| self.fits(item, element, engine)))
    }

    #[inline(never)]
    fn members_fit(
        &self,
        shape: &SchemaNode,
        fast_path: &FastPath,
        object: Node<'_>,
        engine: &impl Fn(Id, Node<'_>) -> bool,
    ) -> bool {
        let mut cursor = 0;
        let mut seen = 0_u64;
        let all_fit =
            object.members().all(|(key, value)| match shape.properties.position(key, &mut cursor) {
                Some((position, id)) => {
                    seen |= 1 << position;
                    self.fits(id, value, engine)
                }
                None => match shape.rest {
                    Rest::Unspecified => true,
                    Rest::Closed => false,
                    Rest::Like(id) => self.fits(id, value, engine),
                },
            });
        all_fit && seen & fast_path.required == fast_path.required
    }
}

impl FastPath {
    /// Reads a schema; returns none if it has other keywords. `shape` contains its members and items.
    pub(super) fn read(schema: &Value, shape: &SchemaNode) -> Option<Self> {
        let mut fast_path = Self {
            kinds: Kinds::ALL,
            strings: None,
            listed: None,
            listed_kinds: Kinds::ALL,
            numbers: (f64::NEG_INFINITY, f64::INFINITY),
            lengths: (0, usize::MAX),
            items: (0, usize::MAX),
            required: 0,
        };
        match schema {
            Value::Bool(true) => {
                fast_path.narrow(&Map::new());
                Some(fast_path)
            }
            Value::Bool(false) => Some(Self { kinds: Kinds::NONE, ..fast_path }),
            Value::Object(members) => {
                members.iter().try_for_each(|(keyword, value)| fast_path.add(keyword, value, shape))?;
                fast_path.narrow(members);
                Some(fast_path)
            }
            _ => None,
        }
    }

    fn add(&mut self, keyword: &str, value: &Value, shape: &SchemaNode) -> Option<()> {
        match keyword {
            "type" => self.kinds = kinds(value)?,
            "enum" => self.allow_only(value.as_array()?)?,
            "const" => self.allow_only(slice::from_ref(value))?,
            "minimum" => self.numbers.0 = exact(value)?,
            "maximum" => self.numbers.1 = exact(value)?,
            "minLength" => self.lengths.0 = size(value)?,
            "maxLength" => self.lengths.1 = size(value)?,
            "minItems" => self.items.0 = size(value)?,
            "maxItems" => self.items.1 = size(value)?,
            "items" if !value.is_array() => {}
            "properties" if shape.properties.len() <= u64::BITS as usize => {}
            "additionalProperties" => {}
            "required" => self.required = required(value, shape)?,
            _ => return is_annotation(keyword).then_some(()),
        }
        Some(())
    }

    /// Allows only these scalars. Numbers of many digits are left to the engine.
    fn allow_only(&mut self, values: &[Value]) -> Option<()> {
        if self.strings.is_some() {
            return None;
        }
        let kinds = values.iter().try_fold(Kinds::NONE, |sum, one| Some(sum.with(kind_of_scalar(one)?)))?;
        let mut strings: Vec<Box<str>> = values.iter().filter_map(Value::as_str).map(Box::from).collect();
        strings.sort_unstable();
        let numbers = values.iter().filter_map(Value::as_number);
        let mut listed: Vec<f64> =
            numbers.filter_map(|number| Some(short_decimal(&number.to_string())? + 0.0)).collect();
        listed.sort_unstable_by(f64::total_cmp);
        self.strings = Some(strings);
        self.listed = Some(listed);
        self.listed_kinds = kinds;
        Some(())
    }

    /// Restricts the kinds to the listed values, and marks kinds without limits.
    fn narrow(&mut self, members: &Map<String, Value>) {
        self.kinds = self.kinds.both(self.listed_kinds);
        let allows_text = self.kinds.has(Kinds::STRING);
        let limits_text =
            ["enum", "const", "minLength", "maxLength"].iter().any(|keyword| members.contains_key(*keyword));
        if allows_text && !limits_text {
            self.kinds = self.kinds.with(Kinds::ANY_TEXT);
        }
        let limits_numbers =
            ["enum", "const", "minimum", "maximum"].iter().any(|keyword| members.contains_key(*keyword));
        if self.kinds.has(Kinds::NUMBER) && !limits_numbers {
            self.kinds = self.kinds.with(Kinds::ANY_NUMBER);
        }
    }

    /// Returns whether a number of few digits, which needs no rounding, is valid; other numbers are left to the engine.
    fn accepts_number(&self, node: Node<'_>) -> bool {
        let Some(number) = node.as_number() else { return false };
        let kind = if number.is_plain_integer() { Kinds::INTEGER } else { Kinds::FRACTION };
        if !self.kinds.has(kind) {
            return false;
        }
        let (low, high) = self.numbers;
        if self.listed.is_none() && (low, high) == (f64::NEG_INFINITY, f64::INFINITY) {
            return true;
        }
        let Some(value) = short_decimal(number.literal()) else { return false };
        // `-0.0 + 0.0` is `0.0`, which `total_cmp` distinguishes.
        let is_listed = match &self.listed {
            Some(listed) => listed.binary_search_by(|one| one.total_cmp(&(value + 0.0))).is_ok(),
            None => true,
        };
        low <= value && value <= high && is_listed
    }

    fn accepts_text(&self, node: Node<'_>) -> bool {
        let Some(text) = node.as_str().filter(|_| self.kinds.has(Kinds::STRING)) else { return false };
        if self.strings.as_ref().is_some_and(|strings| !is_among(strings, text)) {
            return false;
        }
        let (min, max) = self.lengths;
        // A character takes one to four bytes, so that most limits need no count.
        if min <= text.len() / 4 && text.len() <= max {
            return true;
        }
        let length = if text.is_ascii() { text.len() } else { text.chars().count() };
        (min..=max).contains(&length)
    }

    fn accepts_count(&self, array: Node<'_>) -> bool {
        let (min, max) = self.items;
        self.kinds.has(Kinds::ARRAY) && (min..=max).contains(&array.len())
    }
}

fn kind_of_scalar(value: &Value) -> Option<Kinds> {
    match value {
        Value::Null => Some(Kinds::NULL),
        Value::Bool(bool) => Some(if *bool { Kinds::TRUE } else { Kinds::FALSE }),
        Value::Number(_) => Some(Kinds::NUMBER),
        Value::String(_) => Some(Kinds::STRING),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn kinds(value: &Value) -> Option<Kinds> {
    match value {
        Value::String(name) => Kinds::from_type(name),
        Value::Array(names) => names
            .iter()
            .map(|name| name.as_str().and_then(Kinds::from_type))
            .try_fold(Kinds::NONE, |sum, one| Some(sum.with(one?))),
        _ => None,
    }
}

/// Returns whether sorted strings contain this one. For few strings, comparing each is faster than a search.
fn is_among(strings: &[Box<str>], text: &str) -> bool {
    const MAX_COMPARED: usize = 16;
    match strings.len() {
        0..=MAX_COMPARED => strings.iter().any(|string| **string == *text),
        _ => strings.binary_search_by(|string| (**string).cmp(text)).is_ok(),
    }
}

/// Returns a limit that a float represents exactly.
fn exact(value: &Value) -> Option<f64> {
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_f64().filter(|limit| limit.abs() < MAX_EXACT)
}

fn size(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|size| usize::try_from(size).ok())
}

/// Returns the required members as bits, if all of them are properties.
fn required(value: &Value, shape: &SchemaNode) -> Option<u64> {
    let keys = value.as_array()?.iter().map(|key| shape.properties.position(key.as_str()?, &mut 0));
    keys.map(|found| found.map(|(position, _)| 1_u64.checked_shl(u32::try_from(position).ok()?)))
        .try_fold(0, |sum, bit| Some(sum | bit??))
}

#[cfg(test)]
mod tests;
