//! Reads `composition`: only its form. `cog-flow` checks the names, versions, paths and conditions in it.

use cog_spec::{Composition, DataflowStep, IterationRule, Manifest, Requirement, RoutingRule};

use super::fields::Fields;
use crate::{
    Rule,
    yaml::{Content, Node},
};

/// The maximum of `max_depth`.
const MAX_DEPTH: u32 = 32;
/// The maximum of `iteration.max_rounds`.
const MAX_ROUNDS: u32 = 100;
/// The maximum of a duration in milliseconds: one day.
const MAX_TIMEOUT: u64 = 24 * 60 * 60 * 1000;

pub(super) fn read(fields: &Fields<'_>, manifest: &mut Manifest) {
    fields.section("composition", |f| {
        let defaults = Composition::default();
        manifest.composition = Some(Composition {
            requires: items(f, "requires", requirement),
            pattern: f.keyword("pattern").unwrap_or(defaults.pattern),
            max_depth: at_most(f, "max_depth", MAX_DEPTH).unwrap_or(defaults.max_depth),
            timeout_ms: at_most(f, "timeout_ms", MAX_TIMEOUT).unwrap_or(defaults.timeout_ms),
            dataflow: items(f, "dataflow", step),
            routing: items(f, "routing", rule),
            iteration: iteration(f),
        });
    });
}

fn requirement(f: &Fields<'_>) -> Requirement {
    Requirement {
        name: f.required_text("name").unwrap_or_default(),
        version: f.text("version"),
        optional: f.flag("optional").unwrap_or_default(),
        fallback: f.text("fallback"),
        timeout_ms: at_most(f, "timeout_ms", MAX_TIMEOUT),
    }
}

fn step(f: &Fields<'_>) -> DataflowStep {
    DataflowStep {
        from: required_texts(f, "from"),
        to: required_texts(f, "to"),
        mapping: mapping(f),
        condition: f.text("condition"),
        aggregate: f.keyword("aggregate"),
        result_name: f.text("as"),
    }
}

fn rule(f: &Fields<'_>) -> RoutingRule {
    if !f.has("next") {
        let help = "Write the name of a module, or `next: null` to return the result so far.";
        f.missing("next", Some(help.to_owned()));
    }
    RoutingRule {
        from: f.texts("from").unwrap_or_default(),
        condition: f.text("condition"),
        next: f.text("next"),
    }
}

fn iteration(fields: &Fields<'_>) -> Option<IterationRule> {
    let mut rule = None;
    fields.section("iteration", |f| {
        rule = Some(IterationRule {
            from: f.texts("from").unwrap_or_default(),
            until: f.text("until"),
            max_rounds: at_most(f, "max_rounds", MAX_ROUNDS).unwrap_or(IterationRule::MAX_ROUNDS),
        });
    });
    rule
}

/// Reads `mapping`: the fields of the target, each with a path.
fn mapping(fields: &Fields<'_>) -> Option<Vec<(String, String)>> {
    let mut mapping = None;
    fields.section("mapping", |f| {
        let mut paths = Vec::new();
        for entry in f.entries() {
            f.know(&entry.key);
            match &entry.value.content {
                Content::Text(path) => paths.push((entry.key.clone(), path.clone())),
                _ => f.wrong_type(&entry.key, &entry.value, "a JSONPath such as `$.text`"),
            }
        }
        mapping = Some(paths);
    });
    mapping
}

/// Reads a list of mappings.
fn items<'a, T: Default>(fields: &Fields<'a>, key: &'static str, read: impl Fn(&Fields<'a>) -> T) -> Vec<T> {
    let nodes = fields.list(key).unwrap_or_default();
    let mut items = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let name = format!("{key}[{index}]");
        let mut item = T::default();
        match &node.content {
            Content::Map(_) => fields.within(&name, node, |f| item = read(f)),
            _ => fields.wrong_type(&name, node, "a mapping"),
        }
        items.push(item);
    }
    items
}

/// Reads a list of strings that must not be empty.
fn required_texts(fields: &Fields<'_>, key: &'static str) -> Vec<String> {
    let texts = fields.texts(key);
    if texts.as_ref().is_none_or(Vec::is_empty) && fields.node(key).is_none_or(is_empty) {
        fields.missing(key, None);
    }
    texts.unwrap_or_default()
}

fn is_empty(node: &Node) -> bool {
    matches!(&node.content, Content::List(items) if items.is_empty())
}

/// Reads an integer from 1 to a maximum.
fn at_most<T>(fields: &Fields<'_>, key: &'static str, max: T) -> Option<T>
where
    T: TryFrom<i64> + PartialOrd + std::fmt::Display + Copy,
{
    let value: T = fields.integer(key, 1)?;
    if value <= max {
        return Some(value);
    }
    let message = format!("`{key}` is {value}; the maximum is {max}");
    fields.error_at(key, Rule::KeyValue, message, None);
    Some(max)
}
