//! What a contract says about the values at a path: their types and members, without a value.

mod exclusion;

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use cog_json::Segment;
use serde_json::Value;

pub use self::exclusion::Exclusion;
use crate::{
    contract::Contract,
    graph::{Id, SchemaNode},
    subschema::names,
};

/// The JSON types that a value can have.
///
/// ```
/// use cog_schema::Types;
///
/// assert!(Types::NUMBER.meet(Types::INTEGER));
/// assert!(!Types::STRING.meet(Types::NUMBER));
/// assert_eq!(Types::STRING.or(Types::NULL).to_string(), "string or null");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Types(u8);

/// The types and their names; `number` includes `integer`.
const NAMES: [(Types, &str); 7] = [
    (Types::OBJECT, "object"),
    (Types::ARRAY, "array"),
    (Types::STRING, "string"),
    (Types::NUMBER, "number"),
    (Types::INTEGER, "integer"),
    (Types::BOOLEAN, "boolean"),
    (Types::NULL, "null"),
];

impl Types {
    /// `null`.
    pub const NULL: Types = Types(1);
    /// `true` and `false`.
    pub const BOOLEAN: Types = Types(2);
    /// Whole numbers.
    pub const INTEGER: Types = Types(4);
    /// All numbers.
    pub const NUMBER: Types = Types(4 | 8);
    /// Strings.
    pub const STRING: Types = Types(16);
    /// Arrays.
    pub const ARRAY: Types = Types(32);
    /// Objects.
    pub const OBJECT: Types = Types(64);
    /// Every value.
    pub const ANY: Types = Types(127);

    /// Returns the types of both.
    #[must_use]
    pub const fn or(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    /// Returns the types that both have.
    #[must_use]
    pub const fn and(self, other: Types) -> Types {
        Types(self.0 & other.0)
    }

    /// Returns whether a value can have a type of both.
    pub const fn meet(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the type of a name in JSON Schema.
    fn named(name: &str) -> Types {
        NAMES.iter().find(|(_, known)| *known == name).map_or(Types::ANY, |(types, _)| *types)
    }

    /// Returns the types that the value of `type` names.
    pub(crate) fn from_keyword(kind: &Value) -> Types {
        match kind {
            Value::String(name) => Types::named(name),
            Value::Array(_) => {
                names(Some(kind)).fold(Types::default(), |sum, name| sum.or(Types::named(name)))
            }
            _ => Types::ANY,
        }
    }

    /// Returns these types without others.
    pub(crate) const fn without(self, other: Types) -> Types {
        Types(self.0 & !other.0)
    }

    fn from_value(value: &Value) -> Types {
        match value {
            Value::Null => Types::NULL,
            Value::Bool(_) => Types::BOOLEAN,
            Value::Number(number) if number.is_f64() => Types::NUMBER,
            Value::Number(_) => Types::INTEGER,
            Value::String(_) => Types::STRING,
            Value::Array(_) => Types::ARRAY,
            Value::Object(_) => Types::OBJECT,
        }
    }
}

impl fmt::Display for Types {
    /// `string or null`; `any` for all types.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Types::ANY {
            return f.write_str("any");
        }
        let mut rest = *self;
        let mut separator = "";
        for (types, name) in NAMES {
            if rest.and(types) == types {
                write!(f, "{separator}{name}")?;
                rest = Types(rest.0 & !types.0);
                separator = " or ";
            }
        }
        Ok(())
    }
}

/// The schemas that can apply to a value of a contract.
#[derive(Debug, Clone)]
pub struct Shape<'c> {
    contract: &'c Contract,
    ids: Vec<Id>,
    /// Whether it is the shape of `data`, which can have members that its schema does not define.
    is_data: bool,
}

/// What a contract says about a member of an object.
#[derive(Debug, Clone)]
pub enum Member<'c> {
    /// It can exist, with this shape.
    Known(Shape<'c>),
    /// It can exist, with any value.
    Any,
    /// No schema defines it, and others are defined.
    Absent,
}

/// The types of the alternatives so far: many lists of alternatives can share one.
#[derive(Default)]
struct KnownTypes {
    types: HashMap<Id, Types>,
    /// How many alternatives were read.
    #[cfg(test)]
    reads: usize,
}

