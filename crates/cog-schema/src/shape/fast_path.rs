//! What fits at a fast_path.
//!
//! Most values are right, and most schemas say simple things of them: a type, the words of an enum, which members
//! there are. That much the graph sees in one pass over the value. Where a schema says more, the engine is asked
//! about that place, and about the whole when anything does not fit, so that what is reported comes from the engine
//! alone.

use std::slice;

use cog_json::{Kind, Node};
use serde_json::{Map, Value};

use super::{Id, Rest, SchemaGraph, SchemaNode};
use crate::engine::short_decimal;
use crate::subschema::is_annotation;

/// The demands of a schema that says only simple things.
#[derive(Debug, Clone)]
pub(super) struct FastPath {
    kinds: Kinds,
    /// The only strings that fit, sorted.
    words: Option<Vec<Box<str>>>,
    /// The only numbers of few digits that fit, sorted.
    listed: Option<Vec<f64>>,
    numbers: (f64, f64),
    /// The kinds of the listed values.
    listed_kinds: Kinds,
    /// In Unicode scalar values.
    lengths: (usize, usize),
    /// How many items an array has.
    items: (usize, usize),
    /// One bit for each named member, in their order.
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
    /// Any string, whatever it says.
    const ANY_TEXT: Kinds = Kinds(256);
    /// Any number, however large.
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

    fn of_type(name: &str) -> Option<Kinds> {
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
    /// Whether a value fits a schema. `ask` decides where the schema is not plain.
    ///
    /// Scalars are looked at where they stand, without a call.
    #[inline]
    pub(crate) fn fits(&self, id: Id, node: Node<'_>, ask: &impl Fn(Id, Node<'_>) -> bool) -> bool {
        let shape = self.get(id);
        let Some(plain) = &shape.plain else { return ask(id, node) };
        match node.kind() {
            Kind::Null => plain.kinds.has(Kinds::NULL),
            Kind::Bool => {
                plain.kinds.has(if node.as_bool() == Some(true) { Kinds::TRUE } else { Kinds::FALSE })
            }
            Kind::Number => {
                plain.kinds.has(Kinds::ANY_NUMBER)
                    || plain.takes_number(node)
                    || plain.kinds.meets(Kinds::NUMBER) && ask(id, node)
            }
            Kind::String => plain.kinds.has(Kinds::ANY_TEXT) || plain.takes_text(node),
            Kind::Array => plain.takes_count(node) && self.items_fit(shape, node, ask),
            Kind::Object => plain.kinds.has(Kinds::OBJECT) && self.members_fit(shape, plain, node, ask),
        }
    }

    #[inline(never)]
    fn items_fit(&self, shape: &SchemaNode, array: Node<'_>, ask: &impl Fn(Id, Node<'_>) -> bool) -> bool {
        shape.further_items.is_none_or(|item| array.elements().all(|element| self.fits(item, element, ask)))
    }

    #[inline(never)]
    fn members_fit(
        &self,
        shape: &SchemaNode,
        plain: &FastPath,
        object: Node<'_>,
        ask: &impl Fn(Id, Node<'_>) -> bool,
    ) -> bool {
        let (mut cursor, mut seen) = (0, 0_u64);
        let all_fit = object.members().all(|(key, value)| match shape.properties.place(key, &mut cursor) {
            Some((place, id)) => {
                seen |= 1 << place;
                self.fits(id, value, ask)
            }
            None => match shape.rest {
                Rest::Unsaid => true,
                Rest::Closed => false,
                Rest::Like(id) => self.fits(id, value, ask),
            },
        });
        all_fit && seen & plain.required == plain.required
    }
}

