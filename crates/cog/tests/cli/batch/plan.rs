//! `--plan`: what a batch will need, before anything is sent.

use std::process::Command;

use cog_harmony::TokenCounter;
use cog_testkit::{Mock, Reply};
use serde_json::{Value, json};

use super::{ANSWER, batch, model, place};
use crate::support::{Place, snapshot, stderr, with_stdin};

/// A model with a price for each way.
const MODEL: &str = "gpt-6-luna";
/// A model whose tokenizer is published.
const COUNTED: &str = "gpt-4o";

/// A plan without a key, at the vendor's own address.
fn plan(place: &Place, args: &str) -> Command {
    let model = if args.contains("--model") { String::new() } else { format!("--model {MODEL}") };
    let args = format!("batch ./m {args} --provider openai {model}");
    place.cog(args.split_whitespace())
}

fn json_plan(mut command: Command) -> Value {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    crate::support::json(&output)
}

/// Rows of very different lengths, some of them equal.
fn rows(count: usize) -> String {
    let row = |row: usize| {
        let text = "Das ist ein Satz, and this is a sentence. ".repeat(row * row % 17);
        format!("{{\"text\": \"{}{text}\", \"count\": {}}}\n", row, row % 7)
    };
    (0..count).map(row).collect()
}

/// Counts the input tokens of a request as the vendor would.
fn tokens(request: &Value) -> u64 {
    let counter = TokenCounter::new(COUNTED);
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => counter.text(text),
        parts => {
            parts.as_array().unwrap().iter().map(|part| counter.text(part["text"].as_str().unwrap())).sum()
        }
    };
    let messages = request["messages"].as_array().unwrap();
    let schema = &request["response_format"]["json_schema"]["schema"];
    let schema = if schema.is_null() { 0 } else { counter.text(&schema.to_string()) };
    messages.iter().map(|message| text(message) + 4).sum::<u64>() + schema
}

