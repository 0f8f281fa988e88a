//! Arrow IPC: files (Feather, too) and streams. A file is read as the stream that it contains; its index is not needed.

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Read, Seek, SeekFrom},
};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::{
    Message, MessageHeader, RecordBatch as EncodedBatch,
    convert::try_fb_to_schema,
    reader::{read_dictionary, read_record_batch},
    root_as_message,
};
use arrow_schema::{ArrowError, SchemaRef};
use cog_schema::Contract;

use super::{
    ColumnMap, RowReader,
    table::{Table, TableError, guarded},
};

/// The beginning and the end of a file. A stream has none.
const MAGIC: &[u8; 6] = b"ARROW1";
/// The maximum number of zeros between that and the stream of the file.
const MAX_PADDING: usize = 64;
/// What precedes the length of a message, except in old files.
const CONTINUATION: [u8; 4] = [0xFF; 4];
/// The maximum bytes of a record batch, also when it is decompressed.
const MAX_BATCH: u64 = 1 << 30;
/// The bytes that are reserved before a part arrives.
const RESERVED: u64 = 1 << 20;

/// Opens a file, or a stream in a file.
pub(super) fn open_file(
    mut input: impl Read + Seek + Send + 'static,
    contract: &Contract,
    map: &ColumnMap,
) -> Result<Box<dyn RowReader>, TableError> {
    let is_file = has_magic(&mut input, SeekFrom::Start(0))?;
    if is_file && !has_magic(&mut input, SeekFrom::End(-(MAGIC.len() as i64)))? {
        return Err(TableError::Content("its end is missing".to_owned()));
    }
    input.rewind()?;
    open_stream(input, contract, map)
}

/// Returns whether a file has the magic of Arrow IPC at a position. A stream has none.
fn has_magic(input: &mut (impl Read + Seek), from: SeekFrom) -> std::io::Result<bool> {
    let mut found = Vec::new();
    input.seek(from)?;
    input.take(MAGIC.len() as u64).read_to_end(&mut found)?;
    Ok(found == MAGIC)
}

/// Opens a stream, which may be a file from its start.
pub(super) fn open_stream(
    input: impl Read + Send + 'static,
    contract: &Contract,
    map: &ColumnMap,
) -> Result<Box<dyn RowReader>, TableError> {
    let mut input = BufReader::new(input);
    if input.fill_buf()?.starts_with(MAGIC) {
        input.consume(MAGIC.len());
        let padding = input.fill_buf()?.iter().take(MAX_PADDING).take_while(|byte| **byte == 0).count();
        input.consume(padding);
    }
    guarded(|| {
        let mut messages = Messages { input };
        let schema = messages.schema()?;
        let table = Table::new(contract, &schema, map)?;
        let columns = table.projection();
        let batches = Batches { messages, schema, columns, dictionaries: HashMap::new(), has_ended: false };
        Ok(table.rows(batches, None))
    })
}

/// The record batches of a stream.
struct Batches<R> {
    messages: Messages<R>,
    schema: SchemaRef,
    /// The columns that are decoded.
    columns: Vec<usize>,
    dictionaries: HashMap<i64, ArrayRef>,
    has_ended: bool,
}

impl<R: Read> Batches<R> {
    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        while let Some((header, body)) = self.messages.next()? {
            let message = parse(&header)?;
            let version = message.version();
            if let Some(batch) = message.header_as_record_batch() {
                check_size(batch, &body)?;
                let schema = SchemaRef::clone(&self.schema);
                let columns = Some(self.columns.as_slice());
                return read_record_batch(&body, batch, schema, &self.dictionaries, columns, &version)
                    .map(Some);
            }
            let dictionary = message.header_as_dictionary_batch().ok_or_else(|| {
                damaged(format!("it has a message of another kind: {:?}", message.header_type()))
            })?;
            dictionary.data().map_or(Ok(()), |batch| check_size(batch, &body))?;
            read_dictionary(&body, dictionary, &self.schema, &mut self.dictionaries, &version)?;
        }
        Ok(None)
    }
}

