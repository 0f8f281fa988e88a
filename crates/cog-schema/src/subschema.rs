//! Which keywords of Draft-07 hold schemas, and how.
//!
//! `$defs` is read beside `definitions`, as the specification's own documents write it.

use serde_json::Value;

/// How the value of a keyword holds schemas.
enum Holds {
    /// It is one.
    One,
    /// It is a list of them.
    List,
    /// It is a map from names to them.
    Map,
    /// It is one, or a list of them.
    OneOrList,
}

fn holds(keyword: &str) -> Option<Holds> {
    Some(match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "propertyNames"
        | "not"
        | "if"
        | "then"
        | "else" => Holds::One,
        "allOf" | "anyOf" | "oneOf" => Holds::List,
        "properties" | "patternProperties" | "definitions" | "$defs" | "dependencies" => Holds::Map,
        "items" => Holds::OneOrList,
        _ => return None,
    })
}

/// A keyword that applies its schemas to the very value that the schema itself is applied to.
pub(crate) fn is_in_place(keyword: &str) -> bool {
    matches!(keyword, "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependencies")
}

/// A keyword that allows or refuses nothing.
pub(crate) fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "title"
            | "description"
            | "default"
            | "examples"
            | "$comment"
            | "readOnly"
            | "writeOnly"
            | "$defs"
            | "definitions"
    )
}

/// A schema that stands right inside another.
pub(crate) struct Child<'a> {
    /// The keyword that holds it.
    pub(crate) keyword: &'a str,
    /// Where it stands, as a JSON pointer from the outer schema.
    pub(crate) pointer: String,
}

/// The schemas right inside a schema; those beside a `$ref` are ignored, as Draft-07 says, except definitions.
pub(crate) fn children(schema: &Value) -> Vec<Child<'_>> {
    let mut children = Vec::new();
    let Some(members) = schema.as_object() else { return children };
    let is_reference = members.contains_key("$ref");
    for (keyword, value) in members {
        if is_reference && !matches!(keyword.as_str(), "definitions" | "$defs") {
            continue;
        }
        push_children(&mut children, keyword, value);
    }
    children
}

fn push_children<'a>(children: &mut Vec<Child<'a>>, keyword: &'a str, value: &'a Value) {
    let mut push = |pointer, schema: &Value| {
        if schema.is_object() || schema.is_boolean() {
            children.push(Child { keyword, pointer });
        }
    };
    match (holds(keyword), value) {
        (Some(Holds::List | Holds::OneOrList), Value::Array(list)) => {
            for (index, schema) in list.iter().enumerate() {
                push(format!("/{keyword}/{index}"), schema);
            }
        }
        (Some(Holds::Map), Value::Object(map)) => {
            for (name, schema) in map {
                push(format!("/{keyword}/{}", token(name)), schema);
            }
        }
        (Some(Holds::One | Holds::OneOrList), schema) => push(format!("/{keyword}"), schema),
        _ => {}
    }
}

/// The schema that a local reference points to, as a JSON pointer; none for a reference by name (`#name`).
pub(crate) fn target(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    (fragment.is_empty() || fragment.starts_with('/')).then(|| percent_decoded(fragment))
}

/// The local reference to the schema at a JSON pointer; what may not stand in a URI is percent-encoded.
pub(crate) fn reference(pointer: &str) -> String {
    let mut reference = String::with_capacity(pointer.len() + 1);
    reference.push('#');
    for byte in pointer.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b'$' => {
                reference.push(char::from(byte));
            }
            _ => reference.push_str(&format!("%{byte:02X}")),
        }
    }
    reference
}

/// A key as one token of a JSON pointer (RFC 6901).
pub(crate) fn token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn percent_decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        let decoded = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| fragment.to_owned())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_schemas_are_children() {
        let schema = json!({
            "properties": { "a/b": {}, "enum": { "type": "string" } },
            "items": [true, {}],
            "default": { "properties": { "no": {} } },
            "dependencies": { "a": ["b"], "c": { "type": "object" } },
        });
        let found: Vec<String> = children(&schema).into_iter().map(|child| child.pointer).collect();
        assert_eq!(
            found,
            ["/properties/a~1b", "/properties/enum", "/items/0", "/items/1", "/dependencies/c"]
        );
    }

    #[test]
    fn what_stands_beside_a_reference_does_not_count() {
        let schema = json!({ "$ref": "#/$defs/A", "properties": { "a": {} }, "$defs": { "A": {} } });
        let found: Vec<String> = children(&schema).into_iter().map(|child| child.pointer).collect();
        assert_eq!(found, ["/$defs/A"]);
    }

    #[test]
    fn references_are_encoded_and_decoded() {
        assert_eq!(target("#/$defs/a%20b~1c").as_deref(), Some("/$defs/a b~1c"));
        assert_eq!(reference("/$defs/a b~1c"), "#/$defs/a%20b~1c");
        assert_eq!(target("#").as_deref(), Some(""));
        assert_eq!(target("#name"), None);
        assert_eq!(target("other.json#/a"), None);
    }
}
