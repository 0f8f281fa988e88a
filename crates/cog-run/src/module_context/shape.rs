//! The form of a context that a model receives: the declared fields and turns, without secrets, and not too long.

use cog_spec::{AcceptedContext, is_secret_list_name, is_secret_name, mask_secrets};
use serde_json::Value;

/// The maximum length of a string in characters; a longer one is truncated.
pub(super) const MAX_TEXT: usize = 10_000;

/// The string that replaces a secret.
const MASK: &str = "***";

/// Returns a context as the model receives it. Applied to its own result, it changes nothing.
pub(super) fn for_model(accepted: &AcceptedContext, mut value: Value) -> Value {
    if let (Some(fields), Value::Object(members)) = (&accepted.fields, &mut value) {
        members.retain(|key, _| fields.contains(key));
    }
    if let (Some(max), Value::Array(messages)) = (accepted.max_turns, &mut value) {
        drop_oldest_turns(messages, usize::try_from(max).unwrap_or(usize::MAX));
    }
    clean(&mut value);
    value
}

/// Removes secrets from a value, and truncates long texts.
pub(super) fn clean(value: &mut Value) {
    match value {
        Value::String(text) => *text = truncated(&mask_secrets(text)),
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(members) => members.iter_mut().for_each(|(key, member)| match member {
            Value::Null | Value::Bool(_) => {}
            secret if is_secret_name(key) => *secret = Value::from(MASK),
            Value::Array(items) if is_secret_list_name(key) => items.iter_mut().for_each(clean_item),
            other => clean(other),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Removes the secrets from an item of a list of secrets. Numbers are counts.
fn clean_item(item: &mut Value) {
    match item {
        Value::String(text) => MASK.clone_into(text),
        other => clean(other),
    }
}

/// Drops the oldest turns of a conversation. A turn is a message of the user and what follows it; without messages of a
/// user, each element is a turn.
fn drop_oldest_turns(messages: &mut Vec<Value>, max: usize) {
    let has_users = messages.iter().any(is_user);
    let starts: Vec<usize> = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| !has_users || is_user(message))
        .map(|(index, _)| index)
        .collect();
    if starts.len() > max {
        let first = starts.get(starts.len() - max).copied().unwrap_or(messages.len());
        messages.drain(..first);
    }
}

fn is_user(message: &Value) -> bool {
    message.get("role").is_some_and(|role| role == "user")
}

/// Returns a string of at most [`MAX_TEXT`] characters, with a note at its end if it is truncated.
fn truncated(text: &str) -> String {
    let length = text.chars().count();
    if length <= MAX_TEXT {
        return text.to_owned();
    }
    let note = format!("… (truncated; {length} characters)");
    let kept = MAX_TEXT - note.chars().count();
    text.chars().take(kept).chain(note.chars()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shaped(accepted: AcceptedContext, value: Value) -> Value {
        let once = for_model(&accepted, value);
        assert_eq!(for_model(&accepted, once.clone()), once, "applied twice");
        once
    }

    fn message(role: &str, content: &str) -> Value {
        json!({ "role": role, "content": content })
    }

    #[test]
    fn oldest_turns_are_dropped_first() {
        let history = json!([
            message("system", "s"),
            message("user", "1"),
            message("assistant", "a1"),
            message("user", "2"),
            message("assistant", "a2"),
            message("tool", "t2"),
            message("user", "3"),
        ]);
        let of = |max| {
            let accepted = AcceptedContext { max_turns: Some(max), ..AcceptedContext::default() };
            let texts = shaped(accepted, history.clone());
            texts
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["content"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(of(0), [""; 0]);
        assert_eq!(of(1), ["3"]);
        assert_eq!(of(2), ["2", "a2", "t2", "3"]);
        assert_eq!(of(3).len(), 7);
        assert_eq!(of(u64::MAX).len(), 7);
        let accepted = AcceptedContext { max_turns: Some(2), ..AcceptedContext::default() };
        assert_eq!(shaped(accepted, json!([1, 2, 3])), json!([2, 3]));
    }

    #[test]
    fn only_the_declared_fields_remain() {
        let accepted =
            AcceptedContext { fields: Some(vec!["name".to_owned()]), ..AcceptedContext::default() };
        assert_eq!(shaped(accepted, json!({ "name": "Ada", "city": "x" })), json!({ "name": "Ada" }));
    }

    #[test]
    fn secrets_are_masked_and_counts_are_not() {
        let value = json!({
            "profile": { "apiKey": "abc", "password": { "hash": 1 }, "max_tokens": 3, "token": null },
            "notes": ["use sk-abcdefghijklmnopqrstuvwx"],
            "tokens": ["abc", 5, { "id": "x", "pwd": "y" }], "stop_tokens": ["END"],
        });
        let expected = json!({
            "profile": { "apiKey": "***", "password": "***", "max_tokens": 3, "token": null },
            "notes": ["use ***"],
            "tokens": ["***", 5, { "id": "x", "pwd": "***" }], "stop_tokens": ["END"],
        });
        assert_eq!(shaped(AcceptedContext::default(), value), expected);
    }

    #[test]
    fn long_text_is_truncated_at_characters() {
        for length in [MAX_TEXT, MAX_TEXT + 1, 3 * MAX_TEXT] {
            let value = shaped(AcceptedContext::default(), json!("é".repeat(length)));
            let text = value.as_str().unwrap();
            assert!(text.chars().count() <= MAX_TEXT);
            assert_eq!(text.ends_with(&format!("(truncated; {length} characters)")), length > MAX_TEXT);
        }
    }
}
