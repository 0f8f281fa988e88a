//! Where the results of rows go.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::File,
    future::Future,
    io::{self, BufReader, Seek as _, Write},
};

use cog_json::Writer;
use cog_spec::{Envelope, Outcome};
use thiserror::Error;

use crate::{Journal, JournalError, Order, Position, RowHash, RowResult, journal::read_line};

/// The memory that the buffer of a line keeps.
const KEPT: usize = 1 << 20;

/// Why results cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SinkError {
    /// A line cannot be written.
    #[error("cannot write the results: {0}")]
    Write(#[from] io::Error),
    /// The journal cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl SinkError {
    /// Returns what to do about it.
    #[must_use]
    pub fn suggestion(&self) -> String {
        match self {
            Self::Write(_) => "Free space, or choose another output.".to_owned(),
            Self::Journal(error) => error.suggestion().to_owned(),
        }
    }
}

/// Receives the results of rows, in the order in which they finish.
pub trait Sink {
    /// Takes a result. Waits while earlier ones are being written.
    ///
    /// # Errors
    /// An earlier result could not be written.
    fn put(&mut self, result: RowResult<'_>) -> impl Future<Output = Result<(), SinkError>>;

    /// Takes a result that may be read again, and returns where it is stored.
    ///
    /// # Errors
    /// As [`Sink::put`].
    fn keep(&mut self, result: RowResult<'_>) -> impl Future<Output = Result<Position, SinkError>>;

    /// Returns the line of a result that was kept, without its line break.
    ///
    /// # Errors
    /// An earlier result could not be written, or the line cannot be read.
    fn read(&mut self, position: Position) -> impl Future<Output = Result<Vec<u8>, SinkError>>;

    /// Returns the error of an earlier result, so that no further row is sent.
    ///
    /// # Errors
    /// An earlier result could not be written.
    fn check(&self) -> Result<(), SinkError> {
        Ok(())
    }

    /// Returns how many further rows may start. A sink that writes in the order of the input holds the results that finish early,
    /// up to a limit.
    fn room(&self) -> usize {
        usize::MAX
    }

    /// Records that a row has no result, because it is not part of the batch or has one from earlier.
    fn skip(&mut self, _row: u64) -> Result<(), SinkError> {
        Ok(())
    }
}

/// The row of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowHead<'a> {
    /// The position of the row in the input, from 0.
    pub(crate) row: u64,
    /// The hash of the row as it was read.
    pub(crate) hash: RowHash,
    /// The members that the result gets from the row, as JSON without braces; empty if there are none.
    pub(crate) carried: &'a str,
}

impl RowHead<'_> {
    /// Writes the beginning of a line, up to a member that follows: `{"row":7,"id":"a",`.
    pub(crate) fn write(&self, line: &mut String) {
        let _ = write!(line, "{{\"row\":{},", self.row); // writing to a string cannot fail
        if !self.carried.is_empty() {
            line.push_str(self.carried);
            line.push(',');
        }
    }
}

impl<'a> RowResult<'a> {
    /// Creates the result of a row. The envelope is written as JSON once, into a buffer that the rows of a batch share.
    ///
    /// Each line has the same members, also those that are null: readers of JSON Lines take the columns of a table from the first
    /// lines. With `dedupes`, these are also `duplicate_of`.
    #[must_use]
    pub(crate) fn new(line: &'a mut String, head: RowHead<'_>, dedupes: bool, envelope: &Envelope) -> Self {
        line.clear();
        // One answer with an image must not hold its megabytes for the rest of the batch.
        line.shrink_to(KEPT);
        head.write(line);
        if dedupes {
            line.push_str("\"duplicate_of\":null,");
        }
        let start = line.len();
        write_members(envelope, line);
        line.replace_range(start..=start, ""); // the brace before the members of the envelope
        Self::from_line(head.row, head.hash, envelope.is_ok(), line.as_bytes())
    }
}

/// Writes an envelope with all its members.
fn write_members(envelope: &Envelope, line: &mut String) {
    let partial_data = match &envelope.outcome {
        Outcome::Failure { partial_data, .. } => partial_data.as_ref(),
        Outcome::Success { .. } => None,
    };
    Writer::compact(line).object(|w| {
        w.field("ok", &envelope.is_ok()).field("meta", &envelope.meta).field("data", &envelope.data());
        w.field("error", &envelope.error()).field("partial_data", &partial_data);
        w.field("_warnings", &envelope.warnings).field("_emitted_context", &envelope.emitted_context);
        w.field("_handoff", &envelope.handoff);
    });
}

impl Sink for Journal {
    async fn put(&mut self, result: RowResult<'_>) -> Result<(), SinkError> {
        self.keep(result).await.map(drop)
    }

    async fn keep(&mut self, result: RowResult<'_>) -> Result<Position, SinkError> {
        Ok(self.append(&result).await?)
    }

    async fn read(&mut self, position: Position) -> Result<Vec<u8>, SinkError> {
        Ok(Journal::read(self, position).await?)
    }

    fn check(&self) -> Result<(), SinkError> {
        Ok(Journal::check(self)?)
    }
}

/// The results that may wait for an earlier one.
const MAX_WAITING: usize = 4_096;
/// The bytes of results that may wait for an earlier one.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// Writes results as JSON lines, as they finish or in the order of the input.
#[derive(Debug)]
pub struct LineSink<W> {
    out: W,
    order: Order,
    /// The next row in the order of the input.
    next: u64,
    /// Results that wait for an earlier one; none for a row without a result.
    waiting: BTreeMap<u64, Option<Vec<u8>>>,
    bytes: usize,
    /// The line that is written.
    line: Vec<u8>,
    /// A temporary file with the results that were kept.
    kept: Option<BufReader<File>>,
}

