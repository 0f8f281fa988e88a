use std::path::PathBuf;

use cog_schema::Rules;
use cog_spec::{Format as ModuleFormat, Manifest};
use serde_json::json;

use super::*;
use crate::{Description, Journal, JournalPaths, Resume, RowHash, RowResult, journal::RECORD_LEN};

struct Place {
    directory: tempfile::TempDir,
    contract: Contract,
}

impl Place {
    fn new() -> Self {
        let fields = json!({ "label": { "type": "string" }, "tags": { "type": "array" }, "ok": {} });
        let schema = json!({ "data": { "type": "object", "properties": fields } });
        let manifest = Manifest::with_defaults("x", ModuleFormat::V21, None);
        let contract = Contract::compile(&schema, &Rules::from(&manifest)).unwrap();
        Self { directory: tempfile::tempdir().unwrap(), contract }
    }

    fn out(&self) -> PathBuf {
        self.directory.path().join("out")
    }

    fn output(&self, format: Format, order: Order) -> Output<'_> {
        Output::new(format, order, &self.contract)
    }

    /// Runs a batch with these results, and returns all results.
    async fn results(&self, lines: &[(u64, &str)]) -> Results {
        let paths = JournalPaths::beside(&self.out());
        let (journal, _) = Journal::open(&paths, &Description::default(), Resume::Same).unwrap();
        for (row, line) in lines {
            let hash = RowHash::from_bytes(b"");
            let ok = line.contains("true");
            journal.append(&RowResult::from_line(*row, hash, ok, line.as_bytes())).await.unwrap();
        }
        journal.close().await.unwrap()
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.out()).unwrap()
    }

    /// Returns the names of the files.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<_> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

