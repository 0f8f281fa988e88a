//! The built-in tokenizers. A table is decoded when it counts for the first time.

use super::Bound;

/// The tokenizers that are built in.
const ALL: [&str; 8] =
    ["o200k_base", "cl100k_base", "llama3", "deepseek_v3", "qwen2", "mistral_v3", "kimi_k2", "minimax_m2"];

pub(crate) fn name(own: Option<&'static str>, bound: Bound) -> &'static str {
    match (own, bound) {
        (Some(own), _) => own,
        (None, Bound::Upper) => "the tokenizer of 8 that counts most",
        (None, Bound::Lower) => "the tokenizer of 8 that counts least",
    }
}

pub(crate) fn is_exact(own: Option<&'static str>) -> bool {
    own.is_some()
}

/// The bytes after which a count that is never too high stops, so that its time is bounded. The rest counts as if all its
/// tokens were of the maximum length.
const MAX_COUNTED: usize = 4 << 20;
/// The maximum bytes of a token in any vocabulary.
const MAX_TOKEN: usize = 256;
/// The bytes that are counted at once. A tokenizer takes about 30 times the memory of the longest word.
const SLICE: usize = 64 << 10;

/// Returns the tokens of text, as the model's own tokenizer counts them; otherwise the largest or smallest of all counts.
pub(crate) fn count(own: Option<&'static str>, text: &str, bound: Bound) -> u64 {
    let (counted, rest) = match bound {
        Bound::Upper => (text, ""),
        Bound::Lower => text.split_at(text.floor_char_boundary(MAX_COUNTED)),
    };
    let known = ALL.iter().filter(|name| own.is_none_or(|own| own == **name));
    let counts = known.filter_map(|name| with(name, counted, bound));
    let found = if bound == Bound::Upper { counts.max() } else { counts.min() };
    found.unwrap_or_else(|| bytes(counted, bound)) + (rest.len() / MAX_TOKEN) as u64
}

fn with(name: &str, text: &str, bound: Bound) -> Option<u64> {
    let tokenizer = tiktoken::get_encoding(name)?;
    let counts = slices(text).map(|slice| match bound {
        // A tokenizer takes 40 times as long for data as for words.
        Bound::Lower if is_data(slice) => (slice.len() / MAX_TOKEN) as u64,
        _ => tokenizer.count(slice) as u64,
    });
    Some(counts.sum())
}

/// Returns whether a slice is not words of any language, but data such as base64.
fn is_data(slice: &str) -> bool {
    slice.len() > SLICE / 2 && !slice.bytes().any(|byte| byte.is_ascii_whitespace() || !byte.is_ascii())
}

/// Splits text before single spaces, where every tokenizer ends a token. A longer word is split anywhere.
fn slices(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (slice, after) = rest.split_at(end_of_slice(rest));
        rest = after;
        (!slice.is_empty()).then_some(slice)
    })
}

fn end_of_slice(text: &str) -> usize {
    if text.len() <= SLICE {
        return text.len();
    }
    (SLICE / 2..SLICE)
        .rev()
        .find(|at| is_single_space(text.as_bytes(), *at))
        .unwrap_or_else(|| text.floor_char_boundary(SLICE))
}

/// Returns whether the byte is a space between two other bytes that are not white space. Tokenizers join runs of white space,
/// so a slice may not end within one.
fn is_single_space(text: &[u8], at: usize) -> bool {
    let around = at.checked_sub(1).and_then(|start| text.get(start..start + 3));
    matches!(around, Some([before, b' ', after]) if !before.is_ascii_whitespace() && !after.is_ascii_whitespace())
}

