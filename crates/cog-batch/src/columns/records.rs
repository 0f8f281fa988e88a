//! Columns as an Arrow schema, and results as record batches: their cells, as they are appended.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{
    ArrayRef, DictionaryArray, ListArray, RecordBatch, StringArray, StructArray,
    builder::{ArrayBuilder as _, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder},
    types::Int32Type,
};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use cog_json::{Node, Number, ToJson, Value, Writer};

use super::{Column, ColumnType, Columns};

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
        "row" | "id" | "kept" => result.get(name),
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

/// The cells of a column.
pub(super) enum Cells {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Float(Float64Builder),
    /// The text, and whether a value that is none is represented as JSON.
    Text(StringBuilder, bool),
    Json(StringBuilder),
    Choice(ChoiceCells),
    List(Box<ListCells>),
    Struct(StructCells),
}

/// What no column can represent, by its JSON pointer in the data.
#[derive(Default)]
pub(super) struct Unmapped<'a> {
    pointer: String,
    values: Vec<(String, Node<'a>)>,
}

impl<'a> Unmapped<'a> {
    /// Runs a function for a part of the value.
    fn inside<T>(&mut self, part: &str, run: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&part.replace('~', "~0").replace('/', "~1"));
        let found = run(self);
        self.pointer.truncate(length);
        found
    }

    fn push(&mut self, value: Node<'a>) {
        self.values.push((self.pointer.clone(), value));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl ToJson for Unmapped<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| self.values.iter().for_each(|(pointer, value)| w.key(pointer).node(*value)));
    }
}

impl Cells {
    pub(super) fn new(kind: &ColumnType) -> Self {
        match kind {
            ColumnType::Bool => Self::Bool(BooleanBuilder::new()),
            ColumnType::Int => Self::Int(Int64Builder::new()),
            ColumnType::Float => Self::Float(Float64Builder::new()),
            ColumnType::Text => Self::Text(StringBuilder::new(), false),
            ColumnType::Open => Self::Text(StringBuilder::new(), true),
            ColumnType::Json => Self::Json(StringBuilder::new()),
            ColumnType::Choice(values) => Self::Choice(ChoiceCells::new(values)),
            ColumnType::List(item) => Self::List(Box::new(ListCells::new(item))),
            ColumnType::Struct(members) => Self::Struct(StructCells::new(members)),
        }
    }

    /// Appends a value. One that the type cannot represent is null, and added to `unmapped`.
    pub(super) fn append<'a>(&mut self, value: Option<Node<'a>>, unmapped: &mut Unmapped<'a>) {
        let value = value.filter(|value| !value.is_null());
        let fits = match (self, value) {
            (cells, None) => {
                cells.append_null();
                true
            }
            (Self::Bool(cells), Some(value)) => append_option(value.as_bool(), |it| cells.append_option(it)),
            (Self::Int(cells), Some(value)) => append_option(value.as_i64(), |it| cells.append_option(it)),
            (Self::Float(cells), Some(value)) => {
                append_option(value.as_number().and_then(float), |it| cells.append_option(it))
            }
            (Self::Text(cells, is_open), Some(value)) => match value.as_str() {
                None if *is_open => append_json(cells, value),
                text => append_option(text, |it| cells.append_option(it)),
            },
            (Self::Json(cells), Some(value)) => append_json(cells, value),
            (Self::Choice(cells), Some(value)) => cells.append(value),
            (Self::List(cells), Some(value)) => cells.append(value, unmapped),
            (Self::Struct(cells), Some(value)) => cells.append(value, unmapped),
        };
        if let Some(value) = value
            && !fits
        {
            unmapped.push(value);
        }
    }

    fn append_null(&mut self) {
        match self {
            Self::Bool(cells) => cells.append_null(),
            Self::Int(cells) => cells.append_null(),
            Self::Float(cells) => cells.append_null(),
            Self::Text(cells, _) | Self::Json(cells) => cells.append_null(),
            Self::Choice(cells) => cells.keys.append_null(),
            Self::List(cells) => cells.append_null(),
            Self::Struct(cells) => cells.append_null(),
        }
    }

    /// Appends a string, or null if the type is another.
    pub(super) fn append_text(&mut self, text: Option<&str>) {
        match self {
            Self::Text(cells, _) | Self::Json(cells) => cells.append_option(text),
            other => other.append_null(),
        }
    }

    /// Appends true or false, or null if the type is another.
    pub(super) fn append_bool(&mut self, value: bool) {
        match self {
            Self::Bool(cells) => cells.append_value(value),
            other => other.append_null(),
        }
    }

    /// Returns the array of the cells, and removes them.
    pub(super) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Bool(cells) => Arc::new(cells.finish()),
            Self::Int(cells) => Arc::new(cells.finish()),
            Self::Float(cells) => Arc::new(cells.finish()),
            Self::Text(cells, _) | Self::Json(cells) => Arc::new(cells.finish()),
            Self::Choice(cells) => cells.finish()?,
            Self::List(cells) => cells.finish()?,
            Self::Struct(cells) => cells.finish()?,
        })
    }

    fn len(&self) -> usize {
        match self {
            Self::Bool(cells) => cells.len(),
            Self::Int(cells) => cells.len(),
            Self::Float(cells) => cells.len(),
            Self::Text(cells, _) | Self::Json(cells) => cells.len(),
            Self::Choice(cells) => cells.keys.len(),
            Self::List(cells) => cells.nulls.len(),
            Self::Struct(cells) => cells.nulls.len(),
        }
    }
}

