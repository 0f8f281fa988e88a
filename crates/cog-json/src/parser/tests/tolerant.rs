use super::super::{End, Parser, Tolerance as T};
use super::outcome::{Outcome, run, run_every_split};
use crate::error::SyntaxErrorKind;
use crate::event::Limits;

fn tolerant() -> Parser {
    Parser::tolerant(Limits::model_output())
}

fn outcome(text: &str) -> Outcome {
    run_every_split(tolerant, text.as_bytes())
}

/// The document, and what was let pass as rule, path, before and after.
fn read(text: &str) -> (String, Vec<(T, String, usize, usize)>) {
    let outcome = outcome(text);
    assert_eq!(outcome.end, Ok(End::Complete), "{text}");
    assert!(!outcome.several, "{text}");
    let tolerated = outcome.tolerated.into_iter().map(|it| (it.rule, it.path, it.before, it.after)).collect();
    (outcome.draft.unwrap(), tolerated)
}

#[test]
fn records_each_deviation_with_path_and_sizes() {
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
        ("{\"a\":/*/ 2 */1}", r#"{"a":1}"#, T::Comment, "", 8, 0),
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
fn accepts_all_deviations_together() {
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
        "[x](url) {x} ",
        "{}",
        "[]",
        "[1, 2] ",
        "As in [#1]: ",
        "{ \"a\", \"b\" } ",
        "a set {\"x\"} ",
        "{\"k\" /* c */ }",
        "[{]",
        "fn f() { \"x\\\"\" } ",
        "type T = { name: string; age: number }; ",
        "The sum \\sum_{i=1}^{n} of {x : x > 0}, formatted as {x:.2f}: ",
        "(as said) ",
        "const answer = ",
        "Here it is (in full):\n",
        "f (",
        "e.g. (like ",
        "(see above) answer: ",
        "[/* c */: ] ",
    ] {
        assert_eq!(read(&format!("{prose}{{\"a\":[1]}}")).0, r#"{"a":[1]}"#, "{prose}");
    }
}

#[test]
fn array_that_contains_the_first_object_is_the_document() {
    for (text, json) in [
        ("[1,'x',{'a':1}]", r#"[1,"x",{"a":1}]"#),
        ("```json\n[[],{},[null,{\"a\":1}]]\n```", r#"[[],{},[null,{"a":1}]]"#),
        ("[1] says {\"a\":1}", r#"{"a":1}"#),
        ("[Note] {\"a\":1}", r#"{"a":1}"#),
        ("So: [1, {\"a\":1}]", r#"[1,{"a":1}]"#),
        ("So: [\"[\"] or {\"a\":1}", r#"{"a":1}"#),
        ("[ # note\n {\"a\":1}]", r#"[{"a":1}]"#),
    ] {
        assert_eq!(read(text).0, json);
    }
}

#[test]
fn emits_nothing_before_the_first_key_and_colon() {
    let mut parser = tolerant();
    let mut outcome = 0;
    for chunk in ["Well, {x} or [", "{\"a\"", " "] {
        parser.push(chunk.as_bytes(), &mut |_| outcome += 1).unwrap();
        assert!(outcome == 0 && parser.root().is_none());
    }
    parser.push(b":", &mut |_| outcome += 1).unwrap();
    assert_eq!((outcome, parser.root().unwrap().to_string().as_str()), (2, "[{}]"));
}

#[test]
fn value_without_members_is_the_document_if_it_is_alone() {
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
        assert_eq!(outcome(text).end, Ok(End::Complete), "{text}");
    }
    for text in [
        "",
        "No.",
        "Use {} here",
        "see [1]",
        "42 is it",
        "\"Sure\", he said",
        "[1] and [2]",
        "{} {}",
        "\"x",
        "```is it:\n[1]\n```",
    ] {
        let outcome = outcome(text);
        let error = outcome.end.expect_err(text);
        assert_eq!((error.kind(), error.offset()), (SyntaxErrorKind::Nothing, 0), "{text}");
        assert_eq!((outcome.events.len(), outcome.tolerated.len()), (0, 0), "{text}");
    }
}

#[test]
fn truncated_reply_is_never_completed() {
    let text = r#"Well: {"a":["x\n",{"b":12}],"c":true} "#;
    let start = text.find('{').unwrap();
    let end = text.rfind('}').unwrap();
    for cut in start + 1..=end {
        let outcome = outcome(&text[..cut]);
        assert_eq!(outcome.end, Ok(End::Truncated), "{}", &text[..cut]);
    }
    assert_eq!(outcome(&text[..start + 19]).draft.as_deref(), Some(r#"{"a":["x\n",{}]}"#));
    assert_eq!(run(tolerant(), [&b"{\"a\":\"\xe2\x82"[..]]).end, Ok(End::Truncated));
}

#[test]
fn second_object_is_reported_and_not_chosen() {
    for second in [
        r#"{"b":2}"#,
        "\n{\"b\":2}\n",
        r#" or rather [{"b":2"#,
        "\n```\n{'b':1}\n```",
        "\nMy answer:\n{ok: false, error: {code: \"E2004\"}}",
        "\nNo: {\u{201c}ok\u{201d}: false}",
        "\nNo: {\u{2018}ok\u{2019}: false}",
        "\nNo: {\u{a0}\"ok\": false}",
        "\nNo: {\u{200b}\"ok\": false}",
        "\nNo: {\"ok\"\u{a0}: false}",
        "\nNo: {\"ok\"\u{ff1a}false}",
        "\nNo: {\"ok\" = false}",
        "\nNo: {\"ok\" => false}",
        "\nNo: {\\\"ok\\\": false}",
        "\nNo: {`ok`: false}",
        "\nNo: {ok = false}",
        "\nNo: {ok => False}",
        "\nNo: {verdict: reject, why: x}",
        "\nNo: {..., \"ok\": false}",
        "\nNo: {, \"ok\": false}",
        "\nNo: { # note\n\"ok\": false}",
        "\nNo: {\"o\nk\": false}",
        "\nNo: {OK: NULL}",
        "\nNo: {n: +5}",
        " // or {\"ok\":false}",
        " /* {\"b\":2} */",
    ] {
        let text = format!("{{\"a\":1}}{second}");
        let outcome = outcome(&text);
        assert!(outcome.several, "{text}");
        assert_eq!(outcome.draft.as_deref(), Some(r#"{"a":1}"#));
        assert!(super::outcome::run(tolerant(), [format!("So: {text}").as_bytes()]).several, "{text}");
    }
    assert!(!outcome(r#"{"a":1} where {x}, {x: string; y: number} and [1]"#).several);
    assert!(
        outcome(r#"/* {"b":2} */ {"a":1}"#).several,
        "a comment around the answer is text like any other"
    );
}

#[test]
fn refuses_deviations_that_are_not_listed() {
    use SyntaxErrorKind as K;
    for (text, kind, offset) in [
        ("{$ok: true}", K::ExpectedKey, 1),
        ("{ok.a: true}", K::ExpectedColon, 3),
        ("{\"a\":,1}", K::ExpectedValue, 5),
        ("{\"a\":1;\"b\":2}", K::ExpectedCommaOrBrace, 6),
        ("{\"a\":1\n;\"b\":2}", K::ExpectedCommaOrBrace, 7),
        ("{\"a\":1 \"b\":2}", K::ExpectedCommaOrBrace, 7),
        ("{\"a\":[1\n2]}", K::ExpectedCommaOrBracket, 8),
        ("{\"a\":[\"b\"\n\"c\"]}", K::ExpectedCommaOrBracket, 10),
        ("{\"a\":[1 2]}", K::ExpectedCommaOrBracket, 8),
        ("{\"a\":NaN}", K::ExpectedValue, 5),
        ("{\"a\":undefined}", K::ExpectedValue, 5),
        ("{\"a\":01}", K::Number, 6),
        ("{\"a\":none}", K::ExpectedValue, 5),
        ("{\"a\":yes}", K::ExpectedValue, 5),
        ("{\"a\":Infinity}", K::ExpectedValue, 5),
        ("{\"a\":.}", K::Number, 6),
        ("{\"a\":+}", K::Number, 6),
        ("{\"a\":+-5}", K::Number, 6),
        ("{\"a\":+05}", K::Number, 7),
        ("{\"a\":5.e3}", K::Number, 7),
        ("{\"a\":5..}", K::Number, 7),
        ("{\"a\":5%}", K::ExpectedCommaOrBrace, 6),
        ("{\"a\":1,000}", K::ExpectedColon, 10),
        ("{\"a\":3/4}", K::ExpectedCommaOrBrace, 6),
        ("{\"a\":[1, ...]}", K::Number, 10),
        ("{\"a\":0x1F}", K::Number, 6),
        ("{\"a\":\"\\d\"}", K::Escape, 6),
        ("{\"a\":`x`}", K::ExpectedValue, 5),
        ("{\"a\":«x»}", K::ExpectedValue, 5),
        ("{\"a\":‘it’s’}", K::ExpectedCommaOrBrace, 13),
        ("{\"a\":“a “b” c”}", K::NestedQuote, 10),
        ("{\"a\":/1}", K::ExpectedValue, 5),
        ("{\"a\" \"b\"}", K::ExpectedColon, 5),
    ] {
        let error = outcome(text).end.expect_err(text);
        assert_eq!((error.kind(), error.offset()), (kind, offset), "{text}");
    }
}

#[test]
fn ledger_is_bounded_and_its_sums_are_right() {
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

/// An object whose form cannot be read, with a complete one inside.
const BROKEN_OUTERS: [&str; 31] = [
    r#"{$rationale: "outer", "item": INNER}"#,
    r#"{rationale.de: "outer", "item": INNER}"#,
    "{“rationale\": “outer”, \"item\": INNER}",
    r#"{rationale: none, item: INNER}"#,
    r#"{verdict: approve, "item": INNER}"#,
    r#"{verdict approve, note: "use } here", item: INNER}"#,
    "{`rationale`: `outer`, `item`: INNER}",
    r#"{\"rationale\": \"outer\", \"item\": INNER}"#,
    "{\"rationale\"\u{ff1a} \"outer\", \"item\"\u{ff1a} INNER}",
    r#"{"rationale" = "outer", "item" = INNER}"#,
    r#"{"rationale" => "outer", "item" => INNER}"#,
    r#"{rationale = "outer", item = INNER}"#,
    r#"{"rationale" "outer", "item": INNER}"#,
    r#"{..., "item": INNER}"#,
    r#"{…, "item": INNER}"#,
    r#"{"outer", "item": INNER}"#,
    r#"{INNER}"#,
    r#"{{"item": INNER}}"#,
    r#"[approve, INNER]"#,
    r#"['a' 'b', INNER]"#,
    r#""rationale": "outer", "item": INNER}"#,
    r#"'rationale': 'outer', 'item': INNER}"#,
    r#"rationale: "outer", item: INNER}"#,
    r#"1, INNER]"#,
    r#"Answer(rationale='outer', item=INNER)"#,
    r#"Answer('outer', INNER)"#,
    "rationale: outer\nverdict: reject\nitem: INNER",
    "rationale: outer\nverdict: reject\nitem:\n  INNER",
    "rationale = 'outer'\nverdict = 'reject'\nitem = INNER",
    r#"INNER, "rationale": "outer"}"#,
    r#"INNER, "rationale" "outer"}"#,
];

#[test]
fn object_inside_what_cannot_be_read_is_not_the_answer() {
    for outer in BROKEN_OUTERS {
        for around in
            ["OUTER", "Sure, here it is:\n```json\nOUTER\n```\nThat is all.", "<think>x</think>OUTER"]
        {
            for inner in [r#"{"rationale":"inner"}"#, "{ 'rationale': 'inner', }"] {
                let text = around.replace("OUTER", &outer.replace("INNER", inner));
                let end = outcome(&text).end;
                assert!(
                    matches!(&end, Err(error) if error.kind() != SyntaxErrorKind::Nothing),
                    "{text}: {end:?}"
                );
            }
        }
    }
    assert_eq!(read(r#"Fill {name} in: {"a": 1}"#).0, r#"{"a":1}"#);
}

#[test]
fn comment_or_line_break_before_the_first_key_ends_does_not_hide_the_document() {
    let inner = r#""item":{"rationale":"inner"}"#;
    for (outer, rule) in [
        ("{ # note\n\"rationale\":\"outer\",ITEM}", T::Comment),
        ("{ #\n\"rationale\":\"outer\",ITEM}", T::Comment),
        ("{ // note\n\"rationale\":\"outer\",ITEM}", T::Comment),
        ("{\"rationale\" # note\n:\"outer\",ITEM}", T::Comment),
    ] {
        let (json, tolerated) = read(&outer.replace("ITEM", inner));
        assert_eq!(json, format!(r#"{{"rationale":"outer",{inner}}}"#));
        assert_eq!(tolerated.iter().map(|it| it.0).collect::<Vec<_>>(), [rule], "{outer}");
    }
    let (json, tolerated) = read(&format!("Well: {{\"ratio\nnale\":\"outer\",{inner}}}"));
    assert_eq!(json, format!(r#"{{"ratio\nnale":"outer",{inner}}}"#));
    assert_eq!(tolerated[1].0, T::RawNewline);
}

#[test]
fn surplus_closing_bracket_after_a_complete_reply_is_ignored() {
    assert_eq!(read("{\"a\":1}}").0, r#"{"a":1}"#);
    assert_eq!(read("Here you go:\n```json\n{\"a\":1}]\n```").0, r#"{"a":1}"#);
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
fn retracts_the_events_of_reasoning() {
    let outcome = outcome("Say {\"a\":\"x\"} or</think>{\"a\":\"y\"}");
    let expected = [
        " open object",
        "a text x",
        "a complete \"x\"",
        " complete {\"a\":\"x\"}",
        "retracted",
        " open object",
    ];
    assert_eq!(outcome.events[..6], expected);
    assert_eq!(outcome.events[6..], ["a text y", "a complete \"y\"", " complete {\"a\":\"y\"}"]);
}

#[test]
fn closing_tag_inside_a_string_of_the_answer_is_text() {
    assert_eq!(read(r#"{"a":"</think>"}"#).0, r#"{"a":"</think>"}"#);
    assert_eq!(read(r#"["</think>",{"a":1}]"#).0, r#"["</think>",{"a":1}]"#);
    assert_eq!(read(r#"So: {"a":"</think>{\"b\":1}"}"#).0, r#"{"a":"</think>{\"b\":1}"}"#);
}

#[test]
fn everything_before_a_lone_closing_tag_is_reasoning() {
    for (text, json) in [
        ("{\"a\":1}</think>{\"b\":2}", r#"{"b":2}"#),
        ("{\"a\":1}\n</think>\nNo: </thinking>{\"b\":2}", r#"{"b":2}"#),
        ("One</think>{\"a\":1}</think>{\"b\":2}", r#"{"b":2}"#),
        ("So: {\"a\":1}</think>7", "7"),
        ("So: {\"a\":1}</think>```\n{}\n```", "{}"),
        ("{\"a\":1}</think>[1, \"</think>\", {\"b\":2}]", r#"[1,"</think>",{"b":2}]"#),
        ("{\"a\":1} {'x</think>{\"b\":2}", r#"{"b":2}"#),
    ] {
        assert_eq!(read(text).0, json, "{text}");
    }
}

#[test]
fn reasoning_with_nothing_readable_after_it_is_an_error() {
    for before in [
        "{\"a\":1}",
        "So: {\"a\":1}",
        "Maybe {\"a\":1}? No.\n",
        "```json\n{\"a\":1}\n```",
        "One</think>{\"a\":1}",
    ] {
        for after in
            ["", "\n", "\nI'm sorry, I can't answer.", " and no {more}", "{ok = false}", "{\"b\" = 2}"]
        {
            let outcome = outcome(&format!("{before}</think>{after}"));
            assert!(outcome.end.is_err() && !outcome.several, "{before} {after}: {outcome:?}");
            assert_eq!(outcome.draft.filter(|draft| draft.contains('a')), None, "{before} {after}");
        }
    }
}

#[test]
fn objects_that_the_reply_begins_with_stay_two_whatever_tag_follows() {
    assert!(outcome("{\"a\":1}{\"b\":2}</think>{\"c\":3}").several);
}

#[test]
fn object_in_a_string_with_a_closing_tag_is_not_the_answer() {
    assert!(outcome("So: {\"a\":1} {'b':'</think>{\"c\":1}'}").end.is_err());
}

#[test]
fn tentative_document_reports_no_error() {
    let mut parser = tolerant();
    assert!(parser.push(b"So: {\"a\": ...} or {\"b\": 1} {\"c\": 1}", &mut |_| {}).is_ok());
    assert!(parser.is_tentative() && !parser.has_second_object());
    assert!(parser.finish(&mut |_| {}).is_err());
    let mut two = tolerant();
    two.push(b"So: {\"a\": 1} or {\"b\": 1}", &mut |_| {}).unwrap();
    assert!(two.is_tentative() && !two.has_second_object());
    assert_eq!(two.finish(&mut |_| {}), Ok(End::Complete));
    assert!(!two.is_tentative() && two.has_second_object());
    let mut clear = tolerant();
    assert!(clear.push(b"```json\n{\"a\": ...}", &mut |_| {}).is_err());
}
