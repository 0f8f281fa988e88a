//! Whether two contracts exclude each other: no value fits both.

use std::fmt;

use serde_json::Value;

use super::{Member, Shape, Types};

/// The maximum number of pairs that are compared. A schema can refer to itself.
const MAX_COMPARED: usize = 1_000;

/// Why no value of one schema fits another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exclusion {
    /// The path of the member: `city.name`; empty for the whole value.
    pub path: String,
    /// What each of them says.
    reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    /// Their types.
    Types(Types, Types),
    /// The lists have no value in common.
    Values,
    /// The first one requires a member that the second one does not have.
    Absent,
    /// The first one forbids a member that the second one requires.
    Forbidden,
}

impl fmt::Display for Exclusion {
    /// `city: found string, expected number`, with the second one as what is found.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "" } else { &format!("{}: ", self.path) };
        f.write_str(path)?;
        match &self.reason {
            Reason::Types(expected, found) => write!(f, "found {found}, expected {expected}"),
            Reason::Values => f.write_str("none of the values is allowed"),
            Reason::Absent => f.write_str("required, but never there"),
            Reason::Forbidden => f.write_str("not allowed, but always there"),
        }
    }
}

impl Shape<'_> {
    /// Returns why no value fits both, if that is certain. `found` has only the members that it names.
    ///
    /// The search follows only members that each value has, so it does not prove every exclusion.
    pub fn exclusion(&self, found: &Shape<'_>) -> Option<Exclusion> {
        compare(self, found, &[], &mut 0)
    }
}

fn compare(
    expected: &Shape<'_>,
    found: &Shape<'_>,
    path: &[&str],
    compared: &mut usize,
) -> Option<Exclusion> {
    *compared += 1;
    if *compared > MAX_COMPARED {
        return None;
    }
    let exclusion = |name: Option<&str>, reason| {
        let path: Vec<&str> = path.iter().copied().chain(name).collect();
        Some(Exclusion { path: path.join("."), reason })
    };
    let types = expected.types().and(found.types());
    if types == Types::default() {
        return exclusion(None, Reason::Types(expected.types(), found.types()));
    }
    if let (Some(allowed), Some(values)) = (expected.listed_values(), found.listed_values())
        && !values.iter().any(|value| allowed.iter().any(|allowed| is_equal(allowed, value)))
    {
        return exclusion(None, Reason::Values);
    }
    // An alternative of another type has none of the members.
    if types != Types::OBJECT {
        return None;
    }
    for name in expected.required_names() {
        if matches!(found.member(name), Member::Absent) {
            return exclusion(Some(name), Reason::Absent);
        }
    }
    let required = expected.required_names().into_iter().chain(found.required_names());
    for name in required {
        match (expected.member(name), found.member(name)) {
            _ if expected.forbids(name) => return exclusion(Some(name), Reason::Forbidden),
            (Member::Known(expected), Member::Known(found)) => {
                let inner: Vec<&str> = path.iter().copied().chain([name]).collect();
                if let Some(found) = compare(&expected, &found, &inner, compared) {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    None
}

/// Whole numbers are equal to the same numbers with a fraction of zero.
fn is_equal(one: &Value, other: &Value) -> bool {
    one == other || one.as_f64().is_some_and(|number| Some(number) == other.as_f64())
}

#[cfg(test)]
mod tests {
    use cog_spec::{Format, Manifest, Tier};
    use serde_json::json;

    use super::*;
    use crate::{Contract, Rules};

    fn contract(part: &str, schema: Value) -> Contract {
        let mut document = serde_json::Map::from_iter([(part.to_owned(), schema)]);
        document.insert(
            "$defs".to_owned(),
            json!({ "node": { "type": "object", "required": ["next"], "properties": { "next": { "$ref": "#/$defs/node" } } },
                    "name": { "type": "string" } }),
        );
        let manifest = Manifest::with_defaults("m", Format::V25, Some(Tier::Exploration));
        Contract::compile(&Value::Object(document), &Rules::from(&manifest)).unwrap()
    }

    fn reason(expected: Value, found: Value) -> Option<String> {
        let (expected, found) = (contract("input", expected), contract("data", found));
        let exclusion = expected.shape("input").unwrap().exclusion(&found.shape("data").unwrap());
        exclusion.map(|exclusion| exclusion.to_string())
    }

    fn object(properties: Value, required: &[&str]) -> Value {
        json!({ "type": "object", "properties": properties, "required": required })
    }

    #[test]
    fn what_no_value_fits_is_named() {
        let text = json!({ "type": "string" });
        let data = object(
            json!({ "a": { "$ref": "#/$defs/name" }, "b": object(json!({ "c": { "enum": ["x", 2] } }), &["c"]) }),
            &["a", "b"],
        );
        let closed = json!({ "type": "object", "additionalProperties": false, "properties": { "a": text } });
        for (expected, reason_) in [
            (json!({ "type": "array" }), "found object, expected array"),
            (object(json!({ "city": text }), &["city"]), "city: required, but never there"),
            (
                object(json!({ "a": { "type": ["number", "null"] } }), &[]),
                "a: found string, expected number or null",
            ),
            (
                object(json!({ "b": object(json!({ "c": { "enum": ["y", 3] } }), &["c"]) }), &[]),
                "b.c: none of the values is allowed",
            ),
            (closed, "b: not allowed, but always there"),
        ] {
            assert_eq!(reason(expected.clone(), data.clone()).as_deref(), Some(reason_), "{expected}");
        }
    }

    #[test]
    fn what_a_value_may_fit_is_not() {
        let text = json!({ "type": "string" });
        let data = object(
            json!({ "a": text, "b": { "type": ["object", "null"], "properties": { "c": text } }, "d": { "type": "integer" } }),
            &["a", "b"],
        );
        for expected in [
            json!({}),
            object(json!({ "a": { "anyOf": [{ "type": "number" }, { "type": "string" }] } }), &["a"]),
            // The member can be absent, or the object null.
            object(json!({ "d": text }), &["a"]),
            object(
                json!({ "b": { "type": ["object", "null"], "properties": { "c": { "type": "number" } }, "required": ["c"] } }),
                &["b"],
            ),
            object(json!({ "d": { "enum": [1.0] } }), &["d"]),
            object(json!({ "rationale": text, "extensions": {} }), &["rationale"]),
        ] {
            assert_eq!(reason(expected.clone(), data.clone()), None, "{expected}");
        }
        let node = json!({ "$ref": "#/$defs/node" });
        assert_eq!(reason(node.clone(), node), None, "a schema that refers to itself");
    }
}
