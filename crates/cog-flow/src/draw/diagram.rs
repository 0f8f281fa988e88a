//! A drawing before it has a format.

use std::collections::{HashMap, HashSet};

use crate::{Callee, Flow, Plan, PlanId, Target, typing::Sources};

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

impl DiagramNode {
    fn plain(name: &str, kind: NodeKind) -> Self {
        Self { name: name.to_owned(), kind, detail: String::new() }
    }
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

/// Returns text of at most 60 characters without control characters.
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

// The nodes and edges of a drawing while it is built.

/// The maximum number of edges of a drawing.
const MAX_EDGES: usize = 5_000;

/// The nodes while a drawing is built.
pub(super) struct Builder<'f> {
    pub(super) flow: &'f Flow,
    pub(super) plan: &'f Plan,
    pub(super) sources: Sources<'f>,
    pub(super) diagram: Diagram,
    /// The node of each part of a plan.
    parts: HashMap<(usize, usize), usize>,
    prompt: Option<usize>,
    output: usize,
    /// The edges that were added.
    known: HashSet<DiagramEdge>,
    /// The first step that runs each callee, by its index in the dataflow.
    first_steps: HashMap<Callee, usize>,
}

/// The node of the input.
pub(super) const INPUT: usize = 0;

impl<'f> Builder<'f> {
    /// Creates the nodes: the input, the parts, the own prompt if it runs, and the answer.
    pub(super) fn new(flow: &'f Flow, runs_prompt: bool) -> Self {
        let plan = flow.root();
        let name = plan.module.manifest.name.as_str();
        let diagram = Diagram {
            name: name.to_owned(),
            pattern: plan.pattern.as_str(),
            nodes: vec![DiagramNode::plain("input", NodeKind::Input)],
            edges: Vec::new(),
            omitted: 0,
        };
        let sources = Sources::new(flow, plan);
        let mut builder = Self {
            flow,
            plan,
            sources,
            diagram,
            parts: HashMap::new(),
            prompt: None,
            output: INPUT,
            known: HashSet::new(),
            first_steps: first_steps(plan),
        };
        builder.add_parts();
        if runs_prompt {
            builder.prompt = Some(builder.diagram.nodes.len());
            builder.diagram.nodes.push(DiagramNode::plain(name, NodeKind::Prompt));
        }
        builder.output = builder.diagram.nodes.len();
        builder.diagram.nodes.push(DiagramNode::plain("output", NodeKind::Output));
        builder
    }

    /// Adds the parts of the root.
    fn add_parts(&mut self) {
        for part in 0..self.plan.parts.len() {
            self.part_node(PlanId(0), self.plan, part);
        }
    }

    /// Returns the node of a part, which is added if it is new.
    pub(super) fn part_node(&mut self, caller: PlanId, plan: &'f Plan, part: usize) -> usize {
        let Some(found) = plan.parts.get(part) else { return INPUT };
        // A module is one node, but each result that has a name of its own is another one.
        let key = match found.plan.filter(|_| !found.is_named()) {
            Some(id) => (usize::MAX, id.index()),
            None => (caller.index(), part),
        };
        if let Some(node) = self.parts.get(&key) {
            return *node;
        }
        let module = found.plan.map(|id| &self.flow.plan(id).module);
        let kind = if module.is_some() { NodeKind::Module } else { NodeKind::Missing };
        let version = module.map(|module| module.manifest.version.clone());
        let named = found.is_named().then(|| found.module.clone());
        let version = match (named, version) {
            (Some(name), Some(version)) => Some(format!("{name} {version}")),
            (name, version) => name.or(version),
        };
        let timeout = found.timeout.map(|timeout| format!("timeout {timeout:?}"));
        let optional = found.optional.then(|| "optional".to_owned());
        let missing = module.is_none().then(|| "missing".to_owned());
        let detail: Vec<String> = [version, missing, optional, timeout].into_iter().flatten().collect();
        let node = self.diagram.nodes.len();
        self.diagram.nodes.push(DiagramNode { name: found.name.clone(), kind, detail: detail.join(", ") });
        self.parts.insert(key, node);
        node
    }

    pub(super) fn callee_node(&mut self, callee: Callee) -> usize {
        match callee {
            Callee::Own => self.prompt.unwrap_or(INPUT),
            Callee::Part(part) => self.part_node(PlanId(0), self.plan, part),
        }
    }

    pub(super) const fn prompt_node(&self) -> Option<usize> {
        self.prompt
    }

    pub(super) const fn output_node(&self) -> usize {
        self.output
    }

    /// Returns the index of the first step that runs a callee.
    pub(super) fn first_step(&self, callee: Callee) -> Option<usize> {
        self.first_steps.get(&callee).copied()
    }

    /// Returns whether further edges are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.diagram.edges.len() >= MAX_EDGES
    }

    /// Adds an edge, unless it is known.
    pub(super) fn edge(&mut self, edge: DiagramEdge) {
        if self.is_full() {
            self.diagram.omitted += 1;
        } else if self.known.insert(edge.clone()) {
            // Two rules with the same condition and target would draw one edge twice.
            self.diagram.edges.push(edge);
        }
    }
}

fn first_steps(plan: &Plan) -> HashMap<Callee, usize> {
    let mut first = HashMap::new();
    for step in &plan.steps {
        if let Target::Modules(targets) = &step.to {
            for target in targets {
                first.entry(*target).or_insert(step.index);
            }
        }
    }
    first
}
