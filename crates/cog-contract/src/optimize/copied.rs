//! Text that a prompt takes from cases.

use std::collections::HashSet;

/// The words in a row that must not be shared. In scripts without spaces, two characters count as a word.
const WORDS: usize = 5;
/// A shorter text counts as copied if all of it stands in the prompt, from this number of words.
const MIN_WORDS: usize = 3;

/// A word, or a character of a script without spaces.
#[derive(Debug, PartialEq, Eq)]
struct Token {
    text: String,
    /// In half words.
    weight: usize,
}

/// Returns words in a row that a text shares with one of the sources, and that another text did not share before.
pub(super) fn copied<'a>(
    text: &str,
    before: &str,
    sources: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let (text, before) = (tokens(text), tokens(before));
    let known: HashSet<Vec<&str>> = (0..before.len()).filter_map(|at| run(&before, at, 2 * WORDS)).collect();
    let new: HashSet<Vec<&str>> = (0..text.len())
        .filter_map(|at| run(&text, at, 2 * WORDS))
        .filter(|words| !known.contains(words))
        .collect();
    for source in sources {
        let source = tokens(source);
        let found = match source.iter().map(|token| token.weight).sum::<usize>() {
            weight if weight >= 2 * WORDS => (0..source.len())
                .filter_map(|at| run(&source, at, 2 * WORDS))
                .find(|words| new.contains(words)),
            weight if weight >= 2 * MIN_WORDS => {
                let words: Vec<&str> = source.iter().map(|token| token.text.as_str()).collect();
                (has(&text, &words) && !has(&before, &words)).then_some(words)
            }
            _ => None,
        };
        if let Some(words) = found {
            return Some(words.join(" "));
        }
    }
    None
}

/// Returns the shortest run of words from a place that has this weight; none at the end of the text.
fn run(tokens: &[Token], at: usize, weight: usize) -> Option<Vec<&str>> {
    let mut missing = weight;
    let mut words = Vec::new();
    for token in tokens.get(at..)? {
        words.push(token.text.as_str());
        missing = missing.saturating_sub(token.weight);
        if missing == 0 {
            return Some(words);
        }
    }
    None
}

fn has(tokens: &[Token], words: &[&str]) -> bool {
    let is_there = |window: &[Token]| window.iter().zip(words).all(|(token, word)| token.text == *word);
    tokens.windows(words.len()).any(is_there)
}

/// Splits text into words, without case, punctuation and invisible characters.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    let end = |word: &mut String, tokens: &mut Vec<Token>| {
        if !word.is_empty() {
            tokens.push(Token { text: std::mem::take(word), weight: 2 });
        }
    };
    for c in text.chars().filter(|c| !is_invisible(*c)).flat_map(char::to_lowercase) {
        if is_without_spaces(c) {
            end(&mut word, &mut tokens);
            tokens.push(Token { text: c.to_string(), weight: 1 });
        } else if c.is_alphanumeric() {
            word.push(c);
        } else {
            end(&mut word, &mut tokens);
        }
    }
    end(&mut word, &mut tokens);
    tokens
}

/// Characters that split a word without being seen: soft hyphen, joiners, direction marks, variation selectors.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e01ef}')
}

/// Whether a character is of a script that is written without spaces: Thai, Lao, Khmer, Burmese, kana, Chinese characters.
const fn is_without_spaces(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3041}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}
