//! Citations: a map of sources, and the anchors in text that refer to it (appendix A.4).
//!
//! ```
//! use cog_harmony::citation::{Sources, Source, check};
//!
//! let answer = cog_json::Value::parse(r#"{
//!     "text": "Revenue grew. <cite id=\"cit_01\"/>",
//!     "citation_map": {"cit_01": {
//!         "source_type": "pdf_document", "source_id": "report",
//!         "location": {"page_number": 1, "text_snippet": "Revenue increased by 20%"}
//!     }}
//! }"#)?;
//! let sources = Sources::from([("report".to_owned(), Source::from_text("Revenue in-\ncreased by 20%."))]);
//! let report = check(answer.node(), &sources, 1.0);
//! assert_eq!(report.findings, []);
//! assert_eq!(report.citations[0].score, Some(1.0));
//! # Ok::<(), cog_json::SyntaxError>(())
//! ```

mod grounding;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use cog_json::{Node, Path};
use serde::Serialize;

use self::grounding::{Mentions, Words};
use crate::Finding;

/// Checks the citations of an answer: an envelope, the data of one, a message, a list of messages, or any object with a
/// `citation_map`. A snippet must be in its source with at least `min_score`; 1 is all of it.
pub fn check(document: Node<'_>, sources: &Sources, min_score: f64) -> CitationReport {
    let mut report = CitationReport::default();
    for scope in scopes(document) {
        check_scope(&scope, sources, min_score, &mut report);
    }
    report
}

/// Checks the citations of a run's data, with the sources that its input contains as text: a string by the name of its
/// member, or the `text` or `content` of an object by its `id` or `source_id`. `others` are its sources that are not text in
/// the input, such as documents. Returns nothing if the data have no citations.
pub fn check_data(data: Node<'_>, input: Option<Node<'_>>, others: &Sources) -> Vec<Finding> {
    let Some(scope) = from_data(data) else { return Vec::new() };
    let cited = scope.map.into_iter().flat_map(cited_in).collect();
    let mut sources = others.clone();
    sources.extend(input.map(|input| sources_in(input, &cited)).unwrap_or_default());
    let mut report = CitationReport::default();
    check_scope(&scope, &sources, 1.0, &mut report);
    report.findings
}

/// Returns the identifiers and URLs of the sources that a document cites.
pub fn source_ids(document: Node<'_>) -> HashSet<&str> {
    let maps = scopes(document).into_iter().filter_map(|scope| scope.map);
    maps.flat_map(cited_in).collect()
}

/// Returns the identifiers of all citations in a history. The text of an assistant may cite what the map of another message lists,
/// such as the result of a search.
pub(crate) fn ids_of(messages: Node<'_>) -> HashSet<&str> {
    let maps = scopes(messages).into_iter().filter_map(|scope| scope.map);
    maps.flat_map(Node::members).map(|(id, _)| id).collect()
}

/// Returns the identifiers of the anchors in text.
pub(crate) fn anchor_ids(text: &str) -> impl Iterator<Item = &str> {
    anchors(text).filter_map(|anchor| match anchor {
        Anchor::Id(id) => Some(id),
        Anchor::Malformed(_) => None,
    })
}

fn cited_in(map: Node<'_>) -> impl Iterator<Item = &str> {
    let entries = map.members().map(|(_, entry)| entry);
    entries.flat_map(|entry| ["source_id", "url"].map(|key| entry.get_str(key))).flatten()
}

fn check_scope(scope: &Scope<'_>, sources: &Sources, min_score: f64, report: &mut CitationReport) {
    let known: HashMap<&str, usize> =
        scope.map.into_iter().flat_map(Node::members).map(|(id, _)| (id, 0)).collect();
    let mut mentions = Mentions { known, anchors: 0, findings: Vec::new() };
    mentions.read(scope);
    report.anchors += mentions.anchors;
    report.findings.append(&mut mentions.findings);
    let Some(map) = scope.map else { return };
    if !map.is_object() {
        let message = format!("found {}; allowed: an object of citations", map.kind());
        report.findings.push(Finding::new(&scope.map_path, "type", message));
        return;
    }
    for (id, entry) in map.members() {
        let path = below(&scope.map_path, id);
        let anchors = mentions.known.get(id).copied().unwrap_or_default();
        if anchors == 0 {
            report.findings.push(unused(&path, id));
        }
        let has_location = check_entry(entry, &path, &mut report.findings);
        let mut citation = Citation { id: id.to_owned(), anchors, checked: false, score: None, page: None };
        if has_location {
            grounding::check(entry, &path, sources, min_score, &mut citation, &mut report.findings);
        }
        report.citations.push(citation);
    }
}

