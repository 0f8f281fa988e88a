use cog_json::{ToJson as _, Value};

use super::*;
use crate::Document;

/// Two calls at the same time, one of which is halted; the cost of the second reply is unknown.
const TRACE: &str = r#"[
  {"role": "user", "created_at": 100.0, "content": "Which order is late?"},
  {"role": "assistant", "created_at": 100.2, "content": null, "tool_calls": [
    {"id": "a", "type": "function", "function": {"name": "find", "arguments": "{\"q\": 1}"}},
    {"id": "b", "type": "function", "function": {"name": "delete", "arguments": "{}"}},
    {"id": "c", "type": "function", "function": {"name": "lost", "arguments": "{}"}}],
   "metadata": {"latency_ms": {"ttft": 150, "total_time": 200}, "model_version": "gpt-6-luna",
     "token_usage": {"prompt_tokens": 100, "completion_tokens": 10, "cached_input_tokens": 60, "reasoning_tokens": 4,
       "total_cost_usd": 0.001}}},
  {"role": "tool", "tool_call_id": "a", "created_at": 100.5, "content": "{\"status\": \"success\"}",
   "metadata": {"latency_ms": {"ttft": null, "total_time": 250}}},
  {"role": "tool", "tool_call_id": "b", "created_at": 100.5, "content": "{\"status\":\"halted\"}"},
  {"role": "assistant", "created_at": 101.0, "content": "Order 4411.",
   "metadata": {"latency_ms": {"ttft": 1, "total_time": 400}, "model_version": "gpt-6-sol",
     "token_usage": {"prompt_tokens": 200, "completion_tokens": 20, "total_cost_usd": null}}}
]"#;

fn conversation(text: &str) -> Conversation {
    Conversation::read(Document::parse(text).unwrap().messages().unwrap()).unwrap()
}

#[test]
fn times_are_relative_to_the_first_start() {
    let conversation = conversation(TRACE);
    let timeline = Timeline::new(&conversation);
    let times: Vec<_> = timeline.messages.iter().map(|entry| (entry.start_ms, entry.duration_ms)).collect();
    assert_eq!(times[..2], [(Some(0), None), (Some(0), Some(200))]);
    assert_eq!(times[2..4], [(Some(250), Some(250)), (Some(500), None)]);
    let Totals { duration_ms, model_ms, tool_ms, .. } = timeline.totals;
    assert_eq!((duration_ms, model_ms, tool_ms), (Some(1000), 600, 250));
}

#[test]
fn results_have_their_tool_and_status() {
    let conversation = conversation(TRACE);
    let timeline = Timeline::new(&conversation);
    let result = &timeline.messages[3].content[0];
    let Content::ToolResult { name, status, .. } = result else { panic!("{result:?}") };
    assert_eq!((*name, status.as_deref()), (Some("delete"), Some("halted")));
    let totals = &timeline.totals;
    assert_eq!((totals.tool_calls, totals.calls_without_result), (3, 1));
    assert_eq!(totals.results["halted"], 1);
    assert!(timeline.messages[4].is_answer);
}

#[test]
fn sum_with_an_unknown_term_is_unknown() {
    let conversation = conversation(TRACE);
    let totals = Timeline::new(&conversation).totals;
    assert_eq!((totals.input_tokens, totals.output_tokens), (Some(300), Some(30)));
    assert_eq!((totals.cost_usd, totals.without_cost), (None, 1));
    assert_eq!(totals.known.cost_usd.as_f64(), 0.001);
    assert_eq!((totals.known.cached_input_tokens, totals.known.reasoning_tokens), (60, 4));
}

#[test]
fn missing_and_invalid_metadata_is_unknown() {
    let conversation = conversation(
        r#"[{"role": "assistant", "content": "a", "metadata": {"latency_ms": "soon", "token_usage": [], "cost": -1}},
            {"role": "tool", "tool_call_id": "x", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
            {"role": "assistant", "content": "b", "metadata": {"token_usage": {"total_cost_usd": -1}}}]"#,
    );
    let timeline = Timeline::new(&conversation);
    let usages: Vec<_> = timeline.messages.iter().map(|entry| entry.usage).collect();
    assert_eq!(usages, [Some(EntryUsage::default()), None, Some(EntryUsage::default())]);
    assert_eq!(timeline.messages[0].start_ms, None);
    assert_eq!(timeline.totals.duration_ms, None);
    let json = Value::parse(&timeline.to_json()).unwrap();
    assert!(json.pointer("/totals/cost_usd").unwrap().is_null());
    assert!(json.pointer("/messages/1/content/0/status").unwrap().is_null(), "{}", json.node());
}

