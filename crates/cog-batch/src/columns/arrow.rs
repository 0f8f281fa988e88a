//! Columns as an Arrow schema.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

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