fn unused(path: &Path, id: &str) -> Finding {
    Finding::new(path, "unused", format!("no anchor refers to the citation `{id}`"))
        .suggest(format!("Put `<cite id=\"{id}\"/>` where the text uses it, or remove the citation."))
}

/// Returns the path of a member.
fn below(path: &Path, key: &str) -> Path {
    let mut path = path.clone();
    path.push_key(key);
    path
}

/// The result of checking the citations of a document.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CitationReport {
    /// The number of anchors.
    pub anchors: usize,
    /// The citations, in the order of their maps.
    pub citations: Vec<Citation>,
    /// The rules that are violated.
    pub findings: Vec<Finding>,
}

/// A citation, and whether its source confirms it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Citation {
    /// Its identifier.
    pub id: String,
    /// The number of anchors that refer to it.
    pub anchors: usize,
    /// Whether its source was available.
    pub checked: bool,
    /// How much of the snippet is in the source, from 0 to 1; none if there was nothing to compare.
    pub score: Option<f64>,
    /// The page on which the snippet was found.
    pub page: Option<u32>,
}

// The sources that the input of a run contains.

/// Returns the cited text of an input: a string by the name of its member, and the `text` or `content` of an object
/// by its `id` or `source_id`. Several strings with one name are pages of one source.
fn sources_in(input: Node<'_>, cited: &HashSet<&str>) -> Sources {
    let mut texts = std::collections::BTreeMap::<&str, Vec<&str>>::new();
    collect(input, &mut |name, text| {
        if cited.contains(name) {
            texts.entry(name).or_default().push(text);
        }
    });
    let sources = texts.into_iter();
    sources.map(|(name, texts)| (name.to_owned(), Source::from_text(&texts.join("\u{c}")))).collect()
}

fn collect<'a>(node: Node<'a>, add: &mut impl FnMut(&'a str, &'a str)) {
    let [id, text] = [["id", "source_id"], ["text", "content"]]
        .map(|keys| keys.into_iter().find_map(|key| node.get_str(key)));
    if let (Some(id), Some(text)) = (id, text) {
        add(id, text);
    }
    for (name, value) in node.members() {
        if let Some(text) = value.as_str() {
            add(name, text);
        }
        collect(value, add);
    }
    node.elements().for_each(|element| collect(element, add));
}

// Where a document has its citations: in `metadata`, in a `context_block`, or next to the text (appendix A.4).

/// The member of a document that contains the citations.
pub const MAP: &str = "citation_map";

/// Members that may contain a map.
const BLOCKS: [&str; 2] = ["metadata", "context_block"];

/// Text with the map that its anchors refer to.
struct Scope<'a> {
    /// The value whose strings may have anchors.
    text: Node<'a>,
    path: Path,
    /// None if there is no map.
    map: Option<Node<'a>>,
    map_path: Path,
}

