//! The columns of a table, and the input fields that they become.

use std::collections::BTreeSet;

use cog_json::{Kind, SyntaxErrorKind, Value, Writer};
use cog_schema::{Contract, FieldTypes, InputField, nearest};
use thiserror::Error;

use crate::{ParsedRow, RowErrorKind};

/// What becomes of the columns of a table, or of the members of a row that is a JSON object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnMap {
    /// Pairs of an input field and the column with its values, where the names differ.
    pub fields: Vec<(String, String)>,
    /// Whether columns without an input field are ignored.
    pub ignore_unknown: bool,
    /// The column whose value is the `id` of a result.
    pub id: Option<String>,
    /// The columns whose values are in `kept` of a result.
    pub keep: Vec<String>,
    /// The cells of a CSV file that have no value, in addition to empty ones.
    pub nulls: Vec<String>,
}

impl ColumnMap {
    /// Whether a row that is a JSON object differs from its input.
    pub(super) fn changes_rows(&self) -> bool {
        self.ignore_unknown || !self.fields.is_empty() || !self.carried().is_empty()
    }

    /// Checks that columns are mapped to input fields.
    pub(super) fn check_fields(&self, fields: &[String]) -> Result<(), ColumnsError> {
        let unknown = self.fields.iter().find(|(field, _)| !fields.is_empty() && !fields.contains(field));
        match unknown {
            Some((field, _)) => Err(ColumnsError::NoField { field: field.clone(), fields: fields.to_vec() }),
            None => Ok(()),
        }
    }

    /// Returns the name of the input field that a column becomes.
    pub(super) fn field_of<'a>(&'a self, column: &'a str) -> &'a str {
        let mapped = self.fields.iter().find(|(_, mapped)| mapped == column);
        mapped.map_or(column, |(field, _)| field.as_str())
    }

    /// Returns the column of an input field.
    pub(crate) fn column_of<'a>(&'a self, field: &'a str) -> &'a str {
        let mapped = self.fields.iter().find(|(mapped, _)| mapped == field);
        mapped.map_or(field, |(_, column)| column.as_str())
    }

    /// Returns the columns that go to the results.
    #[must_use]
    pub fn carried(&self) -> Carried<'_> {
        Carried { id: self.id.as_deref(), keep: &self.keep }
    }
}

/// The columns whose values go from a row to its result, whether they are input fields or not.
#[derive(Debug, Clone, Copy, Default)]
pub struct Carried<'a> {
    /// The column of the `id`.
    pub id: Option<&'a str>,
    /// The columns of `kept`.
    pub keep: &'a [String],
}

impl<'a> Carried<'a> {
    /// Whether results get nothing from their rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.id.is_none() && self.keep.is_empty()
    }

    /// Returns the names of the columns.
    pub(crate) fn names(self) -> impl Iterator<Item = &'a str> {
        self.id.into_iter().chain(self.keep.iter().map(String::as_str))
    }

    pub(super) fn contains(self, name: &str) -> bool {
        self.names().any(|carried| carried == name)
    }

    /// Returns the members of a result, `"id":…,"kept":{…}`. `cell` writes the value of a column.
    pub(super) fn write(self, mut cell: impl FnMut(&str, &mut Writer<'_>)) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut text = String::new();
        Writer::compact(&mut text).object(|w| {
            if let Some(id) = self.id {
                cell(id, w.key("id"));
            }
            if !self.keep.is_empty() {
                w.key("kept").object(|w| self.keep.iter().for_each(|name| cell(name, w.key(name))));
            }
        });
        // The members without the braces around them.
        text.pop();
        text.split_off(1)
    }

    /// Returns the members of the result of a row that cannot be read.
    pub(crate) fn none(self) -> String {
        self.write(|_, w| w.null())
    }
}

