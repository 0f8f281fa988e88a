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

#[test]
fn content_has_the_length_of_its_texts_and_data() {
    let refusal = Part::Refusal(crate::RefusalPart { refusal: "no".to_owned(), other: None });
    let parts = vec![
        Part::text("é"),
        Part::image_at("https:"),
        Part::media("audio/wav", "QQ==".to_owned()),
        Part::media("application/pdf", "QUE=".to_owned()),
        refusal,
    ];
    let conversation = Conversation::new([Message::new(Role::User, parts), Message::user("abc")]);
    assert_eq!(conversation.content_len(), 2 + 6 + 4 + 4 + 2 + 3);
}

#[test]
fn numbers_that_are_exact_integers_have_no_fraction() {
    for (number, expected) in [
        ("1715000000.0", "1715000000,"),
        ("-9007199254740991", "-9007199254740991,"),
        ("9007199254740992", "9007199254740992.0,"),
        ("0.5", "0.5,"),
    ] {
        let text = again(&format!(r#"{{"role":"user","created_at":{number},"content":"a"}}"#));
        assert!(text.contains(&format!(r#""created_at":{expected}"#)), "{text}");
    }
}

#[test]
fn members_in_another_form_stay() {
    let other = |members: &str| {
        let text = format!(r#"{{"role":"developer","content":"a",{members}}}"#);
        let message = read(&text).unwrap();
        (message.reasoning.is_some(), message.other.unwrap().to_json())
    };
    let developer = r#"{"role":"developer"}"#.to_owned();
    assert_eq!(other(r#""reasoning":{"provider":"p","items":[]}"#), (true, developer));
    for reasoning in [r#""x""#, r#"{"provider":"p","items":1}"#, r#"{"provider":"p","items":[],"x":1}"#] {
        let members = format!(r#""reasoning":{reasoning}"#);
        assert_eq!(other(&members), (false, format!(r#"{{"role":"developer",{members}}}"#)));
        let assistant = read(&format!(r#"{{"role":"assistant","content":"a",{members}}}"#)).unwrap();
        assert_eq!(assistant.other.unwrap().to_json(), format!("{{{members}}}"));
    }
}

#[test]
fn problem_shows_the_start_of_a_long_value() {
    let message =
        |role: &str| read(&format!(r#"{{"role":"{role}","content":"a"}}"#)).unwrap_err().remove(0).message;
    assert_eq!(message("robot"), "`robot` is not one of user, assistant, system, tool");
    assert!(message(&"é".repeat(41)).starts_with(&format!("`{}` is", "é".repeat(40))));
}
