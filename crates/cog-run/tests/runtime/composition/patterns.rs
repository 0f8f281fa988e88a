//! The order of the steps, and where the answer comes from.

use cog_spec::Risk;

use super::support::{Bench, MAP, Says, answer, code, parts, result};

#[tokio::test]
async fn steps_run_in_order_and_pass_their_values_on() {
    let bench = Bench::two(&[("one", &[result("from one")])]);
    let envelope = bench.run().await;
    assert_eq!(answer(&envelope), "two");
    assert_eq!(bench.provider.called(), ["one", "two"]);
    assert!(bench.provider.received("two")[0].contains(r#"{"query":"from one"}"#));
    assert_eq!(parts(&envelope), ["one done", "two done"]);
    assert_eq!(envelope.usage().map(|usage| (usage.input_tokens, usage.output_tokens)), Some((20, 2)));
    assert_eq!(envelope.meta.runtime.parts[0].version.as_deref(), Some("1.0.0"));
}

#[tokio::test(start_paused = true)]
async fn parallel_steps_run_at_the_same_time() {
    let composition = format!(
        "composition:
  pattern: parallel
  requires: [{{name: a}}, {{name: b}}, {{name: c}}]
  dataflow:
    - {{from: input, to: a}}
    - {{from: input, to: b}}
    - {{from: [a.output, b.output], to: c, mapping: {{query: $.a.data.result, extra: $.b.data.result}}}}
    - {{from: c.output, to: output, {MAP}}}"
    );
    let late = |text: &str| [Says::Late(std::time::Duration::from_secs(1), text.to_owned())];
    let bench = Bench::new(&composition, "", &["a", "b", "c"], &[("a", &late("a")), ("b", &late("b"))]);
    let envelope = bench.run().await;
    assert_eq!(answer(&envelope), "c");
    assert_eq!((bench.provider.max_open(), bench.provider.called().last().unwrap().as_str()), (2, "c"));
    assert!(bench.provider.received("c")[0].contains(r#"{"query":"a","extra":"b"}"#));
}

#[tokio::test(start_paused = true)]
async fn parts_at_the_same_time_have_a_limit() {
    let names: Vec<String> = (0..10).map(|number| format!("part-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let requires: Vec<String> = names.iter().map(|name| format!("{{name: {name}}}")).collect();
    let composition = format!(
        "composition:
  requires: [{}]
  dataflow:
    - {{from: input, to: [{}]}}
    - {{from: part-9.output, to: output, {MAP}}}",
        requires.join(", "),
        names.join(", ")
    );
    let late = [Says::Late(std::time::Duration::from_millis(50), "late".to_owned())];
    let replies: Vec<(&str, &[Says])> = names.iter().map(|name| (*name, late.as_slice())).collect();
    let bench = Bench::new(&composition, "", &names, &replies);
    assert_eq!(answer(&bench.run().await), "late");
    assert_eq!(bench.provider.max_open(), 4);
}

#[tokio::test]
async fn condition_that_is_false_skips_its_step() {
    let composition = format!(
        "composition:
  requires: [{{name: one}}, {{name: two}}]
  dataflow:
    - {{from: input, to: one}}
    - {{from: one.output, to: two, condition: $.meta.confidence < 0.5, mapping: {{query: $.data.result}}}}
    - {{from: one.output, to: output, {MAP}}}"
    );
    let bench = Bench::new(&composition, "", &["one", "two"], &[]);
    let envelope = bench.run().await;
    assert_eq!(answer(&envelope), "one");
    assert_eq!(parts(&envelope), ["one done", "two skipped"]);
}

fn routed() -> &'static str {
    "composition:
  pattern: conditional
  requires: [{name: one}, {name: two}]
  dataflow:
    - {from: input, to: one}
    - {from: one.output, to: two, mapping: {query: $.data.result}}
  routing:
    - {from: one.output, condition: $.meta.confidence >= 0.7, next: null}
    - {next: two}"
}

#[tokio::test]
async fn routing_chooses_the_answer_by_confidence() {
    let bench = Bench::new(routed(), "", &["one", "two"], &[]);
    assert_eq!(answer(&bench.run().await), "one");
    let unsure = [Says::Result("unsure".to_owned(), 0.4, "low")];
    let bench = Bench::new(routed(), "", &["one", "two"], &[("one", &unsure)]);
    let envelope = bench.run().await;
    assert_eq!(answer(&envelope), "two");
    assert_eq!(parts(&envelope), ["one done", "two done"]);
}

fn iterative(max_rounds: u32) -> String {
    format!(
        "composition:
  pattern: iterative
  requires: [{{name: writer}}, {{name: critic}}]
  dataflow:
    - {{from: [input, critic.output], to: writer, mapping: {{query: $.input.query, extra: $.critic.data.result}}}}
    - {{from: writer.output, to: critic, mapping: {{query: $.data.result}}}}
    - {{from: writer.output, to: output, {MAP}}}
  iteration: {{from: critic.output, until: $.data.result == 'good', max_rounds: {max_rounds}}}"
    )
}

#[tokio::test]
async fn rounds_end_when_their_condition_is_true() {
    let replies: [(&str, &[Says]); 2] =
        [("writer", &[result("first"), result("second")]), ("critic", &[result("bad"), result("good")])];
    let bench = Bench::new(&iterative(5), "", &["writer", "critic"], &replies);
    let envelope = bench.run().await;
    assert_eq!(answer(&envelope), "second");
    assert_eq!(parts(&envelope), ["writer done", "critic done", "writer[2] done", "critic[2] done"]);
    let received = bench.provider.received("writer");
    assert!(received[0].contains(r#"{"query":"why?"}"#), "{}", received[0]);
    assert!(received[1].contains(r#"{"query":"why?","extra":"bad"}"#), "{}", received[1]);
}

#[tokio::test]
async fn rounds_have_a_maximum() {
    let bench = Bench::new(&iterative(3), "", &["writer", "critic"], &[]);
    assert_eq!(answer(&bench.run().await), "writer");
    assert_eq!(bench.provider.called().len(), 6);
}

#[tokio::test]
async fn risk_is_the_maximum_of_the_parts_and_confidence_their_minimum() {
    let composition = |more: &str| {
        format!(
            "{more}
composition:
  requires: [{{name: one}}, {{name: two}}]
  dataflow:
    - {{from: input, to: [one, two]}}
    - {{from: two.output, to: output, {MAP}}}"
        )
    };
    let replies: [(&str, &[Says]); 2] = [
        ("one", &[Says::Result("1".to_owned(), 0.6, "high")]),
        ("two", &[Says::Result("2".to_owned(), 0.8, "low")]),
    ];
    let bench = Bench::new(&composition(""), "", &["one", "two"], &replies);
    let envelope = bench.run().await;
    assert_eq!((envelope.meta.risk.level(), envelope.meta.confidence), (Risk::High, Some(0.6)));
    let explicit = composition("meta: {risk_rule: explicit}");
    let bench = Bench::new(&explicit, "", &["one", "two"], &replies);
    assert_eq!(bench.run().await.meta.risk.level(), Risk::Low, "the risk of the last part");
    let own = explicit.replace(
        "two.output, to: output",
        "two.output, to: whole, mapping: {query: $.data.result}}\n    - {from: whole.output, to: output",
    );
    let replies = [replies[0], replies[1], ("whole", &[Says::Result("own".to_owned(), 0.7, "medium")][..])];
    let bench = Bench::new(&own, "Answer.", &["one", "two"], &replies);
    let envelope = bench.run().await;
    assert_eq!((envelope.meta.risk.level(), envelope.meta.confidence), (Risk::Medium, Some(0.7)));
}

#[tokio::test]
async fn own_prompt_answers_from_the_results() {
    let composition = "composition:
  requires: [{name: one}]
  dataflow:
    - {from: input, to: one}";
    let prompt = "One says {{one.data.result}} at {{one.meta.confidence}}, not {{one.data.more}}.";
    let replies: [(&str, &[Says]); 2] = [
        ("one", &[Says::Result("{{one.ok}} $INPUT".to_owned(), 0.5, "high")]),
        ("whole", &[Says::Result("own".to_owned(), 0.8, "low")]),
    ];
    let bench = Bench::new(composition, prompt, &["one"], &replies);
    let envelope = bench.run().await;
    assert_eq!(answer(&envelope), "own");
    let own = &bench.provider.received("whole")[0];
    assert!(own.starts_with("One says {{one.ok}} $INPUT at 0.5, not null."), "{own}");
    assert_eq!((envelope.meta.confidence, envelope.meta.risk.level()), (Some(0.8), Risk::High));
    assert_eq!(envelope.usage().map(|usage| usage.input_tokens), Some(20));
}

#[tokio::test]
async fn composition_without_a_result_is_an_error() {
    let composition = format!(
        "composition:
  requires: [{{name: one}}]
  dataflow:
    - {{from: input, to: one, condition: \"exists($.extra)\"}}
    - {{from: one.output, to: output, {MAP}}}"
    );
    let bench = Bench::new(&composition, "", &["one"], &[]);
    let envelope = bench.run().await;
    assert_eq!(code(&envelope), "E2004");
    assert!(bench.provider.called().is_empty());
}
