//! The forms that ruling R75 adds to those of R24.

use super::super::{End, Parser, Tolerance as T};
use super::outcome::{Outcome, run_every_split};
use crate::error::SyntaxErrorKind;
use crate::event::Limits;

fn outcome(text: &str) -> Outcome {
    run_every_split(|| Parser::tolerant(Limits::model_output()), text.as_bytes())
}

/// The document, and each deviation as rule, path, before and after.
fn read(text: &str) -> (String, Vec<(T, String, usize, usize)>) {
    let outcome = outcome(text);
    assert_eq!((&outcome.end, outcome.several), (&Ok(End::Complete), false), "{text}");
    let tolerated = outcome.tolerated.into_iter().map(|it| (it.rule, it.path, it.before, it.after)).collect();
    (outcome.draft.unwrap(), tolerated)
}

#[test]
fn records_each_form_with_path_and_sizes() {
    for (text, json, rule, path, before, after) in [
        ("{ok: 1}", r#"{"ok":1}"#, T::BareKey, "ok", 2, 4),
        ("{\"a\":{ clé_2-b : 1}}", r#"{"a":{"clé_2-b":1}}"#, T::BareKey, "a[\"clé_2-b\"]", 8, 10),
        ("{\"a\":\"it\\'s\"}", r#"{"a":"it's"}"#, T::EscapedQuote, "a", 2, 1),
        ("{\"it\\'s\":1}", r#"{"it's":1}"#, T::EscapedQuote, "[\"it's\"]", 2, 1),
        ("{\"a\":“x \"y\" é”}", r#"{"a":"x \"y\" é"}"#, T::SmartQuotes, "a", 14, 12),
        ("{“a”:1}", r#"{"a":1}"#, T::SmartQuotes, "a", 7, 3),
        ("{‘a’:1}", r#"{"a":1}"#, T::SmartQuotes, "a", 7, 3),
        ("{\"a\":„x“}", r#"{"a":"x"}"#, T::SmartQuotes, "a", 7, 3),
        ("{\"a\":“it’s…”}", r#"{"a":"it’s…"}"#, T::SmartQuotes, "a", 15, 11),
        ("{\"a\":“x\\ny”}", r#"{"a":"x\ny"}"#, T::SmartQuotes, "a", 10, 6),
        ("{\"a\":[\u{3000}1]}", r#"{"a":[1]}"#, T::UnicodeSpace, "a", 3, 0),
        ("{\"a\"\u{200b}:1}", r#"{"a":1}"#, T::UnicodeSpace, "", 3, 0),
        ("{\"a\":1\u{c}}", r#"{"a":1}"#, T::UnicodeSpace, "", 1, 0),
        ("{\"a\":[TRUE]}", r#"{"a":[true]}"#, T::LiteralCase, "a[0]", 4, 4),
        ("{\"a\":Null}", r#"{"a":null}"#, T::LiteralCase, "a", 4, 4),
        ("{\"a\":fALSE}", r#"{"a":false}"#, T::LiteralCase, "a", 5, 5),
        ("{\"a\":+5}", r#"{"a":5}"#, T::NumberForm, "a", 2, 1),
        ("{\"a\":[.5]}", r#"{"a":[0.5]}"#, T::NumberForm, "a[0]", 2, 3),
        ("{\"a\":5.}", r#"{"a":5}"#, T::NumberForm, "a", 2, 1),
        ("{\"a\":-.25e2}", r#"{"a":-0.25e2}"#, T::NumberForm, "a", 6, 7),
        ("{\"a\":+.5}", r#"{"a":0.5}"#, T::NumberForm, "a", 3, 3),
        ("{\"a\":-7.}", r#"{"a":-7}"#, T::NumberForm, "a", 3, 2),
        ("{\"a\":[1,,2]}", r#"{"a":[1,2]}"#, T::ExtraComma, "a", 1, 0),
        ("{\"a\":[ , 1]}", r#"{"a":[1]}"#, T::ExtraComma, "a", 1, 0),
        ("{,\"a\":1}", r#"{"a":1}"#, T::ExtraComma, "", 1, 0),
        ("{\"a\":1, ,\"b\":2}", r#"{"a":1,"b":2}"#, T::ExtraComma, "", 1, 0),
        ("{\"a\":{\"x\":1\n \"y\":2}}", r#"{"a":{"x":1,"y":2}}"#, T::MissingComma, "a", 0, 1),
        ("{\"a\":\"x\"\r\n\"b\":2}", r#"{"a":"x","b":2}"#, T::MissingComma, "", 0, 1),
    ] {
        assert_eq!(read(text), (json.to_owned(), vec![(rule, path.to_owned(), before, after)]), "{text}");
    }
}

#[test]
fn reads_all_forms_together() {
    let text =
        "Here:\n{\u{a0}ok: TRUE\n  ‘data’: { , n: +5, m: [.5,, 5.], “t”: \"it\\'s\" // why\n  x: NULL } }";
    let (json, tolerated) = read(text);
    assert_eq!(json, r#"{"ok":true,"data":{"n":5,"m":[0.5,5],"t":"it's","x":null}}"#);
    let rules = tolerated.iter().map(|it| it.0).collect::<std::collections::BTreeSet<_>>();
    let all = [
        T::BareKey,
        T::Comment,
        T::EscapedQuote,
        T::ExtraComma,
        T::LiteralCase,
        T::MissingComma,
        T::NumberForm,
        T::SmartQuotes,
        T::SurroundingText,
        T::UnicodeSpace,
    ];
    assert_eq!(rules, all.into());
}

#[test]
fn two_deviations_of_one_string_or_line_are_both_recorded() {
    let quotes = (T::SmartQuotes, "a".to_owned(), 9, 6);
    let expected = [quotes, (T::RawNewline, "a".to_owned(), 1, 2)];
    assert_eq!(read("{\"a\":“x\ny”}"), (r#"{"a":"x\ny"}"#.to_owned(), expected.into()));
    let quotes = |key: &str| (T::SingleQuotes, key.to_owned(), 3, 3);
    let expected = [quotes("a"), (T::MissingComma, String::new(), 0, 1), quotes("b")];
    assert_eq!(read("{'a':1\n'b':2}"), (r#"{"a":1,"b":2}"#.to_owned(), expected.into()));
}

#[test]
fn numbers_in_other_forms_are_numbers() {
    let mut parser = Parser::tolerant(Limits::model_output());
    parser.push(b"{\"a\": [+5, 5., .5, -0.]}", &mut |_| {}).unwrap();
    let root = parser.root().unwrap();
    let numbers: Vec<_> = root.get("a").unwrap().elements().map(|node| node.as_number().unwrap()).collect();
    assert_eq!(numbers.iter().map(|it| it.as_i64()).collect::<Vec<_>>(), [Some(5), Some(5), None, Some(0)]);
    assert_eq!(numbers.iter().map(|it| it.as_f64()).collect::<Vec<_>>(), [5.0, 5.0, 0.5, 0.0]);
    let plain: Vec<_> = numbers.iter().map(|it| it.is_plain_integer()).collect();
    assert_eq!(plain, [true, true, false, true]);
}

#[test]
fn outer_object_is_the_document_in_each_form() {
    for outer in [
        "{rationale: \"outer\", \"item\": INNER}",
        "{rationale: \"outer\", note: \"use } here\", item: INNER}",
        "{\u{a0}\"rationale\": \"outer\", \"item\": INNER}",
        "{\u{200b}\"rationale\": \"outer\", \"item\": INNER}",
        "{\u{2028}\"rationale\"\u{a0}: \"outer\", \"item\":\u{3000}INNER}",
        "{“rationale”: “outer”, “item”: INNER}",
        "{‘rationale’: ‘outer’, ‘item’: INNER}",
        "{, \"rationale\": \"outer\", \"item\": INNER}",
        "{\n\"rationale\": \"outer\"\n\"item\": INNER\n}",
        "{ok: TRUE, rationale: 'outer', item: INNER}",
    ] {
        for around in ["OUTER", "Sure:\n```json\nOUTER\n```\nDone.", "<think>{a: 1}</think>OUTER"] {
            let text = around.replace("OUTER", &outer.replace("INNER", "{\"rationale\": \"inner\"}"));
            let json = read(&text).0;
            let is_outer = json.starts_with(r#"{"rationale":"outer""#) || json.starts_with(r#"{"ok":true,"#);
            assert!(is_outer && json.ends_with(r#""item":{"rationale":"inner"}}"#), "{text}: {json}");
        }
    }
}

#[test]
fn reasoning_in_each_tag_is_not_the_document() {
    let final_channel = "<|end|><|start|>assistant<|channel|>final<|message|>";
    let constrained = "<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>";
    for (open, close) in [
        ("<think>", "</think>"),
        ("<thinking>", "</thinking>"),
        ("<Think>", "</Think>"),
        ("[THINK]", "[/THINK]"),
        ("<seed:think>", "</seed:think>"),
        ("◁think▷", "◁/think▷"),
        ("<|channel|>analysis<|message|>", final_channel),
        ("<|start|>assistant<|channel|>commentary<|message|>", constrained),
    ] {
        for draft in ["Hm.", "{\"ok\": true, \"data\": {}}", "Perhaps {a: 1} or [{\"b\":", "x < [ y ◁ {'z"]
        {
            for opening in [open, "", "Well. "] {
                let text = format!("{opening}{draft}{close}\n{{\"a\":[1]}}");
                // An object that the reply begins with is a second object only if no tag follows it.
                let (json, tolerated) = read(&text);
                assert_eq!(json, r#"{"a":[1]}"#, "{text}");
                assert_eq!(
                    tolerated.iter().map(|it| it.0).collect::<Vec<_>>(),
                    [T::SurroundingText],
                    "{text}"
                );
            }
            let error = outcome(&format!("{open}{draft}")).end.expect_err(open);
            assert_eq!(error.kind(), SyntaxErrorKind::OnlyReasoning, "{open}{draft}");
            assert!(outcome(&format!("{open}{draft}{close}\nNo.")).end.is_err(), "{open}{draft}{close}");
        }
    }
}

#[test]
fn forms_that_are_truncated_are_not_completed() {
    for text in [
        "{ok: true, data: {t: 'x'",
        "{ok",
        "{“ok",
        "{\"a\":TR",
        "{\"a\":+",
        "{\"a\":5.",
        "{\"a\":1\n\"b\"",
        "{,",
    ] {
        assert_eq!(outcome(text).end, Ok(End::Truncated), "{text}");
    }
}

#[test]
fn strict_parser_reads_none_of_the_forms() {
    for text in [
        "{ok:1}",
        "{\"a\":\"\\'\"}",
        "{“a”:1}",
        "[\u{a0}1]",
        "[TRUE]",
        "[+5]",
        "[.5]",
        "[-.5]",
        "[5.]",
        "[1,,2]",
        "[,1]",
        "{\"a\":1\n\"b\":2}",
    ] {
        assert!(crate::value::Value::parse(text).is_err(), "{text}");
    }
}
