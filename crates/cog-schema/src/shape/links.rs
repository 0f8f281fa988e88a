//! What a schema says by means of further schemas for the same value, or for any of its items.

use serde_json::Value;

use super::Id;

/// The keywords that combine schemas, apart from members and items.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// `allOf`.
    pub(crate) all: Vec<Id>,
    /// `anyOf`; empty where the schema has none.
    pub(crate) any: Vec<Id>,
    /// `oneOf`, likewise.
    pub(crate) one: Vec<Id>,
    /// `not`.
    pub(crate) not: Option<Id>,
    /// `contains`.
    pub(crate) contains: Option<Id>,
    /// `if`, with `then` and `else`.
    pub(crate) condition: Option<(Id, Option<Id>, Option<Id>)>,
    /// `dependencies` that are schemas: a member, and what applies where it is present.
    pub(crate) dependent: Vec<(String, Id)>,
}

impl Links {
    /// Reads them from a schema; `id` knows the schema at a pointer from there.
    pub(super) fn read(schema: &Value, id: impl Fn(&str) -> Option<Id>) -> Self {
        let listed = |keyword: &str| -> Vec<Id> {
            let count = schema.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
            (0..count).filter_map(|index| id(&format!("/{keyword}/{index}"))).collect()
        };
        let dependencies = schema.get("dependencies").and_then(Value::as_object);
        let names = dependencies.into_iter().flat_map(|members| members.keys());
        let dependency = |name: &String| {
            Some((name.clone(), id(&format!("/dependencies/{}", crate::subschema::token(name)))?))
        };
        Self {
            all: listed("allOf"),
            any: listed("anyOf"),
            one: listed("oneOf"),
            not: id("/not"),
            contains: id("/contains"),
            condition: id("/if").map(|condition| (condition, id("/then"), id("/else"))),
            dependent: names.filter_map(dependency).collect(),
        }
    }

    /// What may apply to the same value, beside `allOf`.
    pub(super) fn branches(&self) -> impl Iterator<Item = Id> {
        let condition = self
            .condition
            .into_iter()
            .flat_map(|(of, then, other)| std::iter::once(of).chain(then).chain(other));
        let listed = self.any.iter().chain(&self.one).copied();
        listed.chain(condition).chain(self.dependent.iter().map(|(_, id)| *id))
    }
}
