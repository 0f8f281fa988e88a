//! The rows of JSON Lines and CSV, good and bad.

use std::sync::atomic::Ordering;

use cog_testkit::{Mock, Reply};

use super::{ANSWER, batch, codes, inputs, model, place, results};
use crate::{
    media_check::listen,
    support::{json, snapshot, stderr, with_stdin},
};

#[test]
fn bad_rows_are_results_and_the_others_run() {
    let (place, mock) = (place(), model());
    let mut rows = b"\xEF\xBB\xBF{\"text\": \"first\"}\r\n{\"text\": why}\n\n{\"text\": \"a\0b\"}\n".to_vec();
    rows.extend(b"{\"text\": \"caf\xE9\"}\n[1]\n7\n\xEF\xBB\xBF{\"text\": \"mark\"}\n");
    rows.extend([b'['].repeat(300));
    rows.extend(b"\n{\"text\": \"last\"}");
    place.write("rows.jsonl", rows);
    let output = batch(&place, &mock, "rows.jsonl -o -").output().unwrap();
    let results = results(&output);
    let expected = ["ok", "E1000", "E1001", "E1000", "E1000", "E1001", "E1001", "E1000", "E1000", "ok"];
    assert_eq!(codes(&results), expected);
    assert_eq!(mock.requests().len(), 2);
    let messages: Vec<_> = results.iter().filter_map(|it| it["error"]["message"].as_str()).collect();
    assert_eq!(
        messages,
        [
            "rows.jsonl, line 2: not JSON: column 10: expected a value",
            "rows.jsonl, line 3: the line is empty",
            "rows.jsonl, line 4: the line contains a NUL byte at column 12",
            "rows.jsonl, line 5: the line is not UTF-8: invalid byte 0xE9 at column 14",
            "rows.jsonl, line 6: a row is a JSON object or a string, not an array",
            "rows.jsonl, line 7: a row is a JSON object or a string, not a number",
            "rows.jsonl, line 8: not JSON: column 1: expected JSON without a byte order mark",
            "rows.jsonl, line 9: not JSON: column 129: nested too deeply",
        ]
    );
    assert!(results.iter().all(|it| it["ok"] == true || it["error"]["suggestion"].is_string()));
    assert_eq!(results[1]["error"]["details"], serde_json::json!({ "input": "rows.jsonl", "line": 2 }));
}

#[test]
fn line_that_is_too_long_is_skipped() {
    let (place, mock) = (place(), model());
    let long = "x".repeat(100 << 20);
    place.write("rows.jsonl", format!("\"one\"\n{{\"text\": \"{long}\"}}\n\"three\"\n"));
    let output = batch(&place, &mock, "rows.jsonl -o -").output().unwrap();
    let results = results(&output);
    assert_eq!(codes(&results), ["ok", "E1005", "ok"]);
    assert_eq!(results[1]["error"]["message"], "rows.jsonl, line 2: the line is longer than 16 MiB");
}

