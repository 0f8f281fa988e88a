//! What is passed without a mapping: the fields that the target has.

use super::{
    builder::Builder,
    diagram::{DiagramEdge, DiagramField, EdgeKind},
};
use crate::{Callee, Source};

/// Adds the edge from a module whose result is the answer.
pub(super) fn gives_answer(builder: &mut Builder<'_>, callee: Callee, note: Option<String>) {
    let (from, to, fields) = (builder.callee_node(callee), builder.output_node(), result(builder, callee));
    builder.edge(DiagramEdge { from, to, kind: EdgeKind::Step, fields, note });
}

/// Returns the fields of a result that is the answer.
pub(super) fn result(builder: &Builder<'_>, callee: Callee) -> Vec<DiagramField> {
    passed(builder, Source::Output(callee), None)
}

/// Returns the fields of the input or of the data of a result that the target has; without a target, the answer.
pub(super) fn passed(builder: &Builder<'_>, source: Source, target: Option<Callee>) -> Vec<DiagramField> {
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
