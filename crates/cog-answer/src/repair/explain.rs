//! The length of `meta.explain` (ruling R23).

use cog_spec::Meta;
use unicode_segmentation::UnicodeSegmentation;

/// How much of a rationale stands in for an absent `explain`, in Unicode scalar values (ruling R24).
const OF_RATIONALE: usize = 200;

/// A text as an `explain`: without white space around it, at most 280 Unicode scalar values, cut between
/// characters as a reader sees them.
pub(crate) fn tidy(text: &str) -> &str {
    cut(text.trim(), Meta::MAX_EXPLAIN)
}

/// What stands in for an `explain` that is absent.
pub(crate) fn stand_in<'a>(rationale: Option<&'a str>, responsibility: &'a str) -> &'a str {
    match rationale.map(str::trim).filter(|text| !text.is_empty()) {
        Some(rationale) => cut(rationale, OF_RATIONALE),
        None => tidy(responsibility),
    }
}

/// The longest start of a trimmed text that has at most `most` scalar values and ends between graphemes.
fn cut(text: &str, most: usize) -> &str {
    let Some((end, _)) = text.char_indices().nth(most) else { return text };
    let last = text.grapheme_indices(true).map(|(start, _)| start).take_while(|start| *start <= end).last();
    // A single grapheme that is longer than the limit is cut inside.
    let end = last.filter(|start| *start > 0).unwrap_or(end);
    text.get(..end).unwrap_or(text).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_limit_nothing_is_cut() {
        let text = "é".repeat(280);
        assert_eq!(tidy(&text), text);
        assert_eq!(tidy(&format!("{text}é")).chars().count(), 280);
    }

    #[test]
    fn a_character_of_several_scalars_is_not_torn() {
        let family = "👨‍👩‍👧";
        let text = format!("{}{family}", "a".repeat(278));
        assert_eq!(tidy(&text), "a".repeat(278));
    }

    #[test]
    fn one_endless_character_is_cut_all_the_same() {
        let text = format!("e{}", "\u{301}".repeat(400));
        assert_eq!(tidy(&text).chars().count(), 280);
    }

    #[test]
    fn what_was_put_in_order_stays_as_it_is() {
        for text in ["  spaced  ", &format!("{} b", "a".repeat(279)), &"👨‍👩‍👧".repeat(200)] {
            assert_eq!(tidy(tidy(text)), tidy(text));
        }
    }

    #[test]
    fn an_absent_explain_comes_from_the_rationale_else_from_the_responsibility() {
        assert_eq!(stand_in(Some(&"r".repeat(300)), "Answer").len(), 200);
        assert_eq!(stand_in(Some(" \n"), "Answer"), "Answer");
        assert_eq!(stand_in(None, "Answer"), "Answer");
    }
}
