use cog_json::Value;

use super::*;

mod vendors;

/// A history that every format can hold.
const PLAIN: &str = r#"[
  {"role":"system","content":[{"type":"text","text":"Be brief."}]},
  {"role":"user","content":[{"type":"text","text":"What is on it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ=="}}]},
  {"role":"assistant","content":"I look.","tool_calls":[
    {"id":"a","type":"function","function":{"name":"f","arguments":"{\"q\":1.50}"}},
    {"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},
  {"role":"tool","tool_call_id":"a","name":"f","content":"{\"status\":\"success\"}"},
  {"role":"tool","tool_call_id":"b","name":"g","content":"{\"status\":\"error\",\"error_type\":\"X\",\"message\":\"y\"}"},
  {"role":"user","content":[{"type":"text","text":"And now?"}]},
  {"role":"assistant","content":"Done."}
]"#;

fn converted(text: &str, from: Format, to: Format) -> Converted {
    convert(&Document::parse(text).unwrap(), Some(from), to).unwrap()
}

fn json(text: &str) -> Value {
    Value::parse(text).unwrap()
}

#[test]
fn every_format_is_lossless_for_what_it_can_hold() {
    for there in Format::ALL {
        let out = converted(PLAIN, Format::Harmony, there);
        assert_eq!(out.losses, [], "{there:?}");
        for and_there in Format::ALL {
            let next = converted(&out.text, there, and_there);
            assert_eq!(next.losses, [], "{there:?} {and_there:?}");
            let back = converted(&next.text, and_there, Format::Harmony);
            // The name of a result is the name of its call.
            let names = back.text.replace(r#","name":"f""#, "").replace(r#","name":"g""#, "");
            let expected = converted(PLAIN, Format::Harmony, Format::Harmony).text;
            let expected = expected.replace(r#","name":"f""#, "").replace(r#","name":"g""#, "");
            assert_eq!(json(&names), json(&expected), "{there:?} {and_there:?}");
        }
    }
}

/// Converts a vendor's history to Harmony and back, and compares.
fn round_trip(text: &str, format: Format) -> Converted {
    let harmony = converted(text, format, Format::Harmony);
    assert_eq!(harmony.losses, [], "{format:?}");
    let problems = crate::check(json(&harmony.text).node(), None);
    assert!(problems.iter().all(|problem| !problem.rule.is_error()), "{problems:?}");
    let back = converted(&harmony.text, Format::Harmony, format);
    assert_eq!(back.losses, [], "{format:?}");
    assert_eq!(json(&back.text), json(text), "{format:?}");
    assert_eq!(json(&back.text).to_json().len(), back.text.len(), "a member is there twice: {}", back.text);
    assert_eq!(convert(&Document::parse(text).unwrap(), None, format).unwrap().text, back.text);
    harmony
}

#[test]
fn anthropic_keeps_thinking_extras_and_its_own_blocks() {
    let text = r#"{"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[
      {"role":"user","content":[{"type":"document","title":"t","source":{"type":"base64","media_type":"application/pdf","data":"QQ=="},"citations":{"enabled":true}},
        {"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}},
        {"type":"image","source":{"type":"file","file_id":"f"}},{"type":"document","source":{"type":"file","file_id":"g"}}]},
      {"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s1"},{"type":"text","text":"a"},
        {"type":"thinking","thinking":"i","signature":"s2"},{"type":"tool_use","id":"a","name":"f","input":{"q":1}},
        {"type":"thinking","thinking":"j","signature":"s3"},{"type":"tool_use","id":"b","name":"f","input":{},"caller":{"type":"direct"}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"},{"type":"image","source":{"type":"url","url":"https://e.org/a.png"}}]},
        {"type":"tool_result","tool_use_id":"b","content":"no","is_error":true},{"type":"text","text":"go on"}]},
      {"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"d"}]}]}"#;
    round_trip(text, Format::Anthropic);
}

#[test]
fn responses_keeps_reasoning_items_and_identifiers() {
    let text = r#"[{"role":"developer","content":"d"},{"role":"user","content":[{"type":"input_text","text":"u"},
      {"type":"input_image","image_url":"https://e.org/a.png","detail":"original"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,QQ=="},
      {"type":"input_file","file_url":"https://e.org/b.pdf"},{"type":"input_image","file_id":"f","detail":"low"}]},
      {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"},
      {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]},{"type":"refusal","refusal":"no"}],"phase":"commentary"},
      {"type":"function_call","call_id":"a","name":"f","arguments":"{\"q\": 1}","id":"fc_1","status":"completed"},
      {"type":"reasoning","id":"rs_2","summary":[]},
      {"type":"function_call","call_id":"b","name":"f","arguments":"{}"},
      {"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"1"},{"type":"input_image","image_url":"https://e.org/a.png","detail":"high"}]},
      {"type":"function_call_output","call_id":"b","output":"2"},
      {"type":"web_search_call","id":"ws_1","status":"completed"},{"role":"assistant","content":"end"}]"#;
    round_trip(text, Format::OpenAiResponses);
}

#[test]
fn gemini_keeps_thoughts_and_signatures() {
    let text = r#"{"systemInstruction":{"parts":[{"text":"s"}]},"contents":[
      {"role":"user","parts":[{"text":"u"},{"inlineData":{"mimeType":"image/png","data":"QQ=="},"mediaResolution":{"level":"MEDIA_RESOLUTION_HIGH"}},
        {"inlineData":{"mimeType":"audio/L16;rate=24000","data":"QQ=="}},{"fileData":{"fileUri":"https://e.org/a.pdf","mimeType":"application/pdf"}},
        {"fileData":{"fileUri":"https://e.org/a.png","mimeType":"image/png"}},{"inlineData":{"mimeType":"video/mp4","data":"QQ=="},"videoMetadata":{"fps":1}}]},
      {"role":"model","parts":[{"text":"t","thought":true},{"text":"a","thoughtSignature":"cw=="},{"functionCall":{"id":"a","name":"f","args":{"q":1}},"thoughtSignature":"eA=="}]},
      {"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"{\"output\":\"x\"}"},"parts":[{"inlineData":{"mimeType":"image/png","data":"QQ=="}}]}},{"text":"go on"}]},
      {"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"text":"d"}]}]}"#;
    round_trip(text, Format::Gemini);
    let unnamed = r#"{"contents":[{"role":"model","parts":[{"function_call":{"name":"f","args":{}}},{"function_call":{"name":"f","args":{}}}]},
      {"role":"user","parts":[{"function_response":{"name":"f","response":{"a":1}}},{"function_response":{"name":"f","response":{"a":2}}}]}]}"#;
    let harmony = converted(unnamed, Format::Gemini, Format::Harmony);
    assert_eq!(crate::check(json(&harmony.text).node(), None), []);
}

