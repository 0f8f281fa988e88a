use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal128Array, Decimal256Array,
    DictionaryArray, DurationMillisecondArray, DurationSecondArray, FixedSizeBinaryArray, FixedSizeListArray,
    Float16Array, Float32Array, Float64Array, Int8Array, Int64Array, IntervalYearMonthArray,
    LargeStringArray, ListArray, MapArray, NullArray, RecordBatch, StringArray, StringViewArray,
    Time32SecondArray, Time64NanosecondArray, TimestampMicrosecondArray, TimestampSecondArray, UInt64Array,
    builder::{Int32Builder, MapBuilder, StringBuilder},
    types::{Int32Type, UInt8Type},
};
use arrow_buffer::i256;

use super::*;

fn written(array: &dyn Array, index: usize) -> Result<String, ArrayError> {
    let mut text = String::new();
    write_value(array, index, &mut Writer::compact(&mut text)).map(|()| text)
}

fn first(array: impl Array) -> String {
    written(&array, 0).unwrap()
}

#[test]
fn numbers_keep_their_digits() {
    assert_eq!(first(Int8Array::from(vec![-128])), "-128");
    assert_eq!(first(Int64Array::from(vec![i64::MIN])), "-9223372036854775808");
    assert_eq!(first(UInt64Array::from(vec![u64::MAX])), "18446744073709551615");
    assert_eq!(first(Float16Array::from(vec![half::f16::from_f32(0.5)])), "0.5");
    assert_eq!(first(Float32Array::from(vec![0.1])), "0.1");
    assert_eq!(first(Float64Array::from(vec![1e-7])), "1e-7");
    let decimal = Decimal128Array::from(vec![-5]).with_precision_and_scale(38, 2).unwrap();
    assert_eq!(first(decimal), "-0.05");
    let decimal = Decimal256Array::from(vec![i256::MAX]).with_precision_and_scale(76, 0);
    assert!(
        first(decimal.unwrap())
            .starts_with("57896044618658097711785492504343953926634992332820282019728792003956")
    );
}

#[test]
fn numbers_that_json_cannot_write_are_errors() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(written(&Float64Array::from(vec![value]), 0), Err(ArrayError::NotFinite));
    }
    assert_eq!(written(&Float32Array::from(vec![f32::NAN]), 0), Err(ArrayError::NotFinite));
}

#[test]
fn dates_and_times_are_iso_8601() {
    assert_eq!(first(Date32Array::from(vec![-1])), r#""1969-12-31""#);
    assert_eq!(first(Date64Array::from(vec![86_400_000])), r#""1970-01-02""#);
    assert_eq!(first(Time32SecondArray::from(vec![3_661])), r#""01:01:01""#);
    assert_eq!(first(Time64NanosecondArray::from(vec![1_500_000_000])), r#""00:00:01.500""#);
    assert_eq!(first(TimestampSecondArray::from(vec![0])), r#""1970-01-01T00:00:00""#);
    let at = |zone: &str| first(TimestampMicrosecondArray::from(vec![1_500_000]).with_timezone(zone));
    assert_eq!(at("UTC"), r#""1970-01-01T00:00:01.500Z""#);
    assert_eq!(at("+00:00"), r#""1970-01-01T00:00:01.500Z""#);
    assert_eq!(at("+02:00"), r#""1970-01-01T02:00:01.500+02:00""#);
    assert_eq!(at("Europe/Oslo"), r#""1970-01-01T00:00:01.500Z""#);
    assert_eq!(first(DurationSecondArray::from(vec![90])), r#""PT90S""#);
    assert_eq!(first(DurationMillisecondArray::from(vec![-1_050])), r#""-PT1.05S""#);
    assert_eq!(written(&TimestampSecondArray::from(vec![i64::MAX]), 0), Err(ArrayError::OutOfRange));
    assert_eq!(written(&Date64Array::from(vec![i64::MAX]), 0), Err(ArrayError::OutOfRange));
}

#[test]
fn texts_of_every_layout_are_texts() {
    assert_eq!(first(StringArray::from(vec!["é"])), r#""é""#);
    assert_eq!(first(LargeStringArray::from(vec!["a"])), r#""a""#);
    assert_eq!(
        first(StringViewArray::from(vec!["longer than twelve bytes"])),
        r#""longer than twelve bytes""#
    );
    assert_eq!(first(BinaryArray::from(vec!["a".as_bytes()])), r#""a""#);
    assert_eq!(first(FixedSizeBinaryArray::try_from_iter([b"ab"].into_iter()).unwrap()), r#""ab""#);
    let dictionary: DictionaryArray<UInt8Type> = vec!["x", "y"].into_iter().collect();
    assert_eq!(written(&dictionary, 1).unwrap(), r#""y""#);
    assert_eq!(text(&dictionary, 1).unwrap(), Some("y"));
    assert_eq!(written(&BinaryArray::from(vec![&[0xFF_u8][..]]), 0), Err(ArrayError::NotUtf8));
}

#[test]
fn missing_values_are_null() {
    assert_eq!(first(NullArray::new(1)), "null");
    assert_eq!(first(BooleanArray::from(vec![None])), "null");
    let dictionary: DictionaryArray<Int32Type> = vec![None, Some("x")].into_iter().collect();
    assert_eq!((written(&dictionary, 0).unwrap(), text(&dictionary, 0).unwrap()), ("null".to_owned(), None));
}

#[test]
fn lists_maps_and_structs_are_nested_json() {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![None, Some(vec![Some(1), None])]);
    assert_eq!(written(&lists, 1).unwrap(), "[1,null]");
    let pairs =
        FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), Some(2)])], 2);
    assert_eq!(first(pairs), "[1,2]");
    let columns: [(&str, ArrayRef); 2] = [
        ("a", Arc::new(StringArray::from(vec![Some("x"), None]))),
        ("b", Arc::new(BooleanArray::from(vec![true, true]))),
    ];
    let records = StructArray::from(
        RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap(),
    );
    assert_eq!(written(&records, 1).unwrap(), r#"{"b":true}"#);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("k");
    map.values().append_value(3);
    map.append(true).unwrap();
    assert_eq!(first(map.finish()), r#"{"k":3}"#);
}

#[test]
fn unknown_type_is_an_error() {
    assert_eq!(written(&IntervalYearMonthArray::from(vec![1]), 0), Err(ArrayError::Type));
    let mut map = MapBuilder::new(None, Int32Builder::new(), Int32Builder::new());
    map.keys().append_value(1);
    map.values().append_value(3);
    map.append(true).unwrap();
    let map: MapArray = map.finish();
    assert_eq!(written(&map, 0), Err(ArrayError::Type));
}
