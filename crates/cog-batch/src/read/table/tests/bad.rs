//! Files that lie about what they contain, and rows that cannot be inputs.

use arrow_ipc::{CompressionType, writer::IpcWriteOptions};
use parquet::{
    arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions},
    file::metadata::{ParquetMetaDataBuilder, ParquetMetaDataWriter},
};

use super::*;

fn compressed(batch: &RecordBatch, codec: CompressionType) -> Vec<u8> {
    let mut bytes = Vec::new();
    let options = IpcWriteOptions::default().try_with_compression(Some(codec)).unwrap();
    let mut writer = FileWriter::try_new_with_options(&mut bytes, &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    bytes
}

#[test]
fn compressed_batches_are_read() {
    let expected = inputs(&read(&arrow_file(&mixed()), Format::Arrow, &any()).unwrap());
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let rows = read(&compressed(&mixed(), codec), Format::Arrow, &any()).unwrap();
        assert_eq!(inputs(&rows), expected);
    }
}

#[test]
fn size_that_a_compressed_buffer_claims_is_not_reserved() {
    let texts: Vec<_> = (0..1000).map(|_| "the same text").collect();
    let batch = batch(vec![("text", Arc::new(StringArray::from(texts)))]);
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let mut bytes = compressed(&batch, codec);
        let size = 13_000_u64.to_le_bytes();
        let place = bytes.windows(8).rposition(|part| part == size).expect("the size of the texts");
        bytes[place + 5] = 1; // a terabyte more
        let Err(ReadError::Io { source, .. }) = read(&bytes, Format::Arrow, &any()) else { panic!() };
        assert!(source.to_string().starts_with("a record batch has 10995116"), "{source}");
    }
}

#[test]
fn cut_streams_end_between_messages_or_fail() {
    let bytes = arrow_stream(&mixed());
    let whole: Vec<_> =
        (0..bytes.len()).filter(|length| read(&bytes[..*length], Format::Arrow, &any()).is_ok()).collect();
    // After the schema, the dictionary and the rows: a stream needs no mark at its end.
    assert_eq!(whole.len(), 3, "{whole:?}");
    assert_eq!(read(&bytes[..whole[0]], Format::Arrow, &any()).unwrap().len(), 0);
    assert_eq!(read(&bytes[..whole[2]], Format::Arrow, &any()).unwrap().len(), 2);
}

#[test]
fn length_of_a_message_is_not_reserved() {
    let whole = arrow_stream(&mixed());
    for length in [0x7FFF_FFFF_u32, 0x4000_0000, 0xFFFF_FFF0] {
        let mut bytes = whole.clone();
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        assert!(read(&bytes, Format::Arrow, &any()).is_err());
    }
}

#[cfg(unix)]
#[test]
fn named_pipe_is_a_stream() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let from_pipe = |bytes: Vec<u8>, format| {
        let to = path.clone();
        let writer = std::thread::spawn(move || std::fs::write(to, bytes));
        let rows = read_path(path.clone(), format, &any(), ColumnMap::default());
        let _ = writer.join().unwrap(); // a file of Parquet is not read
        rows
    };
    assert_eq!(from_pipe(arrow_file(&mixed()), Format::Arrow).unwrap().len(), 2);
    let found = from_pipe(parquet(&mixed(), Compression::SNAPPY), Format::Parquet).unwrap_err().to_string();
    assert!(found.ends_with("its index is at its end, so it must be a file"), "{found}");
}

