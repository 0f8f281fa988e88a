//! Rows that are JSON: JSON Lines, the elements of an array, and the members that become input fields.

use std::{
    collections::BTreeSet,
    io::{self, BufRead as _, BufReader, Read},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use cog_json::{Kind, Limits, SyntaxError, SyntaxErrorKind, Value, Writer};
use cog_schema::{Contract, nearest};

use super::{
    AbsentMember, ColumnMap, ColumnsError, RowReader,
    text::{Line, Lines},
};
use crate::{
    ParsedRow, Row, RowErrorKind, RowHash, RowInput, RowLocation, RowParser,
    row::{MAX_LINE, RowHasher},
};

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

// A JSON array: each element is the input of a row, read one at a time.

/// The bytes that are read at once.
const BUFFER: usize = 128 << 10;
/// The bytes of a byte order mark.
const BOM: &[u8] = b"\xEF\xBB\xBF";
/// The rows that are passed on at once.
const GROUP: usize = 64;

/// Reads a JSON array. Only the ends of its elements are looked for here: the parser of rows says what is wrong with one.
pub(super) struct JsonArray<R> {
    input: BufReader<R>,
    /// The line of the next byte, from 1.
    line: u64,
    row: u64,
    parser: Arc<RowParser>,
    is_ended: bool,
}

/// An element, as far as it was read.
struct Element {
    /// The line on which it begins.
    line: u64,
    text: Vec<u8>,
    hasher: RowHasher,
    length: usize,
    state: Scan,
}

/// Where in an element the reader is.
#[derive(Default)]
struct Scan {
    /// The objects and arrays that are open.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

/// How an element ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// With a comma.
    Comma,
    /// With the array.
    Array,
}

impl<R: Read> JsonArray<R> {
    /// Opens an input that begins with `[`. None if it begins with something else.
    ///
    /// # Errors
    /// The input cannot be read.
    pub(super) fn open(input: R, parser: Arc<RowParser>) -> io::Result<Option<Self>> {
        let input = BufReader::with_capacity(BUFFER, input);
        let mut array = Self { input, line: 1, row: 0, parser, is_ended: false };
        let first = array.skip(|byte| byte.is_ascii_whitespace() || BOM.contains(&byte))?;
        if first != Some(b'[') {
            return Ok(None);
        }
        array.input.consume(1);
        Ok(Some(array))
    }

    fn skip_space(&mut self) -> io::Result<Option<u8>> {
        self.skip(|byte| byte.is_ascii_whitespace())
    }

    /// Skips bytes, and returns the next one without taking it; none at the end.
    fn skip(&mut self, is_skipped: fn(u8) -> bool) -> io::Result<Option<u8>> {
        loop {
            let bytes = self.input.fill_buf()?;
            let count = bytes.iter().take_while(|byte| is_skipped(**byte)).count();
            let next = bytes.get(count).copied();
            let is_end = bytes.is_empty();
            self.line += lines_in(bytes.get(..count).unwrap_or_default());
            self.input.consume(count);
            if next.is_some() || is_end {
                return Ok(next);
            }
        }
    }

    fn next(&mut self) -> io::Result<Option<Row>> {
        if self.is_ended {
            return Ok(None);
        }
        // The end of an empty array, or of one whose last element has a comma.
        if self.skip_space()? == Some(b']') {
            self.input.consume(1);
            return self.end().map(|()| None);
        }
        let mut element = Element::new(self.line);
        let end = self.read(&mut element)?;
        let number = self.row;
        self.row += 1;
        let row = element.into_row(number, &self.parser);
        if end == End::Array {
            self.end()?;
        }
        Ok(Some(row))
    }

    /// Reads an element, and what ends it.
    fn read(&mut self, element: &mut Element) -> io::Result<End> {
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                return Err(damaged("the array is not closed"));
            }
            let ended = element.state.end(bytes);
            let part = bytes.get(..ended.unwrap_or(bytes.len())).unwrap_or_default();
            let end = ended.and_then(|at| bytes.get(at)).copied();
            element.add(part);
            self.line += lines_in(part);
            let read = part.len() + usize::from(end.is_some());
            self.input.consume(read);
            match end {
                None => {}
                Some(b',') => return Ok(End::Comma),
                Some(_) => return Ok(End::Array),
            }
        }
    }

    /// Ends the rows. Nothing may follow the array: it would be a part of the input that no row has.
    fn end(&mut self) -> io::Result<()> {
        self.is_ended = true;
        match self.skip_space()? {
            None => Ok(()),
            Some(_) => Err(damaged(&format!("line {}: something follows the end of the array", self.line))),
        }
    }
}

