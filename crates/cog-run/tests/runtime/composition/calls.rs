//! `@call:` in prompts.

use std::time::Duration;

use super::support::{Bench, Says, answer, code, parts, result};

#[tokio::test]
async fn calls_pass_their_arguments_and_insert_their_results() {
    let prompt = "A: @call:a($ARGUMENTS again) B: @call:b({\"extra\": [1]}) C: @call:c";
    let bench = Bench::new("", prompt, &["a", "b", "c"], &[]);
    let envelope = bench.run().await;
    assert_eq!(answer(&envelope), "whole");
    assert_eq!(bench.provider.called(), ["a", "b", "c", "whole"]);
    assert!(bench.provider.received("a")[0].contains("why? again"), "{:?}", bench.provider.received("a"));
    assert!(bench.provider.received("b")[0].contains(r#"{"extra":[1]}"#));
    assert!(bench.provider.received("c")[0].contains(r#"{"query":"why?"}"#));
    let own = &bench.provider.received("whole")[0];
    let data = |name: &str| format!(r#"{{"result":"{name}","rationale":"because"}}"#);
    assert!(own.starts_with(&format!("A: {} B: {} C: {}", data("a"), data("b"), data("c"))), "{own}");
}

#[tokio::test(start_paused = true)]
async fn arguments_read_the_results_of_earlier_calls() {
    let late = [Says::Late(Duration::from_secs(1), "first".to_owned())];
    let bench = Bench::new("", "@call:a[async] @call:b({{a.data.result}})", &["a", "b"], &[("a", &late)]);
    assert_eq!(answer(&bench.run().await), "whole");
    assert!(
        bench.provider.received("b")[0].contains(r#"{"query":"first"}"#),
        "{:?}",
        bench.provider.received("b")
    );
}

#[tokio::test]
async fn placeholders_in_a_json_object_cannot_change_its_members() {
    let quoted = [result("say \"hi\", \\ and\n\"extra\": 1")];
    let prompt = r#"@call:a @call:b({"query": "it: {{a.data.result}}", "extra": {{a.data.result}}}) @call:c({"extra": [{{a.data}}, $0, "$INPUT"]})"#;
    let bench = Bench::new("", prompt, &["a", "b", "c"], &[("a", &quoted)]);
    assert_eq!(answer(&bench.run().await), "whole");
    let text = r#"say \"hi\", \\ and\n\"extra\": 1"#;
    let received = &bench.provider.received("b")[0];
    assert!(received.contains(&format!(r#"{{"query":"it: {text}","extra":"{text}"}}"#)), "{received}");
    let received = &bench.provider.received("c")[0];
    let data = format!(r#"{{"result":"{text}","rationale":"because"}}"#);
    assert!(
        received.contains(&format!(r#"{{"extra":[{data},"why?","{{\"query\":\"why?\"}}"]}}"#)),
        "{received}"
    );
}

#[tokio::test(start_paused = true)]
async fn asynchronous_calls_run_at_the_same_time() {
    let late = |text: &str| [Says::Late(Duration::from_secs(1), text.to_owned())];
    let (a, b) = (late("a"), late("b"));
    let bench = Bench::new("", "@call:a[async] @call:b[async]", &["a", "b"], &[("a", &a), ("b", &b)]);
    assert_eq!(answer(&bench.run().await), "whole");
    assert_eq!(bench.provider.max_open(), 2);
    let bench = Bench::new("", "@call:a @call:b", &["a", "b"], &[("a", &a), ("b", &b)]);
    assert_eq!(answer(&bench.run().await), "whole");
    assert_eq!(bench.provider.max_open(), 1);
}

#[tokio::test(start_paused = true)]
async fn call_that_is_optional_and_too_late_is_null() {
    let bench = Bench::new("", "It says @call:a[optional, timeout=2s].", &["a"], &[("a", &[Says::Never])]);
    let envelope = bench.run().await;
    assert!(bench.provider.received("whole")[0].starts_with("It says null."));
    assert_eq!(parts(&envelope), ["a failed"]);
    let codes: Vec<&str> = envelope.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes, ["W3002"]);
    assert_eq!(bench.provider.open(), 0);
}

#[tokio::test]
async fn tier_of_a_call_sets_the_thresholds() {
    let unsure = [Says::Result("unsure".to_owned(), 0.6, "low")];
    let bench = Bench::new("", "@call:a[tier=exec]", &["a"], &[("a", &unsure)]);
    let envelope = bench.run().await;
    assert_eq!(code(&envelope), "E3002");
    assert!(envelope.error().unwrap().message.contains("E2001"), "{:?}", envelope.error());
    let bench = Bench::new("", "@call:a", &["a"], &[("a", &unsure)]);
    assert_eq!(answer(&bench.run().await), "whole");
}

#[tokio::test]
async fn nested_modules_run_their_own_parts() {
    let bench = Bench::new("", "Whole: @call:middle", &["leaf"], &[("leaf", &[result("deep")])]);
    bench.module("middle", "", "Middle: {{leaf.data.result}} @call:leaf");
    let envelope = bench.run().await;
    assert_eq!(answer(&envelope), "whole");
    assert!(bench.provider.received("middle")[0].starts_with("Middle: deep"));
    assert_eq!(parts(&envelope), ["middle done", "middle/leaf done"]);
    assert_eq!(envelope.usage().map(|usage| usage.input_tokens), Some(30));
}