/// Appends a value, or null. Returns whether there was one.
fn append_option<T>(value: Option<T>, append: impl FnOnce(Option<T>)) -> bool {
    let fits = value.is_some();
    append(value);
    fits
}

fn append_json(cells: &mut StringBuilder, value: Node<'_>) -> bool {
    let mut text = String::new();
    value.write(&mut text);
    cells.append_value(text);
    true
}

/// Returns a finite float. An integer that a float would round has none.
fn float(number: Number<'_>) -> Option<f64> {
    let float: f64 = number.literal().parse().ok()?;
    // Compared as decimals, which `{}` writes in full.
    let is_exact =
        || format!("{float:.0}") == number.literal() || (float == 0.0 && number.as_i64() == Some(0));
    (float.is_finite() && (!number.is_plain_integer() || is_exact())).then_some(float)
}

/// The cells of an enum: a dictionary, which is the same in every array.
pub(super) struct ChoiceCells {
    index: HashMap<String, i32>,
    values: ArrayRef,
    keys: Int32Builder,
}

impl ChoiceCells {
    fn new(values: &[String]) -> Self {
        let index = (0..).zip(values).map(|(key, value)| (value.clone(), key)).collect();
        Self { index, values: Arc::new(StringArray::from_iter_values(values)), keys: Int32Builder::new() }
    }

    fn append(&mut self, value: Node<'_>) -> bool {
        let key = value.as_str().and_then(|text| self.index.get(text).copied());
        append_option(key, |it| self.keys.append_option(it))
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let array = DictionaryArray::<Int32Type>::try_new(self.keys.finish(), Arc::clone(&self.values))?;
        Ok(Arc::new(array))
    }
}

/// The cells of a list.
pub(super) struct ListCells {
    field: FieldRef,
    items: Cells,
    /// Where the items of each list end.
    ends: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl ListCells {
    fn new(item: &ColumnType) -> Self {
        Self {
            field: item_field(item),
            items: Cells::new(item),
            ends: Vec::new(),
            nulls: NullBufferBuilder::new(0),
        }
    }

    fn append<'a>(&mut self, value: Node<'a>, unmapped: &mut Unmapped<'a>) -> bool {
        if !value.is_array() {
            self.append_null();
            return false;
        }
        for (index, item) in value.elements().enumerate() {
            unmapped.inside(&index.to_string(), |unmapped| self.items.append(Some(item), unmapped));
        }
        self.end(true);
        true
    }

    fn append_null(&mut self) {
        self.end(false);
    }

    fn end(&mut self, is_valid: bool) {
        self.ends.push(i32::try_from(self.items.len()).unwrap_or(i32::MAX));
        self.nulls.append(is_valid);
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let items = self.items.finish()?;
        if i32::try_from(items.len()).is_err() {
            return Err(ArrowError::InvalidArgumentError("a batch has too many list items".to_owned()));
        }
        let offsets: ScalarBuffer<i32> = std::iter::once(0).chain(self.ends.drain(..)).collect();
        let offsets = OffsetBuffer::new(offsets);
        Ok(Arc::new(ListArray::try_new(Arc::clone(&self.field), offsets, items, self.nulls.finish())?))
    }
}

/// The cells of an object.
pub(super) struct StructCells {
    fields: Fields,
    members: Vec<Cells>,
    nulls: NullBufferBuilder,
}

impl StructCells {
    fn new(members: &[Column]) -> Self {
        let cells = members.iter().map(|member| Cells::new(&member.kind)).collect();
        Self { fields: fields(members), members: cells, nulls: NullBufferBuilder::new(0) }
    }

    fn append<'a>(&mut self, value: Node<'a>, unmapped: &mut Unmapped<'a>) -> bool {
        if !value.is_object() {
            self.append_null();
            return false;
        }
        for (field, cells) in self.fields.iter().zip(&mut self.members) {
            let member = value.get(field.name());
            unmapped.inside(field.name(), |unmapped| cells.append(member, unmapped));
        }
        for (name, member) in value.members() {
            if self.fields.find(name).is_none() {
                unmapped.inside(name, |unmapped| unmapped.push(member));
            }
        }
        self.nulls.append(true);
        true
    }

    fn append_null(&mut self) {
        self.members.iter_mut().for_each(Cells::append_null);
        self.nulls.append(false);
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let members = self.members.iter_mut().map(Cells::finish).collect::<Result<_, _>>()?;
        Ok(Arc::new(StructArray::try_new(self.fields.clone(), members, self.nulls.finish())?))
    }
}
