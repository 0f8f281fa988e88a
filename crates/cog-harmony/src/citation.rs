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

mod entry;
mod grounding;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use cog_json::{Node, Path};
use serde::Serialize;

use self::{
    entry::Anchor,
    grounding::{Mentions, Words},
};
use crate::Finding;

pub use self::entry::{MAX_ANCHOR, unfinished_anchor};

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
    entry::anchors(text).filter_map(|anchor| match anchor {
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
        let has_location = entry::check(entry, &path, &mut report.findings);
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

#[cfg(test)]
mod tests;
