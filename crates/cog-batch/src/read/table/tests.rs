#![expect(clippy::disallowed_methods, reason = "tests write and damage files")]

mod bad;
mod types;

use std::{path::PathBuf, sync::Arc};

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, DictionaryArray, Float64Array, Int64Array,
    IntervalYearMonthArray, ListArray, StringArray, StructArray,
    types::{Int32Type, Int64Type},
};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use cog_schema::Rules;
use cog_spec::{Format as ModuleFormat, Manifest};
use parquet::{
    arrow::{ArrowWriter, ProjectionMask},
    basic::Compression,
    file::properties::WriterProperties,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{Format, ReadError, Source, read::parquet::batch_size};

fn contract(properties: &serde_json::Value, required: &[&str]) -> Contract {
    let input = json!({ "type": "object", "properties": properties, "required": required });
    let manifest = Manifest::with_defaults("x", ModuleFormat::V22, None);
    Contract::compile(&json!({ "input": input }), &Rules::from(&manifest)).unwrap()
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn parquet(batch: &RecordBatch, compression: Compression) -> Vec<u8> {
    let mut bytes = Vec::new();
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn arrow_file(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FileWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    bytes
}

fn arrow_stream(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    bytes
}

type Rows = Vec<Row>;

/// Reads the rows of a file.
fn read(bytes: &[u8], format: Format, contract: &Contract) -> Result<Rows, ReadError> {
    read_with(bytes, format, contract, ColumnMap::default())
}

fn read_with(
    bytes: &[u8],
    format: Format,
    contract: &Contract,
    columns: ColumnMap,
) -> Result<Rows, ReadError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    std::fs::write(&path, bytes).unwrap();
    read_path(path, format, contract, columns)
}

fn read_path(
    path: PathBuf,
    format: Format,
    contract: &Contract,
    columns: ColumnMap,
) -> Result<Rows, ReadError> {
    let source = Source { columns, ..Source::new(path, format) };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut rows = source.open(contract)?;
        let mut all = Vec::new();
        while let Some(group) = rows.next().await? {
            all.extend(group);
        }
        Ok(all)
    })
}

fn inputs(rows: &Rows) -> Vec<serde_json::Value> {
    rows.iter().map(|row| row.input.get().unwrap().to_serde()).collect()
}

fn any() -> Contract {
    contract(
        &json!({ "id": {}, "text": { "type": "string" }, "tags": {}, "at": {}, "kind": {}, "place": {} }),
        &[],
    )
}

/// Columns of the kinds that files have.
fn mixed() -> RecordBatch {
    let tags = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1), None]), None]);
    let kind: DictionaryArray<Int32Type> = vec![None, Some("b")].into_iter().collect();
    let place = batch(vec![("city", Arc::new(StringArray::from(vec![Some("Oslo"), None])))]);
    batch(vec![
        ("id", Arc::new(Int64Array::from(vec![1, 2]))),
        ("text", Arc::new(StringArray::from(vec![Some("é"), None]))),
        ("tags", Arc::new(tags)),
        ("at", Arc::new(Date32Array::from(vec![Some(0), None]))),
        ("kind", Arc::new(kind)),
        ("place", Arc::new(StructArray::from(place))),
    ])
}

#[test]
fn rows_are_the_same_from_every_format() {
    let batch = mixed();
    let expected = [
        json!({ "id": 1, "text": "é", "tags": [1, null], "at": "1970-01-01", "place": { "city": "Oslo" } }),
        json!({ "id": 2, "kind": "b", "place": {} }),
    ];
    let mut hashes = Vec::new();
    let zstd = Compression::ZSTD(Default::default());
    let gzip = Compression::GZIP(Default::default());
    let files =
        [Compression::UNCOMPRESSED, Compression::SNAPPY, zstd, gzip, Compression::LZ4, Compression::LZ4_RAW];
    let files = files.map(|compression| (parquet(&batch, compression), Format::Parquet));
    let others = [(arrow_file(&batch), Format::Arrow), (arrow_stream(&batch), Format::Arrow)];
    for (bytes, format) in files.into_iter().chain(others) {
        let rows = read(&bytes, format, &any()).unwrap();
        assert_eq!(inputs(&rows), expected);
        assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), [0, 1]);
        hashes.push(rows.iter().map(|row| row.hash).collect::<Vec<_>>());
    }
    assert!(hashes.iter().all(|hash| hash == &hashes[0]) && hashes[0][0] != hashes[0][1]);
}

