//! The type of an answer, from the schema of its data.

use serde_json::{Map, Value};

use super::{Column, ColumnType};

/// The maximum number of lists and structs within each other. Readers of Arrow allow 64, with those around the answer.
const MAX_DEPTH: usize = 32;
/// The maximum number of references within each other.
const MAX_REFERENCES: usize = 64;
/// The maximum number of fields. A short contract can describe millions, by references to references.
const MAX_FIELDS: usize = 10_000;
/// The keywords with alternatives.
const ALTERNATIVES: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Returns the type of an answer; `data` is its schema, and its references point into `document`.
pub(super) fn data_type(document: &Value, data: &Value) -> ColumnType {
    let mut reader = Reader { document, fields: 0, within: Vec::new() };
    let Ok(mut found) = reader.type_of(data, 1) else { return ColumnType::Json };
    if let ColumnType::Struct(members) = &mut found
        && members.iter().all(|member| member.name != "rationale")
    {
        members.push(Column::new("rationale", ColumnType::Text));
    }
    found
}

/// The contract has more than [`MAX_FIELDS`].
struct TooManyFields;

type Found = Result<ColumnType, TooManyFields>;

/// Reads the schemas of a document.
struct Reader<'a> {
    document: &'a Value,
    fields: usize,
    /// The references that lead to the schema.
    within: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn type_of(&mut self, schema: &'a Value, depth: usize) -> Found {
        let Some(keywords) = schema.as_object() else { return Ok(ColumnType::Json) };
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            return self.referenced(reference, depth);
        }
        match (keywords.get("enum"), keywords.get("const")) {
            (Some(Value::Array(values)), _) => Ok(listed(values)),
            (None, Some(value)) => Ok(listed(std::slice::from_ref(value))),
            _ => self.typed(keywords, depth),
        }
    }

    fn referenced(&mut self, reference: &'a str, depth: usize) -> Found {
        if self.within.contains(&reference) || self.within.len() >= MAX_REFERENCES {
            return Ok(ColumnType::Json);
        }
        self.within.push(reference);
        let target = target(self.document, reference).unwrap_or(&Value::Null);
        let found = self.type_of(target, depth);
        self.within.pop();
        found
    }

    fn typed(&mut self, keywords: &'a Map<String, Value>, depth: usize) -> Found {
        match type_name(keywords) {
            TypeName::One("object") => self.object(keywords, depth),
            TypeName::One("array") => match keywords.get("items").filter(|items| items.is_object()) {
                Some(items) if depth <= MAX_DEPTH => {
                    Ok(ColumnType::List(Box::new(self.type_of(items, depth + 1)?)))
                }
                _ => Ok(ColumnType::Json),
            },
            TypeName::One("boolean") => Ok(ColumnType::Bool),
            TypeName::One("integer") => Ok(ColumnType::Int),
            TypeName::One("number") => Ok(ColumnType::Float),
            TypeName::One("string") => Ok(ColumnType::Text),
            TypeName::Alternatives => self.alternatives(keywords, depth),
            TypeName::One(_) | TypeName::Any => Ok(ColumnType::Json),
        }
    }

    fn object(&mut self, keywords: &'a Map<String, Value>, depth: usize) -> Found {
        let properties = keywords.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|it| depth <= MAX_DEPTH && !it.is_empty()) else {
            return Ok(ColumnType::Json);
        };
        // Readers pass names through strings of C, which end at NUL.
        if properties.keys().any(|name| name.contains('\0')) {
            return Ok(ColumnType::Json);
        }
        self.fields += properties.len();
        if self.fields > MAX_FIELDS {
            return Err(TooManyFields);
        }
        let members = properties
            .iter()
            .map(|(name, schema)| Ok(Column::new(name.as_str(), self.type_of(schema, depth + 1)?)));
        Ok(ColumnType::Struct(members.collect::<Result<_, TooManyFields>>()?))
    }

    fn alternatives(&mut self, keywords: &'a Map<String, Value>, depth: usize) -> Found {
        let mut lists = ALTERNATIVES.iter().filter_map(|name| Some((*name, keywords.get(*name)?)));
        let (Some((name, Value::Array(list))), None) = (lists.next(), lists.next()) else {
            return Ok(ColumnType::Json);
        };
        let others: Vec<_> = list.iter().filter(|schema| name == "allOf" || !is_null_type(schema)).collect();
        match others.as_slice() {
            [only] => self.type_of(only, depth),
            [first, second] if name != "allOf" && self.is_extensible(first, second) => Ok(ColumnType::Open),
            _ => Ok(ColumnType::Json),
        }
    }

    /// Whether these are an enum, and an object for what it does not list. No text of the enum may look like the JSON of an
    /// object.
    fn is_extensible(&self, first: &'a Value, second: &'a Value) -> bool {
        let pair = [self.resolved(first), self.resolved(second)];
        let mut enums = pair.iter().flatten().filter_map(|schema| schema.get("enum")?.as_array());
        let (Some(values), None) = (enums.next(), enums.next()) else { return false };
        let ColumnType::Choice(values) = listed(values) else { return false };
        pair.into_iter().flatten().filter(|schema| is_open_object(schema)).count() == 1
            && !values.iter().any(|it| it.starts_with('{'))
    }

    /// Follows references, as far as they end.
    fn resolved(&self, mut schema: &'a Value) -> Option<&'a Map<String, Value>> {
        for _ in 0..MAX_DEPTH {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { break };
            schema = target(self.document, reference)?;
        }
        schema.as_object()
    }
}