#[test]
fn chat_keeps_what_openai_sends() {
    let text = r#"[{"role":"developer","content":"d"},{"role":"user","name":"n","content":[
      {"type":"text","text":"u","prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"image_url","image_url":{"url":"https://e.org/a.png","detail":"original"}},
      {"type":"input_audio","input_audio":{"data":"QQ==","format":"wav"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,QQ=="}},
      {"type":"file","file":{"file_id":"f"}}]},
      {"role":"assistant","content":null,"refusal":"no","audio":{"id":"x"}},
      {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"b"}]}]"#;
    let harmony = converted(text, Format::OpenAiChat, Format::Harmony);
    let back = converted(&harmony.text, Format::Harmony, Format::OpenAiChat);
    assert_eq!((harmony.losses, json(&back.text)), (Vec::new(), json(text)));
    assert_eq!(back.losses, []);
}

#[test]
fn losses_name_path_what_and_why() {
    let text = r#"{"model":"m","messages":[{"id":"1","role":"user","created_at":1,"content":[{"type":"text","text":"a","index":0},
      {"type":"input_audio","input_audio":{"data":"QQ==","format":"wav"}}],"metadata":{},"x":1},
      {"role":"assistant","content":null,"reasoning":{"provider":"gemini","items":[]},"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"["}}]}]}"#;
    let losses = converted(text, Format::Harmony, Format::Anthropic).losses;
    let paths: Vec<&str> = losses.iter().map(|loss| loss.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "model",
            "messages[0].id",
            "messages[0].created_at",
            "messages[0].metadata",
            "messages[0].x",
            "messages[0].content[0].index",
            "messages[0].content[1]",
            "messages[1].reasoning",
            "messages[1].tool_calls[0].function.arguments",
        ]
    );
    assert_eq!(losses[6].what, "the part `input_audio`");
    assert_eq!(losses[6].why, "a user message of Anthropic cannot contain it");
}

#[test]
fn loss_of_each_call_and_part_has_its_path() {
    let text = r#"[{"role":"system","content":"s"},{"role":"user","content":[
      {"type":"image_url","image_url":{"url":"https://e.org/a.png","detail":"auto","rotation":0}},
      {"type":"image_url","image_url":{"url":"https://e.org/a.png","detail":"low"}}]},
      {"role":"assistant","content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},
        {"id":"b","type":"function","function":{"name":"f","arguments":"[1]"}}]},
      {"role":"tool","tool_call_id":"a","content":"1"},
      {"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"1"},{"type":"text","text":"2"}]}]"#;
    let paths = |format| {
        let losses = converted(text, Format::Harmony, format).losses;
        assert!(losses.iter().all(|loss| !loss.what.is_empty() && !loss.why.is_empty()), "{losses:?}");
        losses.into_iter().map(|loss| loss.path).collect::<Vec<_>>()
    };
    let [auto, rotation] =
        ["messages[1].content[0].image_url.detail", "messages[1].content[0].image_url.rotation"];
    let low = "messages[1].content[1].image_url.detail";
    let arguments = "messages[2].tool_calls[1].function.arguments";
    assert_eq!(paths(Format::Anthropic), [auto, rotation, low, arguments]);
    assert_eq!(paths(Format::Gemini), [auto, rotation, arguments, "messages[4].content"]);
    assert_eq!(paths(Format::OpenAiResponses), [auto, rotation]);
    assert_eq!(paths(Format::OpenAiChat), [rotation]);
}

#[test]
fn images_of_results_follow_them_in_chat() {
    let text = r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"1"},{"type":"image_url","image_url":{"url":"https://e.org/a.png"}}]}]"#;
    let out = converted(text, Format::Harmony, Format::OpenAiChat);
    assert_eq!(out.losses.len(), 1);
    let messages = json(&out.text);
    assert_eq!(messages.node().len(), 3);
    assert_eq!(messages.pointer("/2/content/0/type").and_then(|kind| kind.as_str()), Some("image_url"));
}

#[test]
fn bad_histories_are_problems_in_every_format() {
    for format in Format::ALL {
        for text in
            ["1", "\"x\"", "[1]", "[{}]", r#"[{"role":1}]"#, r#"{"messages":1,"input":1,"contents":1}"#]
        {
            let result = convert(&Document::parse(text).unwrap(), Some(format), Format::Harmony);
            let is_text = format == Format::OpenAiResponses && text == "\"x\"";
            assert!(result.is_err() || is_text || format == Format::Gemini, "{format:?} {text}");
        }
    }
}
