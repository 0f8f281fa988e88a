//! Columns as an Arrow schema, and as JSON.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use cog_json::{ToJson, Writer};

use super::{Column, ColumnType, Columns};

impl Columns {
    /// Returns the Arrow schema. Every column can be null.
    #[must_use]
    pub fn to_arrow(&self) -> SchemaRef {
        Arc::new(Schema::new(fields(&self.0)))
    }
}

pub(super) fn fields(columns: &[Column]) -> Fields {
    columns.iter().map(|column| Field::new(&column.name, data_type(&column.kind), true)).collect()
}

pub(super) fn data_type(kind: &ColumnType) -> DataType {
    match kind {
        ColumnType::Bool => DataType::Boolean,
        ColumnType::Int => DataType::Int64,
        ColumnType::Float => DataType::Float64,
        ColumnType::Text | ColumnType::Open | ColumnType::Json => DataType::Utf8,
        ColumnType::Choice(_) => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        ColumnType::List(item) => DataType::List(item_field(item)),
        ColumnType::Struct(members) => DataType::Struct(fields(members)),
    }
}

/// Returns the field of the items of a list.
pub(super) fn item_field(item: &ColumnType) -> Arc<Field> {
    Arc::new(Field::new_list_field(data_type(item), true))
}

/// The schema: an array of columns with `name` and `type`; `values` of a dictionary, `item` of a list, `fields` of a struct;
/// `content` is `json` where a text may be that of a JSON value.
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
    let name = match kind {
        ColumnType::Bool => "bool",
        ColumnType::Int => "int64",
        ColumnType::Float => "float64",
        ColumnType::Text | ColumnType::Open | ColumnType::Json => "utf8",
        ColumnType::Choice(_) => "dictionary",
        ColumnType::List(_) => "list",
        ColumnType::Struct(_) => "struct",
    };
    w.field("type", name);
    match kind {
        ColumnType::Open => drop(w.field("content", "text or json")),
        ColumnType::Json => drop(w.field("content", "json")),
        ColumnType::Choice(values) => drop(w.field("values", values)),
        ColumnType::List(item) => w.key("item").object(|w| write_type(item, w)),
        ColumnType::Struct(members) => write_columns(members, w.key("fields")),
        _ => {}
    }
}
