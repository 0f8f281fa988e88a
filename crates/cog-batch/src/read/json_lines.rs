//! JSON Lines: one input per line.

use std::{
    io::{self, Read},
    sync::Arc,
};

use super::{
    RowReader,
    lines::{Line, Lines},
};
use crate::{Row, RowErrorKind, RowHash, RowInput, RowLocation, RowParser};

/// Reads JSON Lines.
pub(super) struct JsonLines<R> {
    lines: Lines<R>,
    row: u64,
    parser: Arc<RowParser>,
}

impl<R: Read + Send> JsonLines<R> {
    pub(super) fn new(lines: Lines<R>, parser: Arc<RowParser>) -> Self {
        Self { lines, row: 0, parser }
    }

    fn next(&mut self) -> io::Result<Option<Row>> {
        let (hash, text) = loop {
            match self.lines.next()? {
                None => return Ok(None),
                Some(Line::TooLarge(hash)) => break (hash, Err(RowErrorKind::TooLarge)),
                // Other readers skip blank lines, so the numbers of rows are the same as theirs.
                Some(Line::Text(line)) if is_blank(&line) => {}
                Some(Line::Text(line)) => break (RowHash::from_bytes(&line), Ok(line)),
            }
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

/// Returns the line as text.
pub(super) fn text_of(line: &[u8]) -> Result<&str, RowErrorKind> {
    if is_blank(line) {
        return Err(RowErrorKind::Empty);
    }
    utf8(line)
}

pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// Returns a line as text, which may be blank.
pub(super) fn utf8(line: &[u8]) -> Result<&str, RowErrorKind> {
    if let Some(at) = memchr::memchr(0, line) {
        return Err(RowErrorKind::Nul { column: at + 1 });
    }
    std::str::from_utf8(line).map_err(|error| {
        let at = error.valid_up_to();
        RowErrorKind::NotUtf8 { column: at + 1, byte: line.get(at).copied().unwrap_or_default() }
    })
}