#[test]
fn times_may_go_backwards() {
    let conversation = conversation(
        r#"[{"role": "user", "created_at": 20, "content": "a"}, {"role": "user", "created_at": 10.5, "content": "b"}]"#,
    );
    let timeline = Timeline::new(&conversation);
    let starts: Vec<_> = timeline.messages.iter().map(|entry| entry.start_ms).collect();
    assert_eq!(starts, [Some(9_500), Some(0)]);
}

#[test]
fn times_over_the_maximum_are_the_maximum() {
    let conversation = conversation(
        r#"[{"role": "user", "created_at": -1e308, "content": "a"}, {"role": "user", "created_at": 1e308, "content": "b"},
            {"role": "assistant", "created_at": 1e308, "content": "c",
             "metadata": {"latency_ms": {"total_time": 18446744073709551615}}}]"#,
    );
    let timeline = Timeline::new(&conversation);
    let starts: Vec<_> = timeline.messages.iter().map(|entry| entry.start_ms).collect();
    assert_eq!(starts, [Some(0), Some(u64::MAX), Some(u64::MAX)]);
    assert_eq!(timeline.totals.duration_ms, Some(u64::MAX));
}

#[test]
fn empty_conversation_has_no_totals() {
    let conversation = Conversation::default();
    let totals = Timeline::new(&conversation).totals;
    assert_eq!(
        (totals.messages, totals.input_tokens, totals.cost_usd, totals.duration_ms),
        (0, None, None, None)
    );
}

#[test]
fn metadata_of_a_message_has_its_usage_and_flags() {
    let entry = |role: &str, metadata: &str| {
        let text = format!(
            r#"[{{"role": "{role}", "tool_call_id": "a", "content": "a", "metadata": {{{metadata}}}}}]"#
        );
        let conversation = conversation(&text);
        let entry = Timeline::new(&conversation).messages.remove(0);
        let cost = entry.usage.map(|usage| (usage.input_tokens, usage.cost_usd.map(|cost| cost.as_f64())));
        (cost, entry.flagged)
    };
    let tokens = r#""token_usage": {"prompt_tokens": 7}"#;
    let usd = r#""cost": {"amount": 0.5, "currency": "USD", "source": "genai-prices", "date": "2026-11-22"}"#;
    for (role, metadata, usage) in [
        ("user", "", None),
        ("user", tokens, Some((Some(7), None))),
        ("tool", usd, Some((None, Some(0.5)))),
        ("assistant", "", Some((None, None))),
    ] {
        assert_eq!(entry(role, metadata).0, usage, "{role} {metadata}");
    }
    for (check, flags) in [
        (r#"{"flagged": true, "categories": ["refusal"]}"#, &["refusal"][..]),
        (r#"{"flagged": true}"#, &["flagged"]),
        (r#"{"flagged": false, "categories": ["refusal"]}"#, &[]),
    ] {
        assert_eq!(entry("assistant", &format!(r#""safety_check": {check}"#)).1, flags);
    }
}

#[test]
fn replies_without_all_tokens_are_counted() {
    let reply = |tokens: &str| {
        format!(r#"{{"role": "assistant", "content": "a", "metadata": {{"token_usage": {{{tokens}}}}}}}"#)
    };
    let [input, both] = [r#""prompt_tokens": 1"#, r#""prompt_tokens": 1, "completion_tokens": 2"#];
    let conversation = conversation(&format!("[{},{},{}]", reply(input), reply(both), reply("")));
    let totals = Timeline::new(&conversation).totals;
    assert_eq!((totals.replies, totals.without_tokens, totals.without_cost), (3, 2, 3));
    assert_eq!((totals.input_tokens, totals.known.input_tokens), (None, 2));
}

#[test]
fn reply_with_calls_is_not_the_answer() {
    let conversation = conversation(
        r#"[{"role": "assistant", "content": "a", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}]"#,
    );
    assert!(!Timeline::new(&conversation).messages[0].is_answer);
}
