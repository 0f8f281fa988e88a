//! The form of a citation (appendix A.4.1).

use cog_json::{Node, Path};

use super::below;
use crate::Finding;

/// The source type of a web page, which has a URL instead of a `source_id`.
const WEB: &str = "web_search";

/// Checks the form of a citation. Returns whether its location can be compared with the source, whatever else is wrong.
pub(super) fn check(entry: Node<'_>, path: &Path, findings: &mut Vec<Finding>) -> bool {
    Checker { path, findings }.entry(entry)
}

struct Checker<'a> {
    path: &'a Path,
    findings: &'a mut Vec<Finding>,
}

impl Checker<'_> {
    fn entry(&mut self, entry: Node<'_>) -> bool {
        if !entry.is_object() {
            self.wrong("", "type", format!("found {}; allowed: an object", entry.kind()));
            return false;
        }
        let is_web = entry.get_str("source_type") == Some(WEB);
        self.text(entry, "source_type", true);
        self.text(entry, "source_id", !is_web);
        self.text(entry, "source_name", false);
        self.url(entry, is_web);
        self.date(entry);
        self.score(entry);
        let before = self.findings.len();
        match entry.get("location").filter(|location| !location.is_null()) {
            Some(location) if !location.is_object() => {
                self.wrong("location", "type", format!("found {}; allowed: an object", location.kind()));
            }
            Some(location) => self.location(location),
            None => {}
        }
        self.findings.len() == before
    }

    fn location(&mut self, location: Node<'_>) {
        let path = below(self.path, "location");
        let mut inner = Checker { path: &path, findings: self.findings };
        inner.text(location, "text_snippet", false);
        if let Some(page) = present(location, "page_number")
            && page.as_u64().is_none_or(|page| page == 0)
        {
            inner.wrong("page_number", "page_number", "allowed: a whole number from 1");
        }
        if let Some(bbox) = present(location, "bbox")
            && !bbox_of(bbox).is_some_and(|[x1, y1, x2, y2]| x1 >= 0.0 && y1 >= 0.0 && x1 < x2 && y1 < y2)
        {
            inner.wrong("bbox", "bbox", "allowed: [x1, y1, x2, y2] with 0 ≤ x1 < x2 and 0 ≤ y1 < y2");
        }
        inner.time(location);
    }

    fn time(&mut self, location: Node<'_>) {
        let start = self.seconds(location, "timestamp_sec");
        let end = self.seconds(location, "end_sec");
        if end.is_some_and(|end| start.is_none_or(|start| end < start)) {
            self.wrong("end_sec", "end_sec", "the end needs a `timestamp_sec`, and is not before it");
        }
    }

    fn seconds(&mut self, location: Node<'_>, key: &str) -> Option<f64> {
        let seconds =
            present(location, key)?.as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
        if seconds.is_none() {
            self.wrong(key, "timestamp_sec", "allowed: seconds from the start, 0 or more");
        }
        seconds
    }

    /// A string that is not empty.
    fn text(&mut self, object: Node<'_>, key: &str, is_required: bool) {
        match present(object, key) {
            Some(found) if found.as_str().is_none_or(|text| text.trim().is_empty()) => {
                self.wrong(key, "type", "allowed: a string that is not empty");
            }
            None if is_required => self.wrong(key, "required", format!("`{key}` is missing")),
            _ => {}
        }
    }

    fn url(&mut self, entry: Node<'_>, is_required: bool) {
        match present(entry, "url") {
            Some(url) if !url.as_str().is_some_and(is_http) => {
                self.wrong("url", "url", "allowed: an http or https URL");
            }
            None if is_required => {
                self.wrong("url", "required", format!("a citation of {WEB} needs a `url`"));
            }
            _ => {}
        }
    }

    fn date(&mut self, entry: Node<'_>) {
        if let Some(date) = present(entry, "access_date")
            && !date.as_str().is_some_and(crate::metadata::is_date)
        {
            self.wrong("access_date", "access_date", "allowed: a date such as 2024-03-20");
        }
    }

    fn score(&mut self, entry: Node<'_>) {
        if let Some(score) = present(entry, "score")
            && !score.as_f64().is_some_and(|score| (0.0..=1.0).contains(&score))
        {
            self.wrong("score", "score", "allowed: a number from 0 to 1");
        }
    }

    fn wrong(&mut self, key: &str, rule: &'static str, message: impl Into<String>) {
        let path = if key.is_empty() { self.path.clone() } else { below(self.path, key) };
        self.findings.push(Finding::new(path, rule, message));
    }
}

/// Returns a member that is not null.
pub(super) fn present<'a>(object: Node<'a>, key: &str) -> Option<Node<'a>> {
    object.get(key).filter(|member| !member.is_null())
}

/// Returns the four numbers of a bbox (ruling R65).
pub(super) fn bbox_of(node: Node<'_>) -> Option<[f64; 4]> {
    let numbers: Option<Vec<f64>> = node.elements().map(Node::as_f64).collect();
    numbers?.try_into().ok()
}

// Anchors in text: `<cite id="cit_01"/>` (appendix A.4.2).

/// The maximum length of an anchor in bytes.
pub const MAX_ANCHOR: usize = 256;

const START: &str = "<cite";

/// An anchor, or text that looks like one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Anchor<'a> {
    /// The identifier of the citation.
    Id(&'a str),
    /// Why it is not an anchor.
    Malformed(&'static str),
}

/// Returns the anchors in text, in order.
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
/// A caller that sends text in parts holds the rest back, so that no anchor is split. At most [`MAX_ANCHOR`] bytes are
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

fn is_http(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")
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
