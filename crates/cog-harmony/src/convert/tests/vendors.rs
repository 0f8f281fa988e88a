//! What each vendor's format has of its own.

use super::*;
use crate::{FileReferencePart, FileSource, Message, Part, RefusalPart, Role, ToolCall};

#[test]
fn formats_have_names() {
    for (name, format) in Format::NAMES.iter().zip(Format::ALL) {
        assert_eq!(Format::from_name(name), Some(format));
    }
    assert_eq!(Format::from_name("xml"), None);
}

#[test]
fn format_is_detected_by_what_only_it_has() {
    let documents = [
        ("[]", Format::Harmony),
        (r#"{"messages":[{"role":"user","content":"a"}]}"#, Format::Harmony),
        (r#"{"contents":[]}"#, Format::Gemini),
        (r#"{"systemInstruction":{}}"#, Format::Gemini),
        (r#"{"system_instruction":{}}"#, Format::Gemini),
        (r#"[{"role":"user"},{"parts":[]}]"#, Format::Gemini),
        (r#"{"input":[]}"#, Format::OpenAiResponses),
        (r#"{"output":[]}"#, Format::OpenAiResponses),
        (r#"{"instructions":"a"}"#, Format::OpenAiResponses),
        (r#"[{"type":"reasoning"}]"#, Format::OpenAiResponses),
        (r#"{"system":"a"}"#, Format::Anthropic),
    ];
    for (text, format) in documents {
        assert_eq!(detect(json(text).node()), format, "{text}");
    }
    for (kinds, format) in [
        (&["text", "image_url", "file"][..], Format::Harmony),
        (&["input_text", "output_text", "input_image", "input_file"], Format::OpenAiResponses),
        (
            &["tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"],
            Format::Anthropic,
        ),
    ] {
        for kind in kinds {
            let text = format!(r#"[{{"role":"user","content":[{{"type":"text"}},{{"type":"{kind}"}}]}}]"#);
            assert_eq!(detect(json(&text).node()), format, "{kind}");
        }
    }
}

/// A history of one user message with one part of the vendor.
fn with_part(format: Format, part: &str) -> String {
    match format {
        Format::Gemini => format!(r#"{{"contents":[{{"role":"user","parts":[{part}]}}]}}"#),
        Format::Anthropic => format!(r#"{{"messages":[{{"role":"user","content":[{part}]}}]}}"#),
        _ => format!(r#"[{{"role":"user","content":[{part}]}}]"#),
    }
}

#[test]
fn parts_of_vendors_are_parts_of_harmony() {
    let pdf = r#"{"type":"file","file":{"filename":"t","file_data":"data:application/pdf;base64,QQ=="}}"#;
    let id = r#"{"type":"file","file":{"file_id":"f"}}"#;
    let url = r#"{"type":"file","file":{"url":"https://e.org/a.pdf"}}"#;
    for (format, part, expected) in [
        (
            Format::Anthropic,
            r#"{"type":"document","title":"t","source":{"type":"base64","media_type":"application/pdf","data":"QQ=="}}"#,
            pdf,
        ),
        (Format::Anthropic, r#"{"type":"document","source":{"type":"file","file_id":"f"}}"#, id),
        (
            Format::Anthropic,
            r#"{"type":"document","source":{"type":"url","url":"https://e.org/a.pdf"}}"#,
            url,
        ),
        (
            Format::OpenAiResponses,
            r#"{"type":"input_file","filename":"t","file_data":"data:application/pdf;base64,QQ=="}"#,
            pdf,
        ),
        (Format::OpenAiResponses, r#"{"type":"input_file","file_id":"f"}"#, id),
        (Format::OpenAiResponses, r#"{"type":"input_file","file_url":"https://e.org/a.pdf"}"#, url),
        (
            Format::Gemini,
            r#"{"inlineData":{"mimeType":"audio/wav","data":"QQ=="}}"#,
            r#"{"type":"input_audio","input_audio":{"data":"QQ==","format":"wav"}}"#,
        ),
        (
            Format::Gemini,
            r#"{"inlineData":{"mimeType":"image/png","data":"QQ=="},"mediaResolution":{"level":"MEDIA_RESOLUTION_LOW"}}"#,
            r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ==","detail":"low"}}"#,
        ),
        (
            Format::Gemini,
            r#"{"fileData":{"fileUri":"https://e.org/a.png","mimeType":"image/png"}}"#,
            r#"{"type":"image_url","image_url":{"url":"https://e.org/a.png"}}"#,
        ),
        (
            Format::Gemini,
            r#"{"fileData":{"fileUri":"https://e.org/a.png","mimeType":"image/heic"}}"#,
            r#"{"type":"file","file":{"url":"https://e.org/a.png","media_type":"image/heic"}}"#,
        ),
    ] {
        let harmony = json(&round_trip(&with_part(format, part), format).text);
        let found = harmony.pointer("/0/content/0").map(Node::to_value);
        assert_eq!(found, Some(json(expected)), "{format:?} {part}");
    }
}

#[test]
fn members_that_only_a_vendor_has_come_back() {
    let error = r#""{\"status\":\"error\",\"error_type\":\"X\",\"message\":\"y\"}""#;
    let results = format!(
        r#"{{"messages":[{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"f","input":{{}}}},
            {{"type":"tool_use","id":"b","name":"f","input":{{}}}},{{"type":"tool_use","id":"c","name":"f","input":{{}}}}]}},
          {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a"}},
            {{"type":"tool_result","tool_use_id":"b","content":{error},"is_error":false}},
            {{"type":"tool_result","tool_use_id":"c","content":{error},"is_error":true,"cache_control":{{"type":"ephemeral"}}}}]}}]}}"#
    );
    for (format, text) in [
        (Format::Anthropic, results.as_str()),
        (
            Format::Anthropic,
            r#"{"messages":[{"role":"user","x":1,"content":[
              {"type":"image","source":{"type":"url","url":"https://e.org/a.png"},"cache_control":{"type":"ephemeral"}}]}]}"#,
        ),
        (
            Format::Gemini,
            r#"{"contents":[{"role":"user","x":1,"parts":[{"inlineData":{"mimeType":"image/png","data":"QQ=="},"y":2}]}]}"#,
        ),
        (
            Format::Gemini,
            r#"{"contents":[{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}}},{"functionCall":{"id":"b","name":"f","args":{}}}]},
              {"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","parts":[{"inlineData":{"mimeType":"image/png","data":"QQ=="}}]}},
                {"functionResponse":{"id":"b","name":"f","response":{"output":"x","n":1}}}]}]}"#,
        ),
        (
            Format::OpenAiResponses,
            r#"[{"type":"message","id":"m","role":"assistant","status":"completed","content":[
              {"type":"output_text","text":"a","annotations":[{"type":"url_citation"}]}]}]"#,
        ),
        (
            Format::OpenAiResponses,
            r#"[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"1"}]"#,
        ),
    ] {
        round_trip(text, format);
    }
}