const LINES: [(u64, &str); 4] = [
    (
        2,
        r#"{"row":2,"ok":true,"meta":{"confidence":0.5,"risk":"low","usage":{"input_tokens":7,"output_tokens":8,"cost":{"amount":0.25,"currency":"USD"}}},"data":{"tags":["a",{"b":1}],"label":"say \"x\",\nthen y","more":null}}"#,
    ),
    (
        0,
        r#"{"row":0,"ok":false,"meta":{"confidence":0,"risk":"high"},"error":{"code":"E4002","message":"slow, again"}}"#,
    ),
    (1, r#"{"row":1,"ok":true,"meta":{"risk":"none"},"data":{"label":"","ok":false,"deep":{"é":1.50}}}"#),
    (3, r#"{"row":3,"ok":true,"meta":{},"data":[1]}"#),
];

#[tokio::test]
async fn csv_has_a_column_for_each_data_field_then_the_common_ones() {
    let place = Place::new();
    let mut results = place.results(&LINES).await;
    place.output(Format::Csv, Order::Input).write_file(&mut results, &place.out()).unwrap();
    let expected = concat!(
        "row,label,tags,ok,more,deep,data,_ok,confidence,risk,error_code,error_message,",
        "input_tokens,output_tokens,cost,currency\n",
        "0,,,,,,,false,0,high,E4002,\"slow, again\",,,,\n",
        "1,,,false,,\"{\"\"é\"\":1.50}\",,true,,none,,,,,,\n",
        "2,\"say \"\"x\"\",\nthen y\",\"[\"\"a\"\",{\"\"b\"\":1}]\",,,,,true,0.5,low,,,7,8,0.25,USD\n",
        "3,,,,,,[1],true,,,,,,,,\n",
    );
    assert_eq!(place.text(), expected);
    assert_eq!(place.files(), ["out", "out.journal", "out.results"]);
}

#[tokio::test]
async fn csv_reads_back_as_the_fields() {
    let place = Place::new();
    let mut results = place.results(&LINES).await;
    let mut bytes = Vec::new();
    place.output(Format::Csv, Order::Free).write(&mut results, &mut bytes).unwrap();
    let mut reader = ::csv::Reader::from_reader(bytes.as_slice());
    let rows: Vec<_> = reader.records().map(|row| row.unwrap()).collect();
    assert_eq!(rows.iter().map(|row| row[0].to_owned()).collect::<Vec<_>>(), ["2", "0", "1", "3"]);
    assert_eq!(&rows[0][1], "say \"x\",\nthen y");
}

#[tokio::test]
async fn json_lines_contain_each_row_once_with_its_newest_result() {
    let place = Place::new();
    drop(place.results(&LINES).await);
    let newest = r#"{"row":0,"ok":true}"#;
    let mut results = place.results(&[(0, newest)]).await;
    let texts = [LINES[0].1, LINES[2].1, LINES[3].1];
    let output = place.output(Format::JsonLines, Order::Input);
    output.write_file(&mut results, &place.out()).unwrap();
    assert_eq!(place.text(), format!("{newest}\n{}\n{}\n{}\n", texts[1], texts[0], texts[2]));
    let output = place.output(Format::JsonLines, Order::Free);
    output.finish(results, &place.out()).unwrap();
    assert_eq!(place.text(), format!("{}\n{}\n{}\n{newest}\n", texts[0], texts[1], texts[2]));
    assert_eq!(place.files(), ["out"]);
}

/// Returns the bytes that this thread has read.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let counts = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn results_that_finished_in_any_order_are_read_once() {
    let place = Place::new();
    let line = format!(r#"{{"ok":true,"text":"{}"}}"#, "x".repeat(1_000));
    let rows = 0..4_096;
    let scrambled: Vec<_> = rows.map(|row| (row * 2_399 % 4_096, line.as_str())).collect();
    let mut results = place.results(&scrambled).await;
    let before = bytes_read();
    place.output(Format::JsonLines, Order::Input).write(&mut results, &mut std::io::sink()).unwrap();
    let read = bytes_read() - before;
    let needed = scrambled.len() * (line.len() + 1 + RECORD_LEN);
    assert!(read < needed as u64 * 11 / 10, "{read} bytes for {needed}");
}

#[cfg(unix)]
#[tokio::test]
async fn results_without_replaced_lines_become_the_output() {
    use std::os::unix::fs::MetadataExt as _;
    let place = Place::new();
    let results = place.results(&LINES).await;
    let file = std::fs::metadata(&results.paths().results).unwrap().ino();
    place.output(Format::JsonLines, Order::Free).finish(results, &place.out()).unwrap();
    assert_eq!(place.text(), LINES.map(|(_, line)| format!("{line}\n")).concat());
    assert_eq!(std::fs::metadata(place.out()).unwrap().ino(), file);
    assert_eq!(place.files(), ["out"]);
}

#[cfg(unix)]
#[tokio::test]
async fn an_output_that_is_already_linked_is_finished() {
    let place = Place::new();
    let results = place.results(&LINES).await;
    std::fs::hard_link(&results.paths().results, place.out()).unwrap();
    place.output(Format::JsonLines, Order::Free).finish(results, &place.out()).unwrap();
    assert_eq!(place.files(), ["out"]);
}

#[tokio::test]
async fn rows_with_damaged_results_are_named_and_have_no_result_any_more() {
    let place = Place::new();
    for format in [Format::JsonLines, Format::Csv] {
        let mut results = place.results(&LINES).await;
        let path = results.paths().results.clone();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("slow", "fast")).unwrap();
        let output = place.output(format, Order::Input);
        let error = output.write_file(&mut results, &place.out()).unwrap_err();
        let expected = format!("{}: damaged results: 1, the first is of row 0", path.display());
        assert_eq!(error.to_string(), expected);
        assert!(!place.out().exists());
        drop(results);
        let paths = JournalPaths::beside(&place.out());
        let (_, finished) = Journal::open(&paths, &Description::default(), Resume::Same).unwrap();
        assert!(!finished.contains(0) && finished.len() == 3, "{finished:?}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_an_error_with_the_path() {
    let place = Place::new();
    let mut results = place.results(&LINES).await;
    std::os::unix::fs::symlink("/dev/full", place.out()).unwrap();
    let output = place.output(Format::JsonLines, Order::Input);
    let error = output.write_file(&mut results, &place.out()).unwrap_err();
    assert!(error.to_string().starts_with(&place.out().display().to_string()), "{error}");
    assert!(error.suggestion().starts_with("Free space"), "{error:?}");
}

#[tokio::test]
async fn an_output_in_a_missing_directory_is_an_error_with_the_path() {
    let place = Place::new();
    let results = place.results(&LINES).await;
    let path = place.out().join("missing/out");
    let error = place.output(Format::Csv, Order::Input).finish(results, &path).unwrap_err();
    assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    assert_eq!(place.files(), ["out.journal", "out.results"]);
}

#[tokio::test]
async fn too_many_fields_are_an_error() {
    let place = Place::new();
    let fields: Vec<_> = (0..5000).map(|index| format!("\"f{index}\":1")).collect();
    let line = format!(r#"{{"row":0,"ok":true,"data":{{{}}}}}"#, fields.join(","));
    let mut results = place.results(&[(0, &line)]).await;
    let error = place.output(Format::Csv, Order::Input).write(&mut results, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, WriteError::TooManyColumns { .. }), "{error}");
}

#[cfg(feature = "arrow")]
mod tables {
    use arrow_array::{RecordBatch, cast::AsArray as _, types::Int64Type};

    use super::*;

    fn read(place: &Place, format: Format) -> Vec<RecordBatch> {
        let file = std::fs::File::open(place.out()).unwrap();
        match format {
            Format::Arrow => {
                arrow_ipc::reader::FileReader::try_new(file, None).unwrap().collect::<Result<_, _>>().unwrap()
            }
            _ => {
                let builder =
                    ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
                builder.with_batch_size(1 << 20).build().unwrap().collect::<Result<_, _>>().unwrap()
            }
        }
    }

    #[tokio::test]
    async fn tables_have_the_rows_in_their_order() {
        let place = Place::new();
        let schema = crate::Columns::from_contract(&place.contract).to_arrow();
        for format in [Format::Arrow, Format::Parquet] {
            for (order, expected) in [(Order::Input, [0, 1, 2, 3]), (Order::Free, [2, 0, 1, 3])] {
                let mut results = place.results(&LINES).await;
                place.output(format, order).write_file(&mut results, &place.out()).unwrap();
                results.remove().unwrap();
                let batches = read(&place, format);
                assert_eq!(batches.len(), 1);
                assert_eq!(batches[0].schema().fields(), schema.fields());
                assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().values(), &expected);
                let codes = batches[0].column_by_name("error_code").unwrap().as_string::<i32>();
                assert_eq!(codes.iter().flatten().collect::<Vec<_>>(), ["E4002"]);
                let unmapped = batches[0].column_by_name("unmapped").unwrap().as_string::<i32>();
                assert_eq!(unmapped.iter().flatten().count(), 3, "/more, /deep and [1]");
            }
        }
    }

    #[tokio::test]
    async fn batch_without_rows_is_a_table_without_rows() {
        for format in [Format::Arrow, Format::Parquet] {
            let place = Place::new();
            let mut results = place.results(&[]).await;
            place.output(format, Order::Input).write_file(&mut results, &place.out()).unwrap();
            assert_eq!(read(&place, format).iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
        }
    }

    #[tokio::test]
    async fn large_results_are_written_in_several_record_batches() {
        let place = Place::new();
        let label = "x".repeat(3 << 20);
        let line = |row| format!(r#"{{"row":{row},"ok":true,"meta":{{}},"data":{{"label":"{label}"}}}}"#);
        let lines: Vec<_> = (0..7).map(|row| (row, line(row))).collect();
        let lines: Vec<_> = lines.iter().map(|(row, line)| (*row, line.as_str())).collect();
        let mut results = place.results(&lines).await;
        place.output(Format::Arrow, Order::Input).write_file(&mut results, &place.out()).unwrap();
        let sizes: Vec<_> = read(&place, Format::Arrow).iter().map(RecordBatch::num_rows).collect();
        assert_eq!(sizes, [3, 3, 1]);
    }
}
