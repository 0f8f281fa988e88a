//! The rows of JSON Lines and CSV, good and bad.

use std::sync::atomic::Ordering;

use cog_testkit::{Mock, Reply};
use serde_json::Value;

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
    let expected = ["ok", "E1000", "E1000", "E1000", "E1001", "E1001", "E1000", "E1000", "ok"];
    assert_eq!(codes(&results), expected);
    assert_eq!(mock.requests().len(), 2);
    let messages: Vec<_> = results.iter().filter_map(|it| it["error"]["message"].as_str()).collect();
    assert_eq!(
        messages,
        [
            "rows.jsonl, line 2: not JSON: column 10: expected a value",
            "rows.jsonl, line 4: the line contains a NUL byte at column 12",
            "rows.jsonl, line 5: the line is not UTF-8: invalid byte 0xE9 at column 14",
            "rows.jsonl, line 6: a row is a JSON object or a string, not an array",
            "rows.jsonl, line 7: a row is a JSON object or a string, not a number",
            "rows.jsonl, line 8: not JSON: column 1: expected JSON without a byte order mark",
            "rows.jsonl, line 9: not JSON: column 129: nested too deeply",
        ]
    );
    assert!(results.iter().all(|it| it["ok"] == true || it["error"]["suggestion"].is_string()));
    assert_eq!(
        results[1]["error"]["details"],
        serde_json::json!({ "origin": "runtime", "input": "rows.jsonl", "line": 2 })
    );
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
    let expected = ["ok", "E1000", "ok", "E1000", "E1001", "E1001", "E1003", "E1000", "ok", "E1000", "ok"];
    assert_eq!(codes(&results), expected);
    let message = |row: usize| results[row]["error"]["message"].as_str().unwrap();
    assert_eq!(message(1), "rows.csv, line 3: a quote is not closed, or text follows a closing quote");
    assert_eq!(message(4), "rows.csv, line 6: the row has 1 fields, and the header has 2");
    assert_eq!(message(7), "rows.csv, line 10: the line is not UTF-8: invalid byte 0xE9 at column 4");
    assert!(message(6).starts_with("rows.csv, line 9: input.count"), "{}", message(6));
    let details = &results[6]["error"]["details"];
    assert_eq!((&details["line"], &details["column"]), (&9.into(), &"count".into()), "{details}");
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
    place.write("rows.txt", "\"one\"\n").write("object.json", "{\"text\": \"one\"}\n");
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
    snapshot!("no_array", batch(&place, &mock, "object.json -o -"));
    snapshot!("delimiter_of_lines", batch(&place, &mock, "rows.txt -o - --format jsonl --delimiter ;"));
    for (arguments, message) in [
        ("rows.xlsx -o -", "Save the spreadsheet as CSV."),
        ("rows.jsonl -o out.jsonl.gz", "results are not compressed"),
        ("rows.jsonl -o out.jsonl --escape-formulas", "--escape-formulas is for results in CSV"),
        ("rows.csv -o - --encoding latin-99", "not the name of an encoding"),
        ("rows.csv -o - --delimiter ;;", "not one ASCII character"),
    ] {
        let refused = batch(&place, &mock, arguments).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{arguments}");
        assert!(stderr(&refused).contains(message), "{arguments}: {}", stderr(&refused));
    }
    assert_eq!(mock.requests().len(), 0);
}

#[test]
fn rows_come_from_stdin() {
    let (place, mock) = (place(), model());
    let output = with_stdin(batch(&place, &mock, "- -o - --format jsonl"), "\"one\"\n\"two\"");
    assert_eq!(codes(&results(&output)), ["ok", "ok"], "{}", stderr(&output));
    let output = with_stdin(batch(&place, &mock, "- -o - --format csv"), "text\none\n");
    assert_eq!(codes(&results(&output)), ["ok"]);
    for format in ["jsonl", "csv"] {
        let output = with_stdin(batch(&place, &mock, &format!("- -o - --format {format}")), "");
        assert_eq!((codes(&results(&output)).len(), output.status.code()), (0, Some(0)), "{format}");
        assert!(stderr(&output).contains("the input has no rows"), "{}", stderr(&output));
    }
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

#[test]
fn blank_lines_are_no_rows_and_do_not_move_the_others() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", "\n{\"text\": \"one\"}\n\n  \n{\"texts\": 1}\n\n");
    // A value of a single column is only empty in quotes.
    place.write("rows.csv", "\r\n\r\ntext\r\none\r\n\r\n\"\"\r\n\r\n");
    let jsonl = results(&batch(&place, &mock, "rows.jsonl -o -").output().unwrap());
    assert_eq!(codes(&jsonl), ["ok", "E1001"]);
    assert_eq!((&jsonl[1]["row"], &jsonl[1]["error"]["details"]["line"]), (&1.into(), &5.into()));
    let output = batch(&place, &mock, "rows.csv -o -").output().unwrap();
    assert_eq!(codes(&results(&output)), ["ok", "ok"], "{}", stderr(&output));
}

