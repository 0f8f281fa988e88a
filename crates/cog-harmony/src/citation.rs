//! Citations: a map of sources, and the anchors in a text that refer to it (appendix A.4).
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

mod anchor;
mod entry;
mod given;
mod grounding;
mod locate;
mod path;
mod report;
mod snippet;
mod source;
mod walk;

use std::collections::{HashMap, HashSet};

use cog_json::{Node, Path};

use crate::Finding;

use self::{locate::Scope, path::below, walk::Mentions};

pub use self::{
    anchor::{MAX_ANCHOR, unfinished_anchor},
    locate::MAP,
    report::{Citation, CitationReport},
    source::{Source, SourcePage, Sources},
};

/// Checks the citations of an answer: an envelope, the data of one, a message, a list of messages, or any object with a
/// `citation_map`. A snippet must be in its source with at least `min_score`; 1 is all of it.
pub fn check(document: Node<'_>, sources: &Sources, min_score: f64) -> CitationReport {
    let mut report = CitationReport::default();
    for scope in locate::scopes(document) {
        check_scope(&scope, sources, min_score, &mut report);
    }
    report
}

/// Checks the citations of a run's data, with the sources that its input contains as text: a string by the name of its
/// member, or the `text` or `content` of an object by its `id` or `source_id`. `others` are its sources that are not text in
/// the input, such as documents. Returns nothing if the data have no citations.
pub fn check_data(data: Node<'_>, input: Option<Node<'_>>, others: &Sources) -> Vec<Finding> {
    let Some(scope) = locate::from_data(data) else { return Vec::new() };
    let cited = scope.map.into_iter().flat_map(cited_in).collect();
    let mut sources = others.clone();
    sources.extend(input.map(|input| given::sources(input, &cited)).unwrap_or_default());
    let mut report = CitationReport::default();
    check_scope(&scope, &sources, 1.0, &mut report);
    report.findings
}

/// Returns the identifiers and URLs of the sources that a document cites.
pub fn source_ids(document: Node<'_>) -> HashSet<&str> {
    let maps = locate::scopes(document).into_iter().filter_map(|scope| scope.map);
    maps.flat_map(cited_in).collect()
}

fn cited_in(map: Node<'_>) -> impl Iterator<Item = &str> {
    let entries = map.members().map(|(_, entry)| entry);
    entries.flat_map(|entry| ["source_id", "url"].map(|key| entry.get(key)?.as_str())).flatten()
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

#[cfg(test)]
mod tests;
