//! Columns as an Arrow schema, and results as record batches.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use cog_json::{Node, ToJson as _, Value};

use super::{
    Column, ColumnType, Columns,
    cells::{Cells, Unmapped},
};

/// Collects results into a record batch.
pub struct RecordBuilder {
    schema: SchemaRef,
    names: Vec<String>,
    cells: Vec<Cells>,
    rows: usize,
}

impl RecordBuilder {
    /// Creates a builder of batches with these columns.
    #[must_use]
    pub fn new(columns: &Columns) -> Self {
        let names = columns.0.iter().map(|column| column.name.clone()).collect();
        let cells = columns.0.iter().map(|column| Cells::new(&column.kind)).collect();
        Self { schema: columns.to_arrow(), names, cells, rows: 0 }
    }

    /// Adds a result: an envelope with its `row`.
    pub fn push(&mut self, result: &Value) {
        let mut unmapped = Unmapped::default();
        for (name, cells) in self.names.iter().zip(&mut self.cells) {
            match name.as_str() {
                "ok" => cells.append_bool(result.get("ok").and_then(Node::as_bool) == Some(true)),
                "data" => cells.append(result.get("data"), &mut unmapped),
                "unmapped" => {
                    let text = (!unmapped.is_empty()).then(|| unmapped.to_json());
                    cells.append_text(text.as_deref());
                }
                name => cells.append(cell(name, result.node()), &mut Unmapped::default()),
            }
        }
        self.rows += 1;
    }

    /// Returns the number of results since the last batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no result since the last batch.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the batch of the results, and removes them.
    ///
    /// # Errors
    /// If the results are too large for a batch.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let arrays = self.cells.iter_mut().map(Cells::finish).collect::<Result<Vec<ArrayRef>, _>>()?;
        self.rows = 0;
        RecordBatch::try_new(SchemaRef::clone(&self.schema), arrays)
    }
}

/// Returns the value of a column other than `data`.
fn cell<'a>(name: &str, result: Node<'a>) -> Option<Node<'a>> {
    let meta = result.get("meta");
    let usage = meta.and_then(|meta| meta.get("usage")).filter(|usage| !usage.is_empty());
    match name {
        "row" => result.get("row"),
        "usage" => usage,
        "cost_usd" => {
            let cost = usage?.get("cost")?;
            cost.get("amount").filter(|_| cost.get("currency").and_then(Node::as_str) == Some("USD"))
        }
        "error_code" => result.get("error")?.get("code"),
        "error_message" => result.get("error")?.get("message"),
        name => meta?.get(name),
    }
}

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
