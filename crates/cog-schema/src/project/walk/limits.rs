//! Checks the size of a projected schema.

use serde_json::{Map, Value};

use crate::dialect::{LARGE_ENUM, Limits};

/// The counts of a complete schema.
#[derive(Debug, Default)]
pub(super) struct Count {
    members: usize,
    pub(super) optional: usize,
    pub(super) unions: usize,
    depth: usize,
    values: usize,
    text: usize,
    large_enum_text: usize,
}

/// Checks that a schema is within the limits of its dialect; returns the reason if it is not.
pub(super) fn check(schema: &Value, limits: &Limits) -> Result<(), String> {
    let count = Count::new(schema);
    let over = [
        ("members", count.members, limits.members),
        ("optional members", count.optional, limits.optional_members),
        ("members of several types", count.unions, limits.union_members),
        ("levels of objects", count.depth, limits.depth),
        ("enum values", count.values, limits.enum_values),
        ("characters of names and values", count.text, limits.text),
        ("characters in an enum of over 250 values", count.large_enum_text, limits.large_enum_text),
    ]
    .into_iter()
    .find(|(_, found, max)| found > max);
    match over {
        Some((unit, found, max)) => Err(format!("{found} {unit}; the maximum is {max}")),
        None => Ok(()),
    }
}

/// Returns whether a member accepts several types.
pub(super) fn is_union(schema: &Value) -> bool {
    schema.get("anyOf").is_some() || schema.get("type").is_some_and(Value::is_array)
}

impl Count {
    /// Counts a complete schema.
    pub(super) fn new(schema: &Value) -> Self {
        let mut count = Self::default();
        count.schema(schema, 0);
        count
    }

    /// Counts a schema. Definitions are counted once, in `$defs`, so recursion ends.
    fn schema(&mut self, schema: &Value, depth: usize) {
        let Some(members) = schema.as_object() else { return };
        let mut depth = depth;
        if let Some(properties) = members.get("properties").and_then(Value::as_object) {
            depth += 1;
            self.depth = self.depth.max(depth);
            self.properties(properties, members, depth);
        }
        self.values(members);
        let lists =
            ["anyOf", "prefixItems"].into_iter().filter_map(|keyword| members.get(keyword)?.as_array());
        for branch in lists.flatten() {
            self.schema(branch, depth);
        }
        for inner in ["items", "additionalProperties"].into_iter().filter_map(|keyword| members.get(keyword))
        {
            self.schema(inner, depth);
        }
        for (name, schema) in members.get("$defs").and_then(Value::as_object).into_iter().flatten() {
            self.text += name.chars().count();
            self.schema(schema, 0);
        }
    }

    fn values(&mut self, members: &Map<String, Value>) {
        let listed = members.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let length = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
        let text = listed.iter().map(length).sum();
        let constant = members.get("const");
        self.values += listed.len() + usize::from(constant.is_some());
        self.text += text + constant.map_or(0, length);
        if listed.len() > LARGE_ENUM {
            self.large_enum_text = self.large_enum_text.max(text);
        }
    }

    fn properties(&mut self, properties: &Map<String, Value>, members: &Map<String, Value>, depth: usize) {
        let required = members.get("required").and_then(Value::as_array);
        for (name, schema) in properties {
            self.members += 1;
            self.text += name.chars().count();
            self.optional += usize::from(!required.is_some_and(|keys| keys.iter().any(|key| key == name)));
            self.unions += usize::from(is_union(schema));
            self.schema(schema, depth);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_a_provider_limits_is_counted() {
        let count = Count::new(&json!({
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": { "type": "string", "enum": ["x", "yy"] },
                "bb": { "type": ["string", "null"] },
                "c": { "type": "object", "properties": { "d": { "type": "string", "const": "zzz" } } },
            },
            "$defs": { "Name": { "type": "integer", "enum": [1, 2, 3] } },
        }));
        assert_eq!((count.members, count.optional, count.unions), (4, 3, 1));
        assert_eq!((count.depth, count.values, count.text), (2, 6, 15));
        assert_eq!(count.large_enum_text, 0);
    }
}
