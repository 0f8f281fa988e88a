//! Identifiers and comments in the forms of languages.

use std::collections::HashSet;

/// Returns `suggested_mapping` as `SuggestedMapping`. Only ASCII letters and digits remain; without any, it is `X`.
pub(super) fn pascal(text: &str) -> String {
    let mut word = String::new();
    for part in parts(text) {
        let mut letters = part.chars();
        word.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        word.push_str(letters.as_str());
    }
    if word.is_empty() { "X".to_owned() } else { word }
}

/// Returns `code-reviewer` as `codeReviewer`.
pub(super) fn camel(text: &str) -> String {
    let word = pascal(text);
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// Returns `suggestedMapping` as `suggested_mapping`; without letters and digits it is `x`.
pub(super) fn snake(text: &str) -> String {
    let mut word = String::new();
    for part in parts(text) {
        if !word.is_empty() {
            word.push('_');
        }
        let mut was_lower = false;
        for letter in part.chars() {
            if letter.is_ascii_uppercase() && was_lower {
                word.push('_');
            }
            was_lower = !letter.is_ascii_uppercase();
            word.push(letter.to_ascii_lowercase());
        }
    }
    match word.chars().next() {
        None => "x".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("n{word}"),
        Some(_) => word,
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|part| !part.is_empty())
}

/// Returns the name, or the name with the first number that makes it free, and takes it.
pub(super) fn unique(name: String, taken: &mut HashSet<String>) -> String {
    let numbered = (2..).map(|number: u32| format!("{name}{number}"));
    let free =
        std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(name);
    taken.insert(free.clone());
    free
}

/// Returns whether this is an identifier of ASCII letters, digits and `_`.
pub(super) fn is_identifier(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && text.chars().next().is_some_and(|first| !first.is_ascii_digit())
}

/// Returns the lines of a comment. Characters that change the direction of text or end a line are spaces.
pub(super) fn comment_lines(text: &str, width: usize) -> Vec<String> {
    let clean: String = text.chars().map(|letter| if is_invisible(letter) { ' ' } else { letter }).collect();
    let wrapped = clean.lines().flat_map(|line| textwrap::wrap(line.trim(), width));
    wrapped.map(|line| line.trim_end().to_owned()).collect()
}

/// Whether a character has no width, changes the direction of text, or separates lines, other than a newline.
fn is_invisible(letter: char) -> bool {
    (letter.is_control() && letter != '\n')
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_names() {
        for (text, expected) in [
            ("code-reviewer", ["CodeReviewer", "codeReviewer", "code_reviewer"]),
            ("suggestedMapping", ["SuggestedMapping", "suggestedMapping", "suggested_mapping"]),
            ("HTTPStatus", ["HTTPStatus", "hTTPStatus", "httpstatus"]),
            ("2nd try", ["2ndTry", "2ndTry", "n2nd_try"]),
            ("日本", ["X", "x", "x"]),
        ] {
            assert_eq!([pascal(text), camel(text), snake(text)], expected);
        }
    }

    #[test]
    fn a_comment_has_only_visible_characters() {
        assert_eq!(comment_lines("a\r\nb\u{202e}c\u{2028}d\t\n\ne", 80), ["a", "b c d", "", "e"]);
        assert_eq!(comment_lines("aaa bbb ccc", 7), ["aaa bbb", "ccc"]);
    }
}