/// A token has at least one byte.
fn bytes(text: &str, bound: Bound) -> u64 {
    if bound == Bound::Upper { text.len() as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens;

    #[test]
    fn every_tokenizer_is_built_in_and_used() {
        for name in ALL {
            assert_eq!(with(name, "", Bound::Upper), Some(0), "{name}");
        }
        let named = tokens::tokenizers();
        assert!(named.iter().all(|name| ALL.contains(name)), "{named:?}");
        assert!(ALL.iter().all(|name| named.contains(name)), "{named:?}");
        assert!(name(None, Bound::Upper).contains(&ALL.len().to_string()));
    }

    #[test]
    fn known_texts_have_known_counts() {
        assert_eq!(count(Some("cl100k_base"), "hello world", Bound::Upper), 2);
        assert_eq!(count(Some("o200k_base"), "tiktoken is great!", Bound::Upper), 6);
        assert_eq!(count(Some("o200k_base"), "お誕生日おめでとう", Bound::Upper), 8);
        assert_eq!(count(Some("cl100k_base"), "お誕生日おめでとう", Bound::Upper), 9);
    }

    #[test]
    fn unknown_tokenizer_is_bounded_by_all() {
        for text in ["hello world", "お誕生日おめでとう", "1234567890", "fn main() {}"] {
            let each: Vec<u64> = ALL.iter().filter_map(|name| with(name, text, Bound::Upper)).collect();
            assert_eq!(each.len(), ALL.len());
            assert_eq!(Some(count(None, text, Bound::Upper)), each.iter().copied().max());
            assert_eq!(Some(count(None, text, Bound::Lower)), each.iter().copied().min());
        }
    }

    #[test]
    fn slices_of_words_have_the_tokens_of_the_text() {
        let words =
            (0..40_000).map(|number| format!("word{number}, (Wörter) {{it}}\n  next")).collect::<Vec<_>>();
        let text = words.join(" ");
        assert!(text.len() > 10 * SLICE && slices(&text).all(|slice| slice.len() <= SLICE));
        assert_eq!(slices(&text).collect::<String>(), text);
        for name in ALL {
            let direct = tiktoken::get_encoding(name).unwrap().count(&text) as u64;
            assert_eq!(with(name, &text, Bound::Upper), Some(direct), "{name}");
        }
    }

    #[test]
    fn lower_bound_stops_after_its_maximum() {
        let counted = "one two ".repeat(MAX_COUNTED / 8);
        let rest = "one two ".repeat(MAX_TOKEN / 8);
        let [start, all] =
            [counted.clone(), counted + &rest].map(|text| count(Some("o200k_base"), &text, Bound::Lower));
        assert_eq!(all, start + 1);
    }

    #[test]
    fn data_have_a_lower_bound_without_a_tokenizer() {
        let text = "Zm9v".repeat(SLICE);
        assert_eq!(count(None, &text, Bound::Lower), (text.len() / MAX_TOKEN) as u64);
        assert!(count(None, &text, Bound::Upper) > (text.len() / 16) as u64);
    }

    #[test]
    fn long_texts_without_spaces_are_counted() {
        for text in ["a".repeat(200_000), " ".repeat(200_000), "字".repeat(50_000)] {
            assert!(count(Some("o200k_base"), &text, Bound::Upper) > 100);
        }
    }

    #[test]
    fn words_of_any_language_are_not_data() {
        for text in ["one two ".repeat(SLICE / 16 + 1), "字".repeat(SLICE / 6 + 1), "Zm9v".repeat(SLICE / 8)]
        {
            let tokens = with("o200k_base", &text, Bound::Upper);
            assert_eq!(with("o200k_base", &text, Bound::Lower), tokens);
        }
    }

    #[test]
    fn slices_begin_with_single_spaces() {
        let text = "one  two ".repeat(SLICE);
        assert!(slices(&text).skip(1).all(|slice| slice.starts_with(" one")));
        let long_word = format!("a {}", "b".repeat(2 * SLICE));
        assert!(slices(&long_word).next().is_some_and(|slice| slice.len() > SLICE / 2));
    }

    #[test]
    fn text_without_a_tokenizer_counts_its_bytes_or_nothing() {
        assert_eq!(count(Some("other"), "é", Bound::Upper), 2);
        assert_eq!(count(Some("other"), "é", Bound::Lower), 0);
    }
}
