//! Comma-separated values: the header names the fields of the input.

use std::{
    collections::VecDeque,
    io::{self, Read},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::{Bytes, BytesMut};
use cog_schema::Contract;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

use super::{
    ColumnMap, ColumnsError, RowReader,
    columns::Columns,
    json::{text_of, utf8},
    text::{Line, Lines},
};
use crate::{
    ParsedRow, Row, RowErrorKind, RowHash, RowInput, RowLocation, RowParser,
    row::{MAX_LINE, RowHasher},
};

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
    delimiter: u8,
    row: u64,
}

/// Parses the cells of records. One parser for all rows: the buffers of a record with hundreds of cells are used again.
struct Cells {
    columns: Columns,
    fields: Fields,
}

/// A line of the file; none if it is too long.
struct Physical {
    number: u64,
    text: Result<Bytes, RowHash>,
}

impl Physical {
    /// Whether the line fits into a record that has this length so far.
    fn fits_after(&self, length: usize) -> bool {
        self.text.as_ref().is_ok_and(|text| length + text.len() < MAX_LINE)
    }
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
        delimiter: u8,
    ) -> io::Result<Result<Self, ColumnsError>> {
        let mut fields = Fields::new(delimiter);
        let mut first = lines.next()?;
        while matches!(&first, Some(Line::Text(line)) if line.is_empty()) {
            first = lines.next()?;
        }
        let header = match first {
            Some(Line::Text(line)) => match text_of(&line) {
                Ok(text) => fields.split(text.as_bytes()).map(str::to_owned).collect::<Vec<_>>(),
                Err(kind) => return Ok(Err(ColumnsError::Header(kind))),
            },
            Some(Line::TooLarge(_)) => return Ok(Err(ColumnsError::Header(RowErrorKind::TooLarge))),
            // A file without anything has no rows, in any format.
            None => Vec::new(),
        };
        // A file whose lines end with carriage returns alone is one line: all its rows would be names of columns.
        if header.iter().any(|column| column.contains('\r')) {
            return Ok(Err(ColumnsError::Header(RowErrorKind::CarriageReturn)));
        }
        // A row belongs to its columns: under other names it is another one.
        let hasher = RowHasher::new().with_common(header.join("\n").as_bytes());
        let columns = match header.is_empty() {
            true => Ok(Columns::default()),
            false => Columns::new(contract, &header, map),
        };
        Ok(columns.map(|columns| {
            let cells = Mutex::new(Cells { columns, fields });
            let parser: Arc<RowParser> =
                Arc::new(move |text| cells.lock().unwrap_or_else(PoisonError::into_inner).parse(text));
            Self { lines, returned: VecDeque::new(), parser, hasher, delimiter, row: 0 }
        }))
    }

    fn next(&mut self) -> io::Result<Option<Row>> {
        let Some(Record { line, hash, text }) = self.record()? else { return Ok(None) };
        let number = self.row;
        self.row += 1;
        let input = RowInput::new(RowLocation::Line(line), text, Arc::clone(&self.parser));
        Ok(Some(Row { number, hash, input }))
    }

    /// Returns the next record, which consists of several lines if a quoted field contains line breaks. The record of a torn
    /// quote is its first line only.
    fn record(&mut self) -> io::Result<Option<Record>> {
        let first = loop {
            let Some(first) = self.line()? else { return Ok(None) };
            // Readers of CSV skip empty lines, so the numbers of rows are the same as theirs.
            if first.text.as_ref().map_or(true, |text| !text.is_empty()) {
                break first;
            }
        };
        let line = first.number;
        let first = match first.text {
            Ok(text) => text,
            Err(hash) => return Ok(Some(Record { line, hash, text: Err(RowErrorKind::TooLarge) })),
        };
        let mut state = QuoteState::after(&first, QuoteState::Start, self.delimiter);
        let mut length = first.len();
        let mut more = Vec::new();
        while state == QuoteState::Quoted {
            let next = if more.len() < MAX_LINES { self.line()? } else { None };
            let is_usable = next.as_ref().is_some_and(|line| line.fits_after(length));
            more.extend(next);
            let Some(Physical { text: Ok(next), .. }) = more.last().filter(|_| is_usable) else {
                state = QuoteState::Torn;
                break;
            };
            length += 1 + next.len();
            state = QuoteState::after(next, QuoteState::Quoted, self.delimiter);
        }
        if state == QuoteState::Torn {
            // Otherwise one open quote would swallow the rest of the file. The lines after it are read as records of their own.
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
    fn parse(&mut self, record: &[u8]) -> Result<ParsedRow, RowErrorKind> {
        let text = utf8(record)?;
        let cells = self.fields.split(text.as_bytes());
        let expected = self.columns.len();
        let found = cells.clone().count();
        if found != expected {
            return Err(RowErrorKind::FieldCount { expected, found });
        }
        self.columns.row(cells)
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

// The fields of a record, and its quotes.

/// Where in a record the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuoteState {
    /// At the start of a field.
    Start,
    /// In a field without quotes.
    Plain,
    /// In a quoted field.
    Quoted,
    /// After a quote in a quoted field, which ends the field or begins a quote of its text.
    AfterQuote,
    /// Text follows a closing quote.
    Torn,
}

impl QuoteState {
    /// Returns the state after a line.
    fn after(line: &[u8], before: Self, delimiter: u8) -> Self {
        line.iter().fold(before, |state, byte| match (state, byte) {
            (Self::Torn, _) => Self::Torn,
            (Self::Start, b'"') => Self::Quoted,
            (Self::Start | Self::Plain | Self::AfterQuote, byte) if *byte == delimiter => Self::Start,
            (Self::Start | Self::Plain, _) => Self::Plain,
            (Self::Quoted, b'"') => Self::AfterQuote,
            (Self::Quoted, _) => Self::Quoted,
            (Self::AfterQuote, b'"') => Self::Quoted,
            (Self::AfterQuote, _) => Self::Torn,
        })
    }
}

/// Splits a record into its fields.
struct Fields {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Fields {
    fn new(delimiter: u8) -> Self {
        // Only the end of the record ends it, not a carriage return in it.
        let reader = ReaderBuilder::new().delimiter(delimiter).terminator(Terminator::Any(b'\n')).build();
        Self { reader, text: Vec::new(), ends: Vec::new() }
    }

    /// Returns the fields of a record, which is UTF-8 and has no quote that is open.
    fn split(&mut self, record: &[u8]) -> impl Iterator<Item = &str> + Clone {
        self.reader.reset();
        self.text.resize(record.len(), 0);
        self.ends.resize(self.ends.len().max(16), 0);
        let mut input = record;
        let mut written = 0;
        let mut fields = 0;
        while let Some(text) = self.text.get_mut(written..)
            && let Some(ends) = self.ends.get_mut(fields..)
        {
            let (result, read, wrote, ended) = self.reader.read_record(input, text, ends);
            input = input.get(read..).unwrap_or_default();
            written += wrote;
            fields += ended;
            match result {
                ReadRecordResult::Record | ReadRecordResult::End => break,
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                // The text of the fields is never longer than the record.
                ReadRecordResult::OutputFull => self.text.resize(self.text.len() + 16, 0),
                ReadRecordResult::InputEmpty => {} // the empty rest ends the record
            }
        }
        let ends = self.ends.get(..fields).unwrap_or_default();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let text = self.text.as_slice();
        starts.zip(ends).map(move |(start, end)| {
            text.get(start..*end).and_then(|field| std::str::from_utf8(field).ok()).unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_split_and_quotes_removed() {
        let mut fields = Fields::new(b',');
        for (record, expected) in [
            ("a,b", vec!["a", "b"]),
            (r#""x, ""y""",,"#, vec![r#"x, "y""#, "", ""]),
            ("\"two\nlines\",é", vec!["two\nlines", "é"]),
            ("5\" pipe,1", vec!["5\" pipe", "1"]),
            ("one", vec!["one"]),
            ("a\rb,\r,c\r", vec!["a\rb", "\r", "c\r"]),
            ("\r\r", vec!["\r\r"]),
        ] {
            assert_eq!(fields.split(record.as_bytes()).collect::<Vec<_>>(), expected, "{record}");
        }
        let wide = ["a"; 100].join(",");
        assert_eq!(fields.split(wide.as_bytes()).count(), 100);
    }

    #[test]
    fn quotes_decide_whether_a_record_ends() {
        for (line, state) in [
            ("a,b", QuoteState::Plain),
            ("\"a\",", QuoteState::Start),
            ("\"a\"", QuoteState::AfterQuote),
            ("\"a\"\"", QuoteState::Quoted),
            ("x,\"a", QuoteState::Quoted),
            ("\"a\" b", QuoteState::Torn),
            ("5\" pipe", QuoteState::Plain),
        ] {
            assert_eq!(QuoteState::after(line.as_bytes(), QuoteState::Start, b','), state, "{line}");
        }
    }
}
