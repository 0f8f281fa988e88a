//! Paths and short texts of documents.

use cog_json::Node;

/// The maximum length of text that is counted, in characters.
const MAX_TEXT: usize = 200;

/// Returns text, truncated if it is long.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned(),
        None => text.to_owned(),
    }
}

/// Returns the text of a member; empty if there is none.
pub(super) fn member(object: Node<'_>, key: &str) -> String {
    object.get(key).and_then(|value| value.as_str().map(short)).unwrap_or_default()
}

/// Returns a path of an object without the indexes.
pub(super) fn path_of(object: Node<'_>, key: &str) -> String {
    without_indexes(&member(object, key))
}

/// Returns `data.items[3].title` as `data.items[].title`.
pub(super) fn without_indexes(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(before);
        match after.split_once(']') {
            Some((index, after)) if index.bytes().all(|byte| byte.is_ascii_digit()) => {
                out.push_str("[]");
                rest = after;
            }
            _ => {
                out.push('[');
                rest = after;
            }
        }
    }
    out + rest
}

/// Returns the field that an insight suggests, as a path below `data`; empty if it is not a path.
pub(super) fn mapped(suggested: &str) -> String {
    let suggested = suggested.trim().trim_start_matches("$.").trim_start_matches('/').replace('/', ".");
    let path = without_indexes(suggested.strip_prefix("data.").unwrap_or(&suggested));
    let is_name = |step: &str| {
        let name = step.strip_suffix("[]").unwrap_or(step);
        let mut letters = name.chars();
        letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '-')
    };
    if path.split('.').all(is_name) { format!("data.{path}") } else { String::new() }
}

/// Returns the value at a path such as `items[3].title`.
pub(super) fn at<'a>(value: Node<'a>, path: &str) -> Option<Node<'a>> {
    let mut value = value;
    for step in path.split('.') {
        let (name, indexes) = step.split_once('[').unwrap_or((step, ""));
        value = value.get(name)?;
        for index in indexes.split('[').filter(|index| !index.is_empty()) {
            let index: usize = index.trim_end_matches(']').parse().ok()?;
            value = value.elements().nth(index)?;
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    #[test]
    fn suggestions_become_paths() {
        for (suggested, path) in [
            ("data.severity", "data.severity"),
            ("severity", "data.severity"),
            ("$.data.issues[0].line", "data.issues[].line"),
            ("/data/issues/line", "data.issues.line"),
            ("a new field", ""),
            ("", ""),
            ("data.", ""),
        ] {
            assert_eq!(mapped(suggested), path, "{suggested}");
        }
    }

    #[test]
    fn values_are_found_by_path() {
        let value = Value::parse(r#"{"a": [{"b": 1}, {"b": 2}]}"#).unwrap();
        assert_eq!(at(value.node(), "a[1].b").and_then(|found| found.as_f64()), Some(2.0));
        assert!(at(value.node(), "a[2].b").is_none() && at(value.node(), "c").is_none());
    }
}
