//! Documents inside a wrapper.

use super::super::Parser;
use super::outcome::run_every_split;
use crate::event::Limits;

fn strict() -> Parser {
    Parser::strict(Limits::default()).unwrapping("data")
}

fn tolerant() -> Parser {
    Parser::tolerant(Limits::default()).unwrapping("data")
}

#[test]
fn value_of_the_wrapper_has_the_path_of_the_root() {
    for (text, events) in [
        (
            r#"{"data":{"a":1}}"#,
            &[" open object", " open object", "a complete 1", r#" complete {"a":1}"#][..],
        ),
        (
            r#"{"data":{"data":1}}"#,
            &[" open object", " open object", "data complete 1", r#" complete {"data":1}"#],
        ),
        (r#"{"data":1,"data":2}"#, &[" open object", " complete 1", "data replaced", "data complete 2"]),
        (r#"{"b":1,"data":2}"#, &[" open object", "b complete 1", "data complete 2"]),
        (
            r#"{"b":{"data":1}}"#,
            &[" open object", "b open object", "b.data complete 1", r#"b complete {"data":1}"#],
        ),
        (
            r#"[{"data":1}]"#,
            &[" open array", "[0] open object", "[0].data complete 1", r#"[0] complete {"data":1}"#],
        ),
    ] {
        for parser in [strict, tolerant] {
            let outcome = run_every_split(parser, text.as_bytes());
            assert_eq!(outcome.events[..events.len()], *events, "{text}");
        }
    }
    let outcome = run_every_split(tolerant, b"So: {\"data\":{'a':[1,]}}");
    assert!(outcome.events.contains(&"a[0] complete 1".to_owned()), "{outcome:?}");
    assert_eq!(outcome.tolerated.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["", "a", "a"]);
}

#[test]
fn only_an_object_that_is_the_only_member_is_unwrapped() {
    for (text, inner) in [
        (r#"{"data":{"a":1}}"#, r#"{"a":1}"#),
        (r#"{"data":{}}"#, "{}"),
        (r#"{"data":[1]}"#, r#"{"data":[1]}"#),
        (r#"{"b":{"a":1}}"#, r#"{"b":{"a":1}}"#),
        (r#"{"b":1}"#, r#"{"b":1}"#),
        (r#"{"data":{"a":1},"b":2}"#, r#"{"data":{"a":1},"b":2}"#),
        ("[]", "[]"),
    ] {
        let mut parser = strict();
        assert!(parser.unwrapped_root().is_none());
        parser.push(text.as_bytes(), &mut |_| {}).unwrap();
        assert_eq!(parser.unwrapped_root().map(|root| root.to_string()).as_deref(), Some(inner), "{text}");
        assert_eq!(
            parser.into_unwrapped_value().map(|value| value.to_string()).as_deref(),
            Some(inner),
            "{text}"
        );
    }
    assert_eq!(strict().into_unwrapped_value(), None);
}
