use cog_json::Value;

use super::*;

/// Checks the text, and returns each problem as `path rule`.
fn problems(text: &str) -> Vec<String> {
    let value = Value::parse(text).unwrap();
    let found = check(value.node(), None);
    found.into_iter().map(|problem| format!("{} {}", problem.path, problem.rule)).collect()
}

const CALL: &str = r#"{"role":"assistant","content":null,"tool_calls":[
    {"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},
    {"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}"#;

fn result(id: &str) -> String {
    format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{{}}"}}"#)
}

fn history(messages: &[&str]) -> Vec<String> {
    problems(&format!("[{}]", messages.join(",")))
}

#[test]
fn complete_history_has_no_problems() {
    let user = r#"{"role":"user","content":"hi"}"#;
    assert_eq!(history(&[user, CALL, &result("a"), &result("b"), user]), [""; 0]);
}

#[test]
fn results_are_paired_with_their_calls() {
    let user = r#"{"role":"user","content":"hi"}"#;
    assert_eq!(history(&[CALL, &result("a")]), ["messages[0].tool_calls[1] result-missing"]);
    assert_eq!(
        history(&[CALL, &result("a"), &result("a"), &result("b")]),
        ["messages[2].tool_call_id result-repeated"]
    );
    assert_eq!(
        history(&[CALL, &result("a"), &result("b"), &result("c")]),
        ["messages[3].tool_call_id result-unknown"]
    );
    assert_eq!(history(&[CALL, &result("a"), user, &result("b")]), ["messages[3] result-place"]);
    assert_eq!(history(&[&result("a"), CALL, &result("b")]), ["messages[0] result-place"]);
    assert_eq!(history(&[CALL, &result("b"), &result("a")]), ["messages[2] result-order"]);
    assert_eq!(
        history(&[&result("a"), CALL, &result("a"), &result("b")]),
        ["messages[0].tool_call_id result-repeated"]
    );
    let named = r#"{"role":"tool","tool_call_id":"a","name":"g","content":"{}"}"#;
    assert_eq!(history(&[CALL, named, &result("b")]), ["messages[1].name result-name"]);
}

#[test]
fn calls_and_results_are_in_messages_of_their_role() {
    let call = r#"{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}"#;
    let user = format!(r#"{{"role":"user","content":"x","tool_calls":[{call}],"tool_call_id":"a"}}"#);
    assert_eq!(history(&[&user]), ["messages[0].tool_calls call-role", "messages[0].tool_call_id call-role"]);
}

#[test]
fn identifiers_are_unique() {
    let message = r#"{"id":"m","role":"user","content":"x"}"#;
    assert_eq!(history(&[message, message]), ["messages[1].id message-id"]);
    assert_eq!(
        history(&[CALL, &result("a"), &result("b"), CALL]),
        ["messages[3].tool_calls[0].id call-id", "messages[3].tool_calls[1].id call-id"]
    );
}

#[test]
fn agents_need_names_if_several_speak() {
    let named = |name: &str| format!(r#"{{"role":"assistant","name":"{name}","content":"x"}}"#);
    let unnamed = r#"{"role":"assistant","content":"x"}"#;
    assert_eq!(history(&[&named("a"), &named("b"), unnamed]), ["messages[2].name name"]);
    assert_eq!(history(&[&named("a"), unnamed]), ["messages[1].name name-unclear"]);
    assert_eq!(history(&[unnamed, unnamed]), [""; 0]);
    let ada = r#"{"role":"user","name":"Ada","content":"x"}"#;
    let user = r#"{"role":"user","content":"x"}"#;
    assert_eq!(history(&[ada, user]), [""; 0], "one user has a name");
}

fn arguments(text: &str) -> Vec<(String, String)> {
    let arguments = cog_json::ToJson::to_json(text);
    let call = format!(r#"{{"id":"a","type":"function","function":{{"name":"f","arguments":{arguments}}}}}"#);
    let text = format!(r#"[{{"role":"assistant","tool_calls":[{call}]}},{}]"#, result("a"));
    let value = Value::parse(&text).unwrap();
    let found = check(value.node(), None);
    found.into_iter().map(|problem| (problem.rule.to_string(), problem.message)).collect()
}

#[test]
fn arguments_are_a_json_object() {
    assert_eq!(arguments(r#"{"a": {"b": [1]}}"#), []);
    for (text, expected) in [
        ("", "the text is empty, expected a JSON object"),
        ("[1]", "found array, expected a JSON object"),
        (r#"{"a": [1, 2"#, "the JSON is truncated"),
        (r#"{"a": tru}"#, "not JSON"),
        ("{'a': 1}", "not JSON"),
    ] {
        let found = arguments(text);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(found[0].0, "arguments-json", "{text}");
        assert!(found[0].1.starts_with(expected), "{text}: {}", found[0].1);
    }
    let duplicate = arguments(r#"{"a": {"b": 1, "b": 2}}"#);
    assert_eq!(duplicate, [("arguments-key".to_owned(), "the key `a.b` occurs more than once".to_owned())]);
}

#[test]
fn large_arguments_are_read() {
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(1 << 20));
    assert_eq!(arguments(&large), []);
    let (truncated, _) = large.split_at(1 << 19);
    assert!(arguments(truncated)[0].1.starts_with("the JSON is truncated"));
    let keys = format!("{{{}}}", vec![r#""k":1"#; 200_000].join(","));
    assert_eq!(arguments(&keys)[0].0, "arguments-key");
}

#[test]
fn binary_data_in_text_is_an_error() {
    let png = format!("iVBORw0KGgo{}", "A".repeat(245));
    let blob = "aB3".repeat(2000);
    for (text, expected) in [
        ("a\u{0}b".to_owned(), "found the control character U+0000 at byte 1"),
        (format!("see {png}"), "found base64 of a PNG image at byte 4"),
        (
            "data:video/mp4;base64,AAAAGGZ0eXBtcDQyAAAA".to_owned(),
            "found a `data:` URL of video/mp4 at byte 22",
        ),
        (format!("<img src=\"data:image/png;base64,{png}\">"), "found a `data:` URL of image/png at byte 32"),
        (format!("AAAAGGZ0eXBtcDQy{}", "A".repeat(240)), "found base64 of an MP4 file at byte 0"),
        (blob, "found 6000 bytes of base64 at byte 0"),
        ("\u{fffd}PNG\u{fffd}\u{fffd}".repeat(8), "found 24 replacement characters: the bytes are not text"),
    ] {
        let message = Value::parse(&format!(
            r#"[{{"role":"user","content":[{{"type":"text","text":{}}}]}}]"#,
            cog_json::ToJson::to_json(text.as_str())
        ))
        .unwrap();
        let found = check(message.node(), None);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(found[0].path, "messages[0].content[0].text");
        assert_eq!(found[0].message, expected);
    }
}

#[test]
fn ordinary_text_is_not_binary() {
    for text in [
        "Grüße, 世界! \u{1b}[31mred\u{1b}[0m\tand\r\nlines",
        &"loremipsum".repeat(1000),
        &"LoremIpsum".repeat(1000),
        &"lorem1psum".repeat(1000),
        &"LOREM1PSUM".repeat(1000),
        &format!("iVBORw0KGgo{}", "A".repeat(244)),
        &"，".repeat(100),
        "\u{fffd}",
        &format!("{}{}", "\u{fffd}".repeat(8), " word".repeat(100)),
        "data:audio/wav;base64,QQ==",
        &"-".repeat(10_000),
        "data:image/gif;base64,R0lGODlhAQABAAAAACw=",
        "the word data:video/mp4;base64, alone",
        "a replacement \u{fffd} or two \u{fffd}",
    ] {
        let message = cog_json::ToJson::to_json(text);
        assert_eq!(problems(&format!(r#"[{{"role":"user","content":{message}}}]"#)), [""; 0], "{text}");
    }
}

#[test]
fn media_is_in_the_part_of_its_kind() {
    let image = |url: &str| {
        format!(r#"{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"{url}"}}}}]}}"#)
    };
    let audio = |audio: &str| {
        format!(r#"{{"role":"user","content":[{{"type":"input_audio","input_audio":{audio}}}]}}"#)
    };
    let at = "messages[0].content[0]";
    for (message, expected) in [
        (image("https://e.org/a.png?x=.mp4"), None),
        (image("data:image/png;base64,QQ=="), Some(".image_url.url image-inline")),
        (image("data:video/mp4;base64,QQ=="), Some(".image_url.url image-type")),
        (image("https://e.org/clip.MP4?sig=1"), Some(".image_url.url image-type")),
        (audio(r#"{"data":"QQ==","format":"wav"}"#), None),
        (
            audio(r#"{"data":"data:audio/wav;base64,QQ==","format":"wav"}"#),
            Some(".input_audio.data audio-data"),
        ),
        (audio(r#"{"data":"QQ==","format":"pcm16"}"#), Some(".input_audio.sample_rate audio-rate")),
    ] {
        let expected: Vec<String> = expected.into_iter().map(|end| format!("{at}{end}")).collect();
        assert_eq!(history(&[&message]), expected, "{message}");
    }
}

#[test]
fn model_refuses_parts_that_it_does_not_accept() {
    let value = Value::parse(
        r#"[{"role":"user","content":[{"type":"text","text":"a"},
        {"type":"image_url","image_url":{"url":"https://e.org/a.png"}},
        {"type":"input_audio","input_audio":{"data":"QQ==","format":"wav"}},
        {"type":"file","file":{"file_id":"f"}}]}]"#,
    )
    .unwrap();
    let found = |images, image_urls, others| -> Vec<String> {
        let model = "x/y".to_owned();
        let audio = others;
        let documents = others;
        let model = PartSupport { model, images, image_urls, audio, documents };
        check(value.node(), Some(&model)).into_iter().map(|found| found.message).collect()
    };
    let others = ["x/y accepts no audio", "x/y accepts no files"];
    assert_eq!(found(true, true, true), [""; 0]);
    assert_eq!(found(true, true, false), others);
    assert_eq!(found(true, false, true), ["x/y accepts images only as base64"]);
    assert_eq!(found(false, false, true), ["x/y accepts no images"]);
}

#[test]
fn failed_tool_reports_type_and_message() {
    let call = r#"{"role":"assistant","content":null,"tool_calls":[
        {"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let tool = |content: &str| {
        let content = cog_json::ToJson::to_json(content);
        history(&[call, &format!(r#"{{"role":"tool","tool_call_id":"a","content":{content}}}"#)])
    };
    assert_eq!(tool(r#"{"status":"error","error_type":"X","message":"y"}"#), [""; 0]);
    assert_eq!(tool(r#"{"status":"error","message":"y"}"#), ["messages[1].content result-error"]);
    assert_eq!(tool("no JSON at all"), [""; 0]);
}

#[test]
fn every_violation_at_once_is_reported_within_the_limit() {
    let bad = r#"{"id":"m","role":"robot","content":[1,{"type":"x"},{"type":"text"}],"tool_calls":[1],"tool_call_id":2}"#;
    let text = format!("[{}]", vec![bad; 10_000].join(","));
    let value = Value::parse(&text).unwrap();
    let found = check(value.node(), None);
    assert_eq!(found.len(), 1001);
    assert_eq!(found[1000].rule.name, "more");
}

#[test]
fn rules_have_names_of_their_own() {
    let mut names: Vec<&str> = crate::rules::RULES.iter().map(|rule| rule.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn only_errors_make_a_history_invalid() {
    assert!(crate::rules::REQUIRED.is_error() && !crate::rules::ROLE.is_error());
}