impl Contract {
    /// Returns whether the rationale can be a string.
    pub fn accepts_rationale_text(&self) -> bool {
        match self.shape("data").map(|data| data.member("rationale")) {
            Some(Member::Known(rationale)) => rationale.types().meet(Types::STRING),
            Some(Member::Absent) => false,
            Some(Member::Any) | None => true,
        }
    }

    /// Returns the shape of `input`, `data`, `meta` or `error`; none if the contract does not have the part.
    pub fn shape(&self, name: &str) -> Option<Shape<'_>> {
        let part = if name == "input" { self.input.as_ref() } else { self.part(name) };
        part.map(|part| Shape { is_data: name == "data", ..Shape::new(self, vec![part.id]) })
    }

    /// Returns the types that the values of a schema can have.
    fn types(&self, id: Id, known: &mut KnownTypes) -> Types {
        self.graph.certain(id).fold(Types::ANY, |types, schema| {
            types
                .and(self.own_types(schema))
                .and(self.types_of_any(&schema.links.any, known))
                .and(self.types_of_any(&schema.links.one, known))
        })
    }

    /// Returns the types of one of several alternatives; all types if there are none.
    fn types_of_any(&self, alternatives: &[Id], known: &mut KnownTypes) -> Types {
        if alternatives.is_empty() {
            return Types::ANY;
        }
        alternatives.iter().fold(Types::default(), |sum, id| {
            sum.or(known.types.get(id).copied().unwrap_or_else(|| self.read_types(*id, known)))
        })
    }

    /// Returns the types of an alternative, which are known from then on.
    fn read_types(&self, id: Id, known: &mut KnownTypes) -> Types {
        #[cfg(test)]
        {
            known.reads += 1;
        }
        let types = self.types(id, known);
        known.types.insert(id, types);
        types
    }

    /// Returns the types that the keywords of one schema allow.
    fn own_types(&self, schema: &SchemaNode) -> Types {
        let named = self.keyword(schema, "type").map_or(Types::ANY, Types::from_keyword);
        let listed = match (self.keyword(schema, "enum"), self.keyword(schema, "const")) {
            (Some(Value::Array(values)), _) => {
                values.iter().fold(Types::default(), |sum, value| sum.or(Types::from_value(value)))
            }
            (_, Some(value)) => Types::from_value(value),
            _ => Types::ANY,
        };
        named.and(listed)
    }
}

impl<'c> Shape<'c> {
    const fn new(contract: &'c Contract, ids: Vec<Id>) -> Self {
        Self { contract, ids, is_data: false }
    }

    /// Returns the types that the value can have.
    pub fn types(&self) -> Types {
        let mut known = KnownTypes::default();
        self.ids.iter().fold(Types::default(), |sum, id| sum.or(self.contract.types(*id, &mut known)))
    }

