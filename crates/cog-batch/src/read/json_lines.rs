//! JSON Lines: one input per line.

use std::{
    io::{self, Read},
    sync::Arc,
};

use cog_json::{Kind, Limits, SyntaxError, SyntaxErrorKind, Value};

use super::{
    RowReader,
    lines::{Line, Lines},
};
use crate::{Row, RowErrorKind, RowHash, RowInput, RowLocation, RowParser, row::MAX_LINE};

/// Reads JSON Lines.
pub(super) struct JsonLines<R> {
    lines: Lines<R>,
    row: u64,
    parser: Arc<RowParser>,
}

impl<R: Read + Send> JsonLines<R> {
    pub(super) fn new(lines: Lines<R>) -> Self {
        Self { lines, row: 0, parser: Arc::new(parse) }
    }

    fn next(&mut self) -> io::Result<Option<Row>> {
        let (hash, text) = match self.lines.next()? {
            None => return Ok(None),
            Some(Line::TooLarge(hash)) => (hash, Err(RowErrorKind::TooLarge)),
            Some(Line::Text(line)) => (RowHash::from_bytes(&line), Ok(line)),
        };
        let place = RowLocation::Line(self.lines.number());
        let number = self.row;
        self.row += 1;
        let input = RowInput::new(place, text, Arc::clone(&self.parser));
        Ok(Some(Row { number, hash, input }))
    }
}

impl<R: Read + Send> RowReader for JsonLines<R> {
    fn read(&mut self, rows: &mut Vec<Row>) -> io::Result<bool> {
        loop {
            let Some(row) = self.next()? else { return Ok(false) };
            rows.push(row);
            if self.lines.ends_group() {
                return Ok(true);
            }
        }
    }

    fn buffered(&self) -> usize {
        self.lines.buffered()
    }
}

/// Parses the input of a line.
fn parse(line: &[u8]) -> Result<Value, RowErrorKind> {
    let value = Value::parse_within(line, Limits::default().with_bytes(MAX_LINE as u64));
    let value = value.map_err(|error| not_json(line, &error))?;
    match value.node().kind() {
        Kind::Object | Kind::String => Ok(value),
        Kind::Array => Err(RowErrorKind::NotAnInput { found: "an array" }),
        Kind::Number => Err(RowErrorKind::NotAnInput { found: "a number" }),
        Kind::Bool => Err(RowErrorKind::NotAnInput { found: "a boolean" }),
        Kind::Null => Err(RowErrorKind::NotAnInput { found: "null" }),
    }
}

/// Returns what is wrong with a line that cannot be parsed.
fn not_json(line: &[u8], error: &SyntaxError) -> RowErrorKind {
    let text = match text_of(line) {
        Ok(text) => text,
        Err(kind) => return kind,
    };
    let reason = match error.kind() {
        SyntaxErrorKind::TooDeep => "nested too deeply".to_owned(),
        kind => kind.to_string(),
    };
    RowErrorKind::NotJson { column: error.position(text).column, reason }
}

/// Returns the line as text.
pub(super) fn text_of(line: &[u8]) -> Result<&str, RowErrorKind> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Err(RowErrorKind::Empty);
    }
    if let Some(at) = memchr::memchr(0, line) {
        return Err(RowErrorKind::Nul { column: at + 1 });
    }
    std::str::from_utf8(line).map_err(|error| {
        let at = error.valid_up_to();
        RowErrorKind::NotUtf8 { column: at + 1, byte: line.get(at).copied().unwrap_or_default() }
    })
}
