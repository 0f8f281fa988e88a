//! Tables that PyArrow writes are read, and tables of results are what PyArrow reads. It needs a Python with PyArrow, which
//! `cargo xtask test` installs.

#![expect(clippy::disallowed_methods, reason = "tests read files and the environment")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use cog_batch::{
    Description, Format, Journal, JournalPaths, Order, Output, Resume, Row, RowHash, RowResult, Source,
};
use cog_schema::{Contract, Rules};
use cog_spec::{Format as ModuleFormat, Manifest};
use serde_json::{Value, json};

/// The cases of columns, which the Python package has, too.
fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/arrow")
}

fn python(arguments: &[&Path]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pyarrow/tables.py");
    let interpreter = std::env::var_os("COG_TEST_PYTHON").expect("COG_TEST_PYTHON: a Python with PyArrow");
    let output = Command::new(interpreter).arg(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn compile(document: &Value) -> Contract {
    let rules = Rules::from(&Manifest::with_defaults("x", ModuleFormat::V22, None));
    Contract::compile(document, &rules).unwrap()
}

/// Returns the rows of a file, of any fields.
async fn rows(path: &Path) -> Vec<Row> {
    let format = Format::from_path(path).unwrap();
    let source = Source::new(path, format);
    let mut rows = source.open(&compile(&json!({}))).unwrap_or_else(|error| panic!("{error}"));
    let mut all = Vec::new();
    while let Some(group) = rows.next().await.unwrap_or_else(|error| panic!("{error}")) {
        all.extend(group);
    }
    all
}

fn input(row: &Row) -> Value {
    row.input.get().unwrap_or_else(|error| panic!("{error:?}")).to_serde()
}

/// Makes all numbers floats: 1.0 and 1 are the same in JSON.
fn normal(value: &Value) -> Value {
    match value {
        Value::Object(members) => members.iter().map(|(name, it)| (name.clone(), normal(it))).collect(),
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Number(number) if number.is_f64() && number.as_f64().unwrap().fract() == 0.0 => {
            json!(number.as_f64().unwrap() as i128 as i64)
        }
        other => other.clone(),
    }
}

#[tokio::test]
async fn tables_of_pyarrow_are_read() {
    let directory = tempfile::tempdir().unwrap();
    python(&[Path::new("write"), directory.path()]);
    let expected: Value =
        serde_json::from_slice(&std::fs::read(directory.path().join("expected.json")).unwrap()).unwrap();
    let mut count = 0;
    for (format, files) in [
        ("parquet", ["none", "snappy", "zstd", "gzip", "lz4", "v2", "groups", "plain"].as_slice()),
        ("feather", &["lz4"]),
        ("arrow", &["file", "zstd"]),
        ("arrows", &["stream"]),
    ] {
        for file in files {
            let kind = match (format, *file) {
                ("parquet", "plain") => "plain",
                ("parquet", _) => "parquet",
                _ => "arrow",
            };
            let expected = expected[kind].as_array().unwrap();
            let path = directory.path().join(file).with_extension(format);
            let rows = rows(&path).await;
            assert_eq!(rows.len(), expected.len());
            for (row, expected) in rows.iter().zip(expected) {
                let (found, expected) = (normal(&input(row)), normal(expected));
                for (name, value) in expected.as_object().unwrap() {
                    assert_eq!(found.get(name), Some(value), "{} {name}", path.display());
                }
                assert_eq!(found, expected, "{}", path.display());
            }
            count += 1;
        }
    }
    assert_eq!(count, 12);
    let deltas: Vec<_> = rows(&directory.path().join("deltas.arrows")).await.iter().map(input).collect();
    assert_eq!(deltas, [json!({ "c0": "a" }), json!({ "c0": "b" }), json!({ "c0": "x" })]);
    let times: Vec<_> = rows(&directory.path().join("int96.parquet")).await.iter().map(input).collect();
    assert_eq!(times, [json!({ "c0": "2026-11-24T12:00:00.001500" })]);
    for (file, count) in [("large-rows.parquet", 300), ("repeated-rows.parquet", 2_000)] {
        assert_eq!(rows(&directory.path().join(file)).await.len(), count, "{file}");
    }
}

#[tokio::test]
async fn pyarrow_reads_the_results() {
    let directory = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(cases()).unwrap() {
        let file = file.unwrap().path();
        let case: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let out = directory.path().join(file.file_stem().unwrap());
        let (journal, _) =
            Journal::open(&JournalPaths::beside(&out), &Description::default(), Resume::Same).unwrap();
        let rows = case["rows"].as_array().unwrap();
        let mut results: Vec<_> =
            rows.iter().map(|row| json!({ "ok": true, "meta": {}, "data": row["data"] })).collect();
        results.push(json!({ "ok": false, "meta": {}, "error": { "code": "E3005", "message": "no" } }));
        for (row, mut result) in (0..).zip(results) {
            result["row"] = json!(row);
            let ok = result["ok"] == true;
            let line = result.to_string();
            let result = RowResult::from_line(row, RowHash::from_u64(0), ok, line.as_bytes());
            journal.append(&result).await.unwrap();
        }
        let mut results = journal.close().await.unwrap();
        let contract = compile(&case["contract"]);
        for (format, extension) in [(Format::Parquet, "parquet"), (Format::Arrow, "arrow")] {
            let output = Output::new(format, Order::Input, &contract);
            output.write_file(&mut results, &out.with_extension(extension)).unwrap();
        }
    }
    python(&[Path::new("read"), directory.path(), &cases()]);
}