/// Returns where a document has text: each message of a list, the data of an envelope, otherwise the document itself.
fn scopes(document: Node<'_>) -> Vec<Scope<'_>> {
    if document.is_array() {
        let each = document.elements().enumerate().map(|(index, message)| {
            let mut path = Path::root();
            path.push_index(index);
            scope(message, path)
        });
        return each.collect();
    }
    let is_envelope = document.get("ok").and_then(Node::as_bool).is_some();
    match document.get("data").filter(|_| is_envelope) {
        Some(data) => vec![scope(data, below(&Path::root(), "data"))],
        None => vec![scope(document, Path::root())],
    }
}

/// Returns the data of a run, if they have a map.
fn from_data(data: Node<'_>) -> Option<Scope<'_>> {
    let blocks = BLOCKS.into_iter().filter_map(|block| data.get(block));
    let is_cited = std::iter::once(data).chain(blocks).any(|place| place.get(MAP).is_some());
    is_cited.then(|| scope(data, below(&Path::root(), "data")))
}

fn scope(text: Node<'_>, path: Path) -> Scope<'_> {
    let blocks = BLOCKS.into_iter().filter_map(|block| Some((text.get(block)?, below(&path, block))));
    let places = std::iter::once((text, path.clone())).chain(blocks);
    let found = places.into_iter().find_map(|(place, path)| Some((place.get(MAP)?, below(&path, MAP))));
    let (map, map_path) = found.map_or_else(|| (None, below(&path, MAP)), |(map, path)| (Some(map), path));
    Scope { text, path, map, map_path }
}

/// The sources that are available, by `source_id`.
pub type Sources = BTreeMap<String, Source>;

/// A source with its text, prepared for comparisons. Clones share the text.
#[derive(Debug, Clone, Default)]
pub struct Source {
    pages: Arc<[Page]>,
    is_text: bool,
    duration_sec: Option<f64>,
    unreadable: Option<String>,
}

/// A page of a source.
#[derive(Debug, Clone, Default)]
pub struct SourcePage {
    /// The number of the page, from 1.
    pub number: u32,
    /// The text of the page.
    pub text: String,
    /// Width and height, in the unit of `bbox`; none if they are unknown.
    pub size: Option<(f64, f64)>,
}

#[derive(Debug, Clone)]
struct Page {
    number: u32,
    words: Words,
    size: Option<(f64, f64)>,
}

impl Source {
    /// Creates a source from plain text. A form feed ends a page.
    pub fn from_text(text: &str) -> Self {
        let pages = (1..).zip(text.split('\u{c}'));
        Self::from_pages(pages.map(|(number, text)| SourcePage { number, text: text.to_owned(), size: None }))
    }

    /// Creates a source from the pages of a document.
    pub fn from_pages(pages: impl IntoIterator<Item = SourcePage>) -> Self {
        let page =
            |page: SourcePage| Page { number: page.number, words: Words::new(&page.text), size: page.size };
        Self { pages: pages.into_iter().map(page).collect(), is_text: true, ..Self::default() }
    }

    /// Creates a source without text from an image of this width and height.
    pub fn from_image(size: (f64, f64)) -> Self {
        let page = Page { number: 1, words: Words::new(""), size: Some(size) };
        Self { pages: Arc::from([page]), ..Self::default() }
    }

    /// Creates a source without text from audio or video of this length.
    pub fn from_recording(duration_sec: f64) -> Self {
        Self { duration_sec: Some(duration_sec), ..Self::default() }
    }

    /// Creates a source that cannot be read, with the reason.
    pub fn unreadable(reason: impl Into<String>) -> Self {
        Self { unreadable: Some(reason.into()), ..Self::default() }
    }
}

// The form of a citation (appendix A.4.1).

/// The source type of a web page, which has a URL instead of a `source_id`.
const WEB: &str = "web_search";

/// Checks the form of a citation. Returns whether its location can be compared with the source, whatever else is wrong.
fn check_entry(entry: Node<'_>, path: &Path, findings: &mut Vec<Finding>) -> bool {
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
fn present<'a>(object: Node<'a>, key: &str) -> Option<Node<'a>> {
    object.get(key).filter(|member| !member.is_null())
}

/// Returns the four numbers of a bbox (ruling R65).
fn bbox_of(node: Node<'_>) -> Option<[f64; 4]> {
    let numbers: Option<Vec<f64>> = node.elements().map(Node::as_f64).collect();
    numbers?.try_into().ok()
}

// Anchors in text: `<cite id="cit_01"/>` (appendix A.4.2).

/// The maximum length of an anchor in bytes.
pub const MAX_ANCHOR: usize = 256;

const START: &str = "<cite";

/// An anchor, or text that looks like one.
#[derive(Debug, PartialEq, Eq)]
enum Anchor<'a> {
    /// The identifier of the citation.
    Id(&'a str),
    /// Why it is not an anchor.
    Malformed(&'static str),
}

/// Returns the anchors in text, in order.
fn anchors(text: &str) -> impl Iterator<Item = Anchor<'_>> {
    text.match_indices('<').filter_map(|(start, _)| {
        let (name, rest) = text.get(start..)?.split_at_checked(START.len())?;
        let found = name.eq_ignore_ascii_case(START).then(|| anchor(rest))??;
        Some(if name == START { found } else { Anchor::Malformed("its name is not in small letters") })
    })
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
mod tests;
