//! What fits at a glance.
//!
//! Most values are right, and most schemas say simple things of them: a type, the words of an enum, which members
//! there are. That much the graph sees in one pass over the value. Where a schema says more, the engine is asked
//! about that place, and about the whole when anything does not fit, so that what is told comes from the engine
//! alone.

use cog_json::{Kind, Node};
use serde_json::{Map, Value};

use super::{Id, Rest, SchemaGraph, SchemaNode};
use crate::engine::short_decimal;
use crate::subschema::is_annotation;

/// The demands of a schema that says only simple things.
#[derive(Debug, Clone)]
pub(super) struct Plain {
    kinds: Kinds,
    /// The only strings that fit.
    words: Option<Vec<Box<str>>>,
    numbers: (f64, f64),
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

    const fn with(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    const fn has(self, other: Kinds) -> bool {
        self.0 & other.0 == other.0
    }

    fn of_type(name: &str) -> Option<Kinds> {
        Some(match name {
            "null" => Kinds::NULL,
            "boolean" => Kinds::FALSE.with(Kinds::TRUE),
            "integer" => Kinds::INTEGER,
            "number" => Kinds::INTEGER.with(Kinds::FRACTION),
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
            Kind::Number => plain.kinds.has(Kinds::ANY_NUMBER) || plain.takes_number(node),
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
        plain: &Plain,
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
                Rest::Shut => false,
                Rest::Like(id) => self.fits(id, value, ask),
            },
        });
        all_fit && seen & plain.required == plain.required
    }
}

impl Plain {
    /// Reads a schema; none if it says more than can be seen at a glance. `shape` knows its members and items.
    pub(super) fn read(schema: &Value, shape: &SchemaNode) -> Option<Self> {
        let mut plain = Self {
            kinds: Kinds::ALL,
            words: None,
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
            "enum" => self.words = Some(words(value.as_array()?)?),
            "const" if value.is_string() => self.words = Some(words(std::slice::from_ref(value))?),
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

    /// Only strings are among words; what is not limited need not be looked at.
    fn narrow(&mut self, members: &Map<String, Value>) {
        let allows_text = self.kinds.has(Kinds::STRING);
        if self.words.is_some() {
            self.kinds = if allows_text { Kinds::STRING } else { Kinds::NONE };
        }
        let limits_text =
            ["enum", "const", "minLength", "maxLength"].iter().any(|word| members.contains_key(*word));
        if allows_text && !limits_text {
            self.kinds = self.kinds.with(Kinds::ANY_TEXT);
        }
        let limits_numbers = ["minimum", "maximum"].iter().any(|word| members.contains_key(*word));
        if self.kinds.has(Kinds::INTEGER.with(Kinds::FRACTION)) && !limits_numbers {
            self.kinds = self.kinds.with(Kinds::ANY_NUMBER);
        }
    }

    /// A number of few digits is told from its limits without rounding; any other is left to the engine.
    fn takes_number(&self, node: Node<'_>) -> bool {
        let Some(number) = node.as_number() else { return false };
        let kind = if number.is_plain_integer() { Kinds::INTEGER } else { Kinds::FRACTION };
        let (low, high) = self.numbers;
        self.kinds.has(kind)
            && ((low, high) == (f64::NEG_INFINITY, f64::INFINITY)
                || short_decimal(number.literal()).is_some_and(|value| low <= value && value <= high))
    }

    fn takes_text(&self, node: Node<'_>) -> bool {
        let Some(text) = node.as_str().filter(|_| self.kinds.has(Kinds::STRING)) else { return false };
        let (least, most) = self.lengths;
        let length = || if text.is_ascii() { text.len() } else { text.chars().count() };
        // A character takes one to four bytes.
        let fits_anyway = least <= text.len() / 4 && text.len() <= most;
        self.words.as_ref().is_none_or(|words| words.iter().any(|word| **word == *text))
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

fn words(values: &[Value]) -> Option<Vec<Box<str>>> {
    values.iter().map(|value| value.as_str().map(Box::from)).collect()
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
