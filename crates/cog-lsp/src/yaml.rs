//! Where a position of a manifest is: the keys above it, by indentation. The text need not be valid YAML, because it is
//! read while it is typed.

use std::ops::Range;

/// What is at a position of a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct YamlPosition {
    /// The keys that lead to the mapping of the position; `-` is the element of a list.
    pub(crate) path: Vec<String>,
    /// The key of the line, as far as it is before the position or contains it.
    pub(crate) key: String,
    /// The bytes of the key in its line.
    pub(crate) key_range: Range<usize>,
    /// The text between `KEY:` and the position; none if the position is in the key.
    pub(crate) value: Option<String>,
}

/// Returns what is at a byte of a line.
pub(crate) fn position(text: &str, line: usize, byte: usize) -> YamlPosition {
    let lines: Vec<&str> = text.lines().take(line + 1).collect();
    let current = Line::read(lines.get(line).copied().unwrap_or_default());
    let written = lines.get(line).copied().unwrap_or_default();
    let mut path = Vec::new();
    let mut limit = current.indent;
    if let Some(dash) = current.dash {
        path.push("-".to_owned());
        limit = dash + 1;
    }
    for above in lines.iter().take(line).rev().map(|line| Line::read(line)) {
        let Some(key) = above.key else { continue };
        // The first key of an element has the indentation of the keys below it.
        if above.indent == limit && current.dash.is_none() && above.dash.is_some() || above.indent < limit {
            if above.indent < limit {
                path.push(key.to_owned());
                limit = above.indent;
            }
            if let Some(dash) = above.dash {
                path.push("-".to_owned());
                limit = dash + 1;
            }
        }
    }
    path.reverse();
    let key_range = current.indent..current.indent + current.key.map_or(current.rest.len(), str::len);
    let colon = current.key.map(|_| key_range.end + 1);
    let value = colon
        .filter(|colon| byte >= *colon)
        .map(|colon| written.get(colon..byte.max(colon)).unwrap_or_default().trim_start().to_owned());
    let key = current.key.unwrap_or(current.rest).to_owned();
    YamlPosition { path, key, key_range, value }
}

/// A line: its indentation, and its key if it has one.
struct Line<'a> {
    /// The column of the last `-` before the key.
    dash: Option<usize>,
    /// The column of the key, or of the text.
    indent: usize,
    key: Option<&'a str>,
    /// The text after the dashes.
    rest: &'a str,
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Self {
        let mut rest = line.trim_start_matches(' ');
        let mut dash = None;
        while let Some(after) = rest.strip_prefix("- ").or_else(|| (rest == "-").then_some("")) {
            dash = Some(line.len() - rest.len());
            rest = after.trim_start_matches(' ');
        }
        let is_comment = rest.starts_with('#');
        let key = rest.split_once(':').filter(|(key, after)| {
            let is_name = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-$.".contains(c));
            is_name && !is_comment && (after.is_empty() || after.starts_with(' '))
        });
        Self { dash, indent: line.len() - rest.len(), key: key.map(|(key, _)| key), rest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
name: a
checks:
  - name: one
    that: $.data.
    sev
  - na
composition:
  requires:
  - name: b
    version: ^1
  routing:
    - condition: true
      # comment: x
      next: c
";

    fn at(line: usize, byte: usize) -> (String, String, Option<String>) {
        let found = position(TEXT, line, byte);
        (found.path.join("/"), found.key, found.value)
    }

    #[test]
    fn path_follows_the_indentation() {
        assert_eq!(at(0, 2), (String::new(), "name".into(), None));
        assert_eq!(at(3, 17), ("checks/-".into(), "that".into(), Some("$.data.".into())));
        assert_eq!(at(4, 7), ("checks/-".into(), "sev".into(), None));
        assert_eq!(at(5, 6), ("checks/-".into(), "na".into(), None));
        assert_eq!(at(8, 11), ("composition/requires/-".into(), "name".into(), Some("b".into())));
        assert_eq!(at(9, 15), ("composition/requires/-".into(), "version".into(), Some("^1".into())));
        assert_eq!(at(13, 13), ("composition/routing/-".into(), "next".into(), Some("c".into())));
    }

    #[test]
    fn positions_outside_the_text_have_no_path() {
        assert_eq!(at(99, 9), (String::new(), String::new(), None));
    }
}
