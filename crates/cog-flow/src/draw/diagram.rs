//! A drawing before it has a format.

use std::collections::{HashMap, HashSet};

use cog_module::PromptPart;
use cog_rules::{StaticType, ValuePath};

use crate::{
    Answer, Callee, Flow, Plan, PlanId, Source, Step, Target,
    mapping::MappedField,
    typing::{Select as _, Sources},
};

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

// The edges of a drawing.

/// Returns whether the own prompt runs.
pub(super) fn uses_prompt(plan: &Plan) -> bool {
    plan.answer == Answer::OwnPrompt
        || plan.steps.iter().any(|step| step.targets().contains(&Callee::Own))
        || plan.routes.iter().any(|route| route.next == Some(Callee::Own))
}

/// Adds all edges.
pub(super) fn add(builder: &mut Builder<'_>) {
    let plan = builder.plan;
    calls(builder);
    for step in plan.steps.iter().chain(&plan.outputs) {
        add_step(builder, step);
    }
    rounds(builder);
    routes(builder);
    answer(builder);
    fallbacks(builder);
    nested(builder);
}

fn add_step(builder: &mut Builder<'_>, step: &Step) {
    let targets = match &step.to {
        Target::Output => vec![None],
        Target::Modules(list) => list.iter().map(|callee| Some(*callee)).collect(),
    };
    let condition = step.condition.as_ref().map(|condition| format!("if {}", condition.text()));
    for target in targets {
        let to = match target {
            Some(callee) => builder.callee_node(callee),
            None => builder.output_node(),
        };
        for source in &step.from.sources {
            let from = source_node(builder, *source);
            let fields = fields(builder, step, *source, target);
            let each = step.each.as_ref().map(|each| format!("each {}", each.text));
            let notes: Vec<String> = each.into_iter().chain(condition.clone()).collect();
            let note = (!notes.is_empty()).then(|| notes.join(", "));
            let kind = if step.is_routed { EdgeKind::Route } else { kind_of(builder, step, *source) };
            builder.edge(DiagramEdge { from, to, kind, fields, note });
        }
    }
}

/// Returns whether a step reads a result of the same round or of the round before.
fn kind_of(builder: &Builder<'_>, step: &Step, source: Source) -> EdgeKind {
    let Source::Output(source) = source else { return EdgeKind::Step };
    match builder.first_step(source) {
        Some(first) if step.to != Target::Output && first >= step.index => EdgeKind::Round,
        _ => EdgeKind::Step,
    }
}

fn source_node(builder: &mut Builder<'_>, source: Source) -> usize {
    match source {
        Source::Input => INPUT,
        Source::Output(callee) => builder.callee_node(callee),
    }
}

/// Returns the fields that a step passes from one of its sources.
fn fields(builder: &Builder<'_>, step: &Step, source: Source, target: Option<Callee>) -> Vec<DiagramField> {
    match &step.mapping {
        Some(mapping) => {
            let document = builder.sources.document(step);
            let is_alone = step.from.sources.len() == 1 || step.from.aggregate.is_some();
            let name = builder.plan.source_name(source);
            let read = mapping.fields().iter().filter(|field| is_alone || field.reads(name));
            let item = builder.sources.item(step).ok().flatten().unwrap_or(StaticType::Any);
            read.map(|field| mapped_field(field, &document, &item)).collect()
        }
        None => match builder.sources.item(step) {
            Ok(Some(item)) => vec![DiagramField::complete(item.describe())],
            _ => payload(builder, step, source, target),
        },
    }
}

fn mapped_field<'c>(field: &MappedField, document: &StaticType<'c>, item: &StaticType<'c>) -> DiagramField {
    let known = field.operands.iter().filter_map(|operand| document.operand(operand, item).ok());
    let known: Vec<_> = known.collect();
    let types = if known.is_empty() { "unknown".to_owned() } else { StaticType::either(known).describe() };
    DiagramField { name: field.name.clone(), types, path: Some(field.text.clone()) }
}

/// Returns the fields of a payload that the target has; with several sources, each is a member with its name.
fn payload(builder: &Builder<'_>, step: &Step, source: Source, target: Option<Callee>) -> Vec<DiagramField> {
    if step.from.sources.len() == 1 || step.from.aggregate.is_some() {
        return passed(builder, source, target);
    }
    vec![DiagramField::complete(builder.sources.payload_of(source).describe())]
}

fn rounds(builder: &mut Builder<'_>) {
    let Some(iteration) = &builder.plan.iteration else { return };
    let until = iteration.until.as_ref().map(|until| format!(" until {}", until.text())).unwrap_or_default();
    let note = format!("again{until}, at most {} rounds", iteration.max_rounds);
    let first = builder.plan.steps.iter().find_map(|step| step.targets().first().copied());
    let last = builder.sources.latest().last().copied();
    if let (Some(first), Some(last)) = (first, last) {
        let from = builder.callee_node(last);
        let to = builder.callee_node(first);
        builder.edge(plain(from, to, EdgeKind::Round, note));
    }
}

