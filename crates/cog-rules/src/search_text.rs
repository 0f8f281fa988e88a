//! Text in a form in which quotations are found: without regard to Unicode compatibility forms, case, white space, quotation marks
//! and hyphens inside words.

use std::ops::Range;

use unicode_normalization::{UnicodeNormalization as _, char::canonical_combining_class};

/// Text to search in, and where each character of it comes from.
///
/// ```
/// use cog_rules::SearchText;
///
/// let page = SearchText::new("Revenue in-\ncreased by  20%.");
/// assert_eq!(page.find("revenue increased"), Some(0..19));
/// assert_eq!(page.find("crease"), None); // a part of a word
/// ```
#[derive(Debug, Clone, Default)]
pub struct SearchText {
    text: String,
    /// For each character of `text`, the characters of the original that it stands for.
    origins: Vec<Range<u32>>,
}

impl SearchText {
    /// Prepares text for searches.
    pub fn new(text: &str) -> Self {
        let mut prepared = Self::default();
        fold(text, |c, origin| {
            prepared.text.push(c);
            prepared.origins.push(origin);
        });
        prepared
    }

    /// Returns the size of the text in bytes, which a search reads at most.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns whether the text has nothing to find.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the text in its form for searches.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns where text occurs first, in characters of the original. Words must be whole. None if it does not occur, or if it has
    /// no letter and no digit.
    pub fn find(&self, wanted: &str) -> Option<Range<u32>> {
        let mut folded = String::new();
        fold(wanted, |c, _| folded.push(c));
        let wanted = folded.trim_matches(is_end);
        if !wanted.contains(char::is_alphanumeric) {
            return None;
        }
        let mut at = 0;
        loop {
            let start = at + self.text.get(at..)?.find(wanted)?;
            let end = start + wanted.len();
            if self.is_boundary(start) && self.is_boundary(end) {
                return self.origin(start..end);
            }
            at = start + wanted.chars().next().map_or(1, char::len_utf8);
        }
    }

    /// Returns whether no word continues over this byte.
    fn is_boundary(&self, at: usize) -> bool {
        let (before, after) = self.text.split_at(at);
        let (Some(last), Some(next)) = (before.chars().next_back(), after.chars().next()) else {
            return true;
        };
        if is_word(last) && is_word(next) {
            return false;
        }
        // `1.5` and `1,500` are one number each.
        let is_in_number = |mark: char, other: Option<char>| {
            matches!(mark, '.' | ',') && other.is_some_and(|other| other.is_ascii_digit())
        };
        let after_next = after.chars().nth(1);
        let before_last = before.chars().rev().nth(1);
        !(last.is_ascii_digit() && is_in_number(next, after_next)
            || next.is_ascii_digit() && is_in_number(last, before_last))
    }

    fn origin(&self, bytes: Range<usize>) -> Option<Range<u32>> {
        let first = self.text.get(..bytes.start)?.chars().count();
        let count = self.text.get(bytes)?.chars().count();
        let origins = self.origins.get(first..first + count)?;
        Some(origins.first()?.start..origins.last()?.end)
    }
}

/// Whether a character is at the end of a quotation and not compared there.
fn is_end(c: char) -> bool {
    c == ' ' || matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '"' | '…' | '。' | '、')
}

/// Whether a word goes on from this character to a neighbour. Scripts without spaces have no such words.
fn is_word(c: char) -> bool {
    const FIRST_WITHOUT_SPACES: char = '\u{e00}'; // Thai; Latin, Greek, Cyrillic, Arabic and the scripts of India are before it
    c.is_alphanumeric()
        && (c < FIRST_WITHOUT_SPACES || matches!(c, '\u{1e00}'..='\u{1fff}' | '\u{ac00}'..='\u{d7a3}'))
}

/// Calls `push` with each character of text in its form for searches, and the characters of the text that it stands for.
pub(crate) fn fold(text: &str, push: impl FnMut(char, Range<u32>)) {
    let mut folding = Folding { push, last: None, space: None, hyphen: None };
    let mut chars = (0..).zip(text.chars()).peekable();
    let mut cluster = String::new();
    while let Some((index, c)) = chars.next() {
        if c.is_ascii() && chars.peek().is_none_or(|(_, next)| next.is_ascii()) {
            folding.add(c.to_ascii_lowercase(), index..index + 1);
            continue;
        }
        // A character and its marks are normalised together, so that the origin of the result is known.
        cluster.clear();
        cluster.push(c);
        let mut end = index + 1;
        while let Some((_, mark)) = chars.next_if(|(_, next)| continues(*next)) {
            cluster.push(mark);
            end += 1;
        }
        for c in cluster.nfkc().flat_map(char::to_lowercase) {
            folding.add(c, index..end);
        }
    }
    folding.end();
}

/// Whether a character is composed with the one before it: a combining mark, or a vowel or final consonant of Hangul.
fn continues(c: char) -> bool {
    canonical_combining_class(c) != 0 || matches!(c, '\u{1160}'..='\u{11ff}')
}