    /// Returns what is known about a member.
    pub fn member(&self, name: &str) -> Member<'c> {
        let graph = &self.contract.graph;
        let possible = graph.all_possible(&self.ids);
        let inside = graph.inside(&possible, Segment::Key(name));
        if !inside.is_empty() {
            return Member::Known(Shape::new(self.contract, inside));
        }
        if graph.is_absent(&possible, name) && !self.is_added(name) { Member::Absent } else { Member::Any }
    }

    /// Returns whether the specification allows a member of `data` that the schema does not define. Insights are not checked
    /// against the schema.
    fn is_added(&self, name: &str) -> bool {
        self.is_data && self.contract.is_known_in_data(name) && (name == "extensions" || !self.forbids(name))
    }

    /// Returns the shape of the elements of an array; none if it says nothing about them, or not the same about each.
    pub fn elements(&self) -> Option<Shape<'c>> {
        let graph = &self.contract.graph;
        let possible = graph.all_possible(&self.ids);
        if possible.iter().any(|id| graph.get(*id).is_tuple()) {
            return None;
        }
        let ids = graph.inside(&possible, Segment::Index(usize::MAX));
        (!ids.is_empty()).then(|| Shape::new(self.contract, ids))
    }

    /// Returns the members that are defined by name, each once.
    pub fn member_names(&self) -> Vec<&'c str> {
        let graph = &self.contract.graph;
        let possible = graph.all_possible(&self.ids).into_iter();
        let names = possible.flat_map(|id| graph.get(id).properties()).map(|(name, _)| name);
        let mut seen = HashSet::new();
        names.filter(|name| seen.insert(*name)).collect()
    }

    /// Returns the values of an enum, if the value has only these.
    pub fn listed_values(&self) -> Option<Vec<&'c Value>> {
        let [id] = self.ids.as_slice() else { return None };
        let mut certain = self.contract.graph.certain(*id);
        let values = certain.find_map(|schema| self.contract.keyword(schema, "enum")?.as_array())?;
        Some(values.iter().collect())
    }

    /// Returns the members that an object certainly needs, each once.
    pub fn required_names(&self) -> Vec<&'c str> {
        let [id] = self.ids.as_slice() else { return Vec::new() };
        let certain = self.contract.graph.certain(*id);
        let required = certain.flat_map(|schema| names(self.contract.keyword(schema, "required")));
        let mut seen = HashSet::new();
        required.filter(|name| seen.insert(*name)).collect()
    }

    /// Returns whether the value can be a media item: of an input, or generated for an answer.
    pub fn is_media(&self) -> bool {
        let graph = &self.contract.graph;
        let possible = graph.all_possible(&self.ids).into_iter();
        possible.map(|id| graph.get(id)).any(|schema| schema.is_media || schema.is_output)
    }

    /// Returns whether an object with a member of this name is certainly invalid.
    pub fn forbids(&self, name: &str) -> bool {
        let [id] = self.ids.as_slice() else { return false };
        self.contract.graph.certain(*id).any(|schema| schema.forbids(name))
    }
}

// What every valid value at a path certainly satisfies.

/// The schemas that certainly apply to a value, all of them. A [`Shape`] also has those that can apply.
#[derive(Debug, Clone)]
pub struct CertainShape<'c> {
    contract: &'c Contract,
    ids: Vec<Id>,
}

impl<'c> Shape<'c> {
    /// Returns the schemas that certainly apply. If there are alternatives, none of them is certain.
    pub fn certain(&self) -> CertainShape<'c> {
        let ids = if let [only] = self.ids.as_slice() { vec![*only] } else { Vec::new() };
        CertainShape::new(self.contract, ids)
    }
}

impl<'c> CertainShape<'c> {
    /// The runtime replaces media, so their schemas say nothing about the values that are read later.
    fn new(contract: &'c Contract, mut ids: Vec<Id>) -> Self {
        ids.retain(|id| !contract.graph.certain(*id).any(|schema| schema.is_media || schema.is_output));
        Self { contract, ids }
    }

    /// Returns the types that the value can have.
    pub fn types(&self) -> Types {
        let mut known = KnownTypes::default();
        self.ids.iter().fold(Types::ANY, |types, id| types.and(self.contract.types(*id, &mut known)))
    }

    /// Returns what applies to a member, if the value has it.
    #[must_use]
    pub fn member(&self, name: &str) -> Self {
        Self::new(self.contract, self.contract.graph.step(&self.ids, Segment::Key(name)))
    }

    /// Returns whether an object certainly has a member.
    pub fn requires(&self, name: &str) -> bool {
        self.ids.iter().any(|id| self.contract.requires(*id, name))
    }

    /// Returns the schemas as they are written.
    pub fn schemas(&self) -> impl Iterator<Item = &'c Value> {
        let Contract { graph, document, .. } = self.contract;
        let applied = self.ids.iter().flat_map(|id| graph.certain(*id));
        applied.filter_map(|schema| document.value.pointer(&schema.pointer)).collect::<Vec<_>>().into_iter()
    }

    /// Returns the lists of alternatives, `anyOf` and `oneOf`. One alternative of each list applies.
    pub fn alternatives(&self) -> Vec<Vec<Self>> {
        let applied = self.ids.iter().flat_map(|id| self.contract.graph.certain(*id));
        let lists = applied.flat_map(|schema| [&schema.links.any, &schema.links.one]);
        let lists = lists.filter(|list| !list.is_empty());
        lists.map(|list| list.iter().map(|id| Self::new(self.contract, vec![*id])).collect()).collect()
    }
}

#[cfg(test)]
mod tests;
