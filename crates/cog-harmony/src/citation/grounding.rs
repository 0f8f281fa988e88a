//! Compares a citation with its source (appendix A.4.1).

use std::collections::HashMap;

use cog_json::{Node, Path};

use super::{
    Citation, Page, Scope, Source, Sources, below,
    entry::{Anchor, anchors, bbox_of, present},
    snippet::Words,
};
use crate::Finding;

/// Checks a citation, whose location has the right form, against its source if that is available.
pub(super) fn check(
    entry: Node<'_>,
    path: &Path,
    sources: &Sources,
    min_score: f64,
    citation: &mut Citation,
    findings: &mut Vec<Finding>,
) {
    let Some(source) = source_of(entry, sources) else { return };
    citation.checked = true;
    if let Some(reason) = &source.unreadable {
        let message = format!("the source cannot be read: {reason}");
        findings.push(Finding::new(below(path, "source_id"), "source", message));
        return;
    }
    let Some(location) = present(entry, "location") else { return };
    let path = &below(path, "location");
    let page = present(location, "page_number").and_then(Node::as_u64);
    findings.extend(page.and_then(|page| no_page(source, page, path)));
    findings.extend(present(location, "bbox").and_then(|bbox| outside(source, page, bbox, path)));
    findings.extend(past_end(source, location, path));
    let snippet = present(location, "text_snippet").and_then(Node::as_str).filter(|_| source.is_text);
    if let Some(snippet) = snippet {
        findings.extend(Search { source, page, min_score, path }.run(snippet, citation));
    }
}

/// Returns the source by `source_id`, otherwise by `url`.
fn source_of<'a>(entry: Node<'_>, sources: &'a Sources) -> Option<&'a Source> {
    let keys = ["source_id", "url"].into_iter().filter_map(|key| entry.get_str(key));
    keys.filter_map(|key| sources.get(key)).next()
}

fn no_page(source: &Source, page: u64, path: &Path) -> Option<Finding> {
    let is_known =
        source.pages.is_empty() || source.pages.iter().any(|known| u64::from(known.number) == page);
    let count = source.pages.len();
    (!is_known).then(|| {
        let message = format!("the source has no page {page}; it has {count}");
        Finding::new(below(path, "page_number"), "page_number", message)
    })
}

fn outside(source: &Source, page: Option<u64>, bbox: Node<'_>, path: &Path) -> Option<Finding> {
    let number = page.unwrap_or(1);
    let page = source.pages.iter().find(|known| u64::from(known.number) == number)?;
    let ((width, height), [_, _, x2, y2]) = (page.size?, bbox_of(bbox)?);
    (x2 > width || y2 > height).then(|| {
        let message = format!("the box ends at {x2}, {y2}, but the page is {width} × {height}");
        Finding::new(below(path, "bbox"), "bbox", message)
    })
}

fn past_end(source: &Source, location: Node<'_>, path: &Path) -> Option<Finding> {
    let duration = source.duration_sec?;
    let late = ["end_sec", "timestamp_sec"].into_iter().find_map(|key| {
        let seconds = location.get(key)?.as_f64()?;
        (seconds > duration).then_some((key, seconds))
    });
    let (key, seconds) = late?;
    let message = format!("{seconds} s is after the end of the source, which has {duration} s");
    Some(Finding::new(below(path, key), "timestamp_sec", message))
}

/// The search for a snippet.
struct Search<'a> {
    source: &'a Source,
    /// The page that the citation names.
    page: Option<u64>,
    min_score: f64,
    path: &'a Path,
}

impl Search<'_> {
    fn run(&self, snippet: &str, citation: &mut Citation) -> Option<Finding> {
        let path = below(self.path, "text_snippet");
        let Some(words) = Words::from_snippet(snippet) else {
            return Some(Finding::new(path, "text_snippet", "the snippet has no words"));
        };
        if let Some(page) = self.find(&words, |page| self.names(page)) {
            citation.score = Some(1.0);
            citation.page = Some(page);
            return None;
        }
        let candidates = self.source.pages.iter().filter(|page| self.names(page));
        let score = candidates.map(|page| page.words.score(&words)).fold(0.0, f64::max);
        citation.score = Some(score);
        if score >= self.min_score {
            return None;
        }
        if let Some(page) = self.page.and_then(|_| self.find(&words, |_| true)) {
            citation.page = Some(page);
            let message = format!("the snippet is on page {page} of the source");
            return Some(Finding::new(below(self.path, "page_number"), "page_number", message));
        }
        let message = format!("the snippet is not in the source; the best passage has a score of {score}");
        Some(Finding::new(path, "text_snippet", message).suggest("Quote the source word by word."))
    }

    /// Returns whether the citation can mean this page.
    fn names(&self, page: &Page) -> bool {
        self.page.is_none_or(|named| u64::from(page.number) == named)
    }

    /// Returns the first of these pages on which the snippet is, or begins.
    fn find(&self, snippet: &Words, is_candidate: impl Fn(&Page) -> bool) -> Option<u32> {
        let mut pages = self.source.pages.iter().filter(|page| is_candidate(page));
        if let Some(page) = pages.find(|page| page.words.contains(snippet)) {
            return Some(page.number);
        }
        self.source.pages.windows(2).find_map(|pair| match pair {
            [page, next] if is_candidate(page) && !next.words.contains(snippet) => {
                page.words.joined(&next.words).contains(snippet).then_some(page.number)
            }
            _ => None,
        })
    }
}

/// The anchors in text.
pub(super) struct Mentions<'a> {
    /// The number of anchors for each citation of the map.
    pub(super) known: HashMap<&'a str, usize>,
    /// The number of all anchors.
    pub(super) anchors: usize,
    pub(super) findings: Vec<Finding>,
}

impl Mentions<'_> {
    /// Reads the anchors of every string, except in the map.
    pub(super) fn read(&mut self, scope: &Scope<'_>) {
        self.walk(scope.text, &mut scope.path.clone(), scope.map);
    }

    fn walk(&mut self, node: Node<'_>, path: &mut Path, map: Option<Node<'_>>) {
        if map.is_some_and(|map| map.id() == node.id()) {
            return;
        }
        if let Some(text) = node.as_str() {
            return self.text(text, path);
        }
        for (key, member) in node.members() {
            path.push_key(key);
            self.walk(member, path, map);
            path.pop();
        }
        for (index, element) in node.elements().enumerate() {
            path.push_index(index);
            self.walk(element, path, map);
            path.pop();
        }
    }

    fn text(&mut self, text: &str, path: &Path) {
        for anchor in anchors(text) {
            self.anchors += 1;
            match anchor {
                Anchor::Id(id) => match self.known.get_mut(id) {
                    Some(count) => *count += 1,
                    None => self.findings.push(unresolved(path, id)),
                },
                Anchor::Malformed(what) => self.findings.push(malformed(path, what)),
            }
        }
    }
}

fn unresolved(path: &Path, id: &str) -> Finding {
    Finding::new(path, "unresolved", format!("the anchor `{id}` is not in `citation_map`"))
        .suggest("Add the citation to the map, or remove the anchor.")
}

fn malformed(path: &Path, what: &str) -> Finding {
    Finding::new(path, "anchor", format!("an anchor is malformed: {what}"))
        .suggest("Write an anchor as `<cite id=\"cit_01\"/>`.")
}
