//! A drawing before it has a format.

/// A drawing of a composition, before it has a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagram {
    /// The name of the module.
    pub name: String,
    /// The pattern of its steps.
    pub pattern: &'static str,
    /// The input, the modules and the answer.
    pub nodes: Vec<DiagramNode>,
    /// The values that they pass, at most 5,000 edges.
    pub edges: Vec<DiagramEdge>,
    /// The number of edges that are left out.
    pub omitted: usize,
}

/// A node of a drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiagramNode {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// What else is known: `1.2.0, optional`.
    pub detail: String,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// The input of the module.
    Input,
    /// A module that is called.
    Module,
    /// A module that does not exist.
    Missing,
    /// The module's own prompt.
    Prompt,
    /// The answer.
    Output,
}

/// An edge of a drawing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DiagramEdge {
    /// The index of the node where it starts.
    pub from: usize,
    /// The index of the node where it ends.
    pub to: usize,
    /// Why the second node follows the first.
    pub kind: EdgeKind,
    /// The fields that are passed, with their types.
    pub fields: Vec<DiagramField>,
    /// The condition, or another note.
    pub note: Option<String>,
}

/// A field on an edge.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DiagramField {
    /// Its name in the target; empty if everything is passed.
    pub name: String,
    /// Its type.
    pub types: String,
    /// The path of its value; none if it has the same name.
    pub path: Option<String>,
}

/// Why a node follows another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EdgeKind {
    /// A step of the dataflow.
    Step,
    /// A rule of the routing.
    Route,
    /// A call of the prompt, or the result that it reads.
    Call,
    /// The fallback of a module.
    Fallback,
    /// The next round.
    Round,
}

impl NodeKind {
    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            NodeKind::Input => "input",
            NodeKind::Module => "module",
            NodeKind::Missing => "missing",
            NodeKind::Prompt => "prompt",
            NodeKind::Output => "output",
        }
    }
}

impl EdgeKind {
    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            EdgeKind::Step => "step",
            EdgeKind::Route => "route",
            EdgeKind::Call => "call",
            EdgeKind::Fallback => "fallback",
            EdgeKind::Round => "round",
        }
    }

    /// Returns whether it is drawn as a broken line: it is not always followed.
    pub(super) const fn is_dashed(self) -> bool {
        !matches!(self, EdgeKind::Step)
    }
}

impl DiagramEdge {
    /// Returns whether it places its second node after the first.
    pub(super) fn is_forward(&self) -> bool {
        !matches!(self.kind, EdgeKind::Round | EdgeKind::Fallback) && self.from != self.to
    }

    /// Returns the lines of its label: the fields, at most six, then the note.
    pub(super) fn lines(&self) -> Vec<String> {
        const MAX_FIELDS: usize = 6;
        let shown = self.fields.iter().take(MAX_FIELDS).map(DiagramField::label);
        let more = self.fields.len().saturating_sub(MAX_FIELDS);
        let more = (more > 0).then(|| format!("{more} more"));
        shown.chain(more).chain(self.note.as_deref().map(truncated)).collect()
    }
}

impl DiagramField {
    /// Creates the field of a value that is passed completely.
    pub(super) const fn complete(types: String) -> Self {
        Self { name: String::new(), types, path: None }
    }

    /// Returns `name: type`.
    pub(super) fn label(&self) -> String {
        if self.name.is_empty() {
            self.types.clone()
        } else {
            format!("{}: {}", truncated(&self.name), self.types)
        }
    }
}

/// Returns a text of at most 60 characters without control characters.
pub(super) fn truncated(text: &str) -> String {
    const MAX: usize = 60;
    let plain = text.chars().map(|c| if c.is_control() || is_invisible(c) { ' ' } else { c });
    let mut short: String = plain.take(MAX).collect();
    if text.chars().nth(MAX).is_some() {
        short.push('…');
    }
    short
}

/// Returns whether a character changes the direction of the text, or has no width.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}
