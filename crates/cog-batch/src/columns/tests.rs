#![expect(
    clippy::disallowed_methods,
    reason = "the cases are read from the files that the Python package reads, too"
)]

use std::path::Path;

use arrow_array::{Array as _, RecordBatch};
use cog_json::{ToJson as _, Value as Tree, Writer};
use cog_schema::{Contract, Rules};
use cog_spec::{Format, Manifest, Tier};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ColumnType, Columns, RecordBuilder};
use crate::{Carried, arrays::write_value};

fn compile(document: &Value) -> Contract {
    let rules = Rules::from(&Manifest::with_defaults("test", Format::V22, Some(Tier::Exploration)));
    Contract::compile(document, &rules).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Returns the cell of a column in the first row.
fn cell(batch: &RecordBatch, name: &str) -> Value {
    let mut text = String::new();
    write_value(batch.column_by_name(name).unwrap(), 0, &mut Writer::compact(&mut text)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn records(columns: &Columns, results: &[Value]) -> RecordBatch {
    let mut builder = RecordBuilder::new(columns);
    results.iter().for_each(|result| builder.push(&Tree::from(result.clone())));
    assert_eq!((builder.len(), builder.is_empty()), (results.len(), results.is_empty()));
    let batch = builder.finish().unwrap();
    assert!(builder.is_empty());
    batch
}

fn check(case: &Value) {
    let columns = Columns::from_contract(&compile(&case["contract"]));
    let printed: Value = serde_json::from_str(&columns.to_json()).unwrap();
    let mut expected = case["type"].clone();
    expected["name"] = json!("data");
    assert_eq!(printed[2], expected);
    for row in case["rows"].as_array().unwrap() {
        let batch = records(&columns, &[json!({ "row": 0, "ok": true, "data": row["data"] })]);
        assert_eq!(cell(&batch, "data"), row["cell"], "{row}");
        let unmapped = cell(&batch, "unmapped");
        let unmapped = unmapped.as_str().map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
        assert_eq!(unmapped, row.get("unmapped").cloned().unwrap_or_default(), "{row}");
    }
}

#[test]
fn cases() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/arrow");
    let mut count = 0;
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let case: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let checked = std::panic::catch_unwind(|| check(&case));
        assert!(checked.is_ok(), "{}", path.display());
        count += 1;
    }
    assert!(count >= 4, "{count} cases");
}

const TEXT: &str = r#"{"data": {"type": "object", "properties": {"a": {"type": "string"}}}}"#;

#[test]
fn envelope_is_in_columns() {
    let columns = Columns::from_contract(&compile(&serde_json::from_str(TEXT).unwrap()));
    let batch = records(
        &columns,
        &[json!({
            "row": 7, "ok": true, "data": { "a": "x" },
            "meta": {
                "confidence": 0.75, "risk": { "custom": "odd", "reason": "New" }, "explain": "Why", "model": "m-1",
                "usage": { "input_tokens": 3, "output_tokens": 5, "total_tokens": 8,
                    "cost": { "amount": 0.25, "currency": "USD" } }
            }
        })],
    );
    assert_eq!(cell(&batch, "row"), 7);
    assert_eq!(cell(&batch, "ok"), true);
    assert_eq!(cell(&batch, "confidence"), 0.75);
    assert_eq!(cell(&batch, "risk"), r#"{"custom":"odd","reason":"New"}"#);
    assert_eq!(cell(&batch, "explain"), "Why");
    assert_eq!(cell(&batch, "model"), "m-1");
    assert_eq!(cell(&batch, "usage"), json!({ "input_tokens": 3, "output_tokens": 5 }));
    assert_eq!(cell(&batch, "cost_usd"), 0.25);
    assert_eq!(cell(&batch, "error_code"), Value::Null);
}

#[test]
fn failed_row_has_its_error_and_no_data() {
    let columns = Columns::from_contract(&compile(&serde_json::from_str(TEXT).unwrap()));
    let meta = json!({ "confidence": 0.0, "risk": "high", "explain": "", "usage": {} });
    let error = json!({ "code": "E1001", "message": "no" });
    let batch = records(&columns, &[json!({ "row": 0, "ok": false, "meta": meta, "error": error })]);
    assert_eq!(cell(&batch, "ok"), false);
    assert_eq!(cell(&batch, "error_code"), "E1001");
    assert_eq!(cell(&batch, "error_message"), "no");
    assert_eq!(cell(&batch, "usage"), Value::Null);
    assert_eq!(cell(&batch, "data"), Value::Null);
}

#[test]
fn number_beyond_the_floats_is_unmapped() {
    let data = json!({ "properties": { "most": { "type": "number" }, "count": { "type": "integer" } } });
    let columns = Columns::from_contract(&compile(&json!({ "data": data })));
    let mut builder = RecordBuilder::new(&columns);
    builder.push(&Tree::parse(r#"{"row":0,"ok":true,"data":{"most":1e400,"count":-1e400}}"#).unwrap());
    let batch = builder.finish().unwrap();
    assert_eq!(cell(&batch, "data"), json!({}));
    assert_eq!(cell(&batch, "unmapped"), r#"{"/most":1e400,"/count":-1e400}"#);
}

#[test]
fn cost_in_another_currency_is_no_cost_in_dollars() {
    let columns = Columns::from_contract(&compile(&json!({})));
    let meta = json!({ "usage": { "cost": { "amount": 1.5, "currency": "EUR" } } });
    let batch = records(&columns, &[json!({ "row": 0, "ok": true, "meta": meta })]);
    assert_eq!(cell(&batch, "cost_usd"), Value::Null);
}

/// Definitions that refer to each other's double: 2^40 fields.
fn doubling() -> Value {
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        definitions
            .insert(format!("d{level}"), json!({ "type": "object", "properties": { "a": next, "b": next } }));
    }
    definitions.insert("d40".to_owned(), json!({ "type": "string" }));
    json!({ "data": { "$ref": "#/$defs/d0" }, "$defs": definitions })
}

#[test]
fn contract_with_too_many_fields_is_json() {
    let document = doubling();
    assert_eq!(super::data_type(&document, &document["data"]), ColumnType::Json);
}

#[test]
fn depth_is_limited() {
    let mut schema = json!({ "type": "string" });
    for _ in 0..60 {
        schema = json!({ "type": "array", "items": schema });
    }
    let mut found = super::data_type(&json!({}), &schema);
    let mut depth = 0;
    while let ColumnType::List(item) = found {
        (found, depth) = (*item, depth + 1);
    }
    assert_eq!((found, depth), (ColumnType::Json, 32));
}

#[test]
fn long_chains_of_references_end() {
    let names = |level: usize| json!({ "$ref": format!("#/$defs/d{}", level + 1) });
    let definitions: serde_json::Map<_, _> =
        (0..100_000).map(|level| (format!("d{level}"), names(level))).collect();
    let document = json!({ "$defs": definitions });
    assert_eq!(super::data_type(&document, &json!({ "$ref": "#/$defs/d0" })), ColumnType::Json);
}

#[test]
fn name_with_nul_is_json() {
    let schema = json!({ "type": "object", "properties": { "a\0": { "type": "string" } } });
    assert_eq!(super::data_type(&json!({}), &schema), ColumnType::Json);
}

#[test]
fn batches_of_several_rows_keep_their_places() {
    let contract = json!({ "data": { "type": "object", "properties": {
        "tags": { "type": "array", "items": { "enum": ["a", "b"] } } } } });
    let columns = Columns::from_contract(&compile(&contract));
    let row = |row: u64, data: Value| json!({ "row": row, "ok": true, "data": data });
    let rows = [row(0, json!({ "tags": ["b", "a"] })), row(1, Value::Null), row(2, json!({ "tags": ["b"] }))];
    let mut builder = RecordBuilder::new(&columns);
    for _ in 0..2 {
        rows.iter().for_each(|row| builder.push(&Tree::from(row.clone())));
        let batch = builder.finish().unwrap();
        let written = |index| {
            let mut text = String::new();
            write_value(batch.column(2), index, &mut Writer::compact(&mut text)).unwrap();
            text
        };
        assert_eq!(batch.num_rows(), 3);
        assert_eq!(
            [written(0), written(1), written(2)],
            [r#"{"tags":["b","a"]}"#, "null", r#"{"tags":["b"]}"#]
        );
        assert!(batch.column(2).is_null(1));
    }
}

#[test]
fn columns_of_the_input_follow_the_row() {
    let keep = ["url".to_owned(), "count".to_owned()];
    let carried = Carried { id: Some("number"), keep: &keep };
    let contract = json!({ "data": { "type": "object", "properties": { "id": { "type": "string" } } } });
    let columns = Columns::from_contract(&compile(&contract)).with_carried(carried);
    let row = json!({ "row": 0, "id": 7, "kept": { "url": "x", "count": null }, "ok": true, "data": { "id": "own" } });
    let batch = records(&columns, &[row]);
    let names: Vec<_> = batch.schema().fields().iter().take(4).map(|field| field.name().clone()).collect();
    assert_eq!(names, ["row", "id", "kept", "ok"]);
    assert_eq!((cell(&batch, "id"), cell(&batch, "data")), (json!("7"), json!({ "id": "own" })));
    assert_eq!(cell(&batch, "kept")["url"], json!("x"));
}

/// Any JSON, small.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |it| it.is_finite().then(|| Value::from(it))),
        "[a-c{]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abct/~]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Puts what was unmapped back into the cell.
fn restored(cell: &Value, unmapped: &Value) -> Value {
    let mut found = cell.clone();
    for (pointer, value) in unmapped.as_object().into_iter().flatten() {
        let Some((parent, name)) = pointer.rsplit_once('/') else { return value.clone() };
        let name = name.replace("~1", "/").replace("~0", "~");
        match found.pointer_mut(parent).unwrap() {
            Value::Array(items) => items[name.parse::<usize>().unwrap()] = value.clone(),
            parent => parent[name] = value.clone(),
        }
    }
    found
}

/// Removes the null members of objects, and the difference between integers and floats.
fn normal(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, member)| !member.is_null())
            .map(|(name, member)| (name.clone(), normal(member)))
            .collect(),
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Number(number) if number.as_f64().is_some_and(|it| it.fract() == 0.0 && it.abs() < 9e15) => {
            json!(number.as_f64().unwrap())
        }
        other => other.clone(),
    }
}

/// Null members that were unmapped, of objects in JSON text, and absent members are the same.
const MIXED: &str = r##"{"data": {"type": "object", "properties": {
    "a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer"}},
    "c": {"type": "object", "properties": {"a": {"type": "number"}, "t": {"enum": ["a", "b"]},
        "b": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "boolean"}}}}}}}}}"##;

proptest! {
    #[test]
    fn no_value_is_lost(data in any_json()) {
        let columns = Columns::from_contract(&compile(&serde_json::from_str(MIXED).unwrap()));
        let batch = records(&columns, &[json!({ "row": 0, "ok": true, "data": data })]);
        let unmapped = cell(&batch, "unmapped");
        let unmapped = unmapped.as_str().map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
        prop_assert_eq!(normal(&restored(&cell(&batch, "data"), &unmapped)), normal(&data));
    }
}
