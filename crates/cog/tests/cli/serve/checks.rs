//! Named checks in a stream over server-sent events.

use std::io::{BufRead as _, BufReader};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use super::Serving;
use crate::support::Place;

const MANIFEST: &str = "name: invoice
version: 1.0.0
responsibility: Reads an invoice
tier: decision
excludes: []
response: {on_violation: retry}
checks:
  - name: total_is_the_sum
    that: sum($.data.items[*].amount) == $.data.total
    message: The total must be the sum of the amounts.
";

fn answer(total: u32) -> String {
    let items = json!([{ "name": "pen", "amount": 1.5 }, { "name": "ink", "amount": 2.5 }]);
    // In the order in which the model writes them: the check can fail before the summary.
    format!(
        r#"{{"ok": true, "meta": {{"confidence": 0.9, "risk": "low", "explain": "Read."}},
            "data": {{"items": {items}, "total": {total}, "summary": "{}", "rationale": "As written."}}}}"#,
        "Pens and ink were bought. ".repeat(200)
    )
}

/// The data of each event of a stream.
fn events(serving: &Serving, input: &Value) -> Vec<Value> {
    let head = "POST /v1/modules/invoice/execute HTTP/1.1\r\nAccept: text/event-stream\r\nConnection: close";
    let stream = BufReader::new(serving.send(head, &json!({ "input": input }).to_string()));
    let lines = stream.lines().map_while(Result::ok);
    let data = lines.filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok());
    data.collect()
}

#[test]
fn check_fails_half_way_and_the_retry_repairs_the_answer() {
    let place = Place::new();
    let number = json!({ "type": "number" });
    let item = json!({ "type": "object", "properties": { "name": { "type": "string" }, "amount": number } });
    let schema = json!({
        "input": { "type": "object", "properties": { "query": { "type": "string" } } },
        "meta": {},
        "data": {
            "type": "object",
            "required": ["items", "total", "summary", "rationale"],
            "properties": {
                "items": { "type": "array", "items": item },
                "total": number,
                "summary": { "type": "string" },
                "rationale": { "type": "string" }
            }
        },
        "error": {}
    });
    place
        .write("cognitive/modules/invoice/module.yaml", MANIFEST)
        .write("cognitive/modules/invoice/prompt.md", "Read the invoice.\n\n$INPUT\n")
        .write("cognitive/modules/invoice/schema.json", schema.to_string());
    let mock = Mock::start([Reply::text(answer(9)).packet_size(64), Reply::text(answer(4))]);
    let mut command = place.cog(["serve", "--port", "0"]);
    command.env("LLM_PROVIDER", "openai").env("OPENAI_API_KEY", "none").env("LLM_MODEL", "m");
    command.env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    let serving = Serving::start(command);
    let events = events(&serving, &json!({ "query": "Pen 1.50, ink 2.50." }));
    serving.signal("TERM");

    let at = |found: &dyn Fn(&Value) -> bool| events.iter().position(found);
    let failed =
        at(&|event| event["progress"]["violation"]["rule"] == "check:total_is_the_sum").expect("a violation");
    let violation = &events[failed]["progress"]["violation"];
    assert_eq!(
        violation["message"],
        "The total must be the sum of the amounts (`sum($.data.items[*].amount)` is 4, and `$.data.total` is 9)"
    );
    let summary = at(&|event| event["chunk"]["field"] == "data.summary").expect("a summary");
    assert!(failed < summary, "the first answer is stopped before its summary");
    assert_eq!(mock.request_count(), 2);
    let asked = mock.requests()[1].body["messages"].to_string();
    assert!(asked.contains("The total must be the sum of the amounts"), "{asked}");
    let last = events.last().expect("an end");
    assert_eq!((&last["final"], &last["data"]["total"]), (&json!(true), &json!(4)));
    // A reader that applies the chunks has what the end has.
    let retracted = at(&|event| event["chunk"]["type"] == "snapshot" && event["chunk"]["data"] == json!({}));
    assert!(
        retracted.is_some_and(|at| failed < at && at < summary),
        "what was sent of the first answer is taken back"
    );
}
