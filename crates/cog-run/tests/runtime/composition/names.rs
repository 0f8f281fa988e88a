//! Several results of one module.

use cog_run::RunOptions;

use super::support::{Bench, MAP, Says, answer, code, partial_data, parts, result};

/// Three pages are read, and merged.
fn pages(pattern: &str) -> String {
    format!(
        "composition:
  pattern: {pattern}
  requires: [{{name: page, optional: true}}]
  dataflow:
    - {{from: input, to: page, as: first, mapping: {{query: $.query, extra: 1}}}}
    - {{from: input, to: page, as: second, mapping: {{query: $.query, extra: 2}}}}
    - {{from: input, to: page, mapping: {{query: $.query}}}}
    - {{from: [first.output, second.output, page.output], to: merge,
         mapping: {{query: $.first.data.result, extra: $.*.data.result}}}}
    - {{from: merge.output, to: output, {MAP}}}"
    )
    .replace(", extra: 1", "")
    .replace(", extra: 2", "")
}

#[tokio::test]
async fn each_step_has_its_own_result() {
    for pattern in ["sequential", "parallel", "conditional"] {
        let replies: [(&str, &[Says]); 1] = [("page", &[result("a"), result("b"), result("c")])];
        let bench = Bench::new(&pages(pattern), "", &["page", "merge"], &replies);
        let envelope = bench.run().await;
        assert_eq!(answer(&envelope), "merge");
        let received = &bench.provider.received("merge")[0];
        let expected = r#"{"query":"a","extra":["a","b","c"]}"#;
        assert!(received.contains(expected), "{pattern}: {received}");
        assert_eq!(parts(&envelope), ["first done", "second done", "page done", "merge done"], "{pattern}");
        let modules: Vec<&str> =
            envelope.meta.runtime.parts.iter().map(|part| part.module.as_str()).collect();
        assert_eq!(modules, ["page", "page", "page", "merge"]);
    }
}

#[tokio::test]
async fn calls_have_names_and_are_named_again() {
    let prompt = "A: @call:page(one)[as=first] B: @call:page(two {{first.data.result}}) C: @call:page D: {{first.data.result}}";
    let replies: [(&str, &[Says]); 1] = [("page", &[result("a"), result("b")])];
    let bench = Bench::new("", prompt, &["page"], &replies);
    let envelope = bench.run().await;
    assert_eq!(answer(&envelope), "whole");
    assert_eq!(bench.provider.called(), ["page", "page", "whole"]);
    assert!(bench.provider.received("page")[1].contains("two a"), "{:?}", bench.provider.received("page"));
    let own = &bench.provider.received("whole")[0];
    let data = |text: &str| format!(r#"{{"result":"{text}","rationale":"because"}}"#);
    let expected = format!("A: {} B: {} C: {} D: a", data("a"), data("b"), data("b"));
    assert!(own.starts_with(&expected), "{own}");
    assert_eq!(parts(&envelope), ["first done", "page done"]);
}

#[tokio::test]
async fn call_is_in_the_prompt_twice_and_runs_once() {
    let bench = Bench::new("", "A: @call:page(one)[optional] B: @call:page", &["page"], &[]);
    assert_eq!(answer(&bench.run().await), "whole");
    assert_eq!(bench.provider.called(), ["page", "whole"]);
    let own = &bench.provider.received("whole")[0];
    assert_eq!(own.matches(r#"{"result":"page","rationale":"because"}"#).count(), 2, "{own}");
}

#[tokio::test]
async fn failed_result_is_named() {
    let composition = pages("sequential").replace(", optional: true", "");
    let replies: [(&str, &[Says]); 1] = [("page", &[result("a"), Says::Text("no".to_owned())])];
    let bench = Bench::new(&composition, "", &["page", "merge"], &replies);
    let envelope = bench.run().await;
    assert_eq!(code(&envelope), "E3002");
    assert!(envelope.error().unwrap().message.contains("the part `second` failed"), "{:?}", envelope.error());
    assert_eq!(
        partial_data(&envelope),
        serde_json::json!({"first": {"result": "a", "rationale": "because"}})
    );
    let optional = Bench::new(&pages("sequential"), "", &["page", "merge"], &replies);
    let envelope = optional.run().await;
    assert_eq!(answer(&envelope), "merge");
    assert_eq!(parts(&envelope), ["first done", "second failed", "page failed", "merge done"]);
}

#[tokio::test]
async fn unnamed_steps_to_one_module_do_not_run() {
    let composition = pages("parallel").replace(", as: second", "");
    let bench = Bench::new(&composition, "", &["page", "merge"], &[]);
    let envelope = bench.run_with(RunOptions::default()).await;
    assert_eq!(code(&envelope), "E4008");
    let message = &envelope.error().unwrap().message;
    assert!(message.contains("`page` runs twice, but has one result (module.yaml:"), "{message}");
    assert!(envelope.error().unwrap().suggestion.as_ref().unwrap().contains("as: NAME"));
    assert!(bench.provider.called().is_empty());
}
