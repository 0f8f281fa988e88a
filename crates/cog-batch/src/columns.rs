//! The columns of results: their types come from the contract of a module, their cells from envelopes.
//!
//! `docs/arrow.md` has the rules. The Python package has the same columns, and the same cases in `tests/arrow`.

#[cfg(feature = "arrow")]
mod records;

use std::fmt::{self, Display, Formatter};

use cog_json::{ToJson, Writer};
use cog_schema::Contract;
use serde_json::{Map, Value};

use crate::Carried;

#[cfg(feature = "arrow")]
pub use self::records::RecordBuilder;

/// The tokens of a result, by the names in `meta.usage`.
const USAGE: [&str; 4] = ["input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens"];

/// The columns of the results of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(Vec<Column>);

/// A column, or a member of a struct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ColumnType,
}

/// The type of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnType {
    /// True or false.
    Bool,
    /// A signed integer of 64 bits.
    Int,
    /// A float of 64 bits.
    Float,
    /// A text.
    Text,
    /// A text as itself, and anything else as JSON text: an extensible enum.
    Open,
    /// Any value, as JSON text.
    Json,
    /// One of several texts: a dictionary.
    Choice(Vec<String>),
    /// A list.
    List(Box<ColumnType>),
    /// An object with these members.
    Struct(Vec<Column>),
}

impl Columns {
    /// Returns the columns of the results of a module with this contract.
    #[must_use]
    pub fn from_contract(contract: &Contract) -> Self {
        let data = contract.data_schema().unwrap_or(&serde_json::Value::Null);
        Self::with_data(data_type(contract.document(), data))
    }

    /// Adds the columns of the input that the results have, after `row`: `id`, and the struct `kept`.
    #[must_use]
    pub fn with_carried(mut self, carried: Carried<'_>) -> Self {
        let kept = carried.keep.iter().map(|name| Column::new(name, ColumnType::Open)).collect::<Vec<_>>();
        let kept = (!kept.is_empty()).then(|| Column::new("kept", ColumnType::Struct(kept)));
        let id = carried.id.map(|_| Column::new("id", ColumnType::Open));
        self.0.splice(1..1, id.into_iter().chain(kept));
        self
    }

    fn with_data(data: ColumnType) -> Self {
        let usage = USAGE.map(|name| Column::new(name, ColumnType::Int)).into();
        Self(vec![
            Column::new("row", ColumnType::Int),
            Column::new("ok", ColumnType::Bool),
            Column::new("data", data),
            Column::new("confidence", ColumnType::Float),
            Column::new("risk", ColumnType::Open),
            Column::new("explain", ColumnType::Text),
            Column::new("model", ColumnType::Text),
            Column::new("usage", ColumnType::Struct(usage)),
            Column::new("cost_usd", ColumnType::Float),
            Column::new("error_code", ColumnType::Text),
            Column::new("error_message", ColumnType::Text),
            Column::new("unmapped", ColumnType::Json),
        ])
    }
}

impl Column {
    fn new(name: impl Into<String>, kind: ColumnType) -> Self {
        Self { name: name.into(), kind }
    }
}

/// The spaces before the members of a struct.
const INDENT: usize = 2;

/// The schema: an array of columns with `name` and `type`; `values` of a dictionary, `item` of a list, `fields` of a struct;
/// `content` is `json` where a string may be the text of a JSON value.
impl ToJson for Columns {
    fn write_json(&self, w: &mut Writer<'_>) {
        write_columns(&self.0, w);
    }
}

fn write_columns(columns: &[Column], w: &mut Writer<'_>) {
    w.array(|w| {
        for column in columns {
            w.object(|w| {
                w.field("name", &column.name);
                write_type(&column.kind, w);
            });
        }
    });
}

fn write_type(kind: &ColumnType, w: &mut Writer<'_>) {
    w.field("type", type_name(kind));
    match kind {
        ColumnType::Open => drop(w.field("content", "text or json")),
        ColumnType::Json => drop(w.field("content", "json")),
        ColumnType::Choice(values) => drop(w.field("values", values)),
        ColumnType::List(item) => w.key("item").object(|w| write_type(item, w)),
        ColumnType::Struct(members) => write_columns(members, w.key("fields")),
        _ => {}
    }
}

