use super::super::{End, Parser, Tolerance as T};
use super::told::{Told, run, run_every_split};
use crate::error::SyntaxKind;
use crate::limits::Limits;

fn tolerant() -> Parser {
    Parser::tolerant(Limits::model_output())
}

fn told(text: &str) -> Told {
    run_every_split(tolerant, text.as_bytes())
}

/// The document, and what was let pass as rule, path, before and after.
fn read(text: &str) -> (String, Vec<(T, String, usize, usize)>) {
    let told = told(text);
    assert_eq!(told.end, Ok(End::Complete), "{text}");
    assert!(!told.several, "{text}");
    let tolerated = told.tolerated.into_iter().map(|it| (it.rule, it.path, it.before, it.after)).collect();
    (told.draft.unwrap(), tolerated)
}

#[test]
fn each_thing_let_pass_is_recorded_with_its_place_and_sizes() {
    for (text, json, rule, path, before, after) in [
        ("Sure: {\"a\":1} Bye.", r#"{"a":1}"#, T::SurroundingText, "", 9, 0),
        ("```json\n{\"a\":1}\n```", r#"{"a":1}"#, T::CodeFence, "", 10, 0),
        ("<think>maybe {\"b\":2}?</think>\n{\"a\":1}", r#"{"a":1}"#, T::SurroundingText, "", 29, 0),
        ("{\"a\":[1,],\"b\":2}", r#"{"a":[1],"b":2}"#, T::TrailingComma, "a", 1, 0),
        ("{\"a\":{\"b\":1 , }}", r#"{"a":{"b":1}}"#, T::TrailingComma, "a", 1, 0),
        ("{\"a\":[0,'x\"\\'']}", r#"{"a":[0,"x\"'"]}"#, T::SingleQuotes, "a[1]", 6, 6),
        ("{'k':1}", r#"{"k":1}"#, T::SingleQuotes, "k", 3, 3),
        ("{\"a\":1 // one\n}", r#"{"a":1}"#, T::Comment, "", 6, 0),
        ("{\"a\":[/* é **/1]}", r#"{"a":[1]}"#, T::Comment, "a", 9, 0),
        ("{\"a\":1, # x\n\"b\":2}", r#"{"a":1,"b":2}"#, T::Comment, "", 3, 0),
        ("{\"a\":\"x\ny\u{1}\"}", r#"{"a":"x\ny\u0001"}"#, T::RawNewline, "a", 2, 8),
        ("{\"a\":[True]}", r#"{"a":[true]}"#, T::PythonLiteral, "a[0]", 4, 4),
        ("{\"a\":None}", r#"{"a":null}"#, T::PythonLiteral, "a", 4, 4),
        ("{\"a\":False}", r#"{"a":false}"#, T::PythonLiteral, "a", 5, 5),
        ("{\"a\":{\"x\":[1, 2]},\"a\":0}", r#"{"a":0}"#, T::DuplicateKey, "a", 11, 0),
    ] {
        assert_eq!(read(text), (json.to_owned(), vec![(rule, path.to_owned(), before, after)]), "{text}");
    }
}

#[test]
fn many_things_at_once_do_not_disturb_each_other() {
    let text = "Here you go:\n\n```json\n{ // the answer\n 'ok': True, 'data': {'t': 'it\\'s\nhere', 'n': [1, 2,],},\n}\n```\nEnjoy!";
    let (json, tolerated) = read(text);
    assert_eq!(json, r#"{"ok":true,"data":{"t":"it's\nhere","n":[1,2]}}"#);
    let rules = tolerated.iter().map(|it| it.0).collect::<std::collections::BTreeSet<_>>();
    let all = [
        T::CodeFence,
        T::Comment,
        T::PythonLiteral,
        T::RawNewline,
        T::SingleQuotes,
        T::SurroundingText,
        T::TrailingComma,
    ];
    assert_eq!(rules, all.into());
}

#[test]
fn brackets_in_prose_are_not_the_document() {
    for prose in [
        "Use {name} and [1], ",
        "{",
        "[x](url) {x} ",
        "{}",
        "[]",
        "[1, 2] ",
        "{ \"a\", \"b\" } ",
        "it's {'tis\n",
        "{\"quoted\" {",
        "{/* ",
        "a set {\"x\"} ",
        "{\"k\" /* c */ }",
        "[{]",
        "{\n\n",
        "[ /",
        "{'",
        "fn f() { \"x\\\"\" } ",
    ] {
        let text = format!("{prose}{{\"a\":[1]}}");
        let told = told(&text);
        if prose == "{/* " {
            assert_eq!(told.end, Ok(End::Truncated));
            continue;
        }
        assert_eq!(told.draft.as_deref(), Some(r#"{"a":[1]}"#), "{text}");
        assert_eq!(told.end, Ok(End::Complete), "{text}");
    }
}

#[test]
fn an_array_that_the_reply_begins_with_keeps_what_it_holds() {
    for (text, json) in [
        ("[1,'x',{'a':1}]", r#"[1,"x",{"a":1}]"#),
        ("```json\n[[],{},[null,{\"a\":1}]]\n```", r#"[[],{},[null,{"a":1}]]"#),
        ("[1] says {\"a\":1}", r#"{"a":1}"#),
        ("[Note] {\"a\":1}", r#"{"a":1}"#),
        ("So: [1, {\"a\":1}]", r#"{"a":1}"#),
    ] {
        assert_eq!(read(text).0, json);
    }
}

#[test]
fn nothing_is_told_before_the_first_key_and_colon() {
    let mut parser = tolerant();
    let mut told = 0;
    for piece in ["Well, {x} or [", "{\"a\"", " "] {
        parser.push(piece.as_bytes(), &mut |_| told += 1).unwrap();
        assert!(told == 0 && parser.root().is_none());
    }
    parser.push(b":", &mut |_| told += 1).unwrap();
    assert_eq!((told, parser.root().unwrap().to_string().as_str()), (2, "[{}]"));
}

#[test]
fn a_value_without_members_counts_when_it_stands_alone() {
    for text in [
        "{}",
        " [] ",
        "[1,2]",
        "[[],{}]",
        "\"x\"",
        "-1.5",
        "true",
        " null\n",
        "```\n{}\n```",
        "<think>x</think>[]",
    ] {
        assert_eq!(told(text).end, Ok(End::Complete), "{text}");
    }
    for text in
        ["", "No.", "Use {} here", "see [1]", "42 is it", "\"Sure\", he said", "[1] and [2]", "{} {}", "\"x"]
    {
        let told = told(text);
        assert!(told.end.is_err(), "{text}");
        assert_eq!((told.events.len(), told.tolerated.len()), (0, 0), "{text}");
    }
}

#[test]
fn a_reply_that_is_cut_is_never_completed() {
    let text = r#"Well: {"a":["x\n",{"b":12}],"c":true} "#;
    let start = text.find('{').unwrap();
    let end = text.rfind('}').unwrap();
    for cut in start + 1..=end {
        let told = told(&text[..cut]);
        assert_eq!(told.end, Ok(End::Truncated), "{}", &text[..cut]);
    }
    assert_eq!(told(&text[..start + 19]).draft.as_deref(), Some(r#"{"a":["x\n",{}]}"#));
    assert_eq!(told("<think>{\"a\":1}").end, Ok(End::Truncated));
    assert_eq!(run(tolerant(), [&b"{\"a\":\"\xe2\x82"[..]]).end, Ok(End::Truncated));
}

#[test]
fn a_second_object_is_seen_and_not_chosen() {
    for text in [
        r#"{"a":1}{"b":2}"#,
        "{\"a\":1}\n{\"b\":2}\n",
        r#"{"a":1} or rather [{"b":2"#,
        "```\n{\"a\":1}\n```\n```\n{'b':1}\n```",
    ] {
        let told = told(text);
        assert!(told.several, "{text}");
        assert_eq!(told.draft.as_deref(), Some(r#"{"a":1}"#));
    }
    assert!(!told(r#"{"a":1} where {x} and [1]"#).several);
}

#[test]
fn what_the_list_does_not_name_is_refused() {
    use SyntaxKind as K;
    for (text, kind, offset) in [
        ("{ok: true}", K::ExpectedKey, 1),
        ("{\"a\":1,,}", K::ExpectedKey, 7),
        ("{\"a\":[,1]}", K::ExpectedValue, 6),
        ("{\"a\":[1 2]}", K::ExpectedCommaOrBracket, 8),
        ("{\"a\":NaN}", K::ExpectedValue, 5),
        ("{\"a\":undefined}", K::ExpectedValue, 5),
        ("{\"a\":01}", K::Number, 6),
        ("{\"a\":.5}", K::ExpectedValue, 5),
        ("{\"a\":0x1F}", K::Number, 6),
        ("{\"a\":\"\\'\"}", K::Escape, 6),
        ("{\"a\":\u{201c}x\u{201d}}", K::ExpectedValue, 5),
        ("{\"a\":1e999}", K::NumberRange, 5),
        ("{\"a\":/1}", K::ExpectedValue, 5),
        ("{\"a\" \"b\"}", K::ExpectedColon, 5),
    ] {
        let error = told(text).end.expect_err(text);
        assert_eq!((error.kind(), error.offset()), (kind, offset), "{text}");
    }
}

#[test]
fn the_account_stays_small_and_its_sums_right() {
    let items = vec!["'x',"; 40].concat();
    let (_, tolerated) = read(&format!("{{'a':[{items}]}}"));
    let quotes = tolerated.iter().filter(|it| it.0 == T::SingleQuotes).collect::<Vec<_>>();
    assert_eq!(quotes.len(), 9);
    assert_eq!(quotes.iter().map(|it| it.2).sum::<usize>(), 123);
    assert_eq!((quotes[7].1.as_str(), quotes[8].1.as_str()), ("a[6]", ""));
    let long = "k".repeat(1025);
    let (_, tolerated) = read(&format!("{{\"b\":{{\"{long}\":[1,]}}}}"));
    assert_eq!(tolerated, [(T::TrailingComma, "b".to_owned(), 1, 0)]);
}

#[test]
fn an_object_within_what_cannot_be_read_is_not_the_answer() {
    for text in [r#"{ok: false, data: {"a": 1}}"#, r#"See {ok: true, "meta": {"a": 1}, "data": {"b": 2}}"#] {
        let end = told(text).end;
        assert!(matches!(&end, Err(error) if error.kind() != SyntaxKind::Nothing), "{text}: {end:?}");
    }
    assert_eq!(read(r#"Fill {name} in: {"a": 1}"#).0, r#"{"a":1}"#);
}

#[test]
fn reasoning_that_shows_only_its_closing_tag_is_not_the_document() {
    for reasoning in [
        "Let me think.",
        "",
        "I would say {\"ok\": true, \"data\": {}} here.",
        "First {\"a\": 1}, then {\"b\": [2]}.",
        "The form is {\"ok\": true, \"data\": {...}}, with x < y and <b>.",
        "Like {ok: true, data: {\"a\": 1}}.",
        "It begins {\"data\": \"so",
        "Is [\"a\", {\"b\": 1}] meant? {'c': None}",
        "```json\n{\"draft\": 1}\n```\nNo: </thinking",
    ] {
        for tag in ["</think>", "</thinking>"] {
            let text = format!("So: {reasoning}{tag}\n\n```json\n{{\"a\":[1]}}\n```");
            let (json, tolerated) = read(&text);
            assert_eq!(json, r#"{"a":[1]}"#, "{text}");
            let rules: Vec<T> = tolerated.iter().map(|it| it.0).collect();
            assert_eq!(rules, [T::SurroundingText, T::CodeFence], "{text}");
            assert_eq!(tolerated[0].2, 4 + reasoning.len() + tag.len(), "{text}");
        }
    }
    assert_eq!(read("Hm.</think>{}").0, "{}");
}

#[test]
fn what_reasoning_told_is_withdrawn() {
    let told = told("Say {\"a\":\"x\"} or</think>{\"a\":\"y\"}");
    let expected = [
        " open object",
        "a text x",
        "a complete \"x\"",
        " complete {\"a\":\"x\"}",
        "withdrawn",
        " open object",
    ];
    assert_eq!(told.events[..6], expected);
    assert_eq!(told.events[6..], ["a text y", "a complete \"y\"", " complete {\"a\":\"y\"}"]);
}

#[test]
fn a_closing_tag_in_or_after_the_answer_itself_is_text() {
    assert_eq!(read(r#"{"a":"</think>"}"#).0, r#"{"a":"</think>"}"#);
    assert_eq!(read(r#"So: {"a":"</think>{\"b\":1}"}"#).0, r#"{"a":"</think>{\"b\":1}"}"#);
    assert_eq!(read("{\"a\":1}</think>").0, r#"{"a":1}"#);
    assert!(told("{\"a\":1}</think>{\"b\":2}").several);
    assert!(told("One</think>{\"a\":1}</think>{\"b\":2}").several);
    assert_eq!(read("So: {\"a\":1}</think> and no {more}").0, r#"{"a":1}"#);
    assert_eq!(read("So: {\"a\":1}</think>7").0, "7");
    assert_eq!(read("So: {\"a\":1}</think>```\n{}\n```").0, "{}");
}

#[test]
fn in_doubt_nothing_is_given_up() {
    let mut parser = tolerant();
    assert!(parser.push(b"So: {\"a\": ...} or {\"b\": 1} {\"c\": 1}", &mut |_| {}).is_ok());
    assert!(parser.is_in_doubt() && !parser.several());
    assert!(parser.finish(&mut |_| {}).is_err());
    let mut clear = tolerant();
    assert!(clear.push(b"```json\n{\"a\": ...}", &mut |_| {}).is_err());
}
