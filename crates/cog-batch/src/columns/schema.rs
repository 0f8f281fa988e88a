//! Columns as JSON, and as text.

use std::fmt::{self, Display, Formatter};

use cog_json::{ToJson, Writer};

use super::{Column, ColumnType, Columns};

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