#[test]
fn file_of_arrow_can_come_from_a_pipe() {
    let bytes = std::io::Cursor::new(arrow_file(&mixed()));
    let mut reader = crate::read::arrow::open_stream(bytes, &any(), &ColumnMap::default()).unwrap();
    let mut rows = Vec::new();
    while reader.read(&mut rows).unwrap() {}
    assert_eq!(rows.len(), 2);
}

#[test]
fn many_rows_are_read_in_groups() {
    let count = 3 * GROUP as i64 + 5;
    let batch = batch(vec![("id", Arc::new(Int64Array::from_iter_values(0..count)))]);
    for (bytes, format) in
        [(parquet(&batch, Compression::SNAPPY), Format::Parquet), (arrow_file(&batch), Format::Arrow)]
    {
        let rows = read(&bytes, format, &any()).unwrap();
        assert!(inputs(&rows).into_iter().eq((0..count).map(|id| json!({ "id": id }))));
    }
}

fn error(batch: &RecordBatch, contract: &Contract) -> String {
    let found = read(&parquet(batch, Compression::SNAPPY), Format::Parquet, contract).unwrap_err();
    let message = found.to_string();
    message.split_once("table: ").unwrap().1.to_owned()
}

#[test]
fn columns_must_fit_the_input() {
    let properties =
        json!({ "age": { "type": "integer" }, "name": { "type": "string" }, "more": { "type": "object" } });
    let contract = contract(&properties, &["age", "name"]);
    let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
    let number: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    assert_eq!(
        error(&batch(vec![("more", text("{}"))]), &contract),
        "there is no column for `age`, `name`, which the module requires"
    );
    assert_eq!(
        error(&batch(vec![("age", text("1")), ("name", text("x"))]), &contract),
        "column `age` is Utf8, and the input field `age` needs a number"
    );
    assert_eq!(
        error(&batch(vec![("age", number.clone()), ("name", number.clone())]), &contract),
        "column `name` is Int64, and the input field `name` needs a string"
    );
    assert_eq!(
        error(&batch(vec![("age", number.clone()), ("name", text("x")), ("other", text("x"))]), &contract),
        "the module has no input field for `other`"
    );
    let bytes = parquet(
        &batch(vec![("years", number), ("name", text("x")), ("other", text("x"))]),
        Compression::SNAPPY,
    );
    let map = ColumnMap {
        fields: vec![("age".to_owned(), "years".to_owned())],
        ignore_unknown: true,
        ..ColumnMap::default()
    };
    let rows = read_with(&bytes, Format::Parquet, &contract, map).unwrap();
    assert_eq!(inputs(&rows), [json!({ "age": 1, "name": "x" })]);
}

#[test]
fn columns_of_a_table_are_carried() {
    let urls: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["one", "two"]));
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![7, 8]));
    let batch = batch(vec![("url", urls), ("text", texts), ("number", ids)]);
    let contract = contract(&json!({ "text": { "type": "string" } }), &["text"]);
    let map = ColumnMap {
        id: Some("number".to_owned()),
        keep: vec!["text".to_owned(), "url".to_owned()],
        ..ColumnMap::default()
    };
    for (bytes, format) in
        [(parquet(&batch, Compression::SNAPPY), Format::Parquet), (arrow_file(&batch), Format::Arrow)]
    {
        let rows = read_with(&bytes, format, &contract, map.clone()).unwrap();
        assert_eq!(inputs(&rows), [json!({ "text": "one" }), json!({ "text": "two" })]);
        let carried: Vec<_> = rows.iter().filter_map(|row| row.input.carried()).collect();
        assert_eq!(
            carried,
            [r#""id":7,"kept":{"text":"one","url":"x"}"#, r#""id":8,"kept":{"text":"two","url":null}"#]
        );
        // A row with another id is another row: its result would have the wrong one.
        let others =
            read_with(&bytes, format, &contract, ColumnMap { ignore_unknown: true, ..ColumnMap::default() });
        assert_ne!(others.unwrap()[0].hash, rows[0].hash);
    }
}

