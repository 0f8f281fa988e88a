//! The columns of a table, and the input fields that they become.

use std::collections::BTreeSet;

use cog_json::{Kind, SyntaxErrorKind, Value, Writer};
use cog_schema::{Contract, InputField};
use thiserror::Error;

use crate::RowErrorKind;

/// Which column becomes which input field, where the names differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnMap {
    /// Pairs of an input field and the column with its values.
    pub fields: Vec<(String, String)>,
    /// Whether columns without an input field are ignored.
    pub ignore_unknown: bool,
}

/// Why the columns of a table do not fit the module.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ColumnsError {
    /// The header cannot be read.
    #[error("the header cannot be read: {0}")]
    Header(RowErrorKind),
    /// Columns without a field in the input.
    #[error("the module has no input field for {}", quoted(columns))]
    Unknown {
        /// The columns.
        columns: Vec<String>,
        /// The fields of the input.
        fields: Vec<String>,
    },
    /// A column is mapped that the table does not have.
    #[error("there is no column `{column}`; the columns are {}", quoted(columns))]
    Missing {
        /// The column.
        column: String,
        /// The columns of the table.
        columns: Vec<String>,
    },
    /// A field is mapped that the input does not have.
    #[error("the module has no input field `{field}`; the fields are {}", quoted(fields))]
    NoField {
        /// The field.
        field: String,
        /// The fields of the input.
        fields: Vec<String>,
    },
    /// Fields that every input must have, without a column.
    #[error("there is no column for {}, which the module requires", quoted(fields))]
    Required {
        /// The fields.
        fields: Vec<String>,
    },
    /// The type of a column does not fit its field.
    #[cfg(feature = "arrow")]
    #[error("column `{column}` is {found}, and the input field `{field}` needs {expected}")]
    Type {
        /// The column.
        column: String,
        /// Its type.
        found: String,
        /// The field.
        field: String,
        /// What the field accepts.
        expected: String,
    },
    /// A column is mapped to several fields.
    #[error("column `{column}` is mapped to several input fields")]
    MappedTwice {
        /// The column.
        column: String,
    },
    /// No column is an input field.
    #[error("no column is an input field; the fields are {}", quoted(fields))]
    None {
        /// The fields of the input.
        fields: Vec<String>,
    },
    /// Two columns are the same field.
    #[error("two columns are the input field `{field}`")]
    Twice {
        /// The field.
        field: String,
    },
}

impl ColumnsError {
    pub(super) fn suggestion(&self) -> String {
        match self {
            Self::Header(_) => "Write the names of the input fields on the first line.".to_owned(),
            Self::Unknown { fields, .. } => format!(
                "Ignore them with --ignore-unknown, or map one with --map FIELD=COLUMN. The fields are {}.",
                quoted(fields)
            ),
            #[cfg(feature = "arrow")]
            Self::Type { .. } => "Convert the column, or map another one with --map FIELD=COLUMN.".to_owned(),
            Self::Missing { .. } | Self::NoField { .. } | Self::Required { .. } | Self::None { .. } => {
                "Write --map FIELD=COLUMN.".to_owned()
            }
            Self::MappedTwice { .. } => {
                "Map it to one field, and add a column with the same values for the other.".to_owned()
            }
            Self::Twice { .. } => {
                "Remove one of them, or map another field with --map FIELD=COLUMN.".to_owned()
            }
        }
    }
}

/// The maximum number of names in a message.
const MAX_NAMES: usize = 20;
/// The maximum characters of a name in a message.
const MAX_NAME: usize = 80;

/// Lists names. A header is data: it may have thousands of columns, or one whose name is the rest of the file.
fn quoted(names: &[String]) -> String {
    let mut list: Vec<_> = names
        .iter()
        .take(MAX_NAMES)
        .map(|name| match name.char_indices().nth(MAX_NAME) {
            Some((end, _)) => format!("`{}…`", name.get(..end).unwrap_or_default()),
            None => format!("`{name}`"),
        })
        .collect();
    if names.len() > MAX_NAMES {
        list.push(format!("{} more", names.len() - MAX_NAMES));
    }
    list.join(", ")
}

/// The input field of each column.
pub(super) struct Columns {
    targets: Vec<Option<InputField>>,
    text: String,
}

impl Columns {
    /// Finds the input field of each column of a header.
    pub(super) fn new(contract: &Contract, header: &[String], map: &ColumnMap) -> Result<Self, ColumnsError> {
        let fields = contract.input_fields();
        if let Some((_, column)) = map.fields.iter().find(|(_, column)| !header.contains(column)) {
            return Err(ColumnsError::Missing { column: column.clone(), columns: header.to_vec() });
        }
        let names = || fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
        let mut mapped = map.fields.iter().map(|(field, _)| field);
        if let Some(field) = mapped.find(|name| !fields.iter().any(|field| field.name == **name))
            && !fields.is_empty()
        {
            return Err(ColumnsError::NoField { field: field.clone(), fields: names() });
        }
        let mut mapped = BTreeSet::new();
        if let Some((_, column)) = map.fields.iter().find(|(_, column)| !mapped.insert(column)) {
            return Err(ColumnsError::MappedTwice { column: column.clone() });
        }
        let targets: Vec<_> = header.iter().map(|column| target(column, &fields, map)).collect();
        let unknown = header.iter().zip(&targets).filter(|(_, target)| target.is_none());
        let columns: Vec<_> = unknown.map(|(column, _)| column.clone()).collect();
        if !columns.is_empty() && !map.ignore_unknown {
            return Err(ColumnsError::Unknown { columns, fields: names() });
        }
        if targets.iter().all(Option::is_none) && !fields.is_empty() {
            return Err(ColumnsError::None { fields: names() });
        }
        let mut seen = BTreeSet::new();
        match targets.iter().flatten().find(|field| !seen.insert(&field.name)) {
            Some(field) => Err(ColumnsError::Twice { field: field.name.clone() }),
            None => Ok(Self { targets, text: String::new() }),
        }
    }