/// The state between two characters.
struct Folding<F> {
    push: F,
    /// The last character that was pushed.
    last: Option<char>,
    /// White space that was not pushed yet: it is dropped at the ends, and after the hyphen of a broken word.
    space: Option<Range<u32>>,
    /// A hyphen after a letter, which is dropped if a letter follows: whether `in-\ncreased` has a hyphen cannot be seen.
    hyphen: Option<Range<u32>>,
}

impl<F: FnMut(char, Range<u32>)> Folding<F> {
    fn add(&mut self, c: char, origin: Range<u32>) {
        match plain(c) {
            None => {}
            Some(c) if c.is_whitespace() || c == '\0' => {
                self.space.get_or_insert(origin);
            }
            Some('-')
                if self.space.is_none()
                    && self.last.is_some_and(char::is_alphabetic)
                    && self.hyphen.is_none() =>
            {
                self.hyphen = Some(origin);
            }
            Some(c) => {
                self.flush(c.is_alphabetic());
                self.push(c, origin);
            }
        }
    }

    /// Pushes what was held back before a character.
    fn flush(&mut self, is_letter: bool) {
        let hyphen = self.hyphen.take();
        let space = self.space.take();
        if hyphen.is_some() && is_letter {
            return;
        }
        if let Some(origin) = hyphen {
            self.push('-', origin);
        }
        if let Some(origin) = space.filter(|_| self.last.is_some()) {
            self.push(' ', origin);
        }
    }

    fn end(mut self) {
        if let Some(origin) = self.hyphen.take() {
            self.push('-', origin);
        }
    }

    fn push(&mut self, c: char, origin: Range<u32>) {
        self.last = Some(c);
        (self.push)(c, origin);
    }
}

/// Returns the plain form of a quotation mark or a dash; none for soft hyphens and characters without width.
fn plain(c: char) -> Option<char> {
    Some(match c {
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' => return None,
        '‘' | '’' | '‚' | '‛' | '′' => '\'',
        '“' | '”' | '„' | '‟' | '″' | '«' | '»' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        _ => c,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn folded(text: &str) -> String {
        SearchText::new(text).text
    }

    #[test]
    fn case_white_space_width_quotes_and_hyphens_do_not_count() {
        assert_eq!(folded("  The\n\tＴｏｔａｌ  is ﬁne "), "the total is fine");
        assert_eq!(folded("A\0B"), "a b");
        assert_eq!(folded("ÄÖ"), folded("äo\u{308}"));
        assert_eq!(folded("한"), folded("\u{1112}\u{1161}\u{11ab}"));
        assert_eq!(folded("a “well-\n known” co\u{ad}op"), "a \"wellknown\" coop");
        assert_eq!(folded("2020-2021, A - B, end-"), "2020-2021, a - b, end-");
        assert_eq!(folded(" \n"), "");
    }

    /// Returns the part of a text that is found.
    fn found(text: &str, wanted: &str) -> Option<String> {
        let range = SearchText::new(text).find(wanted)?;
        let length = usize::try_from(range.end - range.start).unwrap();
        Some(text.chars().skip(usize::try_from(range.start).unwrap()).take(length).collect())
    }

    #[test]
    fn place_is_in_the_original() {
        for (text, wanted, original) in [
            ("Total:  1,500 EUR", "1,500 eur", "1,500 EUR"),
            ("Ünïted  States", "united States", ""),
            ("Müller\n& Söhne GmbH", "Mu\u{308}ller & Söhne", "Müller\n& Söhne"),
            ("the ofﬁce in\u{ad}side", "office inside", "ofﬁce in\u{ad}side"),
            ("was in-\ncreased twice", "increased", "in-\ncreased"),
            ("营收增长\n强劲", "增长 强劲", "增长\n强劲"),
            ("东京都港区", "港区", "港区"),
            ("He said “no”.", "said \"no\".", "said “no"),
            ("concatenate a cat", "cat", "cat"),
            ("1.50 and 50", "50", "50"),
            ("1,500", "500", ""),
            ("€ 20", "20", "20"),
            ("anything", "…", ""),
            ("anything", "", ""),
        ] {
            assert_eq!(found(text, wanted).unwrap_or_default(), original, "{text:?} {wanted:?}");
        }
        assert_eq!(SearchText::new("1.50 and 50").find("50"), Some(9..11));
        assert_eq!(SearchText::new("concatenate a cat").find("cat"), Some(14..17));
    }

    proptest! {
        #[test]
        fn whole_text_is_found_in_itself(text in "\\PC{0,40}", before in "[a-z ]{0,5} ") {
            let source = SearchText::new(&format!("{before}{text}"));
            if folded(&text).trim_matches(is_end).contains(char::is_alphanumeric) {
                let range = source.find(&text);
                prop_assert!(range.is_some(), "{:?}", text);
                let end = u32::try_from(before.chars().count() + text.chars().count()).unwrap();
                prop_assert!(range.unwrap().end <= end);
            }
        }
    }
}
