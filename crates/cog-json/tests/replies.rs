//! The replies of `conformance/replies`: each is read as its content, or not at all.

use std::collections::BTreeSet;

use cog_json::{End, Limits, Parser, Value};
use serde::Deserialize;

const REPLIES: &str = include_str!("../../../conformance/replies/replies.jsonl");

#[derive(Deserialize)]
struct Reply {
    class: String,
    reply: String,
    value: Option<serde_json::Value>,
}

/// The content of a reply; none if it is refused. `length` is the length of its parts, in bytes.
fn content(reply: &str, length: usize) -> Option<serde_json::Value> {
    let mut parser = Parser::tolerant(Limits::model_output());
    for part in reply.as_bytes().chunks(length) {
        parser.push(part, &mut |_| {}).ok()?;
    }
    let end = parser.finish(&mut |_| {}).ok()?;
    let is_answer = end == End::Complete && !parser.has_second_object();
    parser.into_value().filter(|_| is_answer).map(|value| value.to_serde())
}

fn replies() -> serde_json::Result<Vec<Reply>> {
    REPLIES.lines().map(serde_json::from_str).collect()
}

/// `1` and `1.0` are one number.
fn is_same(left: &serde_json::Value, right: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Number, Object};
    match (left, right) {
        (Number(left), Number(right)) => left.as_f64() == right.as_f64(),
        (Array(left), Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| is_same(left, right))
        }
        (Object(left), Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| is_same(left, right)))
        }
        _ => left == right,
    }
}

#[test]
fn every_reply_is_read_as_its_content_or_refused() {
    let mut wrong = Vec::new();
    for reply in replies().unwrap() {
        for length in [usize::MAX, 7, 1] {
            let found = content(&reply.reply, length);
            let is_right = match (&found, &reply.value) {
                (Some(found), Some(expected)) => is_same(found, expected),
                (None, None) => true,
                _ => false,
            };
            if !is_right {
                wrong.push(format!("{}: {:?}: {found:?}", reply.class, reply.reply));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} replies:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn values_of_replies_are_read_without_deviations() {
    for reply in replies().unwrap().iter().filter_map(|reply| reply.value.as_ref()) {
        assert!(Value::parse(&reply.to_string()).is_ok());
    }
}

#[test]
fn replies_are_of_many_classes() {
    let replies = replies().unwrap();
    let classes: BTreeSet<&str> = replies.iter().map(|reply| reply.class.as_str()).collect();
    assert!(replies.len() >= 1000 && classes.len() >= 200, "{} of {}", replies.len(), classes.len());
}