#[test]
fn type_without_json_is_refused() {
    let interval = batch(vec![("id", Arc::new(IntervalYearMonthArray::from(vec![1])))]);
    let found = read(&arrow_file(&interval), Format::Arrow, &any()).unwrap_err().to_string();
    assert!(
        found.ends_with(
            "column `id` is Interval(YearMonth), and the input field `id` needs a value that JSON has"
        ),
        "{found}"
    );
}

#[test]
fn text_of_json_becomes_the_object_that_a_field_needs() {
    let contract = contract(&json!({ "more": { "type": "object" } }), &[]);
    let batch = batch(vec![("more", Arc::new(StringArray::from(vec![r#"{"a": [1.50]}"#, "no"])))]);
    let rows = read(&arrow_file(&batch), Format::Arrow, &contract).unwrap();
    assert_eq!(inputs(&rows), [json!({ "more": { "a": [1.5] } }), json!({ "more": "no" })]);
}

#[test]
fn cell_without_json_fails_its_row_only() {
    let batch = batch(vec![("id", Arc::new(Float64Array::from(vec![0.5, f64::NAN, 2.0])))]);
    let rows = read(&parquet(&batch, Compression::SNAPPY), Format::Parquet, &any()).unwrap();
    assert!(rows[0].input.get().is_ok() && rows[2].input.get().is_ok());
    let body = rows[1].input.get().unwrap_err().to_body("rows.parquet");
    assert_eq!(body.message, "rows.parquet, row 1: column `id`: the number is NaN or infinite");
}

#[test]
fn row_over_the_limit_fails_alone() {
    let large = "x".repeat(MAX_LINE + 1);
    let batch = batch(vec![("text", Arc::new(StringArray::from(vec![large.as_str(), "x"])))]);
    let rows = read(&parquet(&batch, Compression::SNAPPY), Format::Parquet, &any()).unwrap();
    assert_eq!(rows[0].input.get().unwrap_err().kind, RowErrorKind::RowTooLarge);
    assert!(rows[1].input.get().is_ok());
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";

fn media_contract() -> Contract {
    let media = json!({ "$ref": "#/$defs/MediaInput" });
    let input = json!({ "type": "object", "properties": { "image": media, "images": { "type": "array", "items": media } } });
    let manifest = Manifest::with_defaults("x", ModuleFormat::V22, None);
    let document = json!({ "input": input, "$defs": { "MediaInput": {} } });
    Contract::compile(&document, &Rules::from(&manifest)).unwrap()
}

fn media(name: &str, column: ArrayRef) -> Vec<Result<serde_json::Value, String>> {
    let rows =
        read(&parquet(&batch(vec![(name, column)]), Compression::SNAPPY), Format::Parquet, &media_contract());
    let value = |row: Row| {
        row.input.into_result().map(|it| it.input.to_serde()).map_err(|error| error.kind.to_string())
    };
    rows.unwrap().into_iter().map(value).collect()
}

#[test]
fn binary_columns_are_media() {
    let content = json!({ "type": "base64", "media_type": "image/png", "data": base64_simd::STANDARD.encode_to_string(PNG) });
    let found = media("image", Arc::new(BinaryArray::from_opt_vec(vec![Some(PNG), None, Some(b"?")])));
    let unknown = "column `image`: the media type of the content is unknown".to_owned();
    assert_eq!(found, [Ok(json!({ "image": content })), Ok(json!({})), Err(unknown)]);
    let stored = batch(vec![
        ("bytes", Arc::new(BinaryArray::from_opt_vec(vec![Some(PNG), None]))),
        ("path", Arc::new(StringArray::from(vec!["a.png", "https://example.com/a.png"]))),
    ]);
    let found = media("image", Arc::new(StructArray::from(stored)));
    let url = json!({ "type": "url", "url": "https://example.com/a.png" });
    assert_eq!(found, [Ok(json!({ "image": content })), Ok(json!({ "image": url }))]);
    assert_eq!(media("images", Arc::new(BinaryArray::from(vec![PNG]))), [Ok(json!({ "images": [content] }))]);
}

#[test]
fn media_are_named_by_path_url_or_source() {
    let list = ["https://example.com/a.png", r#"{"type": "file", "path": "b.png"}"#, "/c.png"];
    let found = media("image", Arc::new(StringArray::from(list.to_vec())));
    let sources = [
        json!({ "type": "url", "url": "https://example.com/a.png" }),
        json!({ "type": "file", "path": "b.png" }),
        json!({ "type": "file", "path": "/c.png" }),
    ];
    assert_eq!(found, sources.clone().map(|source| Ok(json!({ "image": source }))));
    let mut lists = arrow_array::builder::ListBuilder::new(arrow_array::builder::StringBuilder::new());
    list.iter().for_each(|text| lists.values().append_value(text));
    lists.append(true);
    assert_eq!(media("images", Arc::new(lists.finish())), [Ok(json!({ "images": sources }))]);
    let numbers = batch(vec![("image", Arc::new(BooleanArray::from(vec![true])))]);
    assert!(error(&numbers, &media_contract()).ends_with("needs a media file"));
}

#[test]
fn file_of_another_kind_is_refused() {
    for content in
        [&b""[..], b"PAR1", b"{\"a\": 1}\n", b"PAR1 something that is no table PAR1", b"ARROW1\0\0"]
    {
        for format in [Format::Parquet, Format::Arrow] {
            let found = read(content, format, &any()).unwrap_err();
            assert!(matches!(found, ReadError::NotATable { .. }), "{found}");
        }
    }
    let source = Source::new("-", Format::Parquet);
    let found = source.open(&any()).unwrap_err().to_string();
    assert_eq!(found, "cannot read stdin as Parquet: its index is at its end, so it must be a file");
}

#[test]
fn encrypted_file_is_refused() {
    let mut bytes = parquet(&mixed(), Compression::SNAPPY);
    let length = bytes.len();
    bytes[length - 4..].copy_from_slice(b"PARE");
    let found = read(&bytes, Format::Parquet, &any()).unwrap_err().to_string();
    assert!(found.ends_with("as Parquet: it is encrypted"), "{found}");
}

#[test]
fn index_of_impossible_length_is_not_read() {
    let mut bytes = parquet(&mixed(), Compression::SNAPPY);
    let length = bytes.len();
    bytes[length - 8..length - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let found = read(&bytes, Format::Parquet, &any()).unwrap_err().to_string();
    assert!(found.ends_with("its index is too large"), "{found}");
}

#[test]
fn cut_files_are_never_complete() {
    let batch = mixed();
    for (bytes, format) in
        [(parquet(&batch, Compression::SNAPPY), Format::Parquet), (arrow_file(&batch), Format::Arrow)]
    {
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length], format, &any()).is_err(), "{format:?} {length}");
        }
    }
}

#[test]
fn large_rows_are_decoded_in_small_batches() {
    let large = "x".repeat(1 << 20);
    let texts: Vec<_> = (0..12).map(|number| format!("{number}{large}")).collect();
    let texts = batch(vec![("text", Arc::new(StringArray::from(texts)))]);
    let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, texts.schema(), Some(properties)).unwrap();
    writer.write(&texts).unwrap();
    let metadata = writer.close().unwrap();
    assert_eq!(batch_size(&metadata, &ProjectionMask::all()), 3);
    assert_eq!(read(&bytes, Format::Parquet, &any()).unwrap().len(), 12);
}

proptest! {
    /// A damaged file is an error, or has rows; it is never the end of the program.
    #[test]
    fn damaged_files_end(place in 0.0..1.0_f64, change in 1..=255_u8, kind in 0..3_usize) {
        let batch = mixed();
        let (mut bytes, format) = match kind {
            0 => (parquet(&batch, Compression::SNAPPY), Format::Parquet),
            1 => (arrow_file(&batch), Format::Arrow),
            _ => (arrow_stream(&batch), Format::Arrow),
        };
        let place = (place * bytes.len() as f64) as usize;
        bytes[place] ^= change;
        let _ = read(&bytes, format, &any());
    }
}
