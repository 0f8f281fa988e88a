//! Comma-separated values: the header names the fields of the input.

mod record;

use std::{
    collections::VecDeque,
    io::{self, Read},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::{Bytes, BytesMut};
use cog_json::Value;
use cog_schema::Contract;

use self::record::{Fields, QuoteState};
use super::{
    ColumnMap, ColumnsError, Place, RowErrorKind, RowReader,
    columns::Columns,
    json_lines::text_of,
    lines::{Line, Lines},
    row_error::MAX_LINE,
};
use crate::{Row, RowHash, RowInput, RowParser, row::RowHasher};

/// The maximum number of further lines of a record. Those of a torn quote are read again.
const MAX_LINES: usize = 100_000;

/// Reads CSV.
pub(super) struct Csv<R> {
    lines: Lines<R>,
    /// Lines that were read while the end of a torn quote was searched.
    returned: VecDeque<Physical>,
    parser: Arc<RowParser>,
    /// Hashes a row with the names of its columns.
    hasher: RowHasher,
    row: u64,
}

/// Parses the cells of records.
struct Cells {
    columns: Columns,
    fields: Fields,
}

/// A line of the file; none if it is too long.
struct Physical {
    number: u64,
    text: Result<Bytes, RowHash>,
}

/// A record, with the line on which it begins.
struct Record {
    line: u64,
    hash: RowHash,
    text: Result<Bytes, RowErrorKind>,
}

impl<R: Read + Send> Csv<R> {
    /// Reads the header, and finds the input field of each column.
    ///
    /// # Errors
    /// The file cannot be read, or its columns do not fit the module.
    pub(super) fn open(
        mut lines: Lines<R>,
        contract: &Contract,
        map: &ColumnMap,
    ) -> io::Result<Result<Self, ColumnsError>> {
        let mut fields = Fields::new();
        let header = match lines.next()? {
            Some(Line::Text(line)) => match text_of(&line) {
                Ok(text) => fields.split(text.as_bytes()).map(str::to_owned).collect::<Vec<_>>(),
                Err(kind) => return Ok(Err(ColumnsError::Header(kind))),
            },
            Some(Line::TooLarge(_)) => return Ok(Err(ColumnsError::Header(RowErrorKind::TooLarge))),
            None => return Ok(Err(ColumnsError::Header(RowErrorKind::Empty))),
        };
        // A row belongs to its columns: under other names it is another one.
        let hasher = RowHasher::new().with_common(header.join("\n").as_bytes());
        let columns = Columns::new(contract, &header, map);
        Ok(columns.map(|columns| {
            let cells = Mutex::new(Cells { columns, fields });
            let parser: Arc<RowParser> =
                Arc::new(move |text| cells.lock().unwrap_or_else(PoisonError::into_inner).parse(text));
            Self { lines, returned: VecDeque::new(), parser, hasher, row: 0 }
        }))
    }

    fn next(&mut self) -> io::Result<Option<Row>> {
        let Some(Record { line, hash, text }) = self.record()? else { return Ok(None) };
        let number = self.row;
        self.row += 1;
        let input = RowInput::new(Place::Line(line), text, Arc::clone(&self.parser));
        Ok(Some(Row { number, hash, input }))
    }

    /// Returns the next record, which consists of several lines if a quoted field contains line breaks. The record of a torn
    /// quote is its first line only.
    fn record(&mut self) -> io::Result<Option<Record>> {
        let Some(first) = self.line()? else { return Ok(None) };
        let line = first.number;
        let first = match first.text {
            Ok(text) => text,
            Err(hash) => return Ok(Some(Record { line, hash, text: Err(RowErrorKind::TooLarge) })),
        };
        let mut state = QuoteState::after(&first, QuoteState::Start);
        let (mut length, mut more) = (first.len(), Vec::new());
        while state == QuoteState::Quoted {
            let next = if more.len() < MAX_LINES { self.line()? } else { None };
            let fits = |line: &Physical| line.text.as_ref().is_ok_and(|next| length + next.len() < MAX_LINE);
            let is_usable = next.as_ref().is_some_and(fits);
            more.extend(next);
            let Some(Physical { text: Ok(next), .. }) = more.last().filter(|_| is_usable) else {
                state = QuoteState::Torn;
                break;
            };
            length += 1 + next.len();
            state = QuoteState::after(next, QuoteState::Quoted);
        }
        if state == QuoteState::Torn {
            more.into_iter().rev().for_each(|line| self.returned.push_front(line));
            let hash = self.hasher.hash(&first);
            return Ok(Some(Record { line, hash, text: Err(RowErrorKind::TornQuote) }));
        }
        let text = join(first, &more, length);
        Ok(Some(Record { line, hash: self.hasher.hash(&text), text: Ok(text) }))
    }

    fn line(&mut self) -> io::Result<Option<Physical>> {
        if let Some(line) = self.returned.pop_front() {
            return Ok(Some(line));
        }
        let text = match self.lines.next()? {
            None => return Ok(None),
            Some(Line::Text(text)) => Ok(text),
            Some(Line::TooLarge(hash)) => Err(hash),
        };
        Ok(Some(Physical { number: self.lines.number(), text }))
    }
}

/// Joins the lines of a record, which has this length.
fn join(first: Bytes, more: &[Physical], length: usize) -> Bytes {
    if more.is_empty() {
        return first;
    }
    let mut text = BytesMut::with_capacity(length);
    text.extend_from_slice(&first);
    for line in more.iter().filter_map(|line| line.text.as_ref().ok()) {
        text.extend_from_slice(b"\n");
        text.extend_from_slice(line);
    }
    text.freeze()
}

impl Cells {
    fn parse(&mut self, record: &[u8]) -> Result<Value, RowErrorKind> {
        let text = text_of(record)?;
        let cells = self.fields.split(text.as_bytes());
        let (expected, found) = (self.columns.len(), cells.clone().count());
        if found != expected {
            return Err(RowErrorKind::FieldCount { expected, found });
        }
        self.columns.input(cells)
    }
}

impl<R: Read + Send> RowReader for Csv<R> {
    fn read(&mut self, rows: &mut Vec<Row>) -> io::Result<bool> {
        loop {
            let Some(row) = self.next()? else { return Ok(false) };
            rows.push(row);
            if self.returned.is_empty() && self.lines.ends_group() {
                return Ok(true);
            }
        }
    }

    fn buffered(&self) -> usize {
        self.lines.buffered()
    }
}
