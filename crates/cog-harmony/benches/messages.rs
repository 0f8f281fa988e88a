//! The time to check and convert messages, compared with parsing and writing them.
//!
//! `cargo bench -p cog-harmony --bench messages` prints each ratio with its limit, and fails if one exceeds it. Both sides run
//! alternately, and the best run of each counts.

use std::hint::black_box;
use std::process::ExitCode;

use cog_harmony::{Conversation, Format, check, write_as};
use cog_json::{ToJson, Value};
use cog_testkit::bench::{limit, ratio};

fn main() -> ExitCode {
    let (long, longer) = (history(10_000), history(100_000));
    let value = Value::parse(&long).unwrap_or_default();
    let many = Value::parse(&longer).unwrap_or_default();
    let conversation = Conversation::read(value.node()).unwrap_or_default();
    let mut results = vec![
        limit(10.0, "checking 10,000 messages ÷ parsing them", ratio(|| verify(&value), || parse(&long))),
        limit(10.0, "checking 100,000 messages ÷ parsing them", ratio(|| verify(&many), || parse(&longer))),
    ];
    for (name, format) in Format::NAMES.iter().zip(Format::ALL) {
        let what = format!("converting 10,000 messages to {name} ÷ writing them");
        let convert = || drop(black_box(write_as(black_box(&conversation), format)));
        results.push(limit(2.0, &what, ratio(convert, || drop(black_box(conversation.to_json())))));
    }
    if results.iter().all(|within| *within) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn history(messages: usize) -> String {
    let message = |at: usize| match at % 4 {
        0 => format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"Question {at}: which of the pages describes the retry policy of the client, and what are its defaults?"}},{{"type":"image_url","image_url":{{"url":"https://example.com/{at}.png"}}}}]}}"#
        ),
        1 => format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{at}","type":"function","function":{{"name":"search","arguments":"{{\"query\":\"retry policy {at}\",\"limit\":10}}"}}}}]}}"#
        ),
        2 => format!(
            r#"{{"role":"tool","tool_call_id":"call_{}","name":"search","content":"{{\"status\":\"success\",\"results\":[{{\"title\":\"Retries\",\"snippet\":\"A request is repeated up to three times, with a delay that doubles after each attempt.\"}}]}}"}}"#,
            at - 1
        ),
        _ => format!(
            r#"{{"role":"assistant","content":"The client repeats a request up to three times. The delay doubles after each attempt, and a random part is added to it. Page {at} has the details."}}"#
        ),
    };
    format!("[{}]", (0..messages).map(message).collect::<Vec<_>>().join(","))
}

fn parse(text: &str) {
    black_box(Value::parse(black_box(text)).is_ok());
}

fn verify(messages: &Value) {
    assert!(check(black_box(messages.node()), None).is_empty());
}