#[test]
fn columns_become_fields_of_their_types() {
    let (place, mock) = (place(), model());
    place.write(
        "rows.csv",
        "text,count,weight,is_new,tags,place\n\
         007,3,2.5,TRUE,\"[\"\"a\"\", \"\"b\"\"]\",\"{\"\"city\"\": \"\"Bonn\"\"}\"\n\
         \"two\nlines\",,,,,\n",
    );
    let output = batch(&place, &mock, "rows.csv -o - --concurrency 1").output().unwrap();
    assert_eq!(codes(&results(&output)), ["ok", "ok"], "{}", stderr(&output));
    let sent = inputs(&mock);
    let first = r#"{\"text\":\"007\",\"count\":3,\"weight\":2.5,\"is_new\":true,\"tags\":[\"a\",\"b\"],\"place\":{\"city\":\"Bonn\"}}"#;
    assert!(sent[0].contains(first), "{}", sent[0]);
    assert!(sent[1].contains(r#"{\"text\":\"two\\nlines\"}"#), "empty cells are no values: {}", sent[1]);
}

#[test]
fn bad_records_are_results_and_the_others_run() {
    let (place, mock) = (place(), model());
    let mut rows =
        b"text,count\none,1\n\"torn,2\nthree,3\n\"four\" x,4\nfive\nsix,6,6\n\nseven,many\n".to_vec();
    rows.extend(b"caf\xE9,8\n\"nine, \"\"9\"\"\",9\n\"open,10\nlast,11\n");
    place.write("rows.csv", rows);
    let output = batch(&place, &mock, "rows.csv -o -").output().unwrap();
    let results = results(&output);
    let expected =
        ["ok", "E1000", "ok", "E1000", "E1001", "E1001", "E1001", "E1003", "E1000", "ok", "E1000", "ok"];
    assert_eq!(codes(&results), expected);
    let message = |row: usize| results[row]["error"]["message"].as_str().unwrap();
    assert_eq!(message(1), "rows.csv, line 3: a quote is not closed, or text follows a closing quote");
    assert_eq!(message(4), "rows.csv, line 6: the row has 1 fields, and the header has 2");
    assert_eq!(message(8), "rows.csv, line 10: the line is not UTF-8: invalid byte 0xE9 at column 4");
    assert!(message(7).contains("input.count"), "{}", message(7));
}

#[test]
fn columns_that_do_not_fit_are_an_error_before_anything_is_sent() {
    let (place, mock) = (place(), model());
    place.write("rows.csv", "question,id,count\none,1,1\n").write("no.csv", "id\n1\n");
    snapshot!("unknown_columns", batch(&place, &mock, "rows.csv -o -"));
    snapshot!("missing_column", batch(&place, &mock, "rows.csv -o - --map text=frage --ignore-unknown"));
    snapshot!("unknown_field", batch(&place, &mock, "rows.csv -o - --map txt=question --ignore-unknown"));
    snapshot!(
        "field_of_two_columns",
        batch(&place, &mock, "rows.csv -o - --map count=id --map text=question")
    );
    snapshot!(
        "column_of_two_fields",
        batch(&place, &mock, "rows.csv -o - --map text=question --map place=question --ignore-unknown")
    );
    snapshot!("no_column_is_a_field", batch(&place, &mock, "no.csv -o - --ignore-unknown"));
    assert_eq!(mock.requests().len(), 0);
    let output = batch(&place, &mock, "rows.csv -o - --map text=question --ignore-unknown").output().unwrap();
    assert_eq!(codes(&results(&output)), ["ok"]);
    assert!(inputs(&mock)[0].contains(r#"{\"text\":\"one\",\"count\":1}"#));
}

#[test]
fn inputs_that_cannot_be_read_are_errors_before_anything_is_sent() {
    let (place, mock) = (place(), model());
    place.write("rows.txt", "\"one\"\n").write("utf16.jsonl", b"\xFF\xFE\"\0a\0\"\0").write("empty.csv", "");
    snapshot!("missing_input", batch(&place, &mock, "rows.jsonl -o -"));
    snapshot!("directory_as_input", batch(&place, &mock, "m -o - --format jsonl"));
    // The list of formats depends on the features of cog-batch.
    for (arguments, path, flag) in
        [("rows.txt -o -", "rows.txt", "--format"), ("rows.jsonl -o results", "results", "--output-format")]
    {
        let unknown = batch(&place, &mock, arguments).output().unwrap();
        assert_eq!(unknown.status.code(), Some(2));
        let message = stderr(&unknown);
        assert!(message.contains(&format!("the format of {path} is unknown")), "{message}");
        assert!(message.contains(&format!("Name it with {flag}: jsonl, csv")), "{message}");
    }
    snapshot!("table_on_stdout", batch(&place, &mock, "rows.jsonl -o - --output-format csv"));
    snapshot!("utf16_input", batch(&place, &mock, "utf16.jsonl -o -"));
    snapshot!("empty_table", batch(&place, &mock, "empty.csv -o -"));
    snapshot!("columns_of_lines", batch(&place, &mock, "rows.txt -o - --format jsonl --ignore-unknown"));
    assert_eq!(mock.requests().len(), 0);
}

#[test]
fn rows_come_from_stdin() {
    let (place, mock) = (place(), model());
    let output = with_stdin(batch(&place, &mock, "- -o - --format jsonl"), "\"one\"\n\"two\"");
    assert_eq!(codes(&results(&output)), ["ok", "ok"], "{}", stderr(&output));
    let output = with_stdin(batch(&place, &mock, "- -o - --format csv"), "text\none\n");
    assert_eq!(codes(&results(&output)), ["ok"]);
    let output = with_stdin(batch(&place, &mock, "- -o - --format jsonl"), "");
    assert_eq!((codes(&results(&output)).len(), output.status.code()), (0, Some(0)));
}

#[test]
fn media_columns_name_a_file_or_a_url() {
    let (place, mock) = (place(), model());
    place.write("photo.png", base64_simd::STANDARD.decode_to_vec(PIXEL).unwrap());
    place.write("rows.csv", "text,photo\none,photo.png\ntwo,missing.png\nthree,\n");
    let output = batch(&place, &mock, "rows.csv -o - --concurrency 1").output().unwrap();
    assert_eq!(codes(&results(&output)), ["ok", "E1006", "ok"], "{}", stderr(&output));
    assert!(mock.requests()[0].body.to_string().contains("data:image/png;base64,"));
}

#[test]
fn urls_of_media_are_fetched_only_where_the_operator_allows_it() {
    let (place, mock) = (place(), model());
    let (allowed, count) = listen();
    let (refused, never) = listen();
    let url = |port| format!("http://127.0.0.1:{port}/a.gif");
    place.write("rows.csv", format!("text,photo\none,{}\ntwo,{}\n", url(allowed), url(refused)));
    let mut command = batch(&place, &mock, "rows.csv -o -");
    command.env("COG_MEDIA_ALLOW", format!("127.0.0.1:{allowed}"));
    let results = results(&command.output().unwrap());
    assert_eq!(codes(&results), ["ok", "E1012"], "{results:?}");
    assert_eq!((count.load(Ordering::SeqCst), never.load(Ordering::SeqCst)), (1, 0));
    let sent = mock.requests();
    assert!(sent.len() == 1 && sent[0].body.to_string().contains("data:image/"), "{sent:?}");
}

#[test]
fn rows_may_contain_the_bytes_of_media() {
    let (place, mock) = (place(), model());
    let photo = serde_json::json!({ "type": "base64", "media_type": "image/png", "data": PIXEL });
    let row = serde_json::json!({ "text": "one", "photo": photo });
    place.write("rows.jsonl", format!("{row}\n"));
    place.write("rows.csv", format!("text,photo\none,\"{}\"\n", photo.to_string().replace('"', "\"\"")));
    for rows in ["rows.jsonl", "rows.csv"] {
        let output = batch(&place, &mock, &format!("{rows} -o -")).output().unwrap();
        assert_eq!(codes(&results(&output)), ["ok"], "{rows}: {}", stderr(&output));
    }
    assert!(mock.requests().iter().all(|sent| sent.body.to_string().contains("data:image/png;base64,")));
}

#[test]
fn carriage_returns_stay_in_their_cells() {
    let (place, mock) = (place(), model());
    place.write("rows.csv", "text,count\r\none\rtwo,1\r\n\"three\r\nfour\",2\r\n");
    let output = batch(&place, &mock, "rows.csv -o - --concurrency 1").output().unwrap();
    assert_eq!(codes(&results(&output)), ["ok", "ok"], "{}", stderr(&output));
    let sent = inputs(&mock);
    assert!(sent[0].contains(r#"one\\rtwo"#) && sent[0].contains(r#"\"count\":1"#), "{}", sent[0]);
    assert!(sent[1].contains(r#"three\\nfour"#), "{}", sent[1]);
    // Lines of old Macs are one line.
    place.write("rows.csv", "text,count\rone,1\rtwo,2\r");
    snapshot!("header_with_carriage_returns", batch(&place, &mock, "rows.csv -o -"));
}

#[test]
fn quote_that_is_never_closed_costs_only_its_row() {
    let (place, mock) = (place(), model());
    let rest = "2\n".repeat(120_000);
    place.write("rows.csv", format!("text\n\"open\n{rest}\"closed\"\n"));
    let output = batch(&place, &mock, "rows.csv -o - --sample 3").output().unwrap();
    let results = results(&output);
    assert_eq!(codes(&results), ["E1000", "ok", "ok"]);
}

#[test]
fn cells_that_cannot_be_an_input_fail_their_row() {
    let (place, mock) = (place(), model());
    place.write("rows.csv", format!("text,tags\none,{}{}\ntwo,[]\n", "[".repeat(128), "]".repeat(128)));
    let output = batch(&place, &mock, "rows.csv -o -").output().unwrap();
    let results = results(&output);
    assert_eq!(codes(&results), ["E1001", "ok"]);
    let message = "rows.csv, line 2: the row cannot be an input: nested too deeply";
    assert_eq!(results[0]["error"]["message"], message);
}

#[test]
fn input_is_never_replaced() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", "\"one\"\n");
    for args in ["-o rows.jsonl --force", "-o m/../rows.jsonl --force", "-o out.jsonl --summary ./rows.jsonl"]
    {
        let output = batch(&place, &mock, &format!("rows.jsonl {args}")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args}: {}", stderr(&output));
        assert!(stderr(&output).contains("rows.jsonl is the input, which would be replaced"), "{args}");
        assert_eq!(place.read("rows.jsonl"), "\"one\"\n", "{args}");
    }
    assert_eq!(mock.requests().len(), 0);
}

/// A PNG of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn condition_selects_rows_and_a_sample_is_the_first_ones() {
    let (place, mock) = (place(), model());
    let rows: String = (0..20).map(|count| format!("{{\"text\": \"t\", \"count\": {count}}}\n")).collect();
    place.write("rows.jsonl", rows);
    let mut command = batch(&place, &mock, "rows.jsonl -o - --sample 3 --where");
    let output = command.arg("$.count >= 5 && $.count < 15").output().unwrap();
    let rows: Vec<_> = results(&output).iter().map(|it| it["row"].as_u64().unwrap()).collect();
    assert_eq!(rows, [5, 6, 7], "{}", stderr(&output));
    let mut command = batch(&place, &mock, "rows.jsonl -o - --where");
    snapshot!("condition_that_is_no_condition", command.arg("count > 5"));
}

#[test]
fn order_is_that_of_the_input_or_free() {
    let place = place();
    let slow = std::time::Duration::from_millis(300);
    let mock = Mock::start([Reply::text(ANSWER), Reply::text(ANSWER).delay(slow).when("slow")]);
    place.write("rows.jsonl", "\"slow\"\n\"b\"\n\"c\"\n");
    let order = |args: &str| {
        let output =
            batch(&place, &mock, &format!("rows.jsonl -o - --concurrency 3 {args}")).output().unwrap();
        let rows: Vec<_> = results(&output).iter().map(|it| it["row"].as_u64().unwrap()).collect();
        rows
    };
    assert_eq!(order(""), [0, 1, 2]);
    assert_eq!(order("--order free").last(), Some(&0));
}

#[test]
fn offline_batch_needs_no_key() {
    let place = place();
    place.write("rows.jsonl", "\"one\"\n");
    let output = place.cog(["batch", "./m", "rows.jsonl", "-o", "-"]).output().unwrap();
    assert_eq!(json(&output)["ok"], true, "{}", stderr(&output));
}
