//! Keywords in plain English, for the descriptions of fields whose dialect does not support them.

use serde_json::{Map, Value};

/// The maximum length of a value that is quoted in a description.
const MAX_QUOTED: usize = 400;

/// Adds what a schema requires beyond the projected keywords to its description.
pub(super) fn add(dropped: &Map<String, Value>, projected: &mut Map<String, Value>) {
    let sentences = sentences(dropped);
    if sentences.is_empty() {
        return;
    }
    let mut text = match projected.get("description").and_then(Value::as_str).map(str::trim_end) {
        Some(own) if own.ends_with(['.', '!', '?']) => format!("{own} "),
        Some(own) if !own.is_empty() => format!("{own}. "),
        _ => String::new(),
    };
    text.push_str(&sentences.join(" "));
    projected.insert("description".to_owned(), Value::from(text));
}

/// Returns whether a keyword that a dialect does not support is explained in a description.
pub(crate) fn is_describable(keyword: &str, value: &Value) -> bool {
    !sentences(&Map::from_iter([(keyword.to_owned(), value.clone())])).is_empty()
}

/// Adds what one keyword requires to the description.
pub(super) fn add_one(keyword: &str, value: &Value, projected: &mut Map<String, Value>) {
    add(&Map::from_iter([(keyword.to_owned(), value.clone())]), projected);
}

/// Returns a sentence for each keyword, or pair of keywords.
fn sentences(dropped: &Map<String, Value>) -> Vec<String> {
    let mut sentences: Vec<String> = [
        range(dropped, ["minimum", "maximum"], ""),
        range(dropped, ["minLength", "maxLength"], "character"),
        range(dropped, ["minItems", "maxItems"], "item"),
        range(dropped, ["minProperties", "maxProperties"], "member"),
    ]
    .into_iter()
    .flatten()
    .collect();
    sentences.extend(dropped.iter().filter_map(|(keyword, value)| sentence(keyword, value)));
    sentences
}

fn range(dropped: &Map<String, Value>, [low, high]: [&str; 2], unit: &str) -> Option<String> {
    Some(match (dropped.get(low), dropped.get(high)) {
        (Some(low), Some(high)) if low == high => format!("Exactly {low}{}.", units(low, unit)),
        (Some(low), Some(high)) => format!("Between {low} and {high}{}.", units(high, unit)),
        (Some(low), None) if unit == "character" && low.as_u64() == Some(1) => "Not empty.".to_owned(),
        (Some(low), None) => format!("At least {low}{}.", units(low, unit)),
        (None, Some(high)) => format!("At most {high}{}.", units(high, unit)),
        (None, None) => return None,
    })
}

fn units(count: &Value, unit: &str) -> String {
    match unit {
        "" => String::new(),
        unit if count.as_f64() == Some(1.0) => format!(" {unit}"),
        unit => format!(" {unit}s"),
    }
}

/// Returns a sentence for a keyword that is not a part of a range.
fn sentence(keyword: &str, value: &Value) -> Option<String> {
    let quoted = value.to_string();
    let can_be_quoted = quoted.len() <= MAX_QUOTED && !quoted.contains("\"$ref\"");
    let text = value.as_str().filter(|text| text.len() <= MAX_QUOTED);
    match (keyword, text) {
        (
            "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties",
            _,
        ) => None,
        ("uniqueItems", _) => (*value == Value::Bool(true)).then(|| "All items are different.".to_owned()),
        ("pattern", Some(pattern)) => Some(format!("Matches the regular expression `{pattern}`.")),
        ("format", Some(format)) => Some(format!("In the format `{format}` of JSON Schema.")),
        ("contentEncoding", Some(encoding)) => Some(format!("Encoded as {encoding}.")),
        _ if !can_be_quoted => None,
        ("exclusiveMinimum", _) => Some(format!("Greater than {quoted}.")),
        ("exclusiveMaximum", _) => Some(format!("Less than {quoted}.")),
        ("multipleOf", _) => Some(format!("A multiple of {quoted}.")),
        ("const", _) => Some(format!("Always {quoted}.")),
        ("enum", _) => Some(format!("One of {quoted}.")),
        _ => Some(format!("Also matches this JSON Schema: {{\"{keyword}\": {quoted}}}.")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn described(dropped: Value, description: Option<&str>) -> Value {
        let mut projected = Map::new();
        projected.extend(description.map(|text| ("description".to_owned(), Value::from(text))));
        add(dropped.as_object().unwrap(), &mut projected);
        projected.get("description").cloned().unwrap_or_default()
    }

    #[test]
    fn keywords_become_sentences() {
        for (dropped, text) in [
            (json!({ "minimum": 1, "maximum": 10 }), "Between 1 and 10."),
            (json!({ "maximum": 0.5 }), "At most 0.5."),
            (json!({ "exclusiveMinimum": 0, "multipleOf": 5 }), "Greater than 0. A multiple of 5."),
            (json!({ "minLength": 1 }), "Not empty."),
            (json!({ "minItems": 1 }), "At least 1 item."),
            (json!({ "maxLength": 280 }), "At most 280 characters."),
            (
                json!({ "minItems": 4, "maxItems": 4, "uniqueItems": true }),
                "Exactly 4 items. All items are different.",
            ),
            (json!({ "exclusiveMaximum": 5 }), "Less than 5."),
            (json!({ "const": "a" }), "Always \"a\"."),
            (json!({ "contentEncoding": "base64" }), "Encoded as base64."),
            (json!({ "pattern": "^a+$" }), "Matches the regular expression `^a+$`."),
            (json!({ "enum": [[1], { "a": null }] }), "One of [[1],{\"a\":null}]."),
            (json!({ "not": { "const": 1 } }), "Also matches this JSON Schema: {\"not\": {\"const\":1}}."),
        ] {
            assert_eq!(described(dropped, None), text);
        }
    }

    #[test]
    fn sentences_follow_the_description() {
        let dropped = || json!({ "minimum": 1 });
        assert_eq!(described(dropped(), Some("A line")), "A line. At least 1.");
        assert_eq!(described(dropped(), Some("A line. ")), "A line. At least 1.");
        assert_eq!(described(dropped(), Some(" ")), "At least 1.");
        assert_eq!(described(json!({}), Some("A line")), "A line");
    }

    #[test]
    fn what_cannot_be_quoted_is_left_out() {
        assert_eq!(described(json!({ "not": { "$ref": "#/$defs/A" } }), None), Value::Null);
        assert_eq!(described(json!({ "const": "x".repeat(MAX_QUOTED) }), None), Value::Null);
        assert_eq!(described(json!({ "uniqueItems": false }), None), Value::Null);
        assert!(!is_describable("uniqueItems", &json!(false)) && is_describable("uniqueItems", &json!(true)));
    }
}
