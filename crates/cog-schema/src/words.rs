//! Lists and near misses, as messages need them.

/// The candidate that a misspelt word most likely means; none if no candidate is near.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    // Two words of one letter have nothing in common.
    let allowance = (length / 3).max(1).min(length.saturating_sub(1));
    candidates
        .into_iter()
        .filter(|candidate| *candidate != word)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Letters to change, with upper and lower case, `-` and `_` taken as equal.
fn distance(left: &str, right: &str) -> usize {
    let plain = |word: &str| word.to_lowercase().replace('-', "_");
    strsim::damerau_levenshtein(&plain(left), &plain(right))
}

/// `` `a`, `b` or `c` ``, cut after a dozen.
pub(crate) fn either(words: &[String]) -> String {
    const MAX: usize = 12;
    match words {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [.., last] if words.len() <= MAX => {
            let head = words.iter().take(words.len() - 1).cloned().collect::<Vec<_>>();
            format!("{} or {last}", head.join(", "))
        }
        _ => {
            let head = words.iter().take(MAX).cloned().collect::<Vec<_>>();
            format!("{} and {} more", head.join(", "), words.len() - MAX)
        }
    }
}

/// A word in code quotes.
pub(crate) fn quoted(word: &str) -> String {
    format!("`{word}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_miss_is_recognised_and_a_far_one_is_not() {
        let words = ["low", "medium", "high", "remove_redundancy"];
        assert_eq!(nearest("hihg", words), Some("high"));
        assert_eq!(nearest("Medium", words), Some("medium"));
        assert_eq!(nearest("remove-redundancies", words), Some("remove_redundancy"));
        assert_eq!(nearest("critical", words), None);
    }

    #[test]
    fn lists_read_as_sentences_and_stay_short() {
        let words: Vec<String> = (0..15).map(|n| n.to_string()).collect();
        assert_eq!(either(&words[..1]), "0");
        assert_eq!(either(&words[..3]), "0, 1 or 2");
        assert!(either(&words).ends_with("11 and 3 more"));
    }
}
