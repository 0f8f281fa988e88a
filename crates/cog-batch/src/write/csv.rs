//! CSV: a header, then a record per row. Text is written as it is, other values as JSON; null is an empty cell.

use std::io::{self, Write};

use cog_json::{Node, Value};

use super::{
    WriteError,
    columns::{Columns, parse},
};
use crate::ResultLine;

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

pub(super) fn write(
    columns: &Columns,
    lines: impl Iterator<Item = Result<ResultLine, WriteError>>,
    out: &mut (dyn Write + Send),
) -> Result<(), WriteError> {
    let mut table = csv::Writer::from_writer(out);
    let common = COMMON.map(|(name, _)| columns.free_name(name));
    let names = [columns.free_name("row")].into_iter().chain(columns.fields().iter().cloned()).chain(common);
    table.write_record(names).map_err(to_io)?;
    let mut text = String::new();
    for line in lines {
        let line = line?;
        let result = parse(&line)?;
        write_row(&mut table, columns, &result, &mut text).map_err(to_io)?;
    }
    Ok(table.flush()?)
}

fn write_row(
    table: &mut csv::Writer<&mut (dyn Write + Send)>,
    columns: &Columns,
    result: &Value,
    text: &mut String,
) -> csv::Result<()> {
    let mut cells = Vec::new();
    columns.arrange(result, &mut cells);
    let common = COMMON.iter().map(|(_, pointer)| result.pointer(pointer));
    for cell in [result.get("row")].into_iter().chain(cells).chain(common) {
        table.write_field(cell_text(cell, text))?;
    }
    table.write_record(None::<&[u8]>)
}

/// Returns the text of a cell.
fn cell_text<'a>(cell: Option<Node<'a>>, text: &'a mut String) -> &'a str {
    text.clear();
    match cell {
        None => "",
        Some(value) if value.is_null() => "",
        Some(value) => value.as_str().unwrap_or_else(|| {
            value.write(text);
            text
        }),
    }
}

fn to_io(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