impl<R: Read> Iterator for Batches<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let read = self.read().transpose();
        self.has_ended = !matches!(read, Some(Ok(_)));
        read
    }
}

/// The messages of a stream: a header and a body each. Memory for them grows as they arrive, whatever length they claim.
struct Messages<R> {
    input: R,
}

impl<R: Read> Messages<R> {
    fn schema(&mut self) -> Result<SchemaRef, ArrowError> {
        let (header, _) = self.next()?.ok_or_else(|| damaged("it is empty"))?;
        let message = parse(&header)?;
        let schema = message.header_as_schema().filter(|_| message.header_type() == MessageHeader::Schema);
        let schema = schema.ok_or_else(|| damaged("it does not begin with a schema"))?;
        if !schema.endianness().equals_to_target_endianness() {
            return Err(damaged("its byte order is another"));
        }
        try_fb_to_schema(schema).map(SchemaRef::new)
    }

    /// Reads the next message; none at the end.
    fn next(&mut self) -> Result<Option<(Vec<u8>, Buffer)>, ArrowError> {
        let Some(mut length) = self.number()? else { return Ok(None) };
        if length == CONTINUATION {
            length = self.number()?.ok_or_else(|| damaged("its end is missing"))?;
        }
        let length = u32::from_le_bytes(length);
        if length == 0 {
            return Ok(None);
        }
        let header = self.part(length.into())?;
        let length = u64::try_from(parse(&header)?.bodyLength());
        let body = self.part(length.map_err(|_| damaged("a message has a length below zero"))?)?;
        Ok(Some((header, Buffer::from_vec(body))))
    }

    /// Reads four bytes; none at the end, which a stream need not mark.
    fn number(&mut self) -> Result<Option<[u8; 4]>, ArrowError> {
        let mut number = Vec::new();
        match (&mut self.input).take(4).read_to_end(&mut number)? {
            0 => Ok(None),
            _ => number.try_into().map(Some).map_err(|_| damaged("its end is missing")),
        }
    }

    fn part(&mut self, length: u64) -> Result<Vec<u8>, ArrowError> {
        if length > MAX_BATCH {
            return Err(too_large(length));
        }
        let mut part = Vec::with_capacity(usize::try_from(length.min(RESERVED)).unwrap_or(0));
        (&mut self.input).take(length).read_to_end(&mut part)?;
        match part.len() as u64 == length {
            true => Ok(part),
            false => Err(damaged("its end is missing")),
        }
    }
}

fn parse(header: &[u8]) -> Result<Message<'_>, ArrowError> {
    root_as_message(header).map_err(|error| damaged(error.to_string()))
}

/// Checks how large compressed buffers say that they are: the decoder reserves memory for that.
fn check_size(batch: EncodedBatch<'_>, body: &[u8]) -> Result<(), ArrowError> {
    let buffers = batch.buffers().filter(|_| batch.compression().is_some());
    let buffers = buffers.into_iter().flatten().filter(|buffer| buffer.length() > 0);
    let total =
        buffers.filter_map(|buffer| decoded_length(body, buffer.offset())).fold(0, u64::saturating_add);
    if total > MAX_BATCH { Err(too_large(total)) } else { Ok(()) }
}

/// Returns the length that a compressed buffer has once it is decoded: the eight bytes before it.
fn decoded_length(body: &[u8], offset: i64) -> Option<u64> {
    let prefix = body.get(usize::try_from(offset).ok()?..)?.first_chunk()?;
    u64::try_from(i64::from_le_bytes(*prefix)).ok()
}

fn too_large(length: u64) -> ArrowError {
    damaged(format!("a record batch has {length} bytes; the maximum is {MAX_BATCH}, so write smaller ones"))
}

fn damaged(reason: impl Into<String>) -> ArrowError {
    ArrowError::IpcError(reason.into())
}
