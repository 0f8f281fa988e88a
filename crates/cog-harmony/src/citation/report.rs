use serde::Serialize;

use crate::Finding;

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