/// Returns what a reference within the document points to.
fn target<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    document.pointer(&percent_encoding::percent_decode_str(pointer).decode_utf8().ok()?)
}

fn is_null_type(schema: &Value) -> bool {
    schema
        .as_object()
        .is_some_and(|it| it.len() == 1 && it.get("type").and_then(Value::as_str) == Some("null"))
}

/// The types of a schema besides null.
enum TypeName<'a> {
    One(&'a str),
    /// Other keywords decide it.
    Alternatives,
    Any,
}

fn type_name(keywords: &Map<String, Value>) -> TypeName<'_> {
    let names: Vec<&str> = match keywords.get("type") {
        None if ALTERNATIVES.iter().any(|name| keywords.contains_key(*name)) => {
            return TypeName::Alternatives;
        }
        None if keywords.contains_key("properties") => return TypeName::One("object"),
        None if keywords.contains_key("items") => return TypeName::One("array"),
        None => return TypeName::Any,
        Some(Value::String(name)) => return TypeName::One(name),
        Some(names) => names.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
    };
    let mut others = names.into_iter().filter(|name| *name != "null");
    match (others.next(), others.next(), others.next()) {
        (Some(name), None, _) => TypeName::One(name),
        (Some("integer" | "number"), Some("integer" | "number"), None) => TypeName::One("number"),
        _ => TypeName::Any,
    }
}

fn is_open_object(schema: &Map<String, Value>) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object") && !schema.contains_key("enum")
}

/// Returns the type of listed values.
fn listed(values: &[Value]) -> ColumnType {
    let values: Vec<_> = values.iter().filter(|value| !value.is_null()).collect();
    let all = |is: fn(&Value) -> bool| !values.is_empty() && values.iter().all(|value| is(value));
    if all(Value::is_string) {
        let mut texts: Vec<String> = Vec::new();
        for text in values.iter().filter_map(|value| value.as_str()) {
            if !texts.iter().any(|known| known == text) {
                texts.push(text.to_owned());
            }
        }
        return ColumnType::Choice(texts);
    }
    match () {
        () if all(Value::is_boolean) => ColumnType::Bool,
        () if all(Value::is_i64) => ColumnType::Int,
        () if all(Value::is_number) => ColumnType::Float,
        () => ColumnType::Json,
    }
}