/// Writes another index for the data of a file.
fn with_rows(bytes: &[u8], rows: i64) -> Vec<u8> {
    let all = bytes::Bytes::copy_from_slice(bytes);
    let found = ArrowReaderMetadata::load(&all, ArrowReaderOptions::new()).unwrap();
    let metadata = found.metadata();
    let about = metadata.file_metadata();
    let about = parquet::file::metadata::FileMetaData::new(
        about.version(),
        rows,
        None,
        about.key_value_metadata().cloned(),
        about.schema_descr_ptr(),
        None,
    );
    let group = metadata.row_group(0).clone().into_builder().set_num_rows(rows).build().unwrap();
    let changed = ParquetMetaDataBuilder::new(about).add_row_group(group).build();
    let index = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap());
    let mut out = bytes[..bytes.len() - 8 - index as usize].to_vec();
    ParquetMetaDataWriter::new(&mut out, &changed).finish().unwrap();
    out
}

#[test]
fn numbers_of_rows_that_differ_are_an_error() {
    let ids = batch(vec![("id", Arc::new(Int64Array::from_iter_values(0..100)))]);
    let bytes = parquet(&ids, Compression::SNAPPY);
    let count = |rows| read(&with_rows(&bytes, rows), Format::Parquet, &any());
    assert_eq!(count(100).unwrap().len(), 100);
    for rows in [99, 101, 1 << 60, -1] {
        let found = count(rows).map(|rows| rows.len());
        assert!(found.is_err(), "{rows}: {found:?}");
    }
}

#[test]
fn values_stored_once_for_many_rows_are_decoded_in_small_batches() {
    let list = |_| Some(vec![Some(7_i64); 100_000]);
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>((0..20).map(list));
    let table = batch(vec![("tags", Arc::new(lists)), ("id", Arc::new(Int64Array::from_iter_values(0..20)))]);
    let bytes = parquet(&table, Compression::SNAPPY);
    assert!(bytes.len() < 100_000);
    let found = ArrowReaderMetadata::load(&bytes::Bytes::from(bytes), ArrowReaderOptions::new()).unwrap();
    let size = |leaf| batch_size(found.metadata(), &ProjectionMask::leaves(found.parquet_schema(), [leaf]));
    assert_eq!((size(0), size(1)), (5, 1024));
}

#[test]
fn cell_that_is_nested_too_deeply_fails_its_row() {
    let contract = contract(&json!({ "more": { "type": "array" } }), &[]);
    let deep = |depth| "[".repeat(depth) + &"]".repeat(depth);
    let texts = StringArray::from(vec![deep(127), deep(128)]);
    let rows = read(&arrow_file(&batch(vec![("more", Arc::new(texts))])), Format::Arrow, &contract).unwrap();
    assert!(rows[0].input.get().is_ok());
    let body = rows[1].input.get().unwrap_err().to_body("rows.arrow");
    assert_eq!(body.message, "rows.arrow, row 1: the row cannot be an input: nested too deeply");
}

#[test]
fn content_over_the_limit_is_not_encoded() {
    let mut large = PNG.to_vec();
    large.resize(MAX_LINE + 1, 0);
    let images = BinaryArray::from(vec![large.as_slice(), PNG]);
    let found = media("image", Arc::new(images));
    assert_eq!(found[0], Err("the row is larger than 16 MiB".to_owned()));
    assert!(found[1].is_ok());
}

#[test]
fn columns_of_which_none_is_a_field_are_an_error() {
    let ids = batch(vec![("number", Arc::new(Int64Array::from(vec![1])))]);
    let map = ColumnMap { ignore_unknown: true, ..ColumnMap::default() };
    let found = read_with(&arrow_file(&ids), Format::Arrow, &any(), map).unwrap_err().to_string();
    assert!(found.contains("no column is an input field; the fields are `"), "{found}");
}

proptest! {
    #[test]
    fn damaged_compressed_files_end(place in 0.0..1.0_f64, change in 1..=255_u8, is_zstd: bool) {
        let codec = if is_zstd { CompressionType::ZSTD } else { CompressionType::LZ4_FRAME };
        let mut bytes = compressed(&mixed(), codec);
        let place = (place * bytes.len() as f64) as usize;
        bytes[place] ^= change;
        let _ = read(&bytes, Format::Arrow, &any());
    }
}
