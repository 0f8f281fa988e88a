//! The form of a citation (appendix A.4.1).

use cog_json::{Node, Path};

use super::path::below;
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
        let is_web = entry.get("source_type").and_then(Node::as_str) == Some(WEB);
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

    /// A text that is not empty.
    fn text(&mut self, object: Node<'_>, key: &str, is_required: bool) {
        match present(object, key) {
            Some(found) if found.as_str().is_none_or(|text| text.trim().is_empty()) => {
                self.wrong(key, "type", "allowed: a text that is not empty");
            }
            None if is_required => self.wrong(key, "required", format!("`{key}` is missing")),
            _ => {}
        }
    }

    fn url(&mut self, entry: Node<'_>, is_required: bool) {
        let found = present(entry, "url");
        let is_http = |url: &str| {
            let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
            scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")
        };
        match found {
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
            && !date.as_str().is_some_and(crate::time::is_date)
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