/// A member that goes to the results and that none of the first rows has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AbsentMember {
    /// The name.
    pub name: String,
    /// The number of rows that were read.
    pub rows: usize,
    /// The member of the first row with the most similar name.
    pub similar: Option<String>,
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
    /// No row has the member that is the `id` of the results.
    #[error(
        "no row so far has the member `{member}`, which --id names; the first row has {}",
        listed(members)
    )]
    NoMember {
        /// The member.
        member: String,
        /// The members of the first row.
        members: Vec<String>,
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
    /// The values of a column have no form in a result.
    #[cfg(feature = "arrow")]
    #[error("column `{column}` is {found}, which a result cannot contain")]
    NotCarried {
        /// The column.
        column: String,
        /// Its type.
        found: String,
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
            Self::Header(RowErrorKind::CarriageReturn) => {
                "Write line feeds at the ends of the lines: tr '\\r' '\\n' < FILE.".to_owned()
            }
            Self::Header(_) => "Write the names of the input fields on the first line.".to_owned(),
            Self::Unknown { columns, fields } => match similar(columns, fields).as_slice() {
                [(column, field)] if columns.len() == 1 => {
                    format!("Map it with --map '{field}={column}', or ignore it with --ignore-unknown.")
                }
                pairs if !pairs.is_empty() => {
                    let maps: Vec<_> = pairs
                        .iter()
                        .take(MAX_NAMES)
                        .map(|(column, field)| format!("--map '{field}={column}'"))
                        .collect();
                    let others = if pairs.len() < columns.len() { "the others" } else { "them" };
                    format!("Map with {}, or ignore {others} with --ignore-unknown.", maps.join(" "))
                }
                _ => match delimiter_in(columns) {
                    Some(delimiter) => {
                        format!("The columns look separated by `{delimiter}`: set --delimiter '{delimiter}'.")
                    }
                    None => format!(
                        "Ignore them with --ignore-unknown, carry them to the results with --keep, or map one with --map \
                         FIELD=COLUMN. The fields are {}.",
                        quoted(fields)
                    ),
                },
            },
            #[cfg(feature = "arrow")]
            Self::NotCarried { .. } => "Convert the column, or name another one.".to_owned(),
            #[cfg(feature = "arrow")]
            Self::Type { .. } => "Convert the column, or map another one with --map FIELD=COLUMN.".to_owned(),
            Self::Missing { .. } | Self::NoField { .. } | Self::Required { .. } | Self::None { .. } => {
                "Write --map FIELD=COLUMN.".to_owned()
            }
            Self::NoMember { member, members } => match nearest(member, members.iter().map(String::as_str)) {
                Some(near) => format!("Did you mean --id '{near}'?"),
                None => "Name a member of the rows with --id.".to_owned(),
            },
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

fn listed(names: &[String]) -> String {
    if names.is_empty() { "no members".to_owned() } else { quoted(names) }
}

/// The input field of each column.
#[derive(Default)]
pub(super) struct Columns {
    targets: Vec<Option<InputField>>,
    header: Vec<String>,
    map: ColumnMap,
    text: String,
}

impl Columns {
    /// Finds the input field of each column of a header.
    pub(super) fn new(contract: &Contract, header: &[String], map: &ColumnMap) -> Result<Self, ColumnsError> {
        let fields = contract.input_fields();
        let mut named = map.fields.iter().map(|(_, column)| column.as_str()).chain(map.carried().names());
        if let Some(column) = named.find(|named| !header.iter().any(|column| column == named)) {
            return Err(ColumnsError::Missing { column: column.to_owned(), columns: header.to_vec() });
        }
        let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
        map.check_fields(&names)?;
        let mut mapped = BTreeSet::new();
        if let Some((_, column)) = map.fields.iter().find(|(_, column)| !mapped.insert(column)) {
            return Err(ColumnsError::MappedTwice { column: column.clone() });
        }
        let targets: Vec<_> = header.iter().map(|column| target(column, &fields, map)).collect();
        let unknown = header.iter().zip(&targets).filter(|(_, target)| target.is_none());
        let unknown = unknown.map(|(column, _)| column).filter(|column| !map.carried().contains(column));
        let columns: Vec<_> = unknown.cloned().collect();
        if !columns.is_empty() && !map.ignore_unknown {
            return Err(ColumnsError::Unknown { columns, fields: names });
        }
        if targets.iter().all(Option::is_none) && !fields.is_empty() {
            return Err(ColumnsError::None { fields: names });
        }
        let mut seen = BTreeSet::new();
        if let Some(field) = targets.iter().flatten().find(|field| !seen.insert(&field.name)) {
            return Err(ColumnsError::Twice { field: field.name.clone() });
        }
        // Otherwise each row would fail, and the batch would end with nothing but errors.
        let required = fields.iter().filter(|field| field.is_required && !seen.contains(&field.name));
        let required: Vec<_> = required.map(|field| field.name.clone()).collect();
        match required.is_empty() {
            true => Ok(Self { targets, header: header.to_vec(), map: map.clone(), text: String::new() }),
            false => Err(ColumnsError::Required { fields: required }),
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

    /// Returns the input of a row, and what its result gets.
    pub(super) fn row<'a>(
        &mut self,
        cells: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<ParsedRow, RowErrorKind> {
        self.text.clear();
        Writer::compact(&mut self.text).object(|w| {
            for (field, cell) in self.targets.iter().zip(cells.clone()) {
                if let Some(field) = field {
                    write_cell(w, field, cell, self.map.nulls.iter().any(|null| null == cell));
                }
            }
        });
        let carried = self.map.carried().write(|name, w| {
            let mut named = self.header.iter().zip(cells.clone());
            match named.find(|(column, _)| *column == name).map(|(_, cell)| cell) {
                Some(cell) if !cell.is_empty() && !self.map.nulls.iter().any(|null| null == cell) => {
                    w.string(cell);
                }
                _ => w.null(),
            }
        });
        Ok(ParsedRow { input: parse_input(self.text.as_bytes())?, carried })
    }
}

/// Returns the input field of a column. A module whose input has no fields takes every column as a string.
fn target(column: &str, fields: &[InputField], map: &ColumnMap) -> Option<InputField> {
    let name = map.field_of(column);
    let field = fields.iter().find(|field| field.name == name).cloned();
    let is_open = fields.is_empty() && (name != column || !map.carried().contains(column));
    field.or_else(|| is_open.then(|| InputField::text(name)))
}

/// Returns the columns whose names differ from a field only in case, spaces and separators, or in one letter or two. Each field
/// is named once.
fn similar<'a>(columns: &'a [String], fields: &'a [String]) -> Vec<(&'a str, &'a str)> {
    let mut free: Vec<&str> =
        fields.iter().filter(|field| !columns.contains(field)).map(String::as_str).collect();
    let mut pairs = Vec::new();
    for column in columns.iter().filter(|column| column.len() <= MAX_NAME) {
        let name = plain(column);
        let field = free.iter().position(|field| plain(field) == name).or_else(|| {
            let near = nearest(&name, free.iter().copied())?;
            free.iter().position(|field| *field == near && is_misspelt(&name, &plain(field)))
        });
        if let Some(field) = field {
            pairs.push((column.as_str(), free.remove(field)));
        }
    }
    pairs
}

/// Returns whether a name of some length has the letters of another one, but for one or two.
fn is_misspelt(name: &str, field: &str) -> bool {
    let mut rest: Vec<char> = field.chars().collect();
    let count = name.chars().count();
    let missing = name.chars().filter(|char| match rest.iter().position(|other| other == char) {
        Some(at) => {
            rest.remove(at);
            false
        }
        None => true,
    });
    let different = missing.count().max(rest.len());
    count >= 5 && different <= 1 + usize::from(count >= 8)
}

/// Returns the character that seems to separate the columns, if the header is one name that contains it.
fn delimiter_in(columns: &[String]) -> Option<&'static str> {
    let [header] = columns else { return None };
    let found = [(';', ";"), ('|', "|"), ('\t', "tab")].into_iter().find(|(char, _)| header.contains(*char));
    found.map(|(_, name)| name)
}

fn plain(name: &str) -> String {
    name.chars().filter(|char| char.is_alphanumeric()).flat_map(char::to_lowercase).collect()
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

/// Writes a cell as its field. An empty cell has no value, unless the field must be a string; a cell that means null has none.
fn write_cell(w: &mut Writer<'_>, field: &InputField, cell: &str, is_null: bool) {
    let types = field.types;
    let is_empty = cell.is_empty() && !(field.is_required && (types.text || types.is_any()));
    if is_null || is_empty {
        if field.is_required && types.null {
            w.key(&field.name).null();
        }
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
    let text = boolean(cell, types).unwrap_or(cell);
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

/// Returns the boolean that a cell means, as JSON. Words other than these two may mean themselves where a text or a number may be.
fn boolean(cell: &str, types: FieldTypes) -> Option<&'static str> {
    let has_words = !types.text;
    let has_digits = !types.text && !types.number;
    match cell.to_ascii_lowercase().as_str() {
        _ if !types.boolean => None,
        "true" => Some("true"),
        "false" => Some("false"),
        "yes" | "y" | "t" | "on" if has_words => Some("true"),
        "no" | "n" | "f" | "off" if has_words => Some("false"),
        "1" if has_digits => Some("true"),
        "0" if has_digits => Some("false"),
        _ => None,
    }
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
    fn each_column_with_the_name_of_a_field_is_mapped() {
        let suggestion = |columns: &[&str], fields: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            ColumnsError::Unknown { columns: owned(columns), fields: owned(fields) }.suggestion()
        };
        for (columns, fields, expected) in [
            (
                &[" Text"][..],
                &["text"][..],
                "Map it with --map 'text= Text', or ignore it with --ignore-unknown.",
            ),
            (
                &["Item Count", "texte"],
                &["text", "item_count"],
                "Map with --map 'item_count=Item Count' --map 'text=texte', or ignore them with --ignore-unknown.",
            ),
            (
                &["TEXT", "Text", "url"],
                &["text", "other"],
                "Map with --map 'text=TEXT', or ignore the others with --ignore-unknown.",
            ),
        ] {
            assert_eq!(suggestion(columns, fields), expected);
        }
        for columns in [&["url", "a"][..], &["next", "tax"]] {
            assert!(suggestion(columns, &["text", "count"]).starts_with("Ignore them"), "{columns:?}");
        }
    }

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