#[test]
fn thinking_after_a_text_begins_a_message() {
    let text = r#"{"type":"text","text":"a"}"#;
    let thinking = r#"{"type":"thinking","thinking":"h","signature":"s"}"#;
    let anthropic = |blocks: &[&str]| {
        format!(r#"{{"messages":[{{"role":"assistant","content":[{}]}}]}}"#, blocks.join(","))
    };
    let part = r#"{"text":"a"}"#;
    let thought = r#"{"text":"h","thought":true}"#;
    let gemini =
        |parts: &[&str]| format!(r#"{{"contents":[{{"role":"model","parts":[{}]}}]}}"#, parts.join(","));
    let message = r#"{"role":"assistant","content":"a"}"#;
    let item = r#"{"type":"reasoning","id":"r"}"#;
    let responses = |items: &[&str]| format!("[{}]", items.join(","));
    for (format, history, count) in [
        (Format::Anthropic, anthropic(&[thinking, thinking, text]), 1),
        (Format::Anthropic, anthropic(&[thinking, text, thinking, text]), 2),
        (Format::Gemini, gemini(&[thought, thought, part]), 1),
        (Format::Gemini, gemini(&[thought, part, thought, part]), 2),
        (Format::OpenAiResponses, responses(&[item, item, message]), 1),
        (Format::OpenAiResponses, responses(&[item, message, item, message]), 2),
    ] {
        let harmony = round_trip(&history, format);
        assert_eq!(json(&harmony.text).node().len(), count, "{format:?} {history}");
    }
}

#[test]
fn vendors_get_the_shortest_form() {
    let at = |format, pointer: &str| {
        let text = converted(PLAIN, Format::Harmony, format).text;
        json(&text).pointer(pointer).map(|node| node.to_string())
    };
    let done = r#"{"role":"assistant","content":"Done."}"#;
    let result = r#"{"functionResponse":{"id":"a","name":"f","response":{"status":"success"}}}"#;
    for (format, pointer, expected) in [
        (Format::Anthropic, "/system", r#""Be brief.""#),
        (Format::Anthropic, "/messages/3", done),
        (Format::Anthropic, "/messages/2/content/1/is_error", "true"),
        (Format::Gemini, "/contents/2/parts/0", result),
        (Format::OpenAiChat, "/6", done),
        (Format::OpenAiResponses, "/8", done),
    ] {
        assert_eq!(at(format, pointer).as_deref(), Some(expected), "{format:?} {pointer}");
    }
}

#[test]
fn results_are_one_turn_with_what_the_user_says_next() {
    let replies = r#"[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"assistant","content":"c"}]"#;
    for (format, list) in [(Format::Anthropic, "/messages"), (Format::Gemini, "/contents")] {
        let turns = |text| {
            let out = json(&converted(text, Format::Harmony, format).text);
            out.pointer(list).map(|turns| turns.len())
        };
        assert_eq!(turns(PLAIN), Some(4), "{format:?}");
        assert_eq!(turns(replies), Some(3), "{format:?}");
    }
}

#[test]
fn media_of_results_follow_the_last_result_in_chat() {
    let call = |id: &str| {
        format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#)
    };
    let image = r#"{"type":"image_url","image_url":{"url":"https://e.org/a.png"}}"#;
    let text = format!(
        r#"[{{"role":"assistant","content":null,"tool_calls":[{},{}]}},
          {{"role":"tool","tool_call_id":"a","content":[{image}]}},{{"role":"tool","tool_call_id":"b","content":[]}}]"#,
        call("a"),
        call("b")
    );
    let out = json(&converted(&text, Format::Harmony, Format::OpenAiChat).text);
    let roles: Vec<_> = out.node().elements().filter_map(|message| message.get_str("role")).collect();
    assert_eq!(roles, ["assistant", "tool", "tool", "user"]);
    assert_eq!(out.pointer("/2/content").and_then(Node::as_str), Some(""));
}

#[test]
fn messages_contain_only_parts_that_their_format_has() {
    let file = |source, media_type: Option<&str>| {
        let media_type = media_type.map(str::to_owned);
        Part::FileReference(FileReferencePart { source, media_type, filename: None, other: None })
    };
    let url = || FileSource::Url("https://e.org/a.pdf".to_owned());
    let media = |media_type| Part::media(media_type, "QQ==".to_owned());
    // The initials of the roles for OpenAI Chat, OpenAI Responses, Anthropic and Gemini.
    for (part, roles) in [
        (Part::text("a"), ["uast", "uast", "uast", "uast"]),
        (Part::image_at("https://e.org/a.png"), ["ut", "ut", "ut", "uat"]),
        (media("audio/mpeg"), ["u", "", "", "uat"]),
        (media("audio/flac"), ["", "", "", "uat"]),
        (media("application/pdf"), ["ut", "ut", "ut", "uat"]),
        (media("text/csv"), ["ut", "ut", "", "uat"]),
        (file(FileSource::Id("f".to_owned()), Some("text/csv")), ["u", "ut", "ut", ""]),
        (file(FileSource::Id("file-1".to_owned()), None), ["u", "ut", "", ""]),
        (file(FileSource::Id("file_1".to_owned()), None), ["", "", "ut", ""]),
        (file(FileSource::Url("https://e.org/a.mp4".to_owned()), Some("video/mp4")), ["", "", "", "uat"]),
        (file(FileSource::Url("gs://b/a.pdf".to_owned()), Some("application/pdf")), ["", "", "", "uat"]),
        (Part::image_at("https://generativelanguage.googleapis.com/v1beta/files/a"), ["", "", "", "uat"]),
        (file(url(), Some("application/pdf")), ["", "ut", "ut", "uat"]),
        (file(url(), None), ["", "ut", "ut", ""]),
        (Part::Refusal(RefusalPart::default()), ["a", "a", "a", "a"]),
    ] {
        let vendors = [&openai_chat::VENDOR, &openai_responses::VENDOR, &anthropic::VENDOR, &gemini::VENDOR];
        let found = vendors.map(|vendor| {
            let roles = Role::ALL.into_iter().filter(|role| vendor.keeps(*role, &part));
            roles.filter_map(|role| role.as_str().chars().next()).collect::<String>()
        });
        assert_eq!(found, roles, "{part:?}");
    }
}

#[test]
fn result_without_a_name_gets_that_of_its_call() {
    let result = |role, name: Option<&str>| Message {
        name: name.map(str::to_owned),
        tool_call_id: Some("a".to_owned()),
        ..Message::new(role, Vec::new())
    };
    let call = Message { tool_calls: vec![ToolCall::new("a", "f", "{}")], ..Message::assistant("") };
    let mut conversation = Conversation::new([
        call,
        result(Role::Tool, None),
        result(Role::Tool, Some("g")),
        result(Role::User, None),
    ]);
    name_results(&mut conversation);
    let names: Vec<_> = conversation.messages().iter().map(|message| message.name.as_deref()).collect();
    assert_eq!(names, [None, Some("f"), Some("g"), None]);
    let anthropic = converted(PLAIN, Format::Harmony, Format::Anthropic).text;
    let harmony = json(&converted(&anthropic, Format::Anthropic, Format::Harmony).text);
    assert_eq!(harmony.pointer("/3/name").and_then(Node::as_str), Some("f"));
}

#[test]
fn losses_are_those_of_the_format() {
    let systems =
        r#"[{"role":"system","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"c"}]"#;
    let user = r#"[{"role":"user","content":"a"}]"#;
    let texts = r#"[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]"#;
    let call = r#"[{"role":"assistant","content":null,"tool_calls":[
      {"id":"a","type":"function","function":{"name":"f","arguments":"{}","y":1},"signature":"s","x":1}]}]"#;
    let of_call = ["signature", "x", "function.y"].map(|end| format!("messages[0].tool_calls[0].{end}"));
    let of_call: Vec<&str> = of_call.iter().map(String::as_str).collect();
    for (format, text, expected) in [
        (Format::Anthropic, systems, &["messages[1]"][..]),
        (Format::Gemini, systems, &["messages[1]"]),
        (Format::OpenAiChat, systems, &[]),
        (Format::Anthropic, user, &[]),
        (Format::Gemini, user, &[]),
        (Format::OpenAiResponses, texts, &["messages[0].content"]),
        (Format::Anthropic, call, &of_call),
        (Format::Gemini, call, &of_call[1..]),
    ] {
        let losses = converted(text, Format::Harmony, format).losses;
        let paths: Vec<&str> = losses.iter().map(|loss| loss.path.as_str()).collect();
        assert_eq!(paths, expected, "{format:?} {text}");
    }
    let image = r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://e.org/a.png","detail":"auto"}}]}]"#;
    let losses = converted(image, Format::Harmony, Format::OpenAiResponses).losses;
    assert_eq!(losses[0].why, "OpenAI Responses does not distinguish `auto` from no level");
}

