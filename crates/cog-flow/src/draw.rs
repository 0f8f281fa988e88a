//! Draws a composition: as text, Mermaid, Graphviz DOT, SVG, or JSON.

mod diagram;
mod edges;
mod layout;
mod svg;

use cog_json::{ToJson, Writer};
use cog_module::PromptPart;

use self::diagram::{Builder, INPUT, truncated};
pub use self::diagram::{Diagram, DiagramEdge, DiagramField, DiagramNode, EdgeKind, NodeKind};
use crate::{Callee, Flow, Source, value_path::ValuePath};

impl Diagram {
    /// Returns the drawing of a composition. The modules that its parts call are drawn as calls.
    pub fn new(flow: &Flow) -> Self {
        let mut builder = Builder::new(flow, edges::uses_prompt(flow.root()));
        edges::add(&mut builder);
        builder.diagram
    }
}

// A drawing as data.

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

// A drawing as text: one edge per line.

impl Diagram {
    /// Returns the drawing as text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{} ({})\n", truncated(&self.name), self.pattern);
        let name =
            |index: usize| self.nodes.get(index).map_or_else(String::new, |node| truncated(&node.name));
        let arrows: Vec<String> =
            self.edges.iter().map(|edge| arrow(edge, &name(edge.from), &name(edge.to))).collect();
        let width = arrows.iter().map(|arrow| arrow.chars().count()).max().unwrap_or_default();
        for (edge, arrow) in self.edges.iter().zip(&arrows) {
            let fields: Vec<String> = edge.fields.iter().map(|field| field.label()).collect();
            let label = [fields.join(", "), edge.note.as_deref().map(truncated).unwrap_or_default()];
            let label: Vec<String> = label.into_iter().filter(|part| !part.is_empty()).collect();
            text += format!("  {arrow:width$}  {}", label.join("; ")).trim_end();
            text.push('\n');
        }
        if self.omitted > 0 {
            text += &format!("  {} more edges are not shown\n", self.omitted);
        }
        let details = self.nodes.iter().filter(|node| !node.detail.is_empty());
        let width = details.clone().map(|node| node.name.len()).max().unwrap_or_default();
        let lines: Vec<String> = details.map(|node| detail(node, width)).collect();
        if lines.is_empty() { text } else { format!("{text}\n{}", lines.concat()) }
    }
}

fn arrow(edge: &DiagramEdge, from: &str, to: &str) -> String {
    let sign = if edge.kind.is_dashed() { "⇢" } else { "→" };
    format!("{from} {sign} {to}")
}

fn detail(node: &DiagramNode, width: usize) -> String {
    format!("  {:width$}  {}\n", node.name, node.detail)
}

// What is passed without a mapping: the fields that the target has.

/// Adds the edge from a module whose result is the answer.
fn gives_answer(builder: &mut Builder<'_>, callee: Callee, note: Option<String>) {
    let (from, to, fields) = (builder.callee_node(callee), builder.output_node(), result(builder, callee));
    builder.edge(DiagramEdge { from, to, kind: EdgeKind::Step, fields, note });
}

/// Returns the fields of a result that is the answer.
fn result(builder: &Builder<'_>, callee: Callee) -> Vec<DiagramField> {
    passed(builder, Source::Output(callee), None)
}

/// Returns the fields of the input or of the data of a result that the target has; without a target, the answer.
fn passed(builder: &Builder<'_>, source: Source, target: Option<Callee>) -> Vec<DiagramField> {
    let payload = builder.sources.payload_of(source);
    let target = target.map_or_else(|| builder.sources.answer(), |callee| builder.sources.input_of(callee));
    let known = payload.member_names();
    let field = |name: &str| {
        let types = payload.member(name).filter(|_| known.contains(&name))?.describe();
        Some(DiagramField { name: name.to_owned(), types, path: None })
    };
    let fields: Vec<DiagramField> = target.member_names().into_iter().filter_map(field).collect();
    if fields.is_empty() { vec![DiagramField::complete(payload.describe())] } else { fields }
}

// A drawing for Mermaid.

impl Diagram {
    /// Returns the drawing as a Mermaid flowchart.
    pub fn to_mermaid(&self) -> String {
        let mut text = String::from("flowchart LR\n");
        for (index, node) in self.nodes.iter().enumerate() {
            let detail =
                if node.detail.is_empty() { String::new() } else { format!("<br>{}", escaped(&node.detail)) };
            let label = format!("\"{}{detail}\"", escaped(&truncated(&node.name)));
            let shape = match node.kind {
                NodeKind::Input | NodeKind::Output => format!("([{label}])"),
                NodeKind::Module | NodeKind::Missing => format!("[{label}]"),
                NodeKind::Prompt => format!("[[{label}]]"),
            };
            text += &format!("    n{index}{shape}\n");
        }
        for edge in &self.edges {
            let sign = if edge.kind.is_dashed() { "-.->" } else { "-->" };
            let lines: Vec<String> = edge.lines().iter().map(|line| escaped(line)).collect();
            let label =
                if lines.is_empty() { String::new() } else { format!("|\"{}\"|", lines.join("<br>")) };
            text += &format!("    n{} {sign}{label} n{}\n", edge.from, edge.to);
        }
        text
    }
}

