//! The columns of results: their types come from the contract of a module, their cells from envelopes.
//!
//! `docs/arrow.md` has the rules. The Python package has the same columns, and the same cases in `tests/arrow`.

mod contract;
#[cfg(feature = "arrow")]
mod records;

use std::fmt::{self, Display, Formatter};

use cog_json::{ToJson, Writer};
use cog_schema::Contract;

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
        Self::with_data(contract::data_type(contract.document(), data))
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

#[cfg(test)]
#[cfg(feature = "arrow")]
mod tests;

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
