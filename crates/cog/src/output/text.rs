//! The layout of text in columns.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Returns the columns of text on a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Wraps text into lines of at most `columns`, between words if possible. Keeps line breaks, and replaces control
/// characters, so that no answer can send escape sequences to a terminal.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    text.lines().flat_map(|line| wrap_line(&printable(line), columns.max(1))).collect()
}

/// Replaces the control characters.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(printable_char).collect()
}

fn printable_char(c: char) -> char {
    match c {
        '\t' => ' ',
        c if is_unsafe(c) => '\u{fffd}',
        c => c,
    }
}

/// Replaces the control characters except line breaks.
pub(super) fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// Truncates text to some columns, with a final `…`.
pub(crate) fn truncate(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < columns
    };
    let start: String = text.chars().take_while(fits).collect();
    start.trim_end().to_owned() + "…"
}

/// Whether a character is a control character, or changes the direction of the text after it.
pub(super) fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces all unsafe characters except line breaks, tabs and colours (`ESC[…m`). A model, provider or file can then
/// neither move the cursor, nor set a title, nor hide text.
pub(super) fn for_terminal(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| is_unsafe(c) && !matches!(c, '\n' | '\t')) {
        let (before, from) = rest.split_at(at);
        safe += before;
        let colour = colour_at(from);
        safe += if colour.is_empty() { "\u{fffd}" } else { colour };
        let control = from.chars().next().map_or(0, char::len_utf8);
        rest = from.get(colour.len().max(control)..).unwrap_or_default();
    }
    safe + rest
}

/// Returns the colour sequence at the start of the text.
fn colour_at(text: &str) -> &str {
    let Some(body) = text.strip_prefix("\u{1b}[") else { return "" };
    let codes = body.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
    let numbers = body.split_at(body.len() - codes.len()).0;
    let length = text.len() - codes.len() + 1;
    let is_plain = codes.starts_with('m') && numbers.split(';').all(is_colour);
    if is_plain { text.get(..length).unwrap_or_default() } else { "" }
}

/// Whether a colour code is safe: font weights and foreground colours, but not blinking or concealed text.
fn is_colour(number: &str) -> bool {
    number.is_empty() || matches!(number.parse(), Ok(0..=4 | 22..=24 | 30..=37 | 39 | 90..=97_u8))
}

fn wrap_line(line: &str, columns: usize) -> Vec<String> {
    let options = textwrap::Options::new(columns).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(line, options).into_iter().map(Cow::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a\n\nb", 7), ["a", "", "b"]);
        assert_eq!(wrap("one two  three", 8), ["one two", "three"]);
    }

    #[test]
    fn splits_word_longer_than_line() {
        assert_eq!(wrap("abcdefg hi", 4), ["abcd", "efg", "hi"]);
    }

    #[test]
    fn wide_characters_have_two_columns() {
        assert_eq!(wrap("审查代码", 4), ["审查", "代码"]);
    }

    #[test]
    fn truncates_at_columns() {
        assert_eq!(truncate("one two", 7), "one two");
        assert_eq!(truncate("one two three", 7), "one tw…");
        assert_eq!(truncate("审查代码", 6), "审查…");
        assert_eq!(truncate("ab", 0), "…");
    }

    #[test]
    fn replaces_escape_sequences() {
        assert_eq!(wrap("\u{1b}[2Jx", 20), ["\u{fffd}[2Jx"]);
        assert_eq!(printable_lines("a\u{1b}[8mb\nc"), "a\u{fffd}[8mb\nc");
        assert_eq!(for_terminal("a\u{202e}b\u{2066}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(
            for_terminal("a\u{1b}]0;title\u{7}b\u{9b}c\r"),
            "a\u{fffd}]0;title\u{fffd}b\u{fffd}c\u{fffd}"
        );
    }

    #[test]
    fn replaces_concealing_colours() {
        assert_eq!(for_terminal("\u{1b}[8mx\u{1b}[0;5my"), "\u{fffd}[8mx\u{fffd}[0;5my");
    }

    #[test]
    fn preserves_colours_and_line_breaks() {
        let text = "\u{1b}[1;31mred\u{1b}[0m\n\tä";
        assert_eq!(for_terminal(text), text);
    }
}
