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
        (file(url(), Some("application/pdf")), ["", "ut", "ut", "uat"]),
        (file(url(), None), ["", "ut", "ut", ""]),
        (Part::Refusal(RefusalPart::default()), ["a", "a", "", ""]),
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