impl<W: Write> LineSink<W> {
    /// Creates a sink.
    pub fn new(out: W, order: Order) -> Self {
        Self { out, order, next: 0, waiting: BTreeMap::new(), bytes: 0, line: Vec::new(), kept: None }
    }

    fn store(&mut self, line: &[u8]) -> io::Result<Position> {
        let file = match &mut self.kept {
            Some(file) => file.get_mut(),
            None => self.kept.insert(BufReader::new(tempfile::tempfile()?)).get_mut(),
        };
        let position = file.seek(io::SeekFrom::End(0))?;
        file.write_all(line)?;
        file.write_all(b"\n")?;
        Ok(Position(position))
    }

    /// Writes a line and its end at once, so that no reader of a pipe sees a part of it.
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.line.clear();
        self.line.shrink_to(KEPT);
        self.line.extend_from_slice(line);
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.out.flush()
    }

    fn add(&mut self, row: u64, line: Option<&[u8]>) -> Result<(), SinkError> {
        if self.order == Order::Input && row != self.next {
            self.bytes += line.map_or(0, <[u8]>::len);
            self.waiting.insert(row, line.map(<[u8]>::to_vec));
            return Ok(());
        }
        line.map_or(Ok(()), |line| self.write(line))?;
        self.next += 1;
        while let Some(line) = self.waiting.remove(&self.next) {
            self.next += 1;
            if let Some(line) = line {
                self.bytes -= line.len();
                self.write(&line)?;
            }
        }
        Ok(())
    }

    /// Writes the results that wait for a row which has none, because the batch was stopped.
    ///
    /// # Errors
    /// A line cannot be written.
    pub fn close(mut self) -> Result<(), SinkError> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_values().flatten().try_for_each(|line| self.write(&line))?;
        Ok(())
    }
}

impl<W: Write> Sink for LineSink<W> {
    async fn put(&mut self, result: RowResult<'_>) -> Result<(), SinkError> {
        self.add(result.row, Some(result.line))
    }

    async fn keep(&mut self, result: RowResult<'_>) -> Result<Position, SinkError> {
        let position = self.store(result.line)?;
        self.put(result).await?;
        Ok(position)
    }

    async fn read(&mut self, position: Position) -> Result<Vec<u8>, SinkError> {
        let file = self.kept.as_mut().ok_or(io::ErrorKind::NotFound);
        Ok(read_line(file.map_err(io::Error::from)?, position)?)
    }

    fn room(&self) -> usize {
        if self.bytes > MAX_WAITING_BYTES { 0 } else { MAX_WAITING.saturating_sub(self.waiting.len()) }
    }

    fn skip(&mut self, row: u64) -> Result<(), SinkError> {
        self.add(row, None)
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;
    use cog_spec::{Code, ErrorBody};

    use super::*;

    fn result(row: u64, line: &str) -> RowResult<'_> {
        RowResult::from_line(row, RowHash::from_u64(0), true, line.as_bytes())
    }

    async fn written(order: Order) -> String {
        let mut out = Vec::new();
        let mut sink = LineSink::new(&mut out, order);
        for row in [2, 0, 4] {
            sink.put(result(row, &row.to_string())).await.unwrap();
        }
        sink.skip(1).unwrap();
        sink.close().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[tokio::test]
    async fn results_are_in_the_order_of_the_input_or_free() {
        assert_eq!(written(Order::Input).await, "0\n2\n4\n");
        assert_eq!(written(Order::Free).await, "2\n0\n4\n");
    }

    #[tokio::test]
    async fn kept_results_are_read_again() {
        let mut sink = LineSink::new(io::sink(), Order::Input);
        let mut positions = Vec::new();
        for row in [70, 800, 9] {
            positions.push(sink.keep(result(row, &row.to_string())).await.unwrap());
        }
        for (position, line) in [(2, "9"), (0, "70"), (1, "800"), (0, "70")] {
            assert_eq!(sink.read(positions[position]).await.unwrap(), line.as_bytes());
        }
    }

    #[tokio::test]
    async fn results_that_wait_are_limited() {
        let mut sink = LineSink::new(io::sink(), Order::Input);
        for row in 1..=100 {
            sink.put(result(row, &row.to_string())).await.unwrap();
        }
        assert_eq!(sink.room(), MAX_WAITING - 100);
        sink.put(result(0, "0")).await.unwrap();
        assert_eq!(sink.room(), MAX_WAITING);
    }

    #[test]
    fn line_is_the_envelope_with_its_row() {
        let failure = Envelope::failure(ErrorBody::new(Code::ParseError, "no JSON"));
        let success = Envelope::success(failure.meta.clone(), Value::parse("{\"a\": 1}").unwrap());
        let mut buffer = "an earlier line".to_owned();
        for (carried, dedupes) in [("", false), (r#""id":"x","kept":{"a":null}"#, true)] {
            let mut keys = Vec::new();
            for envelope in [&failure, &success] {
                let head = RowHead { row: 17, hash: RowHash::from_u64(1), carried };
                let result = RowResult::new(&mut buffer, head, dedupes, envelope);
                assert_eq!(result.ok, envelope.is_ok());
                let line = Value::parse_bytes(result.line).unwrap();
                assert_eq!(line.get("row").and_then(|row| row.as_u64()), Some(17));
                assert_eq!(line.get("data").unwrap().is_null(), !envelope.is_ok());
                assert_eq!(line.get("error").unwrap().is_null(), envelope.is_ok());
                keys.push(line.members().map(|(key, _)| key.to_owned()).collect::<Vec<_>>());
            }
            assert_eq!(keys[0], keys[1]);
            let id = keys[0].iter().any(|key| key == "id");
            assert_eq!((keys[0].len(), id), (if dedupes { 12 } else { 9 }, dedupes));
        }
    }
}
