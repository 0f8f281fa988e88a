use cog_json::{ToJson as _, Value};
use proptest::prelude::*;

use super::{
    diagram::*,
    layout::{Rectangle, layout},
};
use crate::testing::{checked, shown};

fn diagram(composition: &str, prompt: &str) -> Diagram {
    let checked = checked(composition, prompt);
    assert!(shown(&checked).iter().all(|found| found.starts_with("warning")), "{:?}", shown(&checked));
    Diagram::new(checked.flow())
}

/// Returns each edge as `from kind to: label`.
fn edges(diagram: &Diagram) -> Vec<String> {
    let name = |index: usize| diagram.nodes[index].name.as_str();
    let edge = |edge: &DiagramEdge| {
        let from = name(edge.from);
        let to = name(edge.to);
        format!("{from} {} {to}: {}", edge.kind.as_str(), edge.lines().join("; "))
    };
    diagram.edges.iter().map(edge).collect()
}

#[test]
fn edges_have_the_types_of_their_fields() {
    let found = diagram(
        "requires: [{name: judge, optional: true, fallback: plain}]
dataflow:
  - {from: input, to: reader}
  - {from: [input, reader.output], to: judge, mapping: {text: $.input.text, ids: '$.reader.data.issues[*].id'}, condition: $.reader.ok}
  - {from: judge.output, to: output}",
        "",
    );
    assert_eq!(
        edges(&found),
        [
            "input step reader: text: string",
            "input step judge: text: string; if $.reader.ok",
            "reader step judge: ids: array of integer; if $.reader.ok",
            "judge step output: score: any; rationale: any",
            "judge fallback plain: fallback",
        ]
    );
    assert_eq!(found.nodes[1].detail, "1.2.0, optional");
}

#[test]
fn each_named_result_is_a_node() {
    let found = diagram(
        "pattern: parallel
dataflow:
  - {from: input, to: reader, mapping: {text: $.text}}
  - {from: input, to: reader, as: second, mapping: {text: $.text}}
  - {from: [reader.output, second.output], to: output, mapping: {issues: $.second.data.issues, rationale: $.reader.data.rationale}}",
        "",
    );
    assert_eq!(
        edges(&found),
        [
            "input step reader: text: string",
            "input step second: text: string",
            "reader step output: rationale: string",
            "second step output: issues: array of object",
        ]
    );
    let details: Vec<_> = found.nodes.iter().map(|node| (node.name.as_str(), node.detail.as_str())).collect();
    assert_eq!(details, [("input", ""), ("reader", "1.2.0"), ("second", "reader 1.2.0"), ("output", "")]);
}

#[test]
fn rounds_routes_and_calls_are_edges() {
    let rounds = diagram(
        "pattern: iterative
iteration: {until: $.data.done, max_rounds: 2}
dataflow:
  - {from: input, to: reader, mapping: {text: $.text}}",
        "",
    );
    assert_eq!(
        edges(&rounds),
        [
            "input step reader: text: string",
            "reader round reader: again until $.data.done, at most 2 rounds",
            "reader step output: issues: array of object; rationale: string",
        ]
    );
    let routes = diagram(
        "dataflow:
  - {from: input, to: reader, mapping: {text: $.text}}
routing:
  - {condition: $.ok, next: null}
  - {next: plain}",
        "",
    );
    assert_eq!(
        edges(&routes)[1..],
        [
            "reader route output: issues: array of object; rationale: string; if $.ok",
            "reader route plain: otherwise",
            "plain step output: object"
        ]
    );
    let calls = diagram("requires: []", "Use @call:plain()[async] and {{plain.meta.risk}}.");
    assert_eq!(
        edges(&calls),
        [
            "input call plain: object; async",
            "plain call root: data: object; meta.risk: object or string",
            "input step root: text: string; count: integer",
            "root step output: score: number; issues: array; rationale: string",
        ]
    );
}

#[test]
fn result_of_the_round_before_leads_back() {
    let found = diagram(
        "pattern: iterative
iteration: {max_rounds: 2}
dataflow:
  - {from: [input, judge.output], to: reader, mapping: {text: $.input.text, limit: $.judge.data.score}}
  - {from: reader.output, to: judge, mapping: {text: $.data.summary}}",
        "",
    );
    assert_eq!(
        edges(&found),
        [
            "input step reader: text: string",
            "judge round reader: limit: number",
            "reader step judge: text: string",
            "judge round reader: again, at most 2 rounds",
            "judge step output: score: number; rationale: string",
        ]
    );
}

