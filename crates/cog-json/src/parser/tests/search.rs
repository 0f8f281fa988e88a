//! Where the tolerant parser finds the document, and when.

use super::super::{End, Parser, Tolerance as T};
use super::outcome::{Outcome, run_every_split};
use crate::error::SyntaxErrorKind;
use crate::event::Limits;

fn tolerant() -> Parser {
    Parser::tolerant(Limits::model_output())
}

fn outcome(text: &str) -> Outcome {
    run_every_split(tolerant, text.as_bytes())
}

#[test]
fn document_begins_at_its_first_colon_in_each_form() {
    for text in [
        r#"{"a":"#,
        r#"So: {"a\"b":"#,
        r#"So: {'a\'b':"#,
        "So: { // c\n\"a\":",
        "So: { # *\n\"a\":",
        "So: { /* c */\"a\":",
        "So: { /*/ c **/ \"a\" /**/ :",
        "So: [ /* c */ { \"a\" // *\n:",
    ] {
        let is_array = text.contains('[');
        for at in 0..text.len() {
            let mut events = 0;
            let mut parser = tolerant();
            parser.push(&text.as_bytes()[..at], &mut |_| events += 1).unwrap();
            assert_eq!(events, 0, "{at} of {text}");
            parser.push(&text.as_bytes()[at..], &mut |_| events += 1).unwrap();
            assert_eq!(events, 1 + usize::from(is_array), "{at} of {text}");
        }
    }
}

#[test]
fn nothing_is_emitted_of_what_cannot_be_read_up_to_its_first_colon() {
    for text in ["{ok = false}", "{..., \"a\": 1}", r#"[1, {"a\x": 1}]"#] {
        let outcome = outcome(text);
        assert!(outcome.end.is_err() && outcome.events.is_empty(), "{text}: {outcome:?}");
    }
}

#[test]
fn part_of_something_that_cannot_be_read_is_refused_where_that_shows() {
    use SyntaxErrorKind as K;
    for (text, kind, offset) in [
        (r#""item": {"a":1}"#, K::Fragment, 8),
        (r#"1, {"a":1}]"#, K::TrailingText, 10),
        (r#"1, {"a":1}, [2]]"#, K::TrailingText, 15),
        (r#"1, {"a":1} [}"#, K::TrailingText, 12),
        ("So: {\"a\":1} {'b':'</think>\n{\"c\":1}'}", K::TrailingText, 35),
    ] {
        let error = outcome(text).end.expect_err(text);
        assert_eq!((error.kind(), error.offset()), (kind, offset), "{text}");
    }
}

#[test]
fn depth_counts_from_the_first_bracket_that_may_begin_the_document() {
    let read = |text: &str| {
        let outcome = run_every_split(|| Parser::tolerant(Limits::default().with_depth(2)), text.as_bytes());
        outcome.end.map(|_| outcome.draft.unwrap()).map_err(|error| (error.kind(), error.offset()))
    };
    assert_eq!(read(r#"[{"a":1}]"#), Ok(r#"[{"a":1}]"#.to_owned()));
    assert_eq!(read(r#"[{x}] {"a":1}"#), Ok(r#"{"a":1}"#.to_owned()));
    assert_eq!(read(r#"[[[x]]] {"a":1}"#), Err((SyntaxErrorKind::TooDeep, 2)));
}

#[test]
fn text_and_fence_before_the_document_are_measured_apart() {
    let outcome = outcome("Sure:\n```json\n{\"a\":1}\n```");
    let around: Vec<_> = outcome.tolerated.iter().map(|it| (it.rule, it.before, it.after)).collect();
    assert_eq!(around, [(T::SurroundingText, 5, 0), (T::CodeFence, 10, 0)]);
}

#[test]
fn reasoning_may_begin_again_where_it_ended() {
    for text in [
        " \n<think>x</think>{\"a\":1}",
        "<think>x</think>\n<think>{\"b\":2}</think>{\"a\":1}",
        "So: {\"b\":2}</think>\n<think>{\"c\":3}</think>{\"a\":1}",
    ] {
        let outcome = outcome(text);
        let draft = Some(r#"{"a":1}"#.to_owned());
        assert_eq!((outcome.end, outcome.draft), (Ok(End::Complete), draft), "{text}");
    }
    for text in ["<think>x</think>\n<think>{\"b\":2}", "So: {\"b\":2}</think>\n<think>{\"c\":3}"] {
        let outcome = outcome(text);
        let kind = outcome.end.map_err(|error| error.kind());
        assert_eq!((kind, outcome.draft), (Err(SyntaxErrorKind::OnlyReasoning), None), "{text}");
    }
}

#[test]
fn document_after_a_closing_tag_is_not_tentative() {
    let mut parser = tolerant();
    for (part, is_tentative) in
        [("So: {\"a\":1}", true), (" or so</think>", false), ("[1, {\"b\":", false), ("2}]", false)]
    {
        parser.push(part.as_bytes(), &mut |_| {}).unwrap();
        assert_eq!(parser.is_tentative(), is_tentative, "{part}");
    }
}

#[test]
fn tolerance_displays_its_name_in_ledgers() {
    assert_eq!(
        (T::BareKey.to_string(), T::UnicodeSpace.to_string()),
        ("bare_key".into(), "unicode_space".into())
    );
}
