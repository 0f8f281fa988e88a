//! Compares a snippet with a source by their words.
//!
//! Both texts are normalised first: Unicode (NFKC), quotation marks, line breaks, and hyphens inside words. What is left
//! are words and punctuation marks with a space between them, so that a snippet never matches a part of a word.

use std::{collections::HashMap, iter::Peekable, slice::Iter};

use unicode_normalization::UnicodeNormalization as _;

/// Punctuation at the ends of a snippet, which is not compared.
const ENDS: &[char] = &[
    '.', ',', ';', ':', '!', '?', '\'', '"', '(', ')', '[', ']', '-', '。', '、', '「', '」', '『', '』',
    '《', '》',
];

/// The score of a snippet that is not in the source as it is written.
const MAX_PARTIAL: f64 = 0.99;

/// Text as words: ` Revenue grew by 20 % . `.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words(String);

impl Words {
    /// Splits text into words.
    pub(super) fn new(text: &str) -> Self {
        let chars: Vec<char> = text.nfkc().filter(|c| !is_ignored(*c)).map(folded).collect();
        let mut words = String::with_capacity(text.len() + 2);
        words.push(' ');
        let mut rest = chars.iter().peekable();
        let mut last = None;
        while let Some(c) = rest.next().copied() {
            push(c, last, &mut rest, &mut words);
            last = Some(c);
        }
        if !words.ends_with(' ') {
            words.push(' ');
        }
        Self(words)
    }

    /// Returns the words of a snippet, without punctuation at its ends; none if no words are left.
    pub(super) fn from_snippet(text: &str) -> Option<Self> {
        let words = Self::new(text).0;
        let inner = words.trim_matches(|c: char| c == ' ' || ENDS.contains(&c));
        (!inner.is_empty()).then(|| Self(format!(" {inner} ")))
    }

    /// Appends the words of another text.
    pub(super) fn joined(&self, next: &Self) -> Self {
        Self(format!("{}{}", self.0, next.0.trim_start()))
    }

    /// Whether the words of the snippet are here, in order and without others between them.
    pub(super) fn contains(&self, snippet: &Self) -> bool {
        self.0.contains(&snippet.0)
    }

    /// Returns how much of the snippet is here: 1 if all of it is, otherwise the share of its pairs of adjacent words
    /// in the best passage of its length.
    pub(super) fn score(&self, snippet: &Self) -> f64 {
        if self.contains(snippet) {
            return 1.0;
        }
        let wanted = Pairs::count(snippet);
        let best = self.best_passage(&wanted);
        let share = best as f64 / wanted.total.max(1) as f64;
        ((share * 100.0).floor() / 100.0).min(MAX_PARTIAL)
    }

    /// Returns the maximum number of wanted pairs in a passage of the snippet's length.
    fn best_passage(&self, wanted: &Pairs<'_>) -> usize {
        let pairs: Vec<_> = self.pairs().collect();
        // A window of the snippet's length slides over the pairs. A count below zero is a surplus: the window has the pair
        // more often than the snippet, and the surplus counts neither when it enters nor when it leaves.
        let mut counts = wanted.counts.clone();
        let mut found = 0;
        let mut best = 0;
        for (index, pair) in pairs.iter().enumerate() {
            if let Some(left) = counts.get_mut(pair) {
                found += usize::from(*left > 0);
                *left -= 1;
            }
            let leaving = index.checked_sub(wanted.total).and_then(|index| pairs.get(index));
            if let Some(left) = leaving.and_then(|pair| counts.get_mut(pair)) {
                *left += 1;
                found -= usize::from(*left > 0);
            }
            best = best.max(found);
        }
        best
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let words = self.0.split_ascii_whitespace();
        words.clone().zip(words.skip(1))
    }
}

/// The pairs of adjacent words of a snippet.
struct Pairs<'a> {
    counts: HashMap<(&'a str, &'a str), i64>,
    total: usize,
}

impl<'a> Pairs<'a> {
    fn count(words: &'a Words) -> Self {
        let mut pairs = Self { counts: HashMap::new(), total: 0 };
        for pair in words.pairs() {
            *pairs.counts.entry(pair).or_default() += 1;
            pairs.total += 1;
        }
        pairs
    }
}

