//! The edges of the module's own prompt: the modules that it calls, and the values that it reads.

use cog_module::PromptPart;

use super::{
    builder::{Builder, INPUT},
    diagram::{DiagramEdge, DiagramField, EdgeKind},
    passed::{gives_answer, passed},
};
use crate::{Callee, Source, value_path::ValuePath};

/// Adds the calls of the prompt, and their results.
pub(super) fn calls(builder: &mut Builder<'_>) {
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
pub(super) fn answer(builder: &mut Builder<'_>) {
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
