//! Recognizes the start of objects in forms other than JSON.
//!
//! Models write objects with bare keys, curly quotes, invisible spaces and other separators. The parser reads some of
//! these forms (ruling R75), but it must know all of them: what opens like an object is never prose around another
//! object (ruling R76). Each check looks at a bounded number of bytes, so that seeking stays linear.

/// The result of a check on the text so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// It matches, and this many bytes decide it.
    Yes(usize),
    No,
    /// More text is needed.
    More,
}

/// The maximum number of bytes that a check looks at.
const WINDOW: usize = 256;

/// Checks whether `text`, which follows an opening brace, continues with a key and its separator in such a form; after
/// a bare key also with the start of a value.
pub(super) fn member(text: &str) -> Look {
    let mut scan = Scan::new(text);
    scan.skip(is_filler);
    let escaped = scan.next_if(|char| char == '\\').is_some();
    let outcome = match scan.peek() {
        Some(quote) if is_quote(quote) => scan.quoted_key(),
        _ if escaped => None,
        Some(char) if is_bare(char) => scan.bare_member(),
        _ => None,
    };
    scan.decide(outcome)
}

/// Checks whether `text`, which follows a quoted key, continues with a replacement for a colon.
pub(super) fn separator(text: &str) -> Look {
    let mut scan = Scan::new(text);
    let outcome = scan.separator().map(drop);
    scan.decide(outcome)
}

/// How text ends before an object that looks like the value of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lead {
    /// `"key":`
    QuotedKey,
    /// `key:` or `key =` on the line of the object.
    BareKey,
    /// `,` on the line of the object.
    Comma,
}

/// Returns whether an object that follows `text` looks like the value of a member or an element.
pub(super) fn lead(text: &str) -> Option<Lead> {
    let before = text.trim_end_matches(is_space);
    let same_line = !text.get(before.len()..).unwrap_or_default().contains('\n');
    if before.ends_with(',') {
        return same_line.then_some(Lead::Comma);
    }
    let last_line = before.rsplit('\n').next().unwrap_or_default();
    if before.ends_with('>') && last_line.contains('<') {
        // The end of a tag is no arrow.
        return None;
    }
    let key = before.trim_end_matches(is_separator);
    if key.len() == before.len() {
        return None;
    }
    match key.trim_end_matches(is_space).chars().next_back() {
        Some(char) if is_quote(char) => Some(Lead::QuotedKey),
        Some(char) if is_bare(char) && same_line => Some(Lead::BareKey),
        _ => None,
    }
}

/// Returns whether `text` ends with two members on lines of their own, as in YAML, and the last one has no value yet. Their
/// keys begin with a small letter where there is one, unlike the labels of prose.
pub(super) fn ends_in_block(text: &str) -> bool {
    let mut lines = text.trim_end_matches(is_space).rsplit('\n').map(key_of_line);
    match (lines.next().flatten(), lines.next().flatten()) {
        (Some((last, "")), Some((previous, value))) => last == previous && !value.is_empty(),
        _ => false,
    }
}

/// Returns the indentation of a line that begins with a key and its separator, and what follows.
fn key_of_line(line: &str) -> Option<(usize, &str)> {
    let key = line.trim_start_matches([' ', '\t']);
    let after = key.trim_start_matches(is_bare);
    let rest = after.trim_start_matches(is_space);
    let value = rest.trim_start_matches(is_separator);
    let is_label = key.starts_with(|c: char| c.is_alphabetic() && !c.is_lowercase());
    let is_member = !is_label && after.len() < key.len() && value.len() < rest.len();
    is_member.then_some((line.len() - key.len(), value.trim_matches(is_space)))
}

/// Reads text up to the end of the window.
struct Scan<'a> {
    rest: &'a str,
    /// Bytes of the window.
    window: usize,
    /// The text may go on after the window's end.
    is_cut: bool,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Self {
        let window = text.floor_char_boundary(WINDOW);
        Scan { rest: text.get(..window).unwrap_or_default(), window, is_cut: window == text.len() }
    }

    fn decide(&self, outcome: Option<()>) -> Look {
        match outcome {
            Some(()) => Look::Yes(self.window - self.rest.len()),
            None if self.rest.is_empty() && self.is_cut => Look::More,
            None => Look::No,
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.rest = self.rest.get(char.len_utf8()..).unwrap_or_default();
        Some(char)
    }

    fn next_if(&mut self, what: impl FnOnce(char) -> bool) -> Option<char> {
        self.peek().filter(|char| what(*char))?;
        self.next()
    }

    fn skip(&mut self, what: fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(what);
    }

    /// At the opening quote of a key: the key, and what replaces its colon.
    fn quoted_key(&mut self) -> Option<()> {
        self.next();
        self.skip(|char| !is_quote(char));
        self.next()?;
        self.separator().map(drop)
    }

    /// At a bare key: the key, its separator, and the start of its value.
    fn bare_member(&mut self) -> Option<()> {
        self.skip(is_bare);
        let separator = self.separator()?;
        self.skip(is_space);
        let first = self.peek()?;
        match first {
            '{' | '[' | '\\' => self.next().map(drop),
            _ if is_quote(first) => self.next().map(drop),
            // `_{i=1}` is a sum in LaTeX.
            '0'..='9' | '+' | '-' | '.' if separator != '=' => self.number(),
            _ if is_bare(first) => self.word(separator),
            _ => None,
        }
    }

    /// A number, with nothing attached such as the `f` of `{x:.2f}`.
    fn number(&mut self) -> Option<()> {
        self.skip(|char| char.is_ascii_digit() || matches!(char, '+' | '-' | '.'));
        self.next_if(|char| !is_bare(char)).map(drop)
    }

    /// A literal, or after a colon another bare word that a comma or brace follows.
    fn word(&mut self, separator: char) -> Option<()> {
        let start = self.rest;
        self.skip(is_bare);
        let word = start.get(..start.len() - self.rest.len()).unwrap_or_default();
        let is_literal = ["true", "false", "null", "none"].iter().any(|it| word.eq_ignore_ascii_case(it));
        if is_literal {
            return self.next().map(drop);
        }
        self.skip(is_space);
        self.next_if(|char| separator != '=' && matches!(char, ',' | '}')).map(drop)
    }

    /// Returns the first character of a replacement for a colon.
    fn separator(&mut self) -> Option<char> {
        self.skip(is_space);
        let first = self.next_if(|char| is_separator(char) && char != '>')?;
        if first == '=' {
            self.skip(|char| matches!(char, '=' | '>'));
        }
        Some(first)
    }
}