#[test]
fn answers_are_expected_to_be_as_long_as_the_golden_ones_that_succeed() {
    let place = place();
    place.write("rows.jsonl", rows(100));
    let output = || {
        let planned = json_plan(plan(&place, &format!("rows.jsonl --plan --model {COUNTED}")));
        (planned["output"]["basis"].clone(), planned["output"]["per_row"].as_f64().unwrap())
    };
    assert_eq!(output().0, "sample");
    let text = "A long answer. ".repeat(100);
    let envelope = json!({ "ok": true, "meta": {}, "data": { "label": text } });
    let failed = json!({ "ok": false, "meta": {}, "error": { "code": "E2007", "message": text } });
    for (name, expected) in [("a", &envelope), ("b", &failed), ("c", &json!({ "_validate": {} }))] {
        place.write(&format!("m/tests/{name}.input.json"), r#"{"text": "x", "count": 1}"#);
        place.write(&format!("m/tests/{name}.expected.json"), expected.to_string());
    }
    let tokens = TokenCounter::new(COUNTED).text(&envelope.to_string());
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let expected = (Value::from("golden"), tokens as f64);
    assert_eq!(output(), expected);
}

#[cfg(feature = "nats")]
#[test]
fn plan_of_jobs_for_workers_has_the_prices_of_the_named_model() {
    let place = place();
    place.write("rows.jsonl", rows(1_000));
    let live = json_plan(plan(&place, "rows.jsonl --plan --concurrency 256"));
    let nats = json_plan(plan(&place, "rows.jsonl --plan --nats nats://127.0.0.1:1"));
    assert_eq!(nats["time"]["concurrency"], 256);
    assert!(nats["ways"][0]["cost_usd"].as_f64().unwrap() > 0.0, "{nats}");
    assert_eq!(nats, live);
    let unnamed = "batch ./m rows.jsonl --plan --nats nats://127.0.0.1:1";
    let unnamed = json_plan(place.cog(unnamed.split(' ')));
    assert_eq!((&unnamed["provider"], &unnamed["time"]["concurrency"]), (&Value::Null, &256.into()));
}

#[test]
fn plan_is_what_a_run_costs() {
    let place = place();
    let mock = Mock::start([Reply::text(ANSWER).usage(0, 44)]).counting(tokens);
    place.write("rows.jsonl", rows(1_500));
    let planned = json_plan(plan(&place, &format!("rows.jsonl --plan --model {COUNTED}")));
    assert_eq!((&planned["rows"]["run"], &planned["input"]["counted_rows"]), (&1_500.into(), &750.into()));
    assert_eq!(
        (&planned["input"]["tokenizer"], &planned["input"]["exact"]),
        (&"o200k_base".into(), &true.into())
    );
    assert_eq!(mock.requests().len(), 0);
    let args = format!("rows.jsonl -o out.jsonl --summary s.json --model {COUNTED}");
    let run = batch(&place, &mock, &args).output().unwrap();
    assert!(run.status.success(), "{}", stderr(&run));
    let summary: Value = serde_json::from_str(&place.read("s.json")).unwrap();
    let (plan, real) =
        (planned["input"]["total"].as_f64().unwrap(), summary["tokens"]["input"].as_f64().unwrap());
    assert!((plan / real - 1.0).abs() < 0.03, "planned {plan}, used {real}");
    let output = planned["output"]["per_row"].as_f64().unwrap();
    assert!((20.0..90.0).contains(&output), "{output}");
}

#[test]
fn plan_knows_the_journal_the_condition_and_duplicates() {
    let (place, mock) = (place(), Mock::start([Reply::text(ANSWER).usage(1, 321)]));
    place.write("rows.jsonl", rows(100) + &rows(20) + "no JSON\n");
    let args = "rows.jsonl -o out.jsonl --dedupe";
    let condition = "$.count != 3";
    let with_condition = |mut command: Command| {
        command.args(["--where", condition]);
        command
    };
    let sample = with_condition(batch(&place, &mock, &format!("{args} --sample 30"))).output().unwrap();
    assert!(sample.status.success(), "{}", stderr(&sample));
    let journal = place.read("out.jsonl.results");
    let planned = json_plan(with_condition(batch(&place, &mock, &format!("{args} --plan=json"))));
    let excluded = (0..100).chain(0..20).filter(|row| row % 7 == 3).count();
    let rows = json!({
        "read": 121, "run": 100 - 14 - 30, "earlier": 30, "excluded": excluded, "duplicates": 17, "unreadable": 1,
    });
    assert_eq!(planned["rows"], rows);
    let output = &planned["output"];
    assert_eq!((&output["basis"], &output["results"]), (&"results".into(), &30.into()));
    assert_eq!(output["per_row"], 321.0);
    assert_eq!(planned["time"]["assumes_seconds"], false);
    assert_eq!((mock.requests().len(), place.read("out.jsonl.results")), (30, journal));
    let go_on = with_condition(batch(&place, &mock, &format!("{args} --summary s.json"))).output().unwrap();
    assert_eq!(mock.requests().len(), 86, "{}", stderr(&go_on));
    let summary: Value = serde_json::from_str(&place.read("s.json")).unwrap();
    assert_eq!(summary["rows"]["duplicates"], 17);
}

#[test]
fn rows_that_do_not_fit_the_contract_do_not_lower_the_average() {
    let place = place();
    place.write("rows.jsonl", rows(10));
    let alone = json_plan(plan(&place, "rows.jsonl --plan"));
    place.write("rows.jsonl", rows(10) + &"{\"count\": \"many\"}\n".repeat(10));
    let mixed = json_plan(plan(&place, "rows.jsonl --plan"));
    assert_eq!((&mixed["rows"]["run"], &mixed["input"]["counted_rows"]), (&20.into(), &10.into()));
    assert_eq!(mixed["input"]["per_row"], alone["input"]["per_row"]);
    assert_eq!(mixed["input"]["total"], alone["input"]["total"]);
}

#[test]
fn plan_names_the_cheapest_way() {
    let place = place();
    place.write("rows.jsonl", rows(100));
    snapshot!("plan", plan(&place, "rows.jsonl --plan=human --rpm 10"));
    let long = format!("Label the text.\n{}", "Each label has a rule of its own. ".repeat(200));
    place.write("m/prompt.md", long);
    snapshot!(
        "plan_with_a_cache",
        plan(&place, "rows.jsonl --plan=human --concurrency 8 --max-tokens 20 --sample 50")
    );
    let args = "batch ./m rows.jsonl --plan=human --provider offline";
    snapshot!("plan_offline", place.cog(args.split_whitespace()));
    assert!(!place.path().join("-").exists());
}

#[test]
fn ways_have_their_prices_and_times() {
    let place = place();
    place
        .write("rows.jsonl", rows(100))
        .write("m/prompt.md", "Each label has a rule of its own. ".repeat(400));
    let planned = json_plan(plan(&place, "rows.jsonl --plan --tpm 1000"));
    let way = |name: &str| {
        planned["ways"].as_array().unwrap().iter().find(|way| way["name"] == name).unwrap().clone()
    };
    let cost = |name: &str| way(name)["cost_usd"].as_f64().unwrap();
    let number = |part: &str, name: &str| planned[part][name].as_f64().unwrap();
    assert!((cost("batch") / cost("live") - 0.5).abs() < 1e-3);
    assert!(cost("live_cached") < cost("batch"), "nearly all of the input is the same");
    assert_eq!(planned["cheapest"], "live_cached");
    let list = number("input", "total") * 0.1e-6 + number("output", "total") * 0.5e-6;
    assert!((cost("live") / list - 1.0).abs() < 0.01, "{} {list}", cost("live"));
    let minutes = (number("input", "total") + number("output", "total")) / 1000.0;
    let live = way("live");
    assert!((live["seconds"].as_f64().unwrap() / 60.0 / minutes - 1.0).abs() < 1e-6);
    assert_eq!((&live["limited_by"], &way("batch")["limited_by"]), (&"tpm".into(), &"vendor".into()));
}

#[test]
fn plan_reads_stdin_and_refuses_what_it_cannot_count() {
    let (place, mock) = (place(), model());
    let args = format!("batch ./m - --plan --format jsonl --provider openai --model {MODEL}");
    let output = with_stdin(place.cog(args.split_whitespace()), "\"one\"\n\"two\"\n{\"texts\": 1}\n");
    let planned = crate::support::json(&output);
    assert_eq!((&planned["rows"]["run"], &planned["input"]["counted_rows"]), (&3.into(), &2.into()));
    let empty = with_stdin(place.cog(args.split_whitespace()), "");
    assert_eq!(crate::support::json(&empty)["ways"][0]["cost_usd"], 0.0);
    place.write("rows.jsonl", rows(3));
    snapshot!("plan_without_output", batch(&place, &mock, "rows.jsonl"));
    snapshot!("plan_of_jobs", batch(&place, &mock, "rows.jsonl --plan --via openai"));
    place.write("m/prompt.md", "@call:code-reviewer\nLabel the text.");
    let composed = "name: m\nversion: 1.0.0\ntier: decision\nresponsibility: Labels a text.\ncomposition:\n  pattern: sequential\n  requires:\n    - name: code-reviewer\n";
    place.write("m/module.yaml", composed);
    snapshot!("plan_of_parts", batch(&place, &mock, "rows.jsonl --plan"));
    assert_eq!(mock.requests().len(), 0);
}
