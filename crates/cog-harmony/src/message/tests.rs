use cog_json::{ToJson, Value};

use super::*;
use crate::Problem;

fn read(text: &str) -> Result<Message, Vec<Problem>> {
    Message::read(Value::parse(text).unwrap().node(), "messages[0]")
}

/// Reads the text, which must be right, and writes it again.
fn again(text: &str) -> String {
    read(text).unwrap().to_json()
}

/// The problems of the text, each as `path rule`.
fn problems(text: &str) -> Vec<String> {
    read(text)
        .unwrap_err()
        .into_iter()
        .map(|problem| format!("{} {}", problem.path, problem.rule.name))
        .collect()
}

#[test]
fn every_part_round_trips() {
    let text = concat!(
        r#"{"id":"msg_1","role":"user","name":"ResearchAgent_01","created_at":1715000000,"content":["#,
        r#"{"type":"text","text":"look","index":0},"#,
        r#"{"type":"image_url","image_url":{"url":"https://e.org/a.jpg","detail":"high","rotation":0}},"#,
        r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="},"#,
        r#""video_metadata":{"video_id":"vid","timestamp_sec":12.5,"frame_index":300}},"#,
        r#"{"type":"input_audio","input_audio":{"data":"AAA=","format":"wav","sample_rate":24000}}],"#,
        r#""metadata":{"trace_id":"t"}}"#,
    );
    assert_eq!(Value::parse(&again(text)).unwrap(), Value::parse(text).unwrap());
}

#[test]
fn plain_string_is_one_text_part() {
    assert_eq!(
        again(r#"{"role":"user","content":"hi"}"#),
        r#"{"role":"user","content":[{"type":"text","text":"hi"}]}"#
    );
    assert_eq!(again(r#"{"role":"assistant","content":"hi"}"#), r#"{"role":"assistant","content":"hi"}"#);
}

#[test]
fn text_is_that_of_all_text_parts() {
    let image = r#"{"type":"image_url","image_url":{"url":"https://e.org/a.jpg"}}"#;
    let content = [r#"{"type":"text","text":"a "}"#, image, r#"{"type":"text","text":"cat"}"#].join(",");
    let message = read(&format!(r#"{{"role":"user","content":[{content}]}}"#)).unwrap();
    assert_eq!(message.text(), "a cat");
}

#[test]
fn assistant_may_only_call_tools() {
    let text = concat!(
        r#"{"role":"assistant","content":null,"tool_calls":["#,
        r#"{"id":"call_1","type":"function","function":{"name":"search","arguments":"{\"q\":1}"}}]}"#,
    );
    assert_eq!(again(text), text);
}

#[test]
fn refuses_arguments_as_an_object() {
    let text = concat!(
        r#"{"role":"assistant","content":null,"tool_calls":["#,
        r#"{"id":"call_1","type":"function","function":{"name":"search","arguments":{"q":1}}}]}"#,
    );
    assert_eq!(problems(text), ["messages[0].tool_calls[0].function.arguments arguments-type"]);
    let problem = read(text).unwrap_err().remove(0);
    assert_eq!(problem.message, "found object, expected a string that contains JSON");
}

#[test]
fn reports_every_problem_of_a_message() {
    let text = r#"{"role":"robot","content":[{"type":"text"},{"type":"video"},{"type":"image_url",
        "image_url":{"url":1,"detail":"best"}}],"created_at":"now","metadata":[]}"#;
    assert_eq!(
        problems(text),
        [
            "messages[0].role enum",
            "messages[0].content[0].text required",
            "messages[0].content[1].type enum",
            "messages[0].content[2].image_url.detail enum",
            "messages[0].content[2].image_url.url type",
            "messages[0].created_at type",
            "messages[0].metadata type",
        ]
    );
}

#[test]
fn content_is_required_of_user_and_system() {
    assert_eq!(problems(r#"{"role":"user"}"#), ["messages[0].content required"]);
    assert_eq!(problems(r#"{"role":"system","content":null}"#), ["messages[0].content required"]);
    assert_eq!(problems(r#"{"role":"assistant","content":1}"#), ["messages[0].content type"]);
    assert_eq!(again(r#"{"role":"assistant"}"#), r#"{"role":"assistant","content":null}"#);
    assert_eq!(again(r#"{"role":"user","content":[]}"#), r#"{"role":"user","content":[]}"#);
}

#[test]
fn tool_message_names_its_call() {
    assert_eq!(problems(r#"{"role":"tool","content":"{}"}"#), ["messages[0].tool_call_id required"]);
}

#[test]
fn conversation_is_an_array() {
    let read = |text: &str| Conversation::read(Value::parse(text).unwrap().node());
    assert_eq!(read(r#"[{"role":"user","content":"a"}]"#).unwrap().messages().len(), 1);
    assert_eq!(read("{}").unwrap_err().remove(0).message, "found object, expected an array of messages");
    assert_eq!(read("[1]").unwrap_err().remove(0).path, "messages[0]");
}