    /// Returns the input field of each column.
    #[cfg(feature = "arrow")]
    pub(super) fn into_targets(self) -> Vec<Option<InputField>> {
        self.targets
    }

    /// Returns the number of columns.
    pub(super) fn len(&self) -> usize {
        self.targets.len()
    }

    /// Returns the input of a row.
    pub(super) fn input<'a>(&mut self, cells: impl Iterator<Item = &'a str>) -> Result<Value, RowErrorKind> {
        self.text.clear();
        Writer::compact(&mut self.text).object(|w| {
            let targets = self.targets.iter().zip(cells);
            targets.for_each(|(field, cell)| field.iter().for_each(|field| write_cell(w, field, cell)));
        });
        parse_input(self.text.as_bytes())
    }
}

/// Returns the input field of a column. A module whose input has no fields takes every column as a string.
fn target(column: &str, fields: &[InputField], map: &ColumnMap) -> Option<InputField> {
    let mapped = map.fields.iter().find(|(_, mapped)| mapped == column);
    let name = mapped.map_or(column, |(field, _)| field.as_str());
    let field = fields.iter().find(|field| field.name == name).cloned();
    field.or_else(|| fields.is_empty().then(|| InputField::text(name)))
}

/// Parses the input that was written from the cells of a row.
pub(super) fn parse_input(text: &[u8]) -> Result<Value, RowErrorKind> {
    Value::parse_bytes(text).map_err(|error| RowErrorKind::NoInput {
        reason: match error.kind() {
            SyntaxErrorKind::TooDeep => "nested too deeply".to_owned(),
            kind => kind.to_string(),
        },
    })
}

/// Writes a cell as its field. An empty cell has no value, unless the field must be a string.
fn write_cell(w: &mut Writer<'_>, field: &InputField, cell: &str) {
    let types = field.types;
    if cell.is_empty() && !(field.is_required && (types.text || types.is_any())) {
        return;
    }
    if field.is_media && !cell.starts_with(['{', '[']) {
        write_media(w, field, cell);
        return;
    }
    match typed(field, cell) {
        Some(value) => drop(w.field(&field.name, &value)),
        // A cell of another type stays a string, so that the check of the input names its field.
        None => drop(w.field(&field.name, cell)),
    }
}

/// Returns a cell as a value that is not a string; none if it is one.
fn typed(field: &InputField, cell: &str) -> Option<Value> {
    let types = field.types;
    if !types.has_others() && !field.is_media {
        return None;
    }
    let cell = cell.trim();
    let lower = cell.to_ascii_lowercase();
    let text = match lower.as_str() {
        "true" | "false" if types.boolean => lower.as_str(),
        _ => cell,
    };
    let value = Value::parse(text).ok()?;
    let fits = match value.node().kind() {
        Kind::Number => types.number,
        Kind::Bool => types.boolean,
        Kind::Array => types.array || field.is_media,
        Kind::Object => types.object || field.is_media,
        Kind::Null => types.null,
        Kind::String => false,
    };
    fits.then_some(value)
}

/// Writes a media file, which a cell names by path or URL.
fn write_media(w: &mut Writer<'_>, field: &InputField, cell: &str) {
    let source = media_source(cell);
    let source = if field.is_list { serde_json::json!([source]) } else { source };
    w.field(&field.name, &Value::from(source));
}

/// Returns the source of a media file with this path or URL.
pub(super) fn media_source(cell: &str) -> serde_json::Value {
    let is_url = cell.starts_with("https://") || cell.starts_with("http://");
    match is_url {
        true => serde_json::json!({ "type": "url", "url": cell }),
        false => {
            let path = std::path::absolute(cell).ok().and_then(|path| path.to_str().map(str::to_owned));
            serde_json::json!({ "type": "file", "path": path.as_deref().unwrap_or(cell) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_of_any_size_fits_in_a_message() {
        let columns = vec!["é".repeat(1_000_000), "a".to_owned()];
        let message = ColumnsError::Unknown { columns, fields: Vec::new() }.to_string();
        assert_eq!(message, format!("the module has no input field for `{}…`, `a`", "é".repeat(MAX_NAME)));
        let columns: Vec<_> = (0..1000).map(|number| number.to_string()).collect();
        let message = ColumnsError::Missing { column: "x".to_owned(), columns }.to_string();
        assert!(message.ends_with("`18`, `19`, 980 more"), "{message}");
    }
}
