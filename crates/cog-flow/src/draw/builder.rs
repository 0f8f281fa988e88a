//! The nodes and edges of a drawing while it is built.

use std::collections::{HashMap, HashSet};

use super::diagram::{Diagram, DiagramEdge, DiagramNode, NodeKind};
use crate::{Callee, Flow, Plan, PlanId, Target, typing::Sources};

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
        let node = |name: &str, kind| DiagramNode { name: name.to_owned(), kind, detail: String::new() };
        let diagram = Diagram {
            name: name.to_owned(),
            pattern: plan.pattern.as_str(),
            nodes: vec![node("input", NodeKind::Input)],
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
            builder.diagram.nodes.push(node(name, NodeKind::Prompt));
        }
        builder.output = builder.diagram.nodes.len();
        builder.diagram.nodes.push(node("output", NodeKind::Output));
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