/// White space of Unicode, and characters of no width.
pub(super) fn is_space(char: char) -> bool {
    char.is_whitespace()
        || matches!(char, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}' | '\u{180e}')
}

/// White space that JSON does not have.
pub(super) fn is_unicode_space(char: char) -> bool {
    is_space(char) && !matches!(char, ' ' | '\n' | '\t' | '\r')
}

/// Returns whether the character may be in a key without quotes (ruling R75).
pub(super) fn is_key(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-')
}

/// Returns whether the character may appear between a brace and the first key.
fn is_filler(char: char) -> bool {
    is_space(char) || matches!(char, ',' | '.' | '…' | '，')
}

fn is_quote(char: char) -> bool {
    matches!(
        char,
        '"' | '\'' | '`' | '´' | '\u{2018}'..='\u{201f}' | '«' | '»' | '‹' | '›' | '＂' | '＇' | '「' | '」'
    )
}

fn is_bare(char: char) -> bool {
    is_key(char) || char == '$'
}

fn is_separator(char: char) -> bool {
    matches!(char, ':' | '：' | '﹕' | '︓' | '∶' | '=' | '>')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_members_that_models_write() {
        for text in [
            "ok: false",
            " ok : \"x\"",
            "ok = false",
            "ok => 'x'",
            "n: 1,",
            "n: -1.5 ",
            "v: approve,",
            "v: approve }",
            "\u{a0}\"ok\": false",
            "\u{200b}\"ok\":",
            "“ok”: 1",
            "‘ok’ : 1",
            "`ok`: 1",
            "\\\"ok\\\": 1",
            "\"ok\"：1",
            "..., \"a\": 1",
            ", \"a\": 1",
            "… 'a' = 1",
            "«ok»: 1",
            "1: \"x\"",
            "ключ: {",
            "a-b: [",
        ] {
            assert!(matches!(member(&format!("{text} ")), Look::Yes(_)), "{text}");
        }
    }

    #[test]
    fn leaves_prose_alone() {
        for text in [
            "name}",
            "x : x > 0}",
            "x:.2f}",
            "x:>8}",
            "i=1}",
            " name: string; age: number }",
            " color: red; }",
            "0}",
            " return x; }",
            "\"a\", \"b\"}",
            "}",
            "“quoted” words}",
            "\\alpha}",
            "\\alpha: 1,",
            ": 1,",
            "a: }",
            "a: , b",
            "tis\n x",
            "a = b}",
            "...}",
        ] {
            assert_eq!(member(&format!("{text} ")), Look::No, "{text}");
        }
    }

    #[test]
    fn waits_for_what_decides_and_then_does_not_depend_on_what_follows() {
        let text = "\u{a0}“ok” = approve, and so on";
        let Look::Yes(length) = member(text) else { panic!("not seen") };
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            let expected = if end < length { Look::More } else { Look::Yes(length) };
            assert_eq!(member(&text[..end]), expected, "{end}");
        }
        assert_eq!(member(&" ".repeat(300)), Look::No);
        assert_eq!(member(&"k".repeat(300)), Look::No);
    }

    #[test]
    fn sees_a_block_of_members() {
        for text in [
            "a: x\nb:",
            "a: x\nb: ",
            "a: x\n\nb: 1\nc:\n  ",
            "a = 'x'\nb_c =",
            "  a: x\r\n  b:",
            "\ta: 1\n\tb: ",
        ] {
            assert!(ends_in_block(text), "{text}");
        }
        let prose = [
            "b:",
            "Note: x\nAnswer:",
            "a: x\nAnswer:",
            "Note: x\nb:",
            "a: x\n  b:",
            "a: x\n:",
            "a:\nb:",
            "a: x\nb: 1",
            "a: x\nas json:",
            "here is the answer\nresult:",
            "the code is fine\njson:",
            "说明：很好\n结果：",
            "",
            "\n",
        ];
        for text in prose {
            assert!(!ends_in_block(text), "{text}");
        }
    }

    #[test]
    fn sees_where_an_object_is_a_value() {
        assert_eq!(lead("\"item\": "), Some(Lead::QuotedKey));
        assert_eq!(lead("“item”：\n"), Some(Lead::QuotedKey));
        assert_eq!(lead("Answer(item="), Some(Lead::BareKey));
        assert_eq!(lead("item => "), Some(Lead::BareKey));
        assert_eq!(lead("1, "), Some(Lead::Comma));
        assert_eq!(lead("Here it is:\n"), None);
        assert_eq!(lead("Here it is "), None);
        assert_eq!(lead("**Answer**: "), None);
        assert_eq!(lead("(<a id=\"1\">\n"), None);
    }
}