/// Returns a text for a label in quotes. Everything that Mermaid or HTML reads is written by its number.
fn escaped(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || " -_.,:$[]()=+…".contains(c);
    let escape = |c: char| if plain(c) { c.to_string() } else { format!("#{};", u32::from(c)) };
    text.chars().filter(|c| !c.is_control()).map(escape).collect()
}

// A drawing for Graphviz.

impl Diagram {
    /// Returns the drawing in the language DOT.
    pub fn to_dot(&self) -> String {
        let mut text = format!(
            "digraph {} {{\n    rankdir=LR;\n    node [fontname=\"sans-serif\"];\n",
            quoted(&self.name)
        );
        for (index, node) in self.nodes.iter().enumerate() {
            let shape = match node.kind {
                NodeKind::Input | NodeKind::Output => "shape=ellipse",
                NodeKind::Module => "shape=box",
                NodeKind::Missing => "shape=box, style=dashed",
                NodeKind::Prompt => "shape=box, peripheries=2",
            };
            let lines = [node.name.as_str(), node.detail.as_str()];
            let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
            text += &format!("    n{index} [label={}, {shape}];\n", quoted(&lines.join("\n")));
        }
        for edge in &self.edges {
            let style = if edge.kind.is_dashed() { ", style=dashed" } else { "" };
            let label = quoted(&edge.lines().join("\n"));
            text += &format!("    n{} -> n{} [label={label}{style}];\n", edge.from, edge.to);
        }
        text + "}\n"
    }
}

/// Returns a quoted string of DOT, in which `\n` centres a line.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

// The edges of the module's own prompt: the modules that it calls, and the values that it reads.

/// Adds the calls of the prompt, and their results.
fn calls(builder: &mut Builder<'_>) {
    for call in &builder.plan.calls {
        let callee = Callee::Part(call.part);
        let node = builder.callee_node(callee);
        let note = call.is_async.then(|| "async".to_owned());
        let has_input = call.arguments.is_none();
        let fields = if has_input { passed(builder, Source::Input, Some(callee)) } else { Vec::new() };
        builder.edge(DiagramEdge { from: INPUT, to: node, kind: EdgeKind::Call, fields, note });
        let types = builder.sources.payload_of(Source::Output(callee)).describe();
        let data = DiagramField { name: "data".to_owned(), types, path: None };
        reads(builder, callee, Some(data));
    }
}

/// Adds the prompt that gives the answer, with the results of the steps that it reads.
fn answer(builder: &mut Builder<'_>) {
    let Some(prompt) = builder.prompt_node() else { return };
    let fields = passed(builder, Source::Input, Some(Callee::Own));
    builder.edge(DiagramEdge { from: INPUT, to: prompt, kind: EdgeKind::Step, fields, note: None });
    let plan = builder.plan;
    for part in 0..plan.parts.len() {
        if !plan.calls.iter().any(|call| call.part == part) {
            reads(builder, Callee::Part(part), None);
        }
    }
    gives_answer(builder, Callee::Own, None);
}

/// Adds the edge from a module whose result the prompt reads, if it reads anything: what a call inserts, and references.
fn reads(builder: &mut Builder<'_>, callee: Callee, inserted: Option<DiagramField>) {
    let Some(prompt) = builder.prompt_node() else { return };
    let fields: Vec<DiagramField> = inserted.into_iter().chain(references(builder, callee)).collect();
    if !fields.is_empty() {
        let from = builder.callee_node(callee);
        builder.edge(DiagramEdge { from, to: prompt, kind: EdgeKind::Call, fields, note: None });
    }
}

/// Returns the values of a result that the prompt refers to.
fn references(builder: &Builder<'_>, callee: Callee) -> Vec<DiagramField> {
    let name = builder.plan.source_name(Source::Output(callee));
    let field = |part: &PromptPart| match part {
        PromptPart::Reference { module, path, .. } if module == name => {
            let value = ValuePath::parse(&format!("$.{path}"))?;
            let known = builder.sources.named(name)?.find(&value);
            let types = known.map_or_else(|_| "unknown".to_owned(), |known| known.describe());
            Some(DiagramField { name: path.clone(), types, path: None })
        }
        _ => None,
    };
    let mut fields: Vec<DiagramField> = builder.plan.module.prompt.parts().iter().filter_map(field).collect();
    fields.sort_by(|one, other| one.name.cmp(&other.name));
    fields.dedup();
    fields
}

#[cfg(test)]
mod tests;