#[test]
fn losses_over_the_limit_are_counted() {
    for (count, listed, last) in [(1000, 1000, "loss"), (1003, 1001, "3 more")] {
        let mut report = LossReport::default();
        (0..count).for_each(|index| report.add(&index, "loss", "why"));
        let losses = report.finish();
        assert_eq!((losses.len(), losses.last().unwrap().what.as_str()), (listed, last));
    }
}

/// Converts a history of OpenAI Chat, and returns it with the paths of its losses.
fn from_chat(text: &str, to: Format) -> (String, Vec<String>) {
    let out = converted(text, Format::OpenAiChat, to);
    (out.text, out.losses.into_iter().map(|loss| loss.path).collect())
}

#[test]
fn refusal_of_a_message_is_a_part_or_text() {
    let text = r#"[{"role":"user","content":"a"},{"role":"assistant","content":null,"refusal":"no"}]"#;
    let part = "messages[1].content[0]";
    for (format, expected, losses) in [
        (Format::OpenAiChat, text, &[][..]),
        (
            Format::Harmony,
            r#"[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}]"#,
            &[],
        ),
        (
            Format::OpenAiResponses,
            r#"[{"role":"user","content":"a"},{"role":"assistant","content":"no"}]"#,
            &["messages[1].content"],
        ),
        (
            Format::Anthropic,
            r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"no"}]}]}"#,
            &[part],
        ),
        (
            Format::Gemini,
            r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"no"}]}]}"#,
            &[part],
        ),
    ] {
        let (out, lost) = from_chat(text, format);
        assert_eq!(json(&out), json(expected), "{format:?}");
        assert_eq!(lost, losses, "{format:?}");
    }
    let output = r#"[{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"no"}]}]"#;
    round_trip(output, Format::OpenAiResponses);
    let chat = converted(output, Format::OpenAiResponses, Format::OpenAiChat);
    assert_eq!(json(&chat.text), json(r#"[{"role":"assistant","content":null,"refusal":"no"}]"#));
    assert_eq!(chat.losses, []);
}

#[test]
fn empty_messages_are_not_written_and_listed() {
    let text = r#"[{"role":"user","content":"a"},{"role":"assistant","content":[]},{"role":"user","content":""},
      {"role":"assistant","content":[{"type":"text","text":""}],"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"[1]"}}]},
      {"role":"tool","tool_call_id":"c","content":""},{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"b"}]}]"#;
    let arguments = "messages[3].tool_calls[0].function.arguments";
    for (format, turns, count, losses) in [
        (Format::Anthropic, "/messages", 3, &["messages[1]", "messages[2]", arguments][..]),
        (Format::Gemini, "/contents", 3, &["messages[1]", "messages[2]", arguments]),
        (Format::OpenAiChat, "", 5, &["messages[1]"]),
        (Format::OpenAiResponses, "", 5, &["messages[1]", "messages[5].content"]),
    ] {
        let (out, lost) = from_chat(text, format);
        let out = json(&out);
        assert_eq!(out.pointer(turns).map(Node::len), Some(count), "{format:?} {out:?}");
        let lost: Vec<&str> =
            lost.iter().map(String::as_str).filter(|path| *path != "messages[5].content").collect();
        let losses: Vec<&str> =
            losses.iter().copied().filter(|path| *path != "messages[5].content").collect();
        assert_eq!(lost, losses, "{format:?}");
        for empty in [r#""content":[]"#, r#""parts":[]"#, r#"{"type":"text","text":""}"#, r#"{"text":""}"#] {
            let is_openai = format == Format::OpenAiChat || format == Format::OpenAiResponses;
            assert!(is_openai || !out.to_json().contains(empty), "{format:?} {out:?}");
        }
    }
}

