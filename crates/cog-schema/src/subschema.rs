//! The keywords of Draft-07 that contain schemas.
//!
//! `$defs` is read as `definitions`, because the documents of the specification use it.

use serde_json::Value;

/// How the value of a keyword contains schemas.
enum Contains {
    /// One schema.
    One,
    /// A list of schemas.
    List,
    /// A map from names to schemas.
    Map,
    /// One schema, or a list of schemas.
    OneOrList,
}

fn contained(keyword: &str) -> Option<Contains> {
    Some(match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "propertyNames"
        | "not"
        | "if"
        | "then"
        | "else" => Contains::One,
        "allOf" | "anyOf" | "oneOf" => Contains::List,
        "properties" | "patternProperties" | "definitions" | "$defs" | "dependencies" => Contains::Map,
        "items" => Contains::OneOrList,
        _ => return None,
    })
}

/// Returns the strings in the value of a keyword that is a list of names, such as `required`.
pub(crate) fn names(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Returns whether the value of `type` names this type, alone or in a list.
pub(crate) fn names_type(kind: Option<&Value>, name: &str) -> bool {
    kind.is_some_and(|kind| kind == name) || names(kind).any(|one| one == name)
}

/// Returns whether a keyword applies its schemas to the same value as the schema itself.
pub(crate) fn is_in_place(keyword: &str) -> bool {
    matches!(keyword, "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependencies")
}

/// Returns whether a keyword has no effect on validity.
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

/// The keywords of Draft-07 that restrict values.
pub(crate) const ASSERTIONS: [&str; 36] = [
    "$ref",
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependencies",
    "items",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "contentEncoding",
    "contentMediaType",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
];

/// The formats that are checked: the formats of Draft-07, except international ones, and [`LATER_FORMATS`].
pub(crate) const FORMATS: [&str; 17] = [
    "date",
    "date-time",
    "time",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "uri-template",
    "iri",
    "iri-reference",
    "json-pointer",
    "relative-json-pointer",
    "regex",
    "uuid",
    "duration",
];

/// The formats of later drafts that are checked.
pub(crate) const LATER_FORMATS: [&str; 2] = ["uuid", "duration"];

/// Returns whether a keyword of Draft-07 restricts values.
pub(crate) fn is_assertion(keyword: &str) -> bool {
    ASSERTIONS.contains(&keyword)
}

/// Returns whether the check of a value enforces a keyword: not one that is unknown, and not an unknown format.
pub(crate) fn is_enforced(keyword: &str, value: &Value) -> bool {
    match (keyword, value.as_str()) {
        ("format", Some(name)) => FORMATS.contains(&name),
        _ => is_assertion(keyword),
    }
}

/// A direct child of a schema.
pub(crate) struct Child<'a> {
    /// The keyword that contains it.
    pub(crate) keyword: &'a str,
    /// Its JSON pointer, from the outer schema.
    pub(crate) pointer: String,
}

/// Returns the direct children of a schema. Next to a `$ref` only definitions count, as Draft-07 requires.
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
    match (contained(keyword), value) {
        (Some(Contains::List | Contains::OneOrList), Value::Array(list)) => {
            let schemas = list.iter().enumerate().filter(|(_, schema)| is_schema(schema));
            children
                .extend(schemas.map(|(index, _)| Child { keyword, pointer: format!("/{keyword}/{index}") }));
        }
        (Some(Contains::Map), Value::Object(map)) => {
            let schemas = map.iter().filter(|(_, schema)| is_schema(schema));
            children.extend(
                schemas.map(|(name, _)| Child { keyword, pointer: format!("/{keyword}/{}", token(name)) }),
            );
        }
        (Some(Contains::One | Contains::OneOrList), schema) if is_schema(schema) => {
            children.push(Child { keyword, pointer: format!("/{keyword}") });
        }
        _ => {}
    }
}

fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

/// Returns the JSON pointer of a local reference; none for a reference by name (`#name`).
pub(crate) fn target(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    (fragment.is_empty() || fragment.starts_with('/')).then(|| percent_decoded(fragment))
}

/// Returns the JSON pointer that a schema refers to with `$ref`.
pub(crate) fn referred(schema: &Value) -> Option<String> {
    schema.get("$ref")?.as_str().and_then(target)
}

/// Returns the schema at the end of a chain of references.
pub(crate) fn followed<'a>(document: &'a Value, mut schema: &'a Value) -> &'a Value {
    // The chain ends: a document with circular references is refused before any schema is read.
    while let Some(next) = referred(schema).and_then(|pointer| document.pointer(&pointer)) {
        schema = next;
    }
    schema
}

/// Returns the pointer at the end of a chain of references.
pub(crate) fn followed_pointer(document: &Value, pointer: &str) -> String {
    let mut pointer = pointer.to_owned();
    while let Some(next) = document.pointer(&pointer).and_then(referred) {
        pointer = next;
    }
    pointer
}

/// Returns the local reference to a JSON pointer. Characters that are not allowed in a URI are percent-encoded.
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

/// Returns a key as a token of a JSON pointer (RFC 6901).
pub(crate) fn token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn percent_decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, after @ ..] = rest {
        let decoded = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { after.get(2..).unwrap_or_default() } else { after };
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
    fn keywords_next_to_a_reference_are_ignored() {
        let schema = json!({ "$ref": "#/$defs/A", "properties": { "a": {} }, "$defs": { "A": {} } });
        let found: Vec<String> = children(&schema).into_iter().map(|child| child.pointer).collect();
        assert_eq!(found, ["/$defs/A"]);
    }

    #[test]
    fn references_are_encoded_and_decoded() {
        assert_eq!(target("#/$defs/a%20b~1c").as_deref(), Some("/$defs/a b~1c"));
        assert_eq!(reference("/$defs/a b~1c"), "#/$defs/a%20b~1c");
        assert_eq!(target("#/%C3%a9%7e").as_deref(), Some("/é~"));
        assert_eq!(target("#").as_deref(), Some(""));
        assert_eq!(target("#name"), None);
        assert_eq!(target("other.json#/a"), None);
    }
}