/// Adds a character to the words.
fn push(c: char, last: Option<char>, rest: &mut Peekable<Iter<'_, char>>, words: &mut String) {
    let follows_letter = last.is_some_and(char::is_alphabetic);
    // The text of a PDF has `in-` and `creased` on two lines. Whether the word has a hyphen without the break cannot be seen,
    // so hyphens between letters go in both texts.
    if c == '-' && follows_letter && skip_to_letter(rest) {
        return;
    }
    // `1,500` and `20.5` are one word each, so that a snippet with `500` is not found in them.
    let is_between_digits = last.is_some_and(|last| last.is_ascii_digit())
        && rest.peek().is_some_and(|next| next.is_ascii_digit());
    if c.is_whitespace() {
        separate(words);
    } else if is_word(c) || matches!(c, '.' | ',') && is_between_digits {
        words.push(c);
    } else {
        separate(words);
        words.push(c);
        words.push(' ');
    }
}

fn separate(words: &mut String) {
    if !words.ends_with(' ') {
        words.push(' ');
    }
}

/// Whether only white space is before the next letter; it is skipped then.
fn skip_to_letter(rest: &mut Peekable<Iter<'_, char>>) -> bool {
    let ahead = rest.clone().find(|c| !c.is_whitespace());
    let is_letter = ahead.is_some_and(|c| c.is_alphabetic());
    while is_letter && rest.next_if(|c| c.is_whitespace()).is_some() {}
    is_letter
}

/// Whether the character is part of a word. Each character of a script without spaces is a word.
fn is_word(c: char) -> bool {
    let is_spaceless = matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}');
    c.is_alphanumeric() && !is_spaceless
}

/// Soft hyphens and characters without width.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

/// Returns the plain form of quotation marks, hyphens and dashes.
fn folded(c: char) -> char {
    match c {
        '‘' | '’' | '‚' | '‛' | '′' => '\'',
        '“' | '”' | '„' | '‟' | '″' | '«' | '»' => '"',
        '\u{2010}' | '\u{2011}' => '-',
        '\u{2012}'..='\u{2015}' | '\u{2212}' => '–',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(source: &str, snippet: &str) -> f64 {
        Words::new(source).score(&Words::from_snippet(snippet).unwrap())
    }

    #[test]
    fn line_breaks_hyphens_and_unicode_forms_are_undone() {
        for (source, snippet) in [
            ("Revenue in-\ncreased by\n20% YoY, while", "Revenue increased by 20% YoY."),
            ("a long-\nterm plan", "a long-term plan"),
            ("co\u{ad}operation", "cooperation"),
            ("the ﬁrst of Ⅳ", "the first of IV"),
            ("it is “new” — don’t", "it is \"new\" – don't"),
            ("cafe\u{301}", "café"),
            ("营收增长\n强劲，这", "营收增长强劲"),
            ("a well\u{2010}known name", "well-known name"),
            ("Costs fell by 5. Then", "by 5"),
            ("pre- and post-war", "pre- and post-\nwar"),
        ] {
            assert_eq!(score(source, snippet), 1.0, "{source}");
        }
    }

    #[test]
    fn other_numbers_and_parts_of_words_do_not_match() {
        for (source, snippet) in
            [("120% more", "20%"), ("1.20 each", "20"), ("1,500", "500"), ("concatenate", "cat")]
        {
            assert!(score(source, snippet) < 1.0, "{source}");
        }
    }

    #[test]
    fn score_is_the_share_of_pairs_in_the_best_passage() {
        let source = "Costs fell. Revenue increased by 20% in the last year, and costs fell again.";
        assert_eq!(score(source, "Revenue increased by 30% in the last year"), 0.75);
        assert_eq!(score(source, "nothing of the kind"), 0.0);
        assert_eq!(score(source, "nothing"), 0.0);
        assert_eq!(score("b a b a", "a b a b a b"), 0.6);
        assert_eq!(score("a b a b", "a b c d"), 0.33, "a pair counts as often as the snippet has it");
        assert_eq!(score("a b x x x c d", "a b c d"), 0.33, "the halves are not in one passage");
        assert_eq!(score("a b a b c x", "a b c d"), 0.66, "a repeated pair stays in the passage");
    }

    #[test]
    fn words_in_another_order_are_not_found() {
        let found = score("a b c a", "b c a b");
        assert!(found > 0.6 && found < 1.0, "{found}");
    }

    #[test]
    fn snippet_without_words_has_none() {
        assert_eq!(Words::from_snippet(" … \"\" "), None);
        assert_eq!(Words::from_snippet("20%").unwrap().0, " 20 % ");
    }

    #[test]
    fn snippet_may_cross_a_page() {
        let both = Words::new("the end of").joined(&Words::new("the page is here"));
        assert!(both.contains(&Words::from_snippet("end of the page").unwrap()));
    }
}