#[test]
fn custom_calls_are_calls_for_every_vendor() {
    let chat = r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"custom","custom":{"name":"run","input":"print(\"1\")"}}]},
      {"role":"tool","content":"1","tool_call_id":"c"}]"#;
    let items = r#"[{"type":"custom_tool_call","call_id":"c","name":"run","input":"print(\"1\")"},
      {"type":"custom_tool_call_output","call_id":"c","output":"1"}]"#;
    round_trip(items, Format::OpenAiResponses);
    round_trip(chat, Format::OpenAiChat);
    assert_eq!(json(&from_chat(chat, Format::OpenAiResponses).0), json(items));
    let back = converted(items, Format::OpenAiResponses, Format::OpenAiChat);
    assert_eq!((json(&back.text), back.losses), (json(chat), vec![]));
    for (format, pointer) in [
        (Format::Anthropic, "/messages/0/content/0/input"),
        (Format::Gemini, "/contents/0/parts/0/functionCall/args"),
    ] {
        let (out, lost) = from_chat(chat, format);
        let found = json(&out).pointer(pointer).map(Node::to_value);
        assert_eq!(found, Some(json(r#"{"input":"print(\"1\")"}"#)), "{format:?}");
        assert_eq!(lost, ["messages[0].tool_calls[0].custom"], "{format:?}");
    }
}

#[test]
fn functions_of_the_older_form_are_tools() {
    let call = r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}"#;
    let text = format!(
        r#"[{call},{{"role":"function","name":"f","content":"1"}},{call},{{"role":"function","name":"f","content":"2"}}]"#
    );
    let tool = |id: &str| {
        format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
        )
    };
    let result =
        |id: &str, text: &str| format!(r#"{{"role":"tool","content":"{text}","tool_call_id":"{id}"}}"#);
    let expected = [tool("f"), result("f", "1"), tool("f_2"), result("f_2", "2")].join(",");
    let (out, lost) = from_chat(&text, Format::OpenAiChat);
    assert_eq!((json(&out), lost), (json(&format!("[{expected}]")), Vec::<String>::new()));
    let harmony = from_chat(&text, Format::Harmony).0;
    assert!(crate::check(json(&harmony).node(), None).iter().all(|problem| !problem.rule.is_error()));
}

#[test]
fn nulls_empties_and_identifiers_of_a_vendor_are_no_losses() {
    let chat = r#"[{"role":"user","content":"hi"},{"role":"assistant","content":"ok","refusal":null,"annotations":[],"audio":null,
      "function_call":null,"tool_calls":null}]"#;
    let responses = r#"{"error":null,"metadata":{},"output":[
      {"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":null,"content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}]},
      {"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}","status":"completed","namespace":null},
      {"type":"function_call_output","id":"fco_1","call_id":"c","output":"1","status":"completed"}]}"#;
    for to in Format::ALL {
        for (from, text) in [(Format::OpenAiChat, chat), (Format::OpenAiResponses, responses)] {
            assert_eq!(converted(text, from, to).losses, [], "{from:?} {to:?}");
        }
    }
}

#[test]
fn member_of_another_vendor_is_named() {
    let text = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}"#;
    let losses = converted(text, Format::Anthropic, Format::Gemini).losses;
    let found: Vec<_> = losses.iter().map(|loss| (loss.path.as_str(), loss.what.as_str())).collect();
    assert_eq!(found, [("messages[0].content[0].cache_control", "`cache_control`")]);
}
