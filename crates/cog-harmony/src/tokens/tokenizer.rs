//! The built-in tokenizers. A table is decoded when it counts for the first time.

use super::Bound;

/// The tokenizers that are built in.
const ALL: [&str; 8] =
    ["o200k_base", "cl100k_base", "llama3", "deepseek_v3", "qwen2", "mistral_v3", "kimi_k2", "minimax_m2"];

pub(crate) fn name(own: Option<&'static str>, bound: Bound) -> &'static str {
    match (own, bound) {
        (Some(own), _) => own,
        (None, Bound::Upper) => "largest of 8 tokenizers",
        (None, Bound::Lower) => "smallest of 8 tokenizers",
    }
}

pub(crate) fn is_exact(own: Option<&'static str>) -> bool {
    own.is_some()
}

/// Returns the tokens of a text: those of the model's own tokenizer, or the largest or smallest of all counts.
pub(crate) fn count(own: Option<&'static str>, text: &str, bound: Bound) -> u64 {
    let counts =
        ALL.iter().filter(|name| own.is_none_or(|own| own == **name)).filter_map(|name| with(name, text));
    let found = if bound == Bound::Upper { counts.max() } else { counts.min() };
    found.unwrap_or_else(|| bytes(text, bound))
}

fn with(name: &str, text: &str) -> Option<u64> {
    tiktoken::get_encoding(name).map(|tokenizer| tokenizer.count(text) as u64)
}

/// A token has at least one byte.
fn bytes(text: &str, bound: Bound) -> u64 {
    if bound == Bound::Upper { text.len() as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::models;

    #[test]
    fn every_tokenizer_is_built_in_and_used() {
        for name in ALL {
            assert_eq!(with(name, ""), Some(0), "{name}");
        }
        let named = models::tokenizers();
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
            let each: Vec<u64> = ALL.iter().filter_map(|name| with(name, text)).collect();
            assert_eq!(each.len(), ALL.len());
            assert_eq!(Some(count(None, text, Bound::Upper)), each.iter().copied().max());
            assert_eq!(Some(count(None, text, Bound::Lower)), each.iter().copied().min());
        }
    }

    #[test]
    fn long_texts_without_spaces_are_counted() {
        for text in ["a".repeat(200_000), " ".repeat(200_000), "字".repeat(50_000)] {
            assert!(count(Some("o200k_base"), &text, Bound::Upper) > 100);
        }
    }
}
