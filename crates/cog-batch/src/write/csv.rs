//! CSV: a header, then a record per row. Text is written as it is, other values as JSON; null is an empty cell.

use std::{
    borrow::Cow,
    collections::HashMap,
    io::{self, Write},
};

use cog_json::{Node, Value};
use cog_schema::Contract;
use csv::WriterBuilder;

use super::{CsvStyle, Output, WriteError};
use crate::ResultLine;

/// The maximum number of data fields.
const MAX_FIELDS: usize = 4096;
/// The column of data that is not an object.
const DATA: &str = "data";
/// The columns after the data fields, with the place of their value in a result.
const COMMON: [(&str, &str); 9] = [
    ("ok", "/ok"),
    ("confidence", "/meta/confidence"),
    ("risk", "/meta/risk"),
    ("error_code", "/error/code"),
    ("error_message", "/error/message"),
    ("input_tokens", "/meta/usage/input_tokens"),
    ("output_tokens", "/meta/usage/output_tokens"),
    ("cost", "/meta/usage/cost/amount"),
    ("currency", "/meta/usage/cost/currency"),
];

/// What a string begins with that a spreadsheet takes for a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

pub(super) fn write(
    output: &Output<'_>,
    columns: &Columns,
    lines: impl Iterator<Item = Result<ResultLine, WriteError>>,
    out: &mut (dyn Write + Send),
) -> Result<(), WriteError> {
    let mut table = WriterBuilder::new().delimiter(output.csv.delimiter).from_writer(out);
    let carried = output.carried.id.map(|_| "id").into_iter();
    let carried = carried.chain(output.carried.keep.iter().map(String::as_str));
    let first = std::iter::once("row").chain(carried).map(|name| columns.free_name(name));
    let common = COMMON.iter().map(|(name, _)| columns.free_name(name));
    let names = first.chain(columns.fields().iter().cloned()).chain(common);
    let names = names.map(|name| output.csv.guarded(&name).into_owned());
    table.write_record(names).map_err(to_io)?;
    let mut text = String::new();
    for line in lines {
        let line = line?;
        let result = parse(&line)?;
        write_row(&mut table, output, columns, &result, &mut text).map_err(to_io)?;
    }
    Ok(table.flush()?)
}

fn write_row(
    table: &mut csv::Writer<&mut (dyn Write + Send)>,
    output: &Output<'_>,
    columns: &Columns,
    result: &Value,
    text: &mut String,
) -> csv::Result<()> {
    let mut cells = vec![result.get("row")];
    if output.carried.id.is_some() {
        cells.push(result.get("id"));
    }
    let kept = result.get("kept");
    cells.extend(output.carried.keep.iter().map(|name| kept.and_then(|kept| kept.get(name))));
    columns.arrange(result, &mut cells);
    cells.extend(COMMON.iter().map(|(_, pointer)| result.pointer(pointer)));
    for cell in cells {
        match cell.map(|value| (value, value.as_str())) {
            None => table.write_field("")?,
            Some((_, Some(string))) => table.write_field(output.csv.guarded(string).as_bytes())?,
            Some((value, None)) if value.is_null() => table.write_field("")?,
            Some((value, None)) => {
                text.clear();
                value.write(text);
                table.write_field(&*text)?;
            }
        }
    }
    table.write_record(None::<&[u8]>)
}

impl CsvStyle {
    /// Returns a string as it is, or with an apostrophe if a spreadsheet would execute it.
    fn guarded<'a>(&self, string: &'a str) -> Cow<'a, str> {
        match self.escapes_formulas && string.starts_with(FORMULA) {
            true => Cow::Owned(format!("'{string}")),
            false => Cow::Borrowed(string),
        }
    }
}

fn to_io(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// The columns of a table.
pub(super) struct Columns {
    /// The fields of the contract, then others in the order in which they appear.
    fields: Vec<String>,
    by_name: HashMap<String, usize>,
}

impl Columns {
    /// Collects the columns from the contract and the results.
    pub(super) fn new(
        contract: &Contract,
        lines: impl Iterator<Item = Result<ResultLine, WriteError>>,
    ) -> Result<Self, WriteError> {
        let mut columns = Self { fields: Vec::new(), by_name: HashMap::new() };
        for name in contract.shape("data").iter().flat_map(|shape| shape.member_names()) {
            columns.add(name)?;
        }
        for line in lines {
            let value = parse(&line?)?;
            match value.get("data") {
                Some(data) if data.is_object() => {
                    data.members().try_for_each(|(name, _)| columns.add(name))?;
                }
                Some(data) if !data.is_null() => columns.add(DATA)?,
                _ => {}
            }
        }
        Ok(columns)
    }

    /// Returns the data fields.
    pub(super) fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Returns a name for a column next to the data fields: this one, unless a field has it.
    pub(super) fn free_name(&self, name: &str) -> String {
        let mut name = name.to_owned();
        while self.by_name.contains_key(&name) {
            name.insert(0, '_');
        }
        name
    }

    /// Adds the fields of a result, in the order of the columns.
    fn arrange<'a>(&self, result: &'a Value, cells: &mut Vec<Option<Node<'a>>>) {
        let start = cells.len();
        cells.resize(start + self.fields.len(), None);
        let cells = cells.get_mut(start..).unwrap_or_default();
        match result.get("data") {
            Some(data) if data.is_object() => {
                for (name, value) in data.members() {
                    self.set(cells, name, value);
                }
            }
            Some(data) => self.set(cells, DATA, data),
            None => {}
        }
    }

    fn set<'a>(&self, cells: &mut [Option<Node<'a>>], name: &str, value: Node<'a>) {
        if let Some(cell) = self.by_name.get(name).and_then(|index| cells.get_mut(*index)) {
            *cell = Some(value);
        }
    }

    fn add(&mut self, name: &str) -> Result<(), WriteError> {
        if self.by_name.contains_key(name) {
            return Ok(());
        }
        if self.fields.len() == MAX_FIELDS {
            return Err(WriteError::TooManyColumns { max: MAX_FIELDS });
        }
        self.by_name.insert(name.to_owned(), self.fields.len());
        self.fields.push(name.to_owned());
        Ok(())
    }
}

/// Parses a result.
pub(super) fn parse(line: &ResultLine) -> Result<Value, WriteError> {
    Value::parse_bytes(&line.json).map_err(|source| WriteError::NotJson { row: line.row, source })
}
