//! What every valid value at a path certainly satisfies.

use cog_json::Segment;
use serde_json::Value;

use super::{KnownTypes, Shape, Types};
use crate::contract::Contract;
use crate::graph::Id;

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
mod tests {
    use cog_spec::{Format, Manifest};
    use serde_json::json;

    use super::*;
    use crate::Rules;

    #[test]
    fn only_what_applies_to_every_value_is_certain() {
        let manifest = Manifest::with_defaults("x", Format::V21, None);
        let schema = json!({ "data": {
            "required": ["a"],
            "properties": { "a": { "minimum": 1 }, "b": { "anyOf": [{ "const": 1 }, { "type": "null" }] } },
            "allOf": [{ "properties": { "a": { "type": "integer" } } }],
            "anyOf": [{ "required": ["c"], "properties": { "a": { "const": 7 } } }, {}],
        }});
        let contract = Contract::compile(&schema, &Rules::from(&manifest)).unwrap();
        let data = contract.shape("data").unwrap().certain();
        assert!(data.requires("a") && !data.requires("c"));
        let a = data.member("a");
        assert_eq!(a.types(), Types::INTEGER);
        assert_eq!(a.schemas().filter(|schema| schema.get("const").is_some()).count(), 0);
        assert_eq!(a.schemas().filter(|schema| schema.get("minimum").is_some()).count(), 1);
        let b = data.member("b").alternatives();
        assert_eq!(b[0].iter().map(CertainShape::types).collect::<Vec<_>>(), [Types::INTEGER, Types::NULL]);
        assert_eq!(data.member("other").types(), Types::ANY);
    }

    #[test]
    fn listed_values_are_those_of_an_enum_that_certainly_applies() {
        let manifest = Manifest::with_defaults("x", Format::V21, None);
        let listed = |data: Value| {
            let contract = Contract::compile(&json!({ "data": data }), &Rules::from(&manifest)).unwrap();
            let values = contract.shape("data").unwrap().listed_values();
            values.map(|values| values.into_iter().cloned().collect::<Vec<_>>())
        };
        assert_eq!(listed(json!({ "enum": ["a", 1] })), Some(vec![json!("a"), json!(1)]));
        assert_eq!(listed(json!({ "allOf": [{ "enum": ["a"] }] })), Some(vec![json!("a")]));
        assert_eq!(listed(json!({ "anyOf": [{ "enum": ["a"] }] })), None);
        assert_eq!(listed(json!({ "type": "string" })), None);
    }
}
