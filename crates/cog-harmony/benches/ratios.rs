//! The time to trim messages, compared with parsing them.
//!
//! `cargo bench -p cog-harmony --features tokenizers` prints each ratio with its limit, and fails if one exceeds it. Both sides
//! run alternately, and the best run of each counts.

use std::hint::black_box;
use std::process::ExitCode;

use cog_harmony::{Conversation, TokenCounter, trim_messages};
use cog_json::Value;
use cog_testkit::bench::{limit, ratio};

fn main() -> ExitCode {
    let (long, longer) = (history(10_000), history(100_000));
    let own = TokenCounter::new("gpt-4o");
    let results = [
        limit(10.0, "trimming 10,000 messages ÷ parsing them", ratio(|| trim(&long, &own), || parse(&long))),
        limit(
            15.0,
            "trimming 100,000 messages ÷ 10,000",
            ratio(|| trim(&longer, &own), || trim(&long, &own)),
        ),
    ];
    if results.iter().all(|within| *within) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A conversation as JSON, and read.
struct History {
    json: String,
    conversation: Conversation,
}

fn history(messages: usize) -> History {
    let message = |at: usize| match at % 5 {
        0 => format!(
            r#"{{"id":"msg_{at}","role":"user","created_at":1715000000,"content":[{{"type":"text","text":"Question {at}: which of the pages describes the retry policy of the client, and what are its defaults?"}},{{"type":"image_url","image_url":{{"url":"https://example.com/{at}.png","detail":"high"}}}}]}}"#
        ),
        1 => format!(
            r#"{{"id":"msg_{at}","role":"assistant","content":null,"tool_calls":[{{"id":"call_{at}_a","type":"function","function":{{"name":"search","arguments":"{{\"query\":\"retry policy {at}\",\"limit\":10}}"}}}},{{"id":"call_{at}_b","type":"function","function":{{"name":"read_page","arguments":"{{\"page\":{at}}}"}}}}]}}"#
        ),
        2 => format!(
            r#"{{"id":"msg_{at}","role":"tool","tool_call_id":"call_{}_a","name":"search","content":"{{\"status\":\"success\",\"results\":[{{\"title\":\"Retries\",\"snippet\":\"A request is repeated up to three times, with a delay that doubles after each attempt and a random part.\"}}]}}"}}"#,
            at - 1
        ),
        3 => format!(
            r#"{{"id":"msg_{at}","role":"tool","tool_call_id":"call_{}_b","content":"{{\"status\":\"error\",\"error_type\":\"NotFound\",\"message\":\"page {at} does not exist\"}}"}}"#,
            at - 2
        ),
        _ => format!(
            r#"{{"id":"msg_{at}","role":"assistant","content":"The client repeats a request up to three times. The delay doubles after each attempt, and a random part is added to it. Page {at} has the details and an example of a policy with other values."}}"#
        ),
    };
    let json = format!("[{}]", (0..messages).map(message).collect::<Vec<_>>().join(","));
    let conversation = read(&json);
    History { json, conversation }
}

fn read(json: &str) -> Conversation {
    let value = Value::parse(json).unwrap_or_default();
    Conversation::read(value.node()).unwrap_or_default()
}

fn parse(history: &History) {
    black_box(read(black_box(&history.json)));
}

/// Trims to about half, which includes a copy of the conversation.
fn trim(history: &History, counter: &TokenCounter) {
    let limit = history.conversation.messages().len() as u64 * 25;
    let trimmed = trim_messages(black_box(history.conversation.clone()), limit, counter);
    assert!(trimmed.is_ok_and(|trimmed| !trimmed.removed.is_empty()));
}