#[test]
fn text_files_have_other_delimiters_encodings_and_words() {
    let (place, mock) = (place(), model());
    place.write("semicolon.csv", b"text;count;weight;is_new\ncaf\xE9;3;NA;no\n\"a;b\";;-;Yes\n".as_slice());
    place.write("tabs.tsv", "text\tcount\tis_new\n\"a\tb\"\t1\t1\nNULL\t2\toff\n");
    let utf16: Vec<u8> = "text,count\nété,7\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    place.write("utf16.csv", [vec![0xFF, 0xFE], utf16].concat());
    place.write("rows.json", "[{\"text\": \"in an\\narray\"},\n \"two\"]\n");
    for (args, expected) in [
        (
            "semicolon.csv --delimiter ; --encoding latin1 --null NA --null -",
            vec![
                r#"{\"text\":\"café\",\"count\":3,\"is_new\":false}"#,
                r#"{\"text\":\"a;b\",\"is_new\":true}"#,
            ],
        ),
        (
            "tabs.tsv",
            vec![
                r#"{\"text\":\"a\\tb\",\"count\":1,\"is_new\":true}"#,
                r#"{\"text\":\"NULL\",\"count\":2,\"is_new\":false}"#,
            ],
        ),
        ("utf16.csv", vec![r#"{\"text\":\"été\",\"count\":7}"#]),
        ("rows.json", vec![r#"{\"text\":\"in an\\narray\"}"#, "two"]),
    ] {
        let before = mock.requests().len();
        let output = batch(&place, &mock, &format!("{args} -o - --concurrency 1")).output().unwrap();
        let found = inputs(&mock).split_off(before);
        assert_eq!(codes(&results(&output)), vec!["ok"; expected.len()], "{args}: {}", stderr(&output));
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{args}: {expected} in {found}");
        }
    }
    let output = batch(&place, &mock, "tabs.tsv -o - --null NULL").output().unwrap();
    assert_eq!(codes(&results(&output)), ["ok", "E1002"], "{}", stderr(&output));
}

#[test]
fn result_has_the_id_and_the_columns_of_its_row() {
    let place = place();
    let mock = Mock::start([Reply::text("no JSON").when("bad"), Reply::text(ANSWER)]);
    place.write("rows.csv", "id,url,text\n007,https://a/1,good\n,x,bad\ntorn\n008,\"a,b\",good\n");
    place.write(
        "rows.jsonl",
        "{\"id\": 7, \"url\": [1], \"text\": \"good\"}\n{\"url\": \"x\", \"text\": \"bad\"}\nno JSON\n{\"id\": \"008\", \"text\": \"good\", \"more\": 1}\n",
    );
    let args = "--id id --keep url --ignore-unknown --max-attempts 1 --dedupe";
    for (file, first) in
        [("rows.csv", serde_json::json!(["007", "https://a/1"])), ("rows.jsonl", serde_json::json!([7, [1]]))]
    {
        let output = batch(&place, &mock, &format!("{file} -o - {args}")).output().unwrap();
        let found = results(&output);
        assert_eq!(codes(&found), ["ok", "E1000", if file == "rows.csv" { "E1001" } else { "E1000" }, "ok"]);
        assert_eq!(serde_json::json!([found[0]["id"], found[0]["kept"]["url"]]), first, "{file}");
        assert_eq!(
            serde_json::json!([found[1]["id"], found[1]["kept"]["url"]]),
            serde_json::json!([null, "x"])
        );
        assert_eq!(found[2]["id"], Value::Null, "{file}: a row that cannot be read");
        assert_eq!((&found[3]["id"], &found[3]["duplicate_of"]), (&"008".into(), &0.into()), "{file}");
        let keys = |result: &Value| result.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert!(found.iter().all(|result| keys(result).len() == keys(&found[0]).len()), "{file}");
    }
    assert!(inputs(&mock).iter().all(|input| !input.contains("https://a/1")), "{:?}", inputs(&mock));
    let output = batch(&place, &mock, &format!("rows.csv -o out.csv {args}")).output().unwrap();
    let text = place.read("out.csv");
    assert!(text.starts_with("row,id,url,label,rationale,ok,"), "{text}{}", stderr(&output));
    assert!(text.lines().nth(4).unwrap().starts_with("3,008,\"a,b\",a,"), "{text}");
    let missing = batch(&place, &mock, "rows.csv -o - --id number --ignore-unknown").output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("there is no column `number`"), "{}", stderr(&missing));
}

#[test]
fn members_of_lines_are_mapped_and_ignored_as_columns_are() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", "{\"question\": \"why\", \"other\": {\"a\": 1}}\n");
    let output =
        batch(&place, &mock, "rows.jsonl -o - --map text=question --ignore-unknown").output().unwrap();
    assert_eq!(codes(&results(&output)), ["ok"], "{}", stderr(&output));
    assert!(inputs(&mock)[0].contains(r#"{\"text\":\"why\"}"#), "{:?}", inputs(&mock));
    let unknown = batch(&place, &mock, "rows.jsonl -o - --map txt=question").output().unwrap();
    assert!(stderr(&unknown).contains("the module has no input field `txt`"), "{}", stderr(&unknown));
}

#[test]
fn cells_that_a_spreadsheet_would_execute_are_escaped_on_request() {
    let place = place();
    let answer = ANSWER
        .replace("\"a\"", "\"=cmd|' /C calc'!A0\"")
        .replace("\"rationale\"", "\"rationale\": \"-1\", \"@sum\"");
    let mock = Mock::start([Reply::text(answer)]);
    place.write("rows.csv", "text\none\n");
    for (args, label, column) in
        [("", ",=cmd|' /C calc'!A0,", ",@sum,"), ("--escape-formulas", ",'=cmd|' /C calc'!A0,", ",'@sum,")]
    {
        let output = batch(&place, &mock, &format!("rows.csv -o out.csv --force {args}")).output().unwrap();
        let text = place.read("out.csv");
        assert!(text.contains(label) && text.contains(column), "{text}{}", stderr(&output));
        assert!(text.contains(",0.9,"), "numbers stay: {text}");
    }
    for start in ["\\n=", "\\r-", "\\t@", "＝1", "＋", "－1", "＠sum"] {
        let mock = Mock::start([Reply::text(ANSWER.replace("\"a\"", &format!("\"{start}b\"")))]);
        assert!(
            batch(&place, &mock, "rows.csv -o out.csv --force --escape-formulas").status().unwrap().success()
        );
        let text = place.read("out.csv");
        let start = start.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t");
        assert!(text.contains(&format!("'{start}b")), "{text:?}");
    }
}

#[test]
fn table_without_a_required_column_is_refused_before_anything_is_sent() {
    let (place, mock) = (place(), model());
    place
        .write("rows.csv", "count\n1\n")
        .write("case.csv", " Text\none\n")
        .write("tabs.csv", "text\tcount\na\t1\n");
    let tabs = batch(&place, &mock, "tabs.csv -o -").output().unwrap();
    assert!(stderr(&tabs).contains("set --delimiter 'tab'"), "{}", stderr(&tabs));
    let refused = batch(&place, &mock, "rows.csv -o -").output().unwrap();
    assert!(stderr(&refused).contains("there is no column for `text`"), "{}", stderr(&refused));
    let similar = batch(&place, &mock, "case.csv -o -").output().unwrap();
    assert!(stderr(&similar).contains("--map 'text= Text'"), "{}", stderr(&similar));
    assert!(mock.requests().is_empty());
}

#[test]
fn kept_column_never_has_the_name_of_another_one() {
    let (place, mock) = (place(), model());
    place.write("rows.csv", "id,ok,row,label,text\n1,yes,9,mine,one\n");
    let args = "--id id --keep ok --keep row --keep id --keep label --keep ok --ignore-unknown";
    let output = batch(&place, &mock, &format!("rows.csv -o out.csv {args}")).output().unwrap();
    let text = place.read("out.csv");
    let header: Vec<&str> = text.lines().next().unwrap_or_default().split(',').collect();
    let start = ["row", "id", "_ok", "_row", "_id", "_label", "label", "rationale", "ok", "confidence"];
    assert_eq!(header[..start.len()], start, "{}", stderr(&output));
    assert!(text.lines().nth(1).unwrap().starts_with("0,1,yes,9,1,mine,a,"), "{text}");
}

#[test]
fn misspelt_member_of_lines_is_named() {
    let (place, mock) = (place(), model());
    place
        .write("rows.jsonl", "{\"ident\": 7, \"text\": \"a\"}\n{\"ident\": 8, \"text\": \"b\", \"url\": 1}\n")
        .write("rows.json", "[{\"ident\": 7, \"text\": \"a\"}]")
        .write("texts.jsonl", "\"a\"\n\"b\"\n");
    for (file, suggestion) in [
        ("rows.jsonl", "Did you mean --id 'ident'?"),
        ("rows.json", "Did you mean --id 'ident'?"),
        ("texts.jsonl", "Name a member of the rows with --id."),
    ] {
        let args = format!("{file} -o - --id idnt --keep url --ignore-unknown");
        let refused = batch(&place, &mock, &args).output().unwrap();
        let text = stderr(&refused);
        assert!(text.contains("no row so far has the member `idnt`") && text.contains(suggestion), "{text}");
        assert_ne!(refused.status.code(), Some(0), "{text}");
    }
    assert_eq!(mock.requests().len(), 0);
    let output = batch(&place, &mock, "rows.jsonl -o - --id ident --keep url --keep ulr --ignore-unknown");
    let output = { output }.output().unwrap();
    assert_eq!((codes(&results(&output)), output.status.code()), (vec!["ok", "ok"], Some(0)));
    let text = stderr(&output);
    assert!(text.contains("no row that was read has a member `ulr`") && !text.contains("`url`"), "{text}");
    assert!(text.contains("warning: the first 2 rows have no member `ulr`, which --keep names\n"), "{text}");
}

#[test]
fn misspelt_member_to_keep_is_named_before_the_first_call() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", "{\"text\": \"a\", \"source\": 1}\n").write("rows.csv", "text,source\na,1\n");
    let planned = batch(&place, &mock, "rows.jsonl -o - --plan=human --keep suorce --ignore-unknown");
    let planned = stderr(&{ planned }.output().unwrap());
    let warning =
        "warning: the first row has no member `suorce`, which --keep names; did you mean --keep 'source'?";
    assert!(planned.contains(warning), "{planned}");
    // A table has its columns from the start.
    let refused = batch(&place, &mock, "rows.csv -o - --keep suorce").output().unwrap();
    assert!(stderr(&refused).contains("there is no column `suorce`"), "{}", stderr(&refused));
    assert!(mock.requests().is_empty());
    let right = batch(&place, &mock, "rows.jsonl -o - --keep source").output().unwrap();
    assert!(!stderr(&right).contains("warning: the first"), "{}", stderr(&right));
}

#[test]
fn compressed_input_that_is_not_read_says_what_to_do() {
    let (place, mock) = (place(), model());
    place
        .write("rows.jsonl.xz", b"\xfd7zXZ\0\0\x04")
        .write("rows.csv.bz2", b"BZh91AY&SY\0\0")
        .write("rows.7z", b"7z\xbc\xaf\x27\x1c\0\x04")
        .write("rows.csv", b"PK\x03\x04\x14\0");
    for (args, parts) in [
        ("rows.jsonl.xz -o -", ["the format of rows.jsonl.xz is unknown", "Decompress it first"]),
        ("rows.7z -o -", ["the format of rows.7z is unknown", "Decompress it first"]),
        ("rows.csv.bz2 -o - --format csv", ["it is compressed with bzip2", "Decompress it first"]),
        ("rows.jsonl.xz -o - --format jsonl", ["it is compressed with xz", "Decompress it first"]),
        ("rows.csv -o -", ["it is compressed with ZIP", "Decompress it first"]),
    ] {
        let refused = batch(&place, &mock, args).output().unwrap();
        let text = stderr(&refused);
        assert!(parts.iter().all(|part| text.contains(part)), "{args}: {text}");
        assert_eq!(refused.status.code(), Some(2), "{args}");
    }
    // A text may begin like one.
    place.write("text.jsonl", "\"BZh is bzip2\"\n");
    assert!(batch(&place, &mock, "text.jsonl -o -").status().unwrap().success());
}

#[test]
fn several_columns_that_are_misspelt_are_mapped_in_one_suggestion() {
    let (place, mock) = (place(), model());
    place.write("rows.csv", " Text,Is New,url\none,true,x\n");
    let refused = batch(&place, &mock, "rows.csv -o -").output().unwrap();
    let expected =
        "Map with --map 'text= Text' --map 'is_new=Is New', or ignore the others with --ignore-unknown.";
    assert!(stderr(&refused).contains(expected), "{}", stderr(&refused));
}
