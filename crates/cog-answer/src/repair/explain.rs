//! The length of `meta.explain` (ruling R23).

use cog_spec::Meta;
use unicode_segmentation::UnicodeSegmentation;

/// The length of a rationale that replaces an absent `explain`, in Unicode scalar values (ruling R24).
const RATIONALE_LENGTH: usize = 200;

/// Trims a text for `explain`: no surrounding white space, at most 280 Unicode scalar values, truncated between
/// graphemes.
pub(crate) fn tidy(text: &str) -> &str {
    truncate(text.trim(), Meta::MAX_EXPLAIN)
}

/// Returns the replacement of an absent `explain`.
pub(crate) fn default_explain<'a>(rationale: Option<&'a str>, responsibility: &'a str) -> &'a str {
    match rationale.map(str::trim).filter(|text| !text.is_empty()) {
        Some(rationale) => truncate(rationale, RATIONALE_LENGTH),
        None => tidy(responsibility),
    }
}

/// Truncates a trimmed text to `max` scalar values, between graphemes.
fn truncate(text: &str, max: usize) -> &str {
    // A scalar value has at least one byte.
    if text.len() <= max {
        return text;
    }
    let Some((end, _)) = text.char_indices().nth(max) else { return text };
    let last = text.grapheme_indices(true).map(|(start, _)| start).take_while(|start| *start <= end).last();
    // A single grapheme over the limit is split.
    let end = last.filter(|start| *start > 0).unwrap_or(end);
    text.get(..end).unwrap_or(text).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_text_at_limit() {
        let text = "é".repeat(280);
        assert_eq!(tidy(&text), text);
        assert_eq!(tidy(&format!("{text}é")).chars().count(), 280);
    }

    #[test]
    fn truncates_between_graphemes() {
        let family = "👨‍👩‍👧";
        let text = format!("{}{family}", "a".repeat(278));
        assert_eq!(tidy(&text), "a".repeat(278));
    }

    #[test]
    fn splits_single_grapheme_over_limit() {
        let text = format!("e{}", "\u{301}".repeat(400));
        assert_eq!(tidy(&text).chars().count(), 280);
    }

    #[test]
    fn tidy_is_idempotent() {
        for text in ["  spaced  ", &format!("{} b", "a".repeat(279)), &"👨‍👩‍👧".repeat(200)] {
            assert_eq!(tidy(tidy(text)), tidy(text));
        }
    }

    #[test]
    fn absent_explain_comes_from_rationale_or_responsibility() {
        assert_eq!(default_explain(Some(&"r".repeat(300)), "Answer").len(), 200);
        assert_eq!(default_explain(Some(" \n"), "Answer"), "Answer");
        assert_eq!(default_explain(None, "Answer"), "Answer");
    }
}
