//! Types of columns that readers meet seldom.

use arrow_array::{
    ArrayRef, BinaryViewArray, Date32Array, Decimal128Array, DictionaryArray, FixedSizeListArray, Int8Array,
    Int64Array, LargeListArray, LargeStringArray, NullArray, RecordBatch, RunArray, StringArray,
    StringViewArray, StructArray, TimestampMicrosecondArray,
    builder::{Int32Builder, MapBuilder, PrimitiveBuilder, StringBuilder},
    types::{Date32Type, Int8Type, Int32Type},
};

use super::*;

fn both(batch: &RecordBatch, contract: &Contract) -> [Result<Rows, ReadError>; 2] {
    let parquet = parquet(batch, Compression::SNAPPY);
    [read(&parquet, Format::Parquet, contract), read(&arrow_file(batch), Format::Arrow, contract)]
}

/// Returns the inputs of a column, which are the same from Parquet and Arrow.
fn cells(name: &str, column: ArrayRef) -> Vec<serde_json::Value> {
    let [parquet, arrow] = both(&batch(vec![(name, column)]), &any()).map(|rows| inputs(&rows.unwrap()));
    assert_eq!(parquet, arrow);
    parquet
}

/// Returns the inputs of a column of Arrow.
fn from_arrow(name: &str, column: ArrayRef, contract: &Contract) -> Vec<serde_json::Value> {
    inputs(&read(&arrow_file(&batch(vec![(name, column)])), Format::Arrow, contract).unwrap())
}

fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// A dictionary whose values contain null.
fn with_null_value() -> DictionaryArray<Int8Type> {
    DictionaryArray::new(Int8Array::from(vec![0, 1, 0]), texts(&[None, Some("x")]))
}

#[test]
fn column_of_nulls_has_no_field() {
    assert_eq!(cells("text", Arc::new(NullArray::new(2))), [json!({}), json!({})]);
    assert_eq!(cells("text", texts(&[None, None])), [json!({}), json!({})]);
}

#[test]
fn null_value_of_a_dictionary_is_no_field() {
    let expected = [json!({}), json!({ "text": "x" }), json!({})];
    assert_eq!(from_arrow("text", Arc::new(with_null_value()), &any()), expected);
    let members = batch(vec![("kind", Arc::new(with_null_value()))]);
    let expected = [json!({ "place": {} }), json!({ "place": { "kind": "x" } }), json!({ "place": {} })];
    assert_eq!(from_arrow("place", Arc::new(StructArray::from(members)), &any()), expected);
    assert_eq!(from_arrow("image", Arc::new(with_null_value()), &media_contract())[0], json!({}));
}

#[test]
fn dictionary_of_dictionaries_is_its_text() {
    let inner: DictionaryArray<Int32Type> = vec!["a", "b"].into_iter().collect();
    let outer = DictionaryArray::new(Int8Array::from(vec![Some(1), None, Some(0)]), Arc::new(inner));
    let batch = batch(vec![("text", Arc::new(outer))]); // no writer writes it
    let table = Table::new(&any(), &batch.schema(), &ColumnMap::default()).unwrap();
    let mut rows = Vec::new();
    table.rows(std::iter::once(Ok(batch)), None).read(&mut rows).unwrap();
    assert_eq!(inputs(&rows), [json!({ "text": "b" }), json!({}), json!({ "text": "a" })]);
}

#[test]
fn layouts_of_texts_and_lists_are_equal() {
    let long = "longer than twelve bytes";
    let text = [json!({ "text": long })];
    assert_eq!(cells("text", Arc::new(LargeStringArray::from(vec![long]))), text);
    assert_eq!(cells("text", Arc::new(StringViewArray::from(vec![long]))), text);
    assert_eq!(cells("text", Arc::new(BinaryViewArray::from(vec![long.as_bytes()]))), text);
    let pairs =
        FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None]), None], 2);
    assert_eq!(cells("tags", Arc::new(pairs)), [json!({ "tags": [1, null] }), json!({})]);
    let large = LargeListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![]), None]);
    assert_eq!(cells("tags", Arc::new(large)), [json!({ "tags": [] }), json!({})]);
}

#[test]
fn decimals_and_times_keep_their_digits() {
    let decimals =
        Decimal128Array::from(vec![Some(-1_234_567), None]).with_precision_and_scale(38, 5).unwrap();
    let rows = both(&batch(vec![("id", Arc::new(decimals))]), &any());
    for rows in rows {
        assert_eq!(
            rows.unwrap()[0].input.get().unwrap().get("id").unwrap().as_number().unwrap().literal(),
            "-12.34567"
        );
    }
    let times = TimestampMicrosecondArray::from(vec![1_500_000]).with_timezone("Asia/Kolkata");
    assert_eq!(cells("at", Arc::new(times)), [json!({ "at": "1970-01-01T00:00:01.500Z" })]);
}

#[test]
fn maps_are_objects_if_their_keys_are_texts() {
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("k");
    map.values().append_null();
    map.append(true).unwrap();
    map.append(false).unwrap();
    assert_eq!(cells("place", Arc::new(map.finish())), [json!({ "place": { "k": null } }), json!({})]);
    let mut dates = MapBuilder::new(None, PrimitiveBuilder::<Date32Type>::new(), Int32Builder::new());
    dates.keys().append_value(1);
    dates.values().append_value(2);
    dates.append(true).unwrap();
    let dates = batch(vec![("place", Arc::new(dates.finish()))]);
    assert!(both(&dates, &any()).into_iter().all(|read| read.is_err()));
}

#[test]
fn types_that_are_no_media_are_refused() {
    let days = batch(vec![("image", Arc::new(Date32Array::from(vec![1])))]);
    assert!(error(&days, &media_contract()).ends_with("needs a media file"));
    let mut source = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for (key, value) in [("type", "url"), ("url", "https://example.com/a.png")] {
        source.keys().append_value(key);
        source.values().append_value(value);
    }
    source.append(true).unwrap();
    let found = media("image", Arc::new(source.finish()));
    assert_eq!(found, [Ok(json!({ "image": { "type": "url", "url": "https://example.com/a.png" } }))]);
}

#[test]
fn runs_are_refused_with_their_type() {
    let runs: RunArray<Int32Type> = vec!["a", "a", "b"].into_iter().collect();
    let found = read(&arrow_file(&batch(vec![("text", Arc::new(runs))])), Format::Arrow, &any()).unwrap_err();
    let found = found.to_string();
    assert!(found.contains("column `text` is RunEndEncoded") && found.ends_with("needs a string"), "{found}");
}

#[test]
fn table_without_rows_has_none() {
    let none = batch(vec![("id", Arc::new(Int64Array::from(Vec::<i64>::new())))]);
    for rows in both(&none, &any()) {
        assert_eq!(rows.unwrap().len(), 0);
    }
}

#[test]
fn repeated_texts_are_read_as_views() {
    use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
    let place = batch(vec![("city", texts(&[Some("Oslo")]))]);
    let table = batch(vec![("text", texts(&[Some("a")])), ("place", Arc::new(StructArray::from(place)))]);
    let bytes = bytes::Bytes::from(parquet(&table, Compression::SNAPPY));
    let found = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::new()).unwrap();
    let views = crate::read::parquet::with_views(found);
    let kinds: Vec<_> = views.schema().fields().iter().map(|field| field.data_type().to_string()).collect();
    assert_eq!(kinds[0], "Utf8View");
    assert!(kinds[1].contains("Utf8View"), "{kinds:?}");
}