impl Scan {
    /// Returns the position of the byte that ends the element: a comma or a bracket outside strings, objects and arrays.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        bytes.iter().position(|byte| self.ends_at(*byte))
    }

    fn ends_at(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.in_string => self.is_escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => self.depth += 1,
            b',' | b']' if self.depth == 0 => return true,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        false
    }
}

impl Element {
    fn new(line: u64) -> Self {
        Self { line, text: Vec::new(), hasher: RowHasher::new(), length: 0, state: Scan::default() }
    }

    /// Adds a part. Of an element that is too long, only the hash is kept.
    fn add(&mut self, part: &[u8]) {
        self.length += part.len();
        self.hasher.add(part);
        if self.length <= MAX_LINE {
            self.text.extend_from_slice(part);
        } else {
            self.text = Vec::new();
        }
    }

    fn into_row(self, number: u64, parser: &Arc<RowParser>) -> Row {
        let text = match self.length > MAX_LINE {
            true => Err(RowErrorKind::TooLarge),
            false => Ok(Bytes::from(self.text)),
        };
        let input = RowInput::new(RowLocation::Line(self.line), text, Arc::clone(parser));
        Row { number, hash: self.hasher.finish(), input }
    }
}

impl<R: Read + Send> RowReader for JsonArray<R> {
    fn read(&mut self, rows: &mut Vec<Row>) -> io::Result<bool> {
        for _ in 0..GROUP {
            let Some(row) = self.next()? else { return Ok(false) };
            rows.push(row);
            // The next element may still have to arrive.
            if self.input.buffer().is_empty() {
                break;
            }
        }
        Ok(true)
    }

    fn buffered(&self) -> usize {
        self.input.buffer().len()
    }
}