#[test]
fn rule_with_a_source_starts_there() {
    let found = diagram(
        "dataflow:
  - {from: input, to: [reader, plain]}
routing:
  - {from: reader.output, condition: $.ok, next: null}
  - {next: null}",
        "",
    );
    assert_eq!(
        edges(&found)[2..],
        [
            "reader route output: issues: array of object; rationale: string; if $.ok",
            "plain route output: object; otherwise"
        ]
    );
}

#[test]
fn missing_module_is_drawn() {
    let found = checked("dataflow:\n  - {from: input, to: gone}", "");
    let diagram = Diagram::new(found.flow());
    assert_eq!((diagram.nodes[1].kind, diagram.nodes[1].detail.as_str()), (NodeKind::Missing, "missing"));
    assert!(diagram.to_dot().contains("style=dashed"));
}

#[test]
fn hostile_texts_are_escaped() {
    let name = "\"]); <script>&'\\\n\u{202e}evil".to_owned();
    let nodes = ["a", &*name].map(|name| DiagramNode {
        name: name.to_owned(),
        kind: NodeKind::Module,
        detail: String::new(),
    });
    let field = DiagramField { name: name.clone(), types: "string".to_owned(), path: None };
    let edge =
        DiagramEdge { from: 0, to: 1, kind: EdgeKind::Step, fields: vec![field], note: Some(name.clone()) };
    let found = Diagram { name, pattern: "sequential", nodes: nodes.into(), edges: vec![edge], omitted: 0 };
    assert!(!found.to_svg().contains("<script>") && !found.to_mermaid().contains("<script>"));
    assert!(!found.to_mermaid().contains("\"]);"), "{}", found.to_mermaid());
    assert!(found.to_dot().contains(r#""\"]); <script>&'\\\n"#), "{}", found.to_dot());
    assert_eq!(found.to_text().lines().count(), 2, "{}", found.to_text());
    assert!(!found.to_mermaid().lines().any(|line| line.contains('\u{202e}')));
    assert!(Value::parse(&found.to_json()).is_ok());
}

proptest! {
    #[test]
    fn nodes_and_labels_do_not_overlap(
        edges in prop::collection::vec((0_usize..9, 0_usize..9, 0_usize..4), 0..20)
    ) {
        let node = |index: usize| DiagramNode { name: "n".repeat(index * 3 + 1), kind: NodeKind::Module, detail: String::new() };
        let field = |index: usize| DiagramField { name: index.to_string(), types: "string".to_owned(), path: None };
        let edge = |(from, to, fields): (usize, usize, usize)| DiagramEdge {
            from, to, kind: EdgeKind::Step, fields: (0..fields).map(field).collect(), note: None,
        };
        let found = Diagram {
            name: "x".to_owned(),
            pattern: "sequential",
            nodes: (0..9).map(node).collect(),
            edges: edges.into_iter().map(edge).collect(),
            omitted: 0,
        };
        let layout = layout(&found);
        for (index, one) in layout.nodes.iter().enumerate() {
            prop_assert!(one.x + one.width <= layout.width && one.y + one.height <= layout.height);
            for other in &layout.nodes[index + 1..] {
                let apart = one.x + one.width <= other.x || other.x + other.width <= one.x
                    || one.y + one.height <= other.y || other.y + other.height <= one.y;
                prop_assert!(apart, "{one:?} {other:?}");
            }
        }
        for (index, route) in layout.routes.iter().enumerate() {
            let flat = route.windows(2).filter(|ends| ends[0].1 == ends[1].1).map(|ends| (ends[0], ends[1]));
            for (from, to) in flat {
                let crosses = |label: &&Rectangle| label.y < from.1 && from.1 < label.y + label.height
                    && from.0 < label.x + label.width && label.x < to.0;
                let others = layout.labels.iter().enumerate().filter(|(other, _)| *other != index);
                prop_assert!(others.map(|(_, label)| label).find(crosses).is_none(), "{from:?} {to:?}");
            }
        }
        prop_assert!(found.to_svg().ends_with("</svg>\n"));
    }
}

#[test]
fn drawing_of_a_long_chain_is_bounded() {
    let names: Vec<String> = (0..1_000).map(|number| format!("m{number}")).collect();
    let nodes = names.iter().map(|name| DiagramNode {
        name: name.clone(),
        kind: NodeKind::Module,
        detail: String::new(),
    });
    let edge = |from, to| DiagramEdge { from, to, kind: EdgeKind::Step, fields: Vec::new(), note: None };
    let edges = (1..1_000).flat_map(|to| [edge(to - 1, to), edge(0, to)]);
    let diagram = Diagram {
        name: "chain".to_owned(),
        pattern: "sequential",
        nodes: nodes.collect(),
        edges: edges.collect(),
        omitted: 0,
    };
    let svg = diagram.to_svg();
    assert!(svg.contains("m999") && svg.len() < 4_000_000, "{} bytes", svg.len());
}
