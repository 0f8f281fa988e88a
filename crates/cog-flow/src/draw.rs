//! Draws a composition: as text, Mermaid, Graphviz DOT, SVG, or JSON.

mod builder;
mod diagram;
mod dot;
mod edges;
mod json;
mod layout;
mod mermaid;
mod passed;
mod prompt;
mod svg;
mod text;

use self::builder::Builder;
use crate::Flow;

pub use self::diagram::{Diagram, DiagramEdge, DiagramField, DiagramNode, EdgeKind, NodeKind};

impl Diagram {
    /// Returns the drawing of a composition. The modules that its parts call are drawn as calls.
    pub fn new(flow: &Flow) -> Self {
        let mut builder = Builder::new(flow, edges::uses_prompt(flow.root()));
        edges::add(&mut builder);
        builder.diagram
    }
}

#[cfg(test)]
mod tests;
