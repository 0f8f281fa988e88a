//! Draws a composition: as text, Mermaid, Graphviz DOT, SVG, or JSON.

mod diagram;
mod dot;
mod edges;
mod json;
mod layout;
mod mermaid;
mod svg;
mod text;

pub use self::diagram::{Diagram, DiagramEdge, DiagramField, DiagramNode, EdgeKind, NodeKind};

#[cfg(test)]
mod tests;
