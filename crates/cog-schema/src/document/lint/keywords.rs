//! Warnings about keywords that have no effect.

use serde_json::{Map, Value};

use crate::document::lint::list::Warnings;
use crate::finding::with_article;
use crate::subschema::{ASSERTIONS, FORMATS, is_annotation, is_assertion};
use crate::wording::quoted;

/// Keywords that identify a schema, and an annotation of later drafts.
const OTHER_KNOWN: [&str; 3] = ["$schema", "$id", "deprecated"];

/// Formats of OpenAPI, which describe a representation and restrict no value.
const OPENAPI_FORMATS: [&str; 7] = ["int32", "int64", "float", "double", "byte", "binary", "password"];

/// Keywords of other drafts and languages, and what to write in Draft-07.
const FOREIGN: [(&str, &str); 15] = [
    ("nullable", "Write `\"type\": [\"string\", \"null\"]`, with your type in place of `string`."),
    ("prefixItems", "In Draft-07, write the list of schemas as the value of `items`."),
    ("dependentRequired", "In Draft-07, write `dependencies`."),
    ("dependentSchemas", "In Draft-07, write `dependencies`."),
    ("unevaluatedProperties", "In Draft-07, write `additionalProperties` next to `properties`."),
    ("unevaluatedItems", "In Draft-07, write `additionalItems` next to a list of `items`."),
    ("minContains", "Draft-07 has only `contains`, for at least one item."),
    ("maxContains", "Draft-07 has only `contains`, for at least one item."),
    ("$anchor", "In Draft-07, write `\"$id\": \"#NAME\"`."),
    ("optional", "A field is optional unless the object lists it in `required`."),
    ("min", "Write `minimum`, `minLength` or `minItems`."),
    ("max", "Write `maximum`, `maxLength` or `maxItems`."),
    ("values", "Write `enum`."),
    ("regex", "Write `pattern`."),
    ("fields", "Write `properties`."),
];

/// Warns about the keywords of a schema that the check of a value ignores.
pub(super) fn check(warnings: &mut Warnings, pointer: &str, schema: &Map<String, Value>) {
    if schema.contains_key("$ref") {
        return beside_reference(warnings, pointer, schema);
    }
    for (keyword, value) in schema {
        if is_assertion(keyword) {
            unfit(warnings, pointer, schema, keyword);
        } else if !is_known(keyword) {
            unknown(warnings, &format!("{pointer}/{keyword}"), keyword);
        }
        if let (Some(name), "format") = (value.as_str(), keyword.as_str()) {
            format(warnings, &format!("{pointer}/format"), name);
        }
    }
}

fn is_known(keyword: &str) -> bool {
    is_assertion(keyword)
        || is_annotation(keyword)
        || OTHER_KNOWN.contains(&keyword)
        || keyword.starts_with("x-")
}

fn unknown(warnings: &mut Warnings, pointer: &str, keyword: &str) {
    let message = format!("unknown keyword {}: it has no effect", quoted(keyword));
    let foreign = FOREIGN.iter().find(|(name, _)| *name == keyword).map(|(_, help)| (*help).to_owned());
    let known = ASSERTIONS.iter().copied().chain(["description", "title", "default", "examples", "$defs"]);
    let help = foreign.or_else(|| warnings.did_you_mean(keyword, known));
    let help = help.unwrap_or_else(|| "Remove it, or start its name with `x-` if it is a note.".to_owned());
    warnings.add(pointer, message, help);
}

/// Warns about keywords next to `$ref`, which Draft-07 ignores.
fn beside_reference(warnings: &mut Warnings, pointer: &str, schema: &Map<String, Value>) {
    for keyword in schema.keys().filter(|keyword| *keyword != "$ref") {
        let at = format!("{pointer}/{keyword}");
        if is_assertion(keyword) {
            let message = format!("{} has no effect next to `$ref`", quoted(keyword));
            let help = "Write `\"allOf\": [{ \"$ref\": … }]` in place of `$ref`.";
            warnings.add(&at, message, help.to_owned());
        } else if !is_known(keyword) {
            unknown(warnings, &at, keyword);
        }
    }
}

fn format(warnings: &mut Warnings, pointer: &str, name: &str) {
    if FORMATS.contains(&name) || OPENAPI_FORMATS.contains(&name) {
        return;
    }
    let help = warnings.did_you_mean(name, FORMATS.iter().copied());
    let help = help.unwrap_or_else(|| "Use `pattern` to restrict the text.".to_owned());
    warnings.add(pointer, format!("unknown format {}: it is not checked", quoted(name)), help);
}

/// Warns about a keyword that does not apply to the types of its schema.
fn unfit(warnings: &mut Warnings, pointer: &str, schema: &Map<String, Value>, keyword: &str) {
    let Some(wanted) = types_of(keyword) else { return };
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => return,
    };
    if types.is_empty() || types.iter().any(|name| wanted.contains(name)) {
        return;
    }
    let (first, found) = (wanted.first().copied().unwrap_or_default(), types.join("` or `"));
    let message = format!("{} has no effect: the type is `{found}`", quoted(keyword));
    let help = format!("It restricts {}; correct the type or the keyword.", with_article(first));
    warnings.add(&format!("{pointer}/{keyword}"), message, help);
}

/// Returns the types that a keyword applies to; `None` for all.
fn types_of(keyword: &str) -> Option<&'static [&'static str]> {
    Some(match keyword {
        "minLength" | "maxLength" | "pattern" | "contentEncoding" | "contentMediaType" => &["string"],
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            &["number", "integer"]
        }
        "items" | "additionalItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" => &["array"],
        "properties"
        | "patternProperties"
        | "additionalProperties"
        | "propertyNames"
        | "required"
        | "minProperties"
        | "maxProperties" => &["object"],
        _ => return None,
    })
}
