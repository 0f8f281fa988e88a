//! Anchors in a text: `<cite id="cit_01"/>` (appendix A.4.2).

/// The maximum length of an anchor in bytes.
pub const MAX_ANCHOR: usize = 256;

const START: &str = "<cite";

/// An anchor of a text, or text that looks like one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Anchor<'a> {
    /// The identifier of the citation.
    Id(&'a str),
    /// Why it is not an anchor.
    Malformed(&'static str),
}

/// Returns the anchors of a text, in order.
pub(super) fn anchors(text: &str) -> impl Iterator<Item = Anchor<'_>> {
    text.match_indices(START).filter_map(|(start, _)| anchor(text.get(start + START.len()..)?))
}

/// Reads the text after `<cite`. Returns none for another word, such as `<cited`.
fn anchor(rest: &str) -> Option<Anchor<'_>> {
    if rest.starts_with(|c: char| c != '/' && c != '>' && !c.is_whitespace()) {
        return None;
    }
    let head = rest.get(..rest.floor_char_boundary(MAX_ANCHOR - START.len())).unwrap_or(rest);
    let Some(end) = head.find('>') else {
        return Some(Anchor::Malformed("it has no `>`"));
    };
    let tag = head.get(..end).unwrap_or_default();
    if tag.contains('<') {
        return Some(Anchor::Malformed("another tag begins inside it"));
    }
    let Some(attribute) = tag.strip_suffix('/') else {
        return Some(Anchor::Malformed("it does not end with `/>`"));
    };
    Some(
        identifier(attribute.trim())
            .map_or(Anchor::Malformed("it has no `id=\"…\"`, or more than that"), Anchor::Id),
    )
}

/// Returns the value of `id="…"`, which must be the only attribute.
fn identifier(attribute: &str) -> Option<&str> {
    let value = attribute.strip_prefix("id")?.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    let id = value.strip_prefix(quote)?.strip_suffix(quote)?;
    (!id.is_empty() && !id.contains(quote)).then_some(id)
}

/// Returns where an anchor starts that the text has begun and not ended; the length of the text if there is none.
///
/// A caller that sends a text in parts holds the rest back, so that no anchor is split. At most [`MAX_ANCHOR`] bytes are
/// held back.
///
/// ```
/// use cog_harmony::citation::unfinished_anchor;
/// assert_eq!(unfinished_anchor("grew <ci"), 5);
/// assert_eq!(unfinished_anchor("grew <cite id=\"a\"/>"), 19);
/// assert_eq!(unfinished_anchor("a < b"), 5);
/// ```
pub fn unfinished_anchor(text: &str) -> usize {
    let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_ANCHOR));
    let tail = text.get(from..).unwrap_or_default();
    let Some(start) = tail.rfind('<') else { return text.len() };
    let rest = tail.get(start..).unwrap_or_default();
    let is_begun = match rest.strip_prefix(START) {
        Some(rest) => rest.is_empty() || rest.starts_with(|c: char| c == '/' || c.is_whitespace()),
        None => START.starts_with(rest),
    };
    if is_begun && !rest.contains('>') { from + start } else { text.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_anchors_in_order() {
        let text = "a <cite id=\"x\"/> b <cite  id = 'y' /><cited>";
        assert_eq!(anchors(text).collect::<Vec<_>>(), [Anchor::Id("x"), Anchor::Id("y")]);
    }

    #[test]
    fn names_what_is_wrong_with_an_anchor() {
        for (text, part) in [
            ("<cite", "no `>`"),
            ("<cite id=\"a\"", "no `>`"),
            ("<cite id=\"a\">", "end with `/>`"),
            ("<cite/>", "no `id"),
            ("<cite id=\"\"/>", "no `id"),
            ("<cite id=a/>", "no `id"),
            ("<cite id=\"a\" page=\"2\"/>", "more than that"),
            ("<cite <cite id=\"a\"/>", "inside it"),
        ] {
            let Some(Anchor::Malformed(what)) = anchors(text).next() else { panic!("{text}") };
            assert!(what.contains(part), "{text}: {what}");
        }
        let id = "x".repeat(MAX_ANCHOR - "<cite id=\"\"/>".len());
        assert_eq!(anchors(&format!("<cite id=\"{id}\"/>")).next(), Some(Anchor::Id(&id)));
        let long = format!("<cite id=\"{id}x\"/>");
        assert_eq!(anchors(&long).next(), Some(Anchor::Malformed("it has no `>`")));
    }

    #[test]
    fn inner_anchor_of_a_malformed_one_counts() {
        let found: Vec<_> = anchors("<cite <cite id=\"a\"/>").collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], Anchor::Id("a"));
    }

    #[test]
    fn every_prefix_of_an_anchor_is_unfinished() {
        let anchor = "<cite id=\"cit_01\"/>";
        for end in 1..anchor.len() {
            assert_eq!(unfinished_anchor(&format!("é{}", &anchor[..end])), 2, "{end}");
        }
        assert_eq!(unfinished_anchor(anchor), anchor.len());
    }

    #[test]
    fn other_text_is_not_unfinished() {
        for text in ["", "a", "<b", "<cited", "a <c> b", "1 < 2", "</cite"] {
            assert_eq!(unfinished_anchor(text), text.len(), "{text}");
        }
    }

    #[test]
    fn holds_back_at_most_the_length_of_an_anchor() {
        let text = format!("é<cite {}", "ü".repeat(MAX_ANCHOR));
        assert_eq!(unfinished_anchor(&text), text.len());
    }
}