fn routes(builder: &mut Builder<'_>) {
    let plan = builder.plan;
    let latest = builder.sources.latest();
    for route in &plan.routes {
        let note = match &route.condition {
            Some(condition) => format!("if {}", condition.text()),
            None if plan.routes.len() > 1 => "otherwise".to_owned(),
            None => "always".to_owned(),
        };
        let to = match route.next {
            Some(callee) => builder.callee_node(callee),
            None => builder.output_node(),
        };
        let judged = route.from.as_ref().map_or_else(|| latest.clone(), |from| outputs(&from.sources));
        for callee in judged {
            let from = builder.callee_node(callee);
            let is_shown = route.next.is_none() && !builder.is_full();
            let fields = if is_shown { result(builder, callee) } else { Vec::new() };
            let note = Some(note.clone());
            builder.edge(DiagramEdge { from, to, kind: EdgeKind::Route, fields, note });
        }
        if let (Some(next), true) = (route.next, plan.answer == Answer::Result) {
            gives_answer(builder, next, None);
        }
    }
}

/// Returns the modules among the sources.
fn outputs(sources: &[Source]) -> Vec<Callee> {
    let callees = sources.iter().filter_map(|source| match source {
        Source::Output(callee) => Some(*callee),
        Source::Input => None,
    });
    callees.collect()
}

/// Adds what gives the answer, apart from the steps to `output` and the routes.
fn answer(builder: &mut Builder<'_>) {
    match builder.plan.answer {
        Answer::Output => {}
        Answer::OwnPrompt => own_prompt(builder),
        Answer::Result => {
            let note = (!builder.plan.routes.is_empty()).then(|| "otherwise".to_owned());
            let always = builder.plan.routes.iter().any(|route| route.condition.is_none());
            for callee in builder.sources.latest().into_iter().filter(|_| !always) {
                gives_answer(builder, callee, note.clone());
            }
        }
    }
}

fn fallbacks(builder: &mut Builder<'_>) {
    for (index, part) in builder.plan.parts.iter().enumerate() {
        let Some(fallback) = part.fallback else { continue };
        let from = builder.callee_node(Callee::Part(index));
        let to = builder.callee_node(Callee::Part(fallback));
        builder.edge(plain(from, to, EdgeKind::Fallback, "fallback"));
    }
}

/// Adds the calls of modules that are compositions themselves, at any depth.
fn nested(builder: &mut Builder<'_>) {
    let flow = builder.flow;
    let mut callers: HashMap<PlanId, Vec<(PlanId, usize)>> = HashMap::new();
    for (caller, plan) in flow.plans() {
        for (index, part) in plan.parts.iter().enumerate() {
            let Some(id) = part.plan else { continue };
            let nodes = callers.entry(id).or_default();
            // All parts without a name of their own are one node.
            if nodes.is_empty() || part.is_named() {
                nodes.push((caller, index));
            }
        }
    }
    for (id, plan) in flow.plans().skip(1).filter(|(_, plan)| plan.is_composed()) {
        for (caller, part) in callers.remove(&id).unwrap_or_default() {
            let from = builder.part_node(caller, flow.plan(caller), part);
            for part in 0..plan.parts.len() {
                let to = builder.part_node(id, plan, part);
                builder.edge(plain(from, to, EdgeKind::Call, "calls"));
            }
        }
    }
}

/// Returns an edge that passes no fields.
fn plain(from: usize, to: usize, kind: EdgeKind, note: impl Into<String>) -> DiagramEdge {
    DiagramEdge { from, to, kind, fields: Vec::new(), note: Some(note.into()) }
}

// What is passed without a mapping: the fields that the target has.

/// Adds the edge from a module whose result is the answer.
fn gives_answer(builder: &mut Builder<'_>, callee: Callee, note: Option<String>) {
    let from = builder.callee_node(callee);
    let to = builder.output_node();
    let fields = result(builder, callee);
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
    let mut fields = Vec::new();
    for name in target.member_names() {
        if let Some(member) = payload.member(name).filter(|_| known.contains(&name)) {
            fields.push(DiagramField { name: name.to_owned(), types: member.describe(), path: None });
        }
    }
    if fields.is_empty() { vec![DiagramField::complete(payload.describe())] } else { fields }
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
fn own_prompt(builder: &mut Builder<'_>) {
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
    let Some(envelope) = builder.sources.named(name) else { return Vec::new() };
    let mut fields = Vec::new();
    for part in builder.plan.module.prompt.parts() {
        let PromptPart::Reference { module, path, .. } = part else { continue };
        if module != name {
            continue;
        }
        let Some(value) = ValuePath::parse(&format!("$.{path}")) else { continue };
        let types = envelope.find(&value).map_or_else(|_| "unknown".to_owned(), |known| known.describe());
        fields.push(DiagramField { name: path.clone(), types, path: None });
    }
    fields.sort_by(|one, other| one.name.cmp(&other.name));
    fields.dedup();
    fields
}
