//! Properties of reading, checking, fixing and converting.

use cog_harmony::{Conversation, Document, Format, Loss, check, convert, fix};
use cog_json::{ToJson, Value};
use proptest::{collection::vec, prelude::*};

/// Members that no type names.
fn unknown() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(r#","x_note":{"a":[1,2.50,null]}"#.to_owned()),
        Just(r#","refusal":null,"x":"\u00e9""#.to_owned()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zé ]{0,12}",
        Just("{\"output\":\"x\"}".to_owned()),
        Just("{\"status\":\"error\"}".to_owned())
    ]
    .prop_map(|text| text.as_str().to_json())
}

fn part() -> impl Strategy<Value = String> {
    let text_part =
        (text(), unknown()).prop_map(|(text, other)| format!(r#"{{"type":"text","text":{text}{other}}}"#));
    let indexed =
        (text(), 0..9_u8).prop_map(|(text, at)| format!(r#"{{"type":"text","text":{text},"index":{at}}}"#));
    let image = (prop_oneof![Just("low"), Just("high"), Just("auto")], unknown(), 0..3_u8).prop_map(|(detail, other, at)| {
        format!(
            r#"{{"type":"image_url","image_url":{{"url":"https://e.org/{at}.png","detail":"{detail}","rotation":{}{other}}},"video_metadata":{{"video_id":"v","timestamp_sec":{at}.5,"frame_index":{at}{other}}}{other}}}"#,
            u16::from(at) * 90
        )
    });
    let audio = unknown().prop_map(|other| {
        format!(r#"{{"type":"input_audio","input_audio":{{"data":"QQ==","format":"wav","sample_rate":24000{other}}}{other}}}"#)
    });
    let file = unknown().prop_map(|other| {
        format!(r#"{{"type":"file","file":{{"filename":"a.pdf","file_data":"data:application/pdf;base64,QQ=="{other}}}{other}}}"#)
    });
    let native =
        Just(r#"{"type":"native","native":{"provider":"anthropic","item":{"type":"x","y":[1]}}}"#.to_owned());
    prop_oneof![text_part, indexed, image, audio, file, native]
}

/// A message in the form in which it is written.
fn message() -> impl Strategy<Value = String> {
    let user = (vec(part(), 0..4), unknown()).prop_map(|(parts, other)| {
        format!(
            r#"{{"role":"user","created_at":1715000000,"content":[{}],"metadata":{{"t":1}}{other}}}"#,
            parts.join(",")
        )
    });
    let assistant = (text(), unknown(), any::<bool>(), 0..9_u8).prop_map(|(text, other, signed, id)| {
        let signature = if signed { r#","signature":"s""# } else { "" };
        format!(
            r#"{{"role":"assistant","name":"n","content":{text},"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{\"q\":1.50}}"{other}}}{signature}{other}}}],"reasoning":{{"provider":"openai","items":[{{"type":"reasoning"}}]}}{other}}}"#
        )
    });
    let tool = (text(), 0..9_u8)
        .prop_map(|(text, id)| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":{text}}}"#));
    let developer = text()
        .prop_map(|text| format!(r#"{{"role":"developer","content":[{{"type":"text","text":{text}}}]}}"#));
    prop_oneof![user, assistant, tool, developer]
}

fn history() -> impl Strategy<Value = String> {
    vec(message(), 0..8).prop_map(|messages| format!("[{}]", messages.join(",")))
}

/// A history whose calls have results.
fn complete_history() -> impl Strategy<Value = String> {
    let round =
        (message(), text()).prop_map(|(message, text)| match message.contains(r#""role":"assistant""#) {
            true => format!(r#"{message},{{"role":"tool","tool_call_id":"ID","content":{text}}}"#),
            false => message,
        });
    let rounds = vec(
        round.prop_filter("no result without a call", |round| !round.starts_with(r#"{"role":"tool""#)),
        0..8,
    );
    rounds.prop_map(|rounds| {
        let numbered = rounds.iter().enumerate().map(|(at, round)| {
            (0..9)
                .fold(round.clone(), |round, id| {
                    round.replace(&format!(r#"{{"id":"{id}","#), r#"{"id":"ID","#)
                })
                .replace("\"ID\"", &format!("\"call_{at}\""))
        });
        format!("[{}]", numbered.collect::<Vec<_>>().join(","))
    })
}

/// JSON that may not be a history at all.
fn anything() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("null"),
        Just("1"),
        Just("\"user\""),
        Just("\"tool\""),
        Just("\"assistant\""),
        Just("[]"),
        Just("{}"),
        Just("\"text\""),
        Just("\"a\""),
        Just("\"function_call\""),
        Just("\"model\""),
    ];
    let key = prop_oneof![
        Just("role"),
        Just("content"),
        Just("type"),
        Just("parts"),
        Just("tool_calls"),
        Just("id"),
        Just("function"),
        Just("arguments"),
        Just("tool_call_id"),
        Just("text"),
        Just("input"),
        Just("contents"),
        Just("messages"),
        Just("reasoning"),
        Just("image_url"),
        Just("system"),
        Just("functionCall"),
        Just("call_id"),
        Just("name"),
    ];
    word.prop_map(str::to_owned).prop_recursive(5, 40, 6, move |inner| {
        let object = vec((key.clone(), inner.clone()), 0..6).prop_map(|members| {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
            format!("{{{}}}", members.join(","))
        });
        prop_oneof![object, vec(inner, 0..5).prop_map(|items| format!("[{}]", items.join(",")))]
    })
}

/// Converts a history to a format and back, and returns it with what was lost on the way there.
fn there_and_back(document: &Document, format: Format) -> Option<(String, Vec<Loss>)> {
    let there = convert(document, Some(Format::Harmony), format).ok()?;
    let back = convert(&Document::parse(&there.text).ok()?, Some(format), Format::Harmony).ok()?;
    Some((back.text, there.losses))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_and_writing_is_lossless(text in history()) {
        let value = Value::parse(&text).unwrap();
        let written = Conversation::read(value.node()).unwrap().to_json();
        prop_assert_eq!(Value::parse(&written).unwrap(), value);
    }

    #[test]
    fn fixing_is_idempotent_and_keeps_every_message(text in history()) {
        let document = Document::parse(&text).unwrap();
        let once = fix(&document).unwrap();
        let twice = fix(&Document::parse(&once.text).unwrap()).unwrap();
        prop_assert_eq!(&twice.text, &once.text);
        prop_assert_eq!(twice.changes, []);
        let fixed = Document::parse(&once.text).unwrap();
        let orphans = fixed.node().get("orphans").map_or(0, |orphans| orphans.len());
        prop_assert_eq!(fixed.messages().unwrap().len() + orphans, document.messages().unwrap().len());
    }

    #[test]
    fn a_converted_history_comes_back(text in complete_history()) {
        let document = Document::parse(&text).unwrap();
        prop_assert!(check(document.messages().unwrap(), None).iter().all(|problem| !problem.rule.name.starts_with("result-m")));
        for format in Format::ALL {
            let (once, losses) = there_and_back(&document, format).unwrap();
            let (twice, again) = there_and_back(&Document::parse(&once).unwrap(), format).unwrap();
            prop_assert_eq!(Value::parse(&twice).unwrap(), Value::parse(&once).unwrap(), "{:?}", format);
            prop_assert!(again.len() <= losses.len(), "{:?}", again);
        }
    }

    #[test]
    fn any_json_is_survived(text in anything()) {
        let document = Document::parse(&text).unwrap();
        if let Ok(messages) = document.messages() {
            check(messages, None);
            prop_assert!(fix(&document).is_ok());
        }
        for from in Format::ALL {
            for to in Format::ALL {
                if let Ok(converted) = convert(&document, Some(from), to) {
                    prop_assert!(Value::parse(&converted.text).is_ok());
                }
            }
        }
    }
}

#[test]
fn a_hundred_thousand_messages_are_checked_and_fixed() {
    let one = |at: usize| match at % 3 {
        0 => format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{at}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
        ),
        1 => format!(r#"{{"role":"tool","tool_call_id":"c{}","content":"1"}}"#, at - 1),
        _ => r#"{"role":"user","content":"and now?"}"#.to_owned(),
    };
    let text = format!("[{}]", (0..99_999).map(one).collect::<Vec<_>>().join(","));
    let document = Document::parse(&text).unwrap();
    assert_eq!(check(document.messages().unwrap(), None), []);
    assert_eq!(fix(&document).unwrap().text, text);
}