impl FastPath {
    /// Reads a schema; none if it says more than can be seen at a fast_path. `shape` knows its members and items.
    pub(super) fn read(schema: &Value, shape: &SchemaNode) -> Option<Self> {
        let mut plain = Self {
            kinds: Kinds::ALL,
            words: None,
            listed: None,
            listed_kinds: Kinds::ALL,
            numbers: (f64::NEG_INFINITY, f64::INFINITY),
            lengths: (0, usize::MAX),
            items: (0, usize::MAX),
            required: 0,
        };
        match schema {
            Value::Bool(true) => {
                plain.narrow(&Map::new());
                Some(plain)
            }
            Value::Bool(false) => Some(Self { kinds: Kinds::NONE, ..plain }),
            Value::Object(members) => {
                members.iter().try_for_each(|(keyword, value)| plain.add(keyword, value, shape))?;
                plain.narrow(members);
                Some(plain)
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

    /// Allows only these values, scalars. Numbers of many digits stay with the engine.
    fn allow_only(&mut self, values: &[Value]) -> Option<()> {
        let kind = |value: &Value| match value {
            Value::Null => Some(Kinds::NULL),
            Value::Bool(bool) => Some(if *bool { Kinds::TRUE } else { Kinds::FALSE }),
            Value::Number(_) => Some(Kinds::NUMBER),
            Value::String(_) => Some(Kinds::STRING),
            Value::Array(_) | Value::Object(_) => None,
        };
        if self.words.is_some() {
            return None;
        }
        let kinds = values.iter().map(kind).try_fold(Kinds::NONE, |sum, one| Some(sum.with(one?)))?;
        let mut words: Vec<Box<str>> = values.iter().filter_map(Value::as_str).map(Box::from).collect();
        words.sort_unstable();
        let numbers = values.iter().filter_map(Value::as_number);
        let mut listed: Vec<f64> =
            numbers.filter_map(|number| Some(short_decimal(&number.to_string())? + 0.0)).collect();
        listed.sort_unstable_by(f64::total_cmp);
        (self.words, self.listed, self.listed_kinds) = (Some(words), Some(listed), kinds);
        Some(())
    }

    /// Only listed kinds fit; what is not limited need not be looked at.
    fn narrow(&mut self, members: &Map<String, Value>) {
        self.kinds = self.kinds.both(self.listed_kinds);
        let allows_text = self.kinds.has(Kinds::STRING);
        let limits_text =
            ["enum", "const", "minLength", "maxLength"].iter().any(|word| members.contains_key(*word));
        if allows_text && !limits_text {
            self.kinds = self.kinds.with(Kinds::ANY_TEXT);
        }
        let limits_numbers =
            ["enum", "const", "minimum", "maximum"].iter().any(|word| members.contains_key(*word));
        if self.kinds.has(Kinds::NUMBER) && !limits_numbers {
            self.kinds = self.kinds.with(Kinds::ANY_NUMBER);
        }
    }

    /// Whether a number of few digits fits, which is seen without rounding; any other is left to the engine.
    fn takes_number(&self, node: Node<'_>) -> bool {
        let Some(number) = node.as_number() else { return false };
        let kind = if number.is_plain_integer() { Kinds::INTEGER } else { Kinds::FRACTION };
        let (low, high) = self.numbers;
        let is_listed = |value: f64| {
            let find =
                |listed: &Vec<f64>| listed.binary_search_by(|one| one.total_cmp(&(value + 0.0))).is_ok();
            self.listed.as_ref().is_none_or(find)
        };
        let is_limited = self.listed.is_some() || (low, high) != (f64::NEG_INFINITY, f64::INFINITY);
        let fits = |value: f64| low <= value && value <= high && is_listed(value);
        self.kinds.has(kind) && (!is_limited || short_decimal(number.literal()).is_some_and(fits))
    }

    fn takes_text(&self, node: Node<'_>) -> bool {
        let Some(text) = node.as_str().filter(|_| self.kinds.has(Kinds::STRING)) else { return false };
        let (least, most) = self.lengths;
        let length = || if text.is_ascii() { text.len() } else { text.chars().count() };
        // A character takes one to four bytes.
        let fits_anyway = least <= text.len() / 4 && text.len() <= most;
        self.words.as_ref().is_none_or(|words| is_among(words, text))
            && (fits_anyway || (least..=most).contains(&length()))
    }

    fn takes_count(&self, array: Node<'_>) -> bool {
        let (least, most) = self.items;
        self.kinds.has(Kinds::ARRAY) && (least..=most).contains(&array.len())
    }
}

fn kinds(value: &Value) -> Option<Kinds> {
    match value {
        Value::String(name) => Kinds::of_type(name),
        Value::Array(names) => names
            .iter()
            .map(|name| name.as_str().and_then(Kinds::of_type))
            .try_fold(Kinds::NONE, |sum, one| Some(sum.with(one?))),
        _ => None,
    }
}

/// Whether a text is one of sorted words; of few, comparing each is quicker than searching.
fn is_among(words: &[Box<str>], text: &str) -> bool {
    const FEW: usize = 16;
    match words.len() {
        0..=FEW => words.iter().any(|word| **word == *text),
        _ => words.binary_search_by(|word| (**word).cmp(text)).is_ok(),
    }
}

/// A limit that a float holds exactly.
fn exact(value: &Value) -> Option<f64> {
    const MAX_SIZE: f64 = 9_007_199_254_740_992.0;
    value.as_f64().filter(|limit| limit.abs() < MAX_SIZE)
}

fn size(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|size| usize::try_from(size).ok())
}

/// The required members as bits, if all of them are named.
fn required(value: &Value, shape: &SchemaNode) -> Option<u64> {
    let keys = value.as_array()?.iter().map(|key| shape.properties.place(key.as_str()?, &mut 0));
    keys.map(|found| found.map(|(place, _)| 1_u64.checked_shl(u32::try_from(place).ok()?)))
        .try_fold(0, |sum, bit| Some(sum | bit??))
}

#[cfg(test)]
mod tests;
