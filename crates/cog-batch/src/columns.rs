//! The columns of results: their types come from the contract of a module, their cells from envelopes.
//!
//! `docs/arrow.md` has the rules. The Python package has the same columns, and the same cases in `tests/arrow`.

#[cfg(feature = "arrow")]
mod cells;
mod contract;
#[cfg(feature = "arrow")]
mod records;
mod schema;

use cog_schema::Contract;

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
