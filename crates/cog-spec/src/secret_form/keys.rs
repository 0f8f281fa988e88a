//! Keys and tokens with the form that services give them.

use std::ops::Range;

use super::words_of_text;

/// The beginnings of keys and tokens that services issue, each with the minimum length of a key.
const KEY_PREFIXES: [(&str, usize); 18] = [
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("pk-", 20),
    ("xai-", 20),
    ("gsk_", 20),
    ("hf_", 20),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("github_pat_", 20),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("AKIA", 20),
    ("AIza", 30),
    ("eyJ", 40),
];

/// The minimum length of a token after `Bearer`.
const MIN_BEARER: usize = 16;

/// Returns where a text has keys and tokens of a known form, and tokens after `Bearer`.
pub(super) fn find(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut after_bearer = false;
    words_of_text(text).filter_map(move |(start, word)| {
        let is_token = after_bearer && word.len() >= MIN_BEARER;
        after_bearer = word.eq_ignore_ascii_case("bearer");
        (is_token || is_key(word)).then(|| start..start + word.len())
    })
}

fn is_key(word: &str) -> bool {
    KEY_PREFIXES.iter().any(|(prefix, min)| word.len() >= *min && word.starts_with(prefix))
}
