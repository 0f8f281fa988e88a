use super::super::{End, Parser};
use super::outcome::{Outcome, run, run_every_split};
use crate::error::SyntaxErrorKind;
use crate::event::Limits;

fn strict() -> Parser {
    Parser::strict(Limits::default())
}

fn outcome(text: &str) -> Outcome {
    run_every_split(strict, text.as_bytes())
}

fn refused(text: &[u8]) -> (SyntaxErrorKind, usize) {
    let error = run_every_split(strict, text).end.expect_err(&String::from_utf8_lossy(text));
    (error.kind(), error.offset())
}

#[test]
fn emits_each_event_once_and_in_order() {
    let outcome = outcome(r#"{"a": {"b\n": [1, "x\u00e9y", []]}, "c": "", "d": null}"#);
    assert_eq!(
        outcome.events,
        [
            " open object",
            "a open object",
            r#"a["b\n"] open array"#,
            r#"a["b\n"][0] complete 1"#,
            r#"a["b\n"][1] text xéy"#,
            r#"a["b\n"][1] complete "xéy""#,
            r#"a["b\n"][2] open array"#,
            r#"a["b\n"][2] complete []"#,
            r#"a["b\n"] complete [1,"xéy",[]]"#,
            r#"a complete {"b\n":[1,"xéy",[]]}"#,
            "c text ",
            r#"c complete """#,
            "d complete null",
            r#" complete {"a":{"b\n":[1,"xéy",[]]},"c":"","d":null}"#,
        ]
    );
    assert_eq!(outcome.end, Ok(End::Complete));
}

#[test]
fn duplicate_key_replaces_the_earlier_value() {
    let outcome = outcome(r#"{"a":[1],"b":2,"a":"x"}"#);
    let tail = outcome.events.iter().skip(4).map(String::as_str).collect::<Vec<_>>();
    let root = r#" complete {"b":2,"a":"x"}"#;
    assert_eq!(tail, ["b complete 2", "a replaced", "a text x", r#"a complete "x""#, root]);
}

#[test]
fn accepts_what_the_rfc_allows() {
    for text in [
        "0",
        "-0",
        "1E+2",
        "-1.5e-3",
        "null",
        " true\n",
        "\"\"",
        "[]",
        "{}",
        "\t[ 1 ,\r\n2 ] ",
        "1e-999",
        "\"\u{7f}\"",
        r#""\ud83d\ude00 \u0000 \/ \b\f\n\r\t""#,
        r#"{"":{"":[[],{}]}}"#,
        "\"\u{10ffff}\"",
        r#"{"a":1,"a":1}"#,
    ] {
        assert_eq!(outcome(text).end, Ok(End::Complete), "{text}");
        assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{text}");
    }
}

#[test]
fn refuses_everything_else_with_its_offset() {
    use SyntaxErrorKind as K;
    for (text, kind, offset) in [
        ("", K::UnexpectedEnd, 0),
        ("  ", K::UnexpectedEnd, 2),
        ("[1,]", K::TrailingComma, 3),
        ("{\"a\":1,}", K::TrailingComma, 7),
        ("[,1]", K::ExpectedValue, 1),
        ("[1 2]", K::ExpectedCommaOrBracket, 3),
        ("[1}", K::ExpectedCommaOrBracket, 2),
        ("{\"a\" 1}", K::ExpectedColon, 5),
        ("{\"a\":1]", K::ExpectedCommaOrBrace, 6),
        ("{a:1}", K::ExpectedKey, 1),
        ("{'a':1}", K::ExpectedKey, 1),
        ("{1:1}", K::ExpectedKey, 1),
        ("{\"a\":1,b:2}", K::ExpectedKey, 7),
        ("x", K::ExpectedValue, 0),
        ("{\"a\":}", K::ExpectedValue, 5),
        ("[\"a\nb\"]", K::ControlCharacter, 3),
        ("[\"\\x\"]", K::Escape, 2),
        ("[\"\\u12g4\"]", K::Escape, 2),
        ("[\"\\ud800\"]", K::Surrogate, 2),
        ("[\"\\ud800\\n\"]", K::Surrogate, 2),
        ("[\"\\ud800\\ud800\"]", K::Surrogate, 2),
        ("[\"\\udc00\"]", K::Surrogate, 2),
        ("01", K::Number, 1),
        ("-", K::UnexpectedEnd, 1),
        ("[-]", K::Number, 2),
        ("[1.]", K::Number, 3),
        ("[.5]", K::ExpectedValue, 1),
        ("[1e]", K::Number, 3),
        ("[+1]", K::ExpectedValue, 1),
        ("[0x1]", K::Number, 2),
        ("[NaN]", K::ExpectedValue, 1),
        ("[tru]", K::ExpectedValue, 1),
        ("nul", K::UnexpectedEnd, 3),
        ("truex", K::TrailingText, 4),
        ("1 2", K::TrailingText, 2),
        ("{} // x", K::Comment, 3),
        ("\u{feff}{}", K::ByteOrderMark, 0),
        ("[\u{a0}1]", K::ExpectedValue, 1),
        ("[1\0]", K::ExpectedCommaOrBracket, 2),
        ("[\"a", K::UnexpectedEnd, 3),
        ("{\"a\":[1", K::UnexpectedEnd, 7),
    ] {
        assert_eq!(refused(text.as_bytes()), (kind, offset), "{text:?}");
    }
}

#[test]
fn numbers_that_no_float_can_represent_are_stored_as_written() {
    for number in ["1e999", "-1e400", &"9".repeat(310), &format!("-{}.5", "9".repeat(2000)), "1e-999"] {
        let text = format!("[{number}]");
        assert_eq!(outcome(&text).draft, Some(text.clone()));
        let value = crate::Value::parse(&text).unwrap();
        assert!(value.at(0).unwrap().as_f64().is_some_and(f64::is_finite), "{number}");
    }
    let number = crate::Value::parse("[1e999, -1e400]").unwrap();
    assert_eq!(number.elements().filter_map(crate::Node::as_f64).collect::<Vec<_>>(), [f64::MAX, f64::MIN]);
}

#[test]
fn refuses_what_is_not_utf_8() {
    assert_eq!(refused(b"[\"a\xffb\"]"), (SyntaxErrorKind::Utf8, 3));
    assert_eq!(refused(b"[\"\xc3\"]"), (SyntaxErrorKind::Utf8, 2));
    assert_eq!(refused(b"[\"\xed\xa0\x80\"]"), (SyntaxErrorKind::Utf8, 2));
    assert_eq!(refused(b"[1,] \xff"), (SyntaxErrorKind::TrailingComma, 3));
    assert_eq!(refused(b"[\"\xe2\x82"), (SyntaxErrorKind::UnexpectedEnd, 2));
    assert_eq!(refused(b"[]\xe2\x82").0, SyntaxErrorKind::UnexpectedEnd);
}

#[test]
fn draft_contains_what_has_arrived() {
    let mut parser = strict();
    let mut drafts = Vec::new();
    for chunk in [r#"{"a":"#, r#""x\"#, r#"ny"#, r#"","b":[tr"#, "ue,1", "2", r#"],"c"#, r#"":{"d":"#, "{"] {
        parser.push(chunk.as_bytes(), &mut |_| {}).unwrap();
        let root = parser.root().unwrap();
        assert!(!root.is_complete());
        assert_eq!(root.len(), root.members().count());
        drafts.push(root.to_string());
    }
    assert_eq!(
        drafts,
        [
            "{}",
            r#"{"a":"x"}"#,
            r#"{"a":"x\ny"}"#,
            r#"{"a":"x\ny","b":[]}"#,
            r#"{"a":"x\ny","b":[true]}"#,
            r#"{"a":"x\ny","b":[true]}"#,
            r#"{"a":"x\ny","b":[true,12]}"#,
            r#"{"a":"x\ny","b":[true,12],"c":{}}"#,
            r#"{"a":"x\ny","b":[true,12],"c":{"d":{}}}"#,
        ]
    );
    let root = parser.root().unwrap();
    assert!(root.get("a").unwrap().is_complete() && !root.get("c").unwrap().is_complete());
    assert_eq!(root.to_value().to_string(), *drafts.last().unwrap());
}

#[test]
fn enforces_each_limit() {
    let deep = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    assert_eq!(run(strict(), [&deep(128)[..]]).end, Ok(End::Complete));
    let kind = |limits: Limits, text: &[u8]| {
        let error = run_every_split(|| Parser::strict(limits), text).end.unwrap_err();
        (error.kind(), error.offset())
    };
    assert_eq!(kind(Limits::default(), &deep(129)), (SyntaxErrorKind::TooDeep, 128));
    assert_eq!(kind(Limits::default().with_bytes(4), b"[1,2]"), (SyntaxErrorKind::TooLarge, 4));
    assert_eq!(kind(Limits::default().with_nodes(3), b"[1,2,3]"), (SyntaxErrorKind::TooMany, 5));
    assert_eq!(run(strict(), [&[b'['; 100_000][..]]).end.unwrap_err().offset(), 128);
}

#[test]
fn error_is_final() {
    let mut parser = strict();
    let first = parser.push(b"[1,}", &mut |_| {}).unwrap_err();
    assert_eq!(parser.push(b"]", &mut |_| {}), Err(first));
    assert_eq!(parser.finish(&mut |_| {}), Err(first));
    assert_eq!(parser.root().unwrap().to_string(), "[1]");
    assert_eq!(first.to_string(), "expected a value at byte 3, found `}`");
    assert_eq!(first.position("[1,}").column, 4);
}
