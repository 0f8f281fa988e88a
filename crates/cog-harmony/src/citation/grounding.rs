//! Compares a citation with its source (appendix A.4.1).

use std::{collections::HashMap, iter::Peekable, slice::Iter};

use cog_json::{Node, Path};
use unicode_normalization::UnicodeNormalization as _;

use super::{Anchor, Citation, Page, Scope, Source, Sources, anchors, bbox_of, below, present};
use crate::Finding;

/// Checks a citation, whose location has the right form, against its source if that is available.
pub(super) fn check(
    entry: Node<'_>,
    path: &Path,
    sources: &Sources,
    min_score: f64,
    citation: &mut Citation,
    findings: &mut Vec<Finding>,
) {
    let Some(source) = source_of(entry, sources) else { return };
    citation.checked = true;
    if let Some(reason) = &source.unreadable {
        let message = format!("the source cannot be read: {reason}");
        findings.push(Finding::new(below(path, "source_id"), "source", message));
        return;
    }
    let Some(location) = present(entry, "location") else { return };
    let path = &below(path, "location");
    let page = present(location, "page_number").and_then(Node::as_u64);
    findings.extend(page.and_then(|page| no_page(source, page, path)));
    findings.extend(present(location, "bbox").and_then(|bbox| outside(source, page, bbox, path)));
    findings.extend(past_end(source, location, path));
    let snippet = present(location, "text_snippet").and_then(Node::as_str).filter(|_| source.is_text);
    if let Some(snippet) = snippet {
        findings.extend(Search { source, page, min_score, path }.run(snippet, citation));
    }
}

/// Returns the source by `source_id`, otherwise by `url`.
fn source_of<'a>(entry: Node<'_>, sources: &'a Sources) -> Option<&'a Source> {
    let keys = ["source_id", "url"].into_iter().filter_map(|key| entry.get_str(key));
    keys.filter_map(|key| sources.get(key)).next()
}

fn no_page(source: &Source, page: u64, path: &Path) -> Option<Finding> {
    let is_known =
        source.pages.is_empty() || source.pages.iter().any(|known| u64::from(known.number) == page);
    let count = source.pages.len();
    (!is_known).then(|| {
        let message = format!("the source has no page {page}; it has {count}");
        Finding::new(below(path, "page_number"), "page_number", message)
    })
}

fn outside(source: &Source, page: Option<u64>, bbox: Node<'_>, path: &Path) -> Option<Finding> {
    let number = page.unwrap_or(1);
    let page = source.pages.iter().find(|known| u64::from(known.number) == number)?;
    let ((width, height), [_, _, x2, y2]) = (page.size?, bbox_of(bbox)?);
    (x2 > width || y2 > height).then(|| {
        let message = format!("the box ends at {x2}, {y2}, but the page is {width} × {height}");
        Finding::new(below(path, "bbox"), "bbox", message)
    })
}

fn past_end(source: &Source, location: Node<'_>, path: &Path) -> Option<Finding> {
    let duration = source.duration_sec?;
    let late = ["end_sec", "timestamp_sec"].into_iter().find_map(|key| {
        let seconds = location.get(key)?.as_f64()?;
        (seconds > duration).then_some((key, seconds))
    });
    let (key, seconds) = late?;
    let message = format!("{seconds} s is after the end of the source, which has {duration} s");
    Some(Finding::new(below(path, key), "timestamp_sec", message))
}

/// The search for a snippet.
struct Search<'a> {
    source: &'a Source,
    /// The page that the citation names.
    page: Option<u64>,
    min_score: f64,
    path: &'a Path,
}

impl Search<'_> {
    fn run(&self, snippet: &str, citation: &mut Citation) -> Option<Finding> {
        let path = below(self.path, "text_snippet");
        let Some(words) = Words::from_snippet(snippet) else {
            return Some(Finding::new(path, "text_snippet", "the snippet has no words"));
        };
        if let Some(page) = self.find(&words, |page| self.names(page)) {
            citation.score = Some(1.0);
            citation.page = Some(page);
            return None;
        }
        let candidates = self.source.pages.iter().filter(|page| self.names(page));
        let score = candidates.map(|page| page.words.score(&words)).fold(0.0, f64::max);
        citation.score = Some(score);
        if score >= self.min_score {
            return None;
        }
        if let Some(page) = self.page.and_then(|_| self.find(&words, |_| true)) {
            citation.page = Some(page);
            let message = format!("the snippet is on page {page} of the source");
            return Some(Finding::new(below(self.path, "page_number"), "page_number", message));
        }
        let message = format!("the snippet is not in the source; the best passage has a score of {score}");
        Some(Finding::new(path, "text_snippet", message).suggest("Quote the source word by word."))
    }

    /// Returns whether the citation can mean this page.
    fn names(&self, page: &Page) -> bool {
        self.page.is_none_or(|named| u64::from(page.number) == named)
    }

    /// Returns the first of these pages on which the snippet is, or begins.
    fn find(&self, snippet: &Words, is_candidate: impl Fn(&Page) -> bool) -> Option<u32> {
        let mut pages = self.source.pages.iter().filter(|page| is_candidate(page));
        if let Some(page) = pages.find(|page| page.words.contains(snippet)) {
            return Some(page.number);
        }
        self.source.pages.windows(2).find_map(|pair| match pair {
            [page, next] if is_candidate(page) && !next.words.contains(snippet) => {
                page.words.joined(&next.words).contains(snippet).then_some(page.number)
            }
            _ => None,
        })
    }
}

/// The anchors in text.
pub(super) struct Mentions<'a> {
    /// The number of anchors for each citation of the map.
    pub(super) known: HashMap<&'a str, usize>,
    /// The number of all anchors.
    pub(super) anchors: usize,
    pub(super) findings: Vec<Finding>,
}

impl Mentions<'_> {
    /// Reads the anchors of every string, except in the map.
    pub(super) fn read(&mut self, scope: &Scope<'_>) {
        self.walk(scope.text, &mut scope.path.clone(), scope.map);
    }

    fn walk(&mut self, node: Node<'_>, path: &mut Path, map: Option<Node<'_>>) {
        if map.is_some_and(|map| map.id() == node.id()) {
            return;
        }
        if let Some(text) = node.as_str() {
            return self.text(text, path);
        }
        for (key, member) in node.members() {
            path.push_key(key);
            self.walk(member, path, map);
            path.pop();
        }
        for (index, element) in node.elements().enumerate() {
            path.push_index(index);
            self.walk(element, path, map);
            path.pop();
        }
    }

    fn text(&mut self, text: &str, path: &Path) {
        for anchor in anchors(text) {
            self.anchors += 1;
            match anchor {
                Anchor::Id(id) => match self.known.get_mut(id) {
                    Some(count) => *count += 1,
                    None => self.findings.push(unresolved(path, id)),
                },
                Anchor::Malformed(what) => self.findings.push(malformed(path, what)),
            }
        }
    }
}

fn unresolved(path: &Path, id: &str) -> Finding {
    Finding::new(path, "unresolved", format!("the anchor `{id}` is not in `citation_map`"))
        .suggest("Add the citation to the map, or remove the anchor.")
}

fn malformed(path: &Path, what: &str) -> Finding {
    Finding::new(path, "anchor", format!("an anchor is malformed: {what}"))
        .suggest("Write an anchor as `<cite id=\"cit_01\"/>`.")
}

// Compares a snippet with a source by their words.
//
// Both texts are normalised first: Unicode (NFKC), quotation marks, line breaks, and hyphens inside words. What is left
// are words and punctuation marks with a space between them, so that a snippet never matches a part of a word.

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