fn type_name(kind: &ColumnType) -> &'static str {
    match kind {
        ColumnType::Bool => "bool",
        ColumnType::Int => "int64",
        ColumnType::Float => "float64",
        ColumnType::Text | ColumnType::Open | ColumnType::Json => "utf8",
        ColumnType::Choice(_) => "dictionary",
        ColumnType::List(_) => "list",
        ColumnType::Struct(_) => "struct",
    }
}

/// A line for each column and each member of a struct: its name and its type.
impl Display for Columns {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        print_columns(&self.0, 0, f)
    }
}

fn print_columns(columns: &[Column], depth: usize, f: &mut Formatter<'_>) -> fmt::Result {
    columns.iter().try_for_each(|column| {
        write!(f, "{:1$}{2}: ", "", depth * INDENT, column.name)?;
        print_type(&column.kind, depth, f)
    })
}

fn print_type(kind: &ColumnType, depth: usize, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str(type_name(kind))?;
    match kind {
        ColumnType::Open => writeln!(f, " (text or JSON)"),
        ColumnType::Json => writeln!(f, " (JSON)"),
        ColumnType::Choice(values) => writeln!(f, " of {}", values.to_json()),
        ColumnType::List(item) => {
            f.write_str(" of ")?;
            print_type(item, depth, f)
        }
        ColumnType::Struct(members) => {
            f.write_str("\n")?;
            print_columns(members, depth + 1, f)
        }
        _ => f.write_str("\n"),
    }
}

// The type of an answer, from the schema of its data.

/// The maximum number of lists and structs within each other. Readers of Arrow allow 64, with those around the answer.
const MAX_DEPTH: usize = 32;
/// The maximum number of references within each other.
const MAX_REFERENCES: usize = 64;
/// The maximum number of fields. A short contract can describe millions, by references to references.
const MAX_FIELDS: usize = 10_000;
/// The keywords with alternatives.
const ALTERNATIVES: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Returns the type of an answer; `data` is its schema, and its references point into `document`.
fn data_type(document: &Value, data: &Value) -> ColumnType {
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
        match schema_type(keywords) {
            SchemaType::One("object") => self.object(keywords, depth),
            SchemaType::One("array") => match keywords.get("items").filter(|items| items.is_object()) {
                Some(items) if depth <= MAX_DEPTH => {
                    Ok(ColumnType::List(Box::new(self.type_of(items, depth + 1)?)))
                }
                _ => Ok(ColumnType::Json),
            },
            SchemaType::One("boolean") => Ok(ColumnType::Bool),
            SchemaType::One("integer") => Ok(ColumnType::Int),
            SchemaType::One("number") => Ok(ColumnType::Float),
            SchemaType::One("string") => Ok(ColumnType::Text),
            SchemaType::Alternatives => self.alternatives(keywords, depth),
            SchemaType::One(_) | SchemaType::Any => Ok(ColumnType::Json),
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
enum SchemaType<'a> {
    One(&'a str),
    /// Other keywords decide it.
    Alternatives,
    Any,
}

fn schema_type(keywords: &Map<String, Value>) -> SchemaType<'_> {
    let names: Vec<&str> = match keywords.get("type") {
        None if ALTERNATIVES.iter().any(|name| keywords.contains_key(*name)) => {
            return SchemaType::Alternatives;
        }
        None if keywords.contains_key("properties") => return SchemaType::One("object"),
        None if keywords.contains_key("items") => return SchemaType::One("array"),
        None => return SchemaType::Any,
        Some(Value::String(name)) => return SchemaType::One(name),
        Some(names) => names.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
    };
    let mut others = names.into_iter().filter(|name| *name != "null");
    match (others.next(), others.next(), others.next()) {
        (Some(name), None, _) => SchemaType::One(name),
        (Some("integer" | "number"), Some("integer" | "number"), None) => SchemaType::One("number"),
        _ => SchemaType::Any,
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

#[cfg(test)]
#[cfg(feature = "arrow")]
mod tests;
