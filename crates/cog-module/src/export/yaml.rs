//! Writes YAML in block style.

use serde_json::Value;

/// Returns a value as YAML, one member per line. Text that could be read as another type is quoted.
pub(super) fn text(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &mut out);
    out
}

/// Writes a list or an object at an indentation, in spaces.
fn block(value: &Value, indent: usize, out: &mut String) {
    let spaces = " ".repeat(indent);
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                out.push_str(&format!("{spaces}{}:", scalar_text(key)));
                after_key(value, indent, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                if !is_nested(item) {
                    out.push_str(&format!("{spaces}- {}\n", scalar(item, indent + 2)));
                    continue;
                }
                let mut inner = String::new();
                block(item, indent + 2, &mut inner);
                out.push_str(&format!("{spaces}- {}", inner.get(indent + 2..).unwrap_or_default()));
            }
        }
        other => out.push_str(&format!("{spaces}{}\n", scalar(other, indent))),
    }
}

fn after_key(value: &Value, indent: usize, out: &mut String) {
    if is_nested(value) {
        out.push('\n');
        block(value, indent + 2, out);
    } else {
        out.push_str(&format!(" {}\n", scalar(value, indent + 2)));
    }
}

/// Returns whether a value has lines of its own.
fn is_nested(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn scalar(value: &Value, indent: usize) -> String {
    match value {
        Value::String(text) if is_block(text) => {
            let spaces = " ".repeat(indent);
            let lines: Vec<String> = text.lines().map(|line| format!("\n{spaces}{line}")).collect();
            format!("|-{}", lines.concat())
        }
        Value::String(text) => scalar_text(text),
        other => other.to_string(),
    }
}

/// Returns whether a string can have its lines as they are.
fn is_block(text: &str) -> bool {
    text.contains('\n')
        && text.chars().all(|c| c == '\n' || (' '..='~').contains(&c))
        && text.lines().all(|line| !line.is_empty())
        && !text.starts_with(' ')
        && !text.ends_with('\n')
        && !text.contains("---")
}

/// Returns a string as a scalar: as it is, or quoted.
pub(crate) fn scalar_text(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// The texts that a parser reads as another type.
const WORDS: [&str; 10] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan"];

/// Returns whether every parser reads the text as this text.
fn is_plain(text: &str) -> bool {
    let is_safe =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '/' | ',' | '(' | ')');
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && !text.ends_with(' ')
        && !text.contains("---")
        && text.chars().all(is_safe)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

/// Returns text in double quotes. It contains no `---`, at which some programs end the front matter.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    let mut hyphens = 0;
    for c in text.chars() {
        hyphens = if c == '-' { hyphens + 1 } else { 0 };
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '-' if hyphens > 2 => out.push_str("\\u002d"),
            c if c.is_control()
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') =>
            {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{source::Source, yaml};

    #[test]
    fn values_are_read_as_they_were() {
        let texts = [
            "plain",
            "two words",
            "true",
            "No",
            "null",
            "1.0",
            "",
            " a",
            "a ",
            "a: b",
            "a #b",
            "- a",
            "{}",
            "\"q\"",
            "back\\slash",
            "line\nline",
            "tab\t",
            "é ü 語",
            "\u{1f600}",
            "\u{7f}\u{85}\u{2028}\u{feff}x",
            "---",
            "a----b",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a`",
            "y",
            "~",
            "a: b\n# c\n- d",
            "{\n  \"a\": 1\n}",
            "a\n\nb",
            " a\nb",
            "a\nb\n",
            "a: b\n# c",
        ];
        for text in texts {
            let written =
                super::text(&json!({ "key": text, "list": [text, { "a": text, "b": [text] }, [text]] }));
            let root = yaml::parse(&Source::new("x", written.as_str())).unwrap();
            let is = |node: &yaml::Node| matches!(&node.content, yaml::Content::Text(found) if found == text);
            assert!(is(root.get("key").unwrap()), "{text:?}: {written}");
            let yaml::Content::List(items) = &root.get("list").unwrap().content else { panic!("{written}") };
            assert!(is(&items[0]) && is(items[1].get("a").unwrap()), "{text:?}: {written}");
            assert!(!written.contains("---"), "{written}");
        }
    }

    #[test]
    fn blocks_are_indented() {
        let value = json!({ "a": { "b": [1, { "c": true, "d": [] }], "e": {} }, "f": null });
        assert_eq!(super::text(&value), "a:\n  b:\n    - 1\n    - c: true\n      d: []\n  e: {}\nf: null\n");
    }
}
