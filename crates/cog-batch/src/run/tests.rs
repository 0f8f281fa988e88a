use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::SeqCst},
};

use super::*;
use crate::{
    Concurrency, Description, Journal, JournalPaths, LineSink, Order, Resume, RowHash, RowInput, RowLocation,
    RowParser,
};

/// Returns rows that add their number plus one to a sum when they are parsed.
fn rows(count: u64, parsed: &Arc<AtomicU64>) -> Rows {
    let sum = Arc::clone(parsed);
    let parser: Arc<RowParser> = Arc::new(move |text| {
        let input = Value::parse_bytes(text).unwrap();
        let code = input.get("code").and_then(|code| code.as_str()).unwrap();
        sum.fetch_add(code.parse::<u64>().unwrap() + 1, SeqCst);
        Ok(ParsedRow { input, carried: String::new() })
    });
    let row = |number: u64| {
        let text = format!("{{\"code\": \"{number}\"}}");
        let input = RowInput::new(RowLocation::Line(number + 1), Ok(text.into()), Arc::clone(&parser));
        Row { number, hash: RowHash::from_bytes(b"row"), input }
    };
    Rows::from_vec((0..count).map(row).collect())
}

fn batch(dedupes: bool) -> Batch {
    let runtime = Runtime::offline();
    let module = runtime.load("code-reviewer").unwrap();
    Batch {
        runtime,
        module,
        options: RunOptions::default(),
        context: RunContext::default(),
        pace: Pace::new(Concurrency::Fixed(2), None, None),
        filter: None,
        sample: None,
        max_cost: None,
        max_failures: None,
        warms_cache: false,
        retries_failed: false,
        dedupes,
        allows_changes: false,
        runner: None,
        via: None,
    }
}

#[tokio::test]
async fn resumed_batch_parses_only_what_it_needs() {
    let directory = tempfile::tempdir().unwrap();
    let paths = JournalPaths::beside(&directory.path().join("out"));
    let open = || Journal::open(&paths, &Description::default(), Resume::Same).unwrap();
    let (journal, _) = open();
    for row in 0..3 {
        journal.append(&RowResult::from_line(row, RowHash::from_bytes(b"row"), true, b"{}")).await.unwrap();
    }
    drop(journal.close().await.unwrap());
    for (dedupes, sum) in [(false, 4 + 5), (true, 1 + 2 + 3 + 4 + 5)] {
        let (_journal, finished) = open();
        let parsed = Arc::default();
        let mut sink = LineSink::new(std::io::sink(), Order::Free);
        let view = View { every: Duration::from_secs(3600), show: &mut |_| {} };
        let never = async || std::future::pending::<()>().await;
        let summary = batch(dedupes).run(rows(5, &parsed), &finished, &mut sink, never, view).await;
        assert_eq!((summary.rows.read, summary.rows.earlier), (5, 3));
        assert_eq!(parsed.load(SeqCst), sum, "dedupe: {dedupes}");
    }
}

#[tokio::test]
async fn tokens_of_a_row_are_those_of_its_request_and_answer() {
    let batch = batch(false);
    let input = |code: &str| run_input(Value::from(serde_json::json!({ "code": code })));
    let tokens = RowTokens::new(&batch, &input("let a = 1;")).await.unwrap();
    let short = tokens.count(&input("let a = 1;"), "{}");
    assert!(short > 100, "the prompt counts: {short}");
    let long = tokens.count(&input(&"let a = 1; ".repeat(100)), "{}");
    assert!(long > short + 400, "{short} {long}");
    assert!(tokens.count(&input("let a = 1;"), &"a word ".repeat(100)) > short + 100);
}
