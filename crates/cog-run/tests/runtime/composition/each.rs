//! Steps that run for each element of a list.

use std::time::Duration;

use cog_json::Value;
use cog_run::{
    CancelReason, Cancellation, ModuleRef, RunInput, RunOptions,
    sessions::{ResumeFrom, RunSpec, SessionSettings, Sessions, StartFrom},
};
use cog_spec::{Chunk, Envelope, WarningCode};
use serde_json::json;

use super::support::{Bench, Says, code, partial_data, parts, result, session_of};

/// Reads each page of `extra`, and puts the results together.
fn pages(requires: &str, more: &str) -> String {
    format!(
        "composition:
  requires: [{{name: page{requires}}}]
  dataflow:
    - {{from: input, to: page, each: '$.extra', mapping: {{query: item.name, extra: index}}{more}}}
    - {{from: page.output, to: output, mapping: {{result: '$.data[*].result', more: $.data, rationale: \"'joined'\"}}}}"
    )
}

/// Returns an input with so many pages.
fn list(pages: usize) -> Value {
    let pages: Vec<_> = (0..pages).map(|page| json!({"name": format!("p{page}")})).collect();
    Value::from(json!({"query": "why?", "extra": pages}))
}

async fn run(bench: &Bench, input: Value, options: RunOptions) -> Envelope {
    let module = bench.runtime.load(ModuleRef::Name("whole")).unwrap();
    bench.runtime.run(&module, RunInput::Json(input), options).await
}

fn once() -> RunOptions {
    RunOptions { max_attempts: Some(1), ..RunOptions::default() }
}

/// Returns a member of the data.
fn data(envelope: &Envelope, name: &str) -> serde_json::Value {
    let data = envelope.data().unwrap_or_else(|| panic!("{:?}", envelope.error()));
    data.get(name).unwrap().to_serde()
}

/// Returns the reply to each page, in the order of the pages: calls that start together have any order.
fn replies_by_page(bench: &Bench, replies: usize) -> Vec<String> {
    let received = bench.provider.received("page");
    let page = |page: usize| received.iter().position(|text| text.contains(&format!("\"p{page}\""))).unwrap();
    (0..replies).map(|number| format!("r{}", page(number))).collect()
}

#[tokio::test(start_paused = true)]
async fn results_have_the_order_of_the_list_and_a_limit_holds() {
    // Later calls end earlier.
    let replies: Vec<Says> =
        (0..10).map(|page| Says::Late(Duration::from_millis(1000 - 50 * page), format!("r{page}"))).collect();
    for (more, max_open) in [(", max_parallel: 3", 3), ("", 4), (", max_parallel: 100", 4)] {
        let bench = Bench::new(&pages("", more), "", &["page"], &[("page", &replies)]);
        let envelope = run(&bench, list(10), once()).await;
        assert_eq!(data(&envelope, "result"), json!(replies_by_page(&bench, 10)), "{more}");
        assert_eq!(bench.provider.max_open(), max_open, "{more}");
        let received = bench.provider.received("page");
        assert!(received.iter().any(|text| text.contains(r#"{"query":"p9","extra":9}"#)), "{received:?}");
        let mut paths = parts(&envelope);
        paths.sort();
        assert_eq!((paths.len(), paths[0].as_str()), (10, "page[10] done"));
    }
}

#[tokio::test]
async fn list_without_elements_gives_one_without_elements() {
    for input in
        [json!({"query": "q", "extra": []}), json!({"query": "q"}), json!({"query": "q", "extra": null})]
    {
        let bench = Bench::new(&pages("", ""), "", &["page"], &[]);
        let envelope = run(&bench, Value::from(input), once()).await;
        assert_eq!((data(&envelope, "result"), data(&envelope, "more")), (json!([]), json!([])));
        assert_eq!(parts(&envelope), ["page skipped"]);
    }
}

#[tokio::test]
async fn what_is_no_list_or_too_long_is_refused_before_a_call() {
    for (input, expected, message) in [
        (list(100_000), "E1005", "`each` selects 100000 elements; the maximum is 10000"),
        (Value::from(json!({"query": "q", "extra": {"a": 1}})), "E1003", "`each` selects object, not a list"),
    ] {
        let bench = Bench::new(&pages("", ""), "", &["page"], &[]);
        let envelope = run(&bench, input, once()).await;
        assert_eq!(code(&envelope), expected);
        let error = envelope.error().unwrap();
        assert!(error.message.contains(message) && error.suggestion.is_some(), "{}", error.message);
        assert!(bench.provider.called().is_empty());
    }
}

fn second_fails() -> [Says; 3] {
    [result("a"), Says::Text("not JSON".to_owned()), result("c")]
}

#[tokio::test]
async fn optional_element_that_fails_is_null() {
    let composition = pages(", optional: true", ", max_parallel: 1");
    let bench = Bench::new(&composition, "", &["page"], &[("page", &second_fails())]);
    let envelope = run(&bench, list(4), once()).await;
    assert_eq!(data(&envelope, "result"), json!(["a", "c", "c"]));
    assert_eq!(data(&envelope, "more")[1], json!(null));
    assert_eq!(parts(&envelope), ["page[1] done", "page[2] failed", "page[3] done", "page[4] done"]);
    let warnings: Vec<_> =
        envelope.warnings.iter().filter(|warning| warning.code == WarningCode::OptionalPartFailed).collect();
    assert!(
        warnings[0].message.starts_with("1 of 4 optional elements failed; the first: `page[2]`: E1000"),
        "{warnings:?}"
    );
    assert_eq!(warnings.len(), 1);
}

#[tokio::test]
async fn required_element_that_fails_ends_the_composition_with_the_others() {
    let composition = pages("", ", max_parallel: 1");
    let bench = Bench::new(&composition, "", &["page"], &[("page", &second_fails())]);
    let envelope = run(&bench, list(4), once()).await;
    assert_eq!((code(&envelope), bench.provider.called().len()), ("E3002", 2));
    assert!(envelope.error().unwrap().message.starts_with("the part `page[2]` failed"));
    let first = json!({"result": "a", "rationale": "because"});
    assert_eq!(partial_data(&envelope), json!({"page": [first, null, null, null]}));
}

#[tokio::test]
async fn fallback_answers_for_an_element() {
    let composition =
        pages(", fallback: spare", ", max_parallel: 1, as: sheet").replace("page.output", "sheet.output");
    let bench = Bench::new(&composition, "", &["page", "spare"], &[("page", &second_fails())]);
    let envelope = run(&bench, list(3), once()).await;
    assert_eq!(data(&envelope, "result"), json!(["a", "spare", "c"]));
    assert_eq!(parts(&envelope), ["sheet[1] done", "sheet[2] failed", "spare[2] done", "sheet[3] done"]);
    assert!(bench.provider.received("spare")[0].contains(r#"{"query":"p1","extra":1}"#));
}

#[tokio::test(start_paused = true)]
async fn cancelled_run_cancels_all_elements() {
    let bench = Bench::new(&pages("", ""), "", &["page"], &[("page", &[Says::Never])]);
    let cancellation = Cancellation::default();
    let cancel = async {
        while bench.provider.open() < 4 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        cancellation.cancel(CancelReason::Cancelled);
    };
    let options = RunOptions { cancellation: cancellation.clone(), ..once() };
    let (envelope, ()) = tokio::join!(run(&bench, list(100), options), cancel);
    assert_eq!((code(&envelope), bench.provider.open(), bench.provider.called().len()), ("E2010", 0, 4));
    assert!(parts(&envelope).iter().all(|part| part.ends_with("cancelled")), "{:?}", parts(&envelope));
}

#[tokio::test]
async fn elements_are_parts_of_the_stream() {
    let bench = Bench::new(&pages("", ", max_parallel: 1"), "", &["page"], &[]);
    let module = bench.runtime.load(ModuleRef::Name("whole")).unwrap();
    let mut stream =
        bench.runtime.prepare(&module, RunInput::Json(list(3)), once(), Default::default()).unwrap();
    let mut done = Vec::new();
    while let Some(chunk) = stream.next().await {
        if let Chunk::Progress(progress) = chunk
            && let Some(report) = progress.part.and_then(|part| part.report)
        {
            done.push((report.path, progress.percent));
        }
    }
    let expected = [("page[1]", 30), ("page[2]", 60), ("page[3]", 90)];
    assert_eq!(done, expected.map(|(path, percent)| (path.to_owned(), percent)));
}

#[tokio::test]
async fn rule_starts_a_step_for_each_element() {
    let composition = "composition:
  requires: [{name: one}, {name: page}]
  dataflow:
    - {from: input, to: one, mapping: {query: $.query}}
    - {from: input, to: page, each: $.extra, mapping: {query: item.name}}
    - {from: [one.output, page.output], to: output,
       mapping: {result: '$.page.data[*].result', more: $.one.data.result, rationale: \"'x'\"}}
  routing:
    - {next: page}";
    let bench = Bench::new(composition, "", &["one", "page"], &[]);
    let envelope = run(&bench, list(2), once()).await;
    assert_eq!((data(&envelope, "result"), data(&envelope, "more")), (json!(["page", "page"]), json!("one")));
}

#[tokio::test]
async fn interrupted_list_continues_with_the_elements_that_are_not_done() {
    let replies = [result("a"), result("b"), Says::Never, result("c"), result("d")];
    let bench = Bench::new(&pages("", ", max_parallel: 1"), "", &["page"], &[("page", &replies)]);
    let directory = tempfile::tempdir().unwrap();
    let settings =
        || SessionSettings { state_dir: Some(directory.path().to_path_buf()), ..SessionSettings::default() };
    let sessions = Sessions::open(settings()).unwrap();
    let module = bench.runtime.load(ModuleRef::Name("whole")).unwrap();
    let spec = RunSpec::new("whole", list(4));
    let session = sessions.prepare(&bench.runtime, &module, spec, session_of("alice")).unwrap().start();
    let mut subscriber = session.follow(StartFrom::Beginning);
    bench.read_until(&mut subscriber, "page", 3).await;
    let id = session.id().to_owned();
    drop((subscriber, session));
    sessions.idle().await;
    drop(sessions);

    let sessions = Sessions::open(settings()).unwrap();
    let from = ResumeFrom::default();
    let mut resumed =
        sessions.resume(&bench.runtime, &id, "alice", from, Default::default(), Box::new(())).await.unwrap();
    let mut last = Value::null();
    while let Some(batch) = resumed.next().await {
        last = batch.entries().last().map_or(last, |entry| Value::parse(entry.json).unwrap());
    }
    assert_eq!(last.pointer("/data/result").map(|list| list.to_serde()), Some(json!(["a", "b", "c", "d"])));
    let received = bench.provider.received("page");
    let counts: Vec<usize> = (0..4)
        .map(|page| received.iter().filter(|text| text.contains(&format!("\"p{page}\""))).count())
        .collect();
    assert_eq!(counts, [1, 1, 2, 1], "only the interrupted element runs again");
}
