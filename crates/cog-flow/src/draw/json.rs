//! A drawing as data.

use cog_json::{ToJson, Writer};

use super::diagram::{Diagram, DiagramEdge, DiagramField, DiagramNode};

/// Written by hand: edges name their nodes by index, absent members are left out.
impl ToJson for Diagram {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", &self.name);
            w.field("pattern", self.pattern);
            w.key("nodes").array(|w| self.nodes.iter().for_each(|node| write_node(node, w)));
            w.key("edges").array(|w| self.edges.iter().for_each(|edge| write_edge(edge, w)));
            if self.omitted > 0 {
                w.field("omitted", &self.omitted);
            }
        });
    }
}

fn write_node(node: &DiagramNode, w: &mut Writer<'_>) {
    w.object(|w| {
        w.field("name", &node.name);
        w.field("kind", node.kind.as_str());
        if !node.detail.is_empty() {
            w.field("detail", &node.detail);
        }
    });
}

fn write_edge(edge: &DiagramEdge, w: &mut Writer<'_>) {
    w.object(|w| {
        w.field("from", &edge.from);
        w.field("to", &edge.to);
        w.field("kind", edge.kind.as_str());
        if !edge.fields.is_empty() {
            w.key("fields").array(|w| edge.fields.iter().for_each(|field| write_field(field, w)));
        }
        w.optional("note", &edge.note);
    });
}

fn write_field(field: &DiagramField, w: &mut Writer<'_>) {
    w.object(|w| {
        if !field.name.is_empty() {
            w.field("name", &field.name);
        }
        w.field("type", &field.types);
        w.optional("path", &field.path);
    });
}