fn lines_in(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

fn damaged(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

// Rows that are JSON: their parser, and the members that become input fields or go to the result.

/// What becomes of the members of a row.
#[derive(Debug)]
pub(super) struct Members {
    map: ColumnMap,
    /// The names of the input fields; none if the input may have any.
    fields: BTreeSet<String>,
    /// The members that go to the results, and whether a row has had each.
    carried: Vec<(String, AtomicBool)>,
    /// The members of the first row.
    first: OnceLock<Vec<String>>,
}

impl Members {
    /// Returns none if each row is its input as it is.
    ///
    /// # Errors
    /// A member is mapped to a field that the input does not have.
    pub(super) fn new(contract: &Contract, map: &ColumnMap) -> Result<Option<Self>, ColumnsError> {
        if !map.changes_rows() {
            return Ok(None);
        }
        let fields: Vec<String> = contract.input_fields().iter().map(|field| field.name.clone()).collect();
        map.check_fields(&fields)?;
        Ok(Some(Self::of(map.clone(), fields.into_iter().collect())))
    }

    fn of(map: ColumnMap, fields: BTreeSet<String>) -> Self {
        let names = map.carried().names().collect::<BTreeSet<_>>();
        let carried = names.into_iter().map(|name| (name.to_owned(), AtomicBool::new(false))).collect();
        Self { map, fields, carried, first: OnceLock::new() }
    }

    /// Returns the members that go to the results and that no row has had so far; none before the first row.
    pub(super) fn absent(&self) -> Vec<String> {
        let absent = self.carried.iter().filter(|(_, is_seen)| !is_seen.load(Ordering::Relaxed));
        absent.map(|(name, _)| name.clone()).filter(|_| self.first.get().is_some()).collect()
    }

    /// Returns these members with the number of the rows so far.
    pub(super) fn absent_among(&self, rows: usize) -> Vec<AbsentMember> {
        let present = self.first.get().map(Vec::as_slice).unwrap_or_default();
        let similar = |name: &str| nearest(name, present.iter().map(String::as_str)).map(str::to_owned);
        let absent = self.absent().into_iter();
        absent.map(|name| AbsentMember { rows, similar: similar(&name), name }).collect()
    }

    /// Checks that a row so far has the member that is the `id` of the results.
    ///
    /// # Errors
    /// None has it.
    pub(super) fn check_id(&self) -> Result<(), ColumnsError> {
        let absent = self.absent();
        match self.map.id.as_ref().filter(|id| absent.contains(id)) {
            Some(id) => Err(ColumnsError::NoMember {
                member: id.clone(),
                members: self.first.get().cloned().unwrap_or_default(),
            }),
            None => Ok(()),
        }
    }

    fn see(&self, row: &Value) {
        self.first.get_or_init(|| row.members().map(|(name, _)| name.to_owned()).collect());
        for (name, is_seen) in &self.carried {
            if !is_seen.load(Ordering::Relaxed) && row.get(name).is_some() {
                is_seen.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Divides a row into its input and what its result gets. A row that is a string has no members.
    fn apply(&self, row: Value) -> ParsedRow {
        self.see(&row);
        if !row.is_object() {
            return ParsedRow { input: row, carried: self.map.carried().none() };
        }
        let mut input = String::new();
        Writer::compact(&mut input).object(|w| {
            for (name, value) in row.members() {
                let field = self.map.field_of(name);
                if self.is_input(name, field) {
                    w.key(field).node(value);
                }
            }
        });
        let carried = self.map.carried().write(|name, w| match row.get(name) {
            Some(value) => w.node(value),
            None => w.null(),
        });
        // The text was written from a value, so it is JSON.
        ParsedRow { input: Value::parse(&input).unwrap_or_default(), carried }
    }

    /// Whether a member is part of the input. One that is no field stays, so that the check of the input names it, unless it is
    /// ignored or goes to the result only.
    fn is_input(&self, name: &str, field: &str) -> bool {
        let is_field = self.fields.contains(field) || field != name;
        is_field || !(self.map.ignore_unknown && !self.fields.is_empty() || self.map.carried().contains(name))
    }
}

/// Returns the parser of rows that are JSON.
pub(super) fn parser(members: Option<Arc<Members>>) -> Arc<RowParser> {
    Arc::new(move |text: &[u8]| {
        let row = parse(text)?;
        Ok(match &members {
            Some(members) => members.apply(row),
            None => ParsedRow { input: row, carried: String::new() },
        })
    })
}

/// Parses a row.
fn parse(text: &[u8]) -> Result<Value, RowErrorKind> {
    let value = Value::parse_within(text, Limits::default().with_bytes(MAX_LINE as u64));
    let value = value.map_err(|error| not_json(text, &error))?;
    match value.node().kind() {
        Kind::Object | Kind::String => Ok(value),
        Kind::Array => Err(RowErrorKind::NotAnInput { found: "an array" }),
        Kind::Number => Err(RowErrorKind::NotAnInput { found: "a number" }),
        Kind::Bool => Err(RowErrorKind::NotAnInput { found: "a boolean" }),
        Kind::Null => Err(RowErrorKind::NotAnInput { found: "null" }),
    }
}

/// Returns what is wrong with a row that cannot be parsed.
fn not_json(row: &[u8], error: &SyntaxError) -> RowErrorKind {
    let text = match text_of(row) {
        Ok(text) => text,
        Err(kind) => return kind,
    };
    let reason = match error.kind() {
        SyntaxErrorKind::TooDeep => "nested too deeply".to_owned(),
        kind => kind.to_string(),
    };
    RowErrorKind::NotJson { column: error.position(text).column, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(1);
            self.0.read(&mut buffer[..count])
        }
    }

    /// Returns the inputs of an array with their lines, or the error that ends it.
    fn read(text: &str) -> Result<Vec<String>, String> {
        let collect = |reader: &mut dyn RowReader| {
            let mut rows = Vec::new();
            while reader.read(&mut rows).map_err(|error| error.to_string())? {}
            let show = |row: Row| match row.input.get() {
                Ok(input) => input.to_string(),
                Err(error) => error.to_string(),
            };
            Ok(rows.into_iter().map(show).collect::<Vec<_>>())
        };
        let opened = JsonArray::open(Slow(text.as_bytes()), parser(None)).unwrap();
        let slow = collect(&mut opened.ok_or("no array")?);
        let fast = collect(&mut JsonArray::open(text.as_bytes(), parser(None)).unwrap().unwrap());
        assert_eq!(slow, fast, "{text}");
        fast
    }

    #[test]
    fn elements_are_rows() {
        let text = "\u{feff} [ {\"a\": \"],{\\\"\"},\n\n\"two\" , {\"b\": [1, {\"c\": 2}]}]\n";
        assert_eq!(read(text).unwrap(), [r#"{"a":"],{\""}"#, "\"two\"", r#"{"b":[1,{"c":2}]}"#]);
        assert_eq!(read("[]").unwrap().len(), 0);
        assert_eq!(read("[\"a\",\n]").unwrap(), ["\"a\""]);
    }

    #[test]
    fn element_that_is_wrong_is_a_row_with_its_line() {
        let found = read("[{\"a\": 1},\n  7, {\"b\" 2},\n,\"x\"]").unwrap();
        assert_eq!(found.len(), 5, "{found:?}");
        assert_eq!((found[0].as_str(), found[4].as_str()), ("{\"a\":1}", "\"x\""));
        assert!(
            found[1].starts_with("line 2: a row is a JSON object or a string, not a number"),
            "{found:?}"
        );
        assert!(found[2].starts_with("line 2: not JSON: "), "{found:?}");
        assert!(found[3].starts_with("line 3: "), "{found:?}");
    }

    #[test]
    fn array_that_is_cut_or_followed_by_something_ends_the_batch() {
        for (text, reason) in [
            ("[{\"a\": 1}", "the array is not closed"),
            ("[\"a\", \"b", "the array is not closed"),
            ("[\"a\"]\n{\"b\": 1}", "line 2: something follows the end of the array"),
            ("{\"a\": 1}", "no array"),
            ("", "no array"),
        ] {
            assert_eq!(read(text).unwrap_err(), reason, "{text}");
        }
    }

    fn apply(map: ColumnMap, fields: &[&str], row: &str) -> (String, String) {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        let parsed = Members::of(map, fields).apply(Value::parse(row).unwrap());
        (parsed.input.to_string(), parsed.carried)
    }

    #[test]
    fn members_are_mapped_ignored_and_carried() {
        let map = ColumnMap {
            fields: vec![("text".to_owned(), "question".to_owned())],
            ignore_unknown: true,
            id: Some("id".to_owned()),
            keep: vec!["url".to_owned(), "count".to_owned()],
            ..ColumnMap::default()
        };
        let row = r#"{"id": 7, "question": "why", "count": 2, "url": "x", "other": [1]}"#;
        let (input, carried) = apply(map.clone(), &["text", "count"], row);
        assert_eq!(input, r#"{"text":"why","count":2}"#);
        assert_eq!(carried, r#""id":7,"kept":{"url":"x","count":2}"#);
        let (input, carried) = apply(map.clone(), &["text", "count"], "\"a string\"");
        assert_eq!(
            (input.as_str(), carried.as_str()),
            ("\"a string\"", r#""id":null,"kept":{"url":null,"count":null}"#)
        );
        let strict = ColumnMap { ignore_unknown: false, ..map };
        assert_eq!(apply(strict.clone(), &["text"], row).0, r#"{"text":"why","other":[1]}"#);
        // A module whose input may have any members gets all but the carried ones.
        assert_eq!(apply(strict, &[], row).0, r#"{"text":"why","other":[1]}"#);
    }
}
