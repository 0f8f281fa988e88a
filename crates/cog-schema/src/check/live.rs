//! Checks each value of an answer that is still arriving, when it is complete (rulings R48, R68).

use cog_json::{Node, Path, Segment};
use cog_spec::{Code, Strictness, Tier};

use super::{
    answer_code,
    data::{DataCheck, DataWalk, KEYS, has_insights},
};
use crate::{
    contract::Contract,
    engine::{EngineError, Reason},
    finding::findings,
    graph::{Id, SchemaNode, WalkFilter},
    locate::Locator,
    violation::{Violation, rooted},
};

impl Contract {
    /// Checks one completed value of a partial answer (rulings R48, R68). `path` starts at `data`, `meta` or `error`. A
    /// complete part is checked like the complete answer. A value inside the data is checked along properties, items,
    /// `allOf` and `$ref`, with its name, and as a custom value or an insight.
    ///
    /// Every violation that it returns, the check of the complete answer returns too. It may miss violations that depend on the
    /// values around this one (`oneOf`, `required`); the check of the complete answer finds them.
    pub fn check_at(&self, path: &Path, node: Node<'_>) -> Vec<Violation> {
        match (path.first(), path.depth()) {
            (Some(Segment::Key("data")), 1) => self.check_data(node).violations,
            (Some(Segment::Key("meta")), 1) => self.check_meta(node),
            (Some(Segment::Key("error")), 1) => self.check_error(node),
            (Some(Segment::Key("data")), _) => self.check_inside_data(path, node),
            _ => Vec::new(),
        }
    }

    fn check_inside_data(&self, path: &Path, node: Node<'_>) -> Vec<Violation> {
        let is_rationale = path.depth() == 2 && path.last() == Some(Segment::Key("rationale"));
        if is_rationale && let Some(violation) = self.check_rationale_text(node) {
            return vec![violation];
        }
        let extension = Extension::from_path(path);
        let mut check = DataCheck::default();
        if let Some(data) = &self.data {
            check.add(self.check_own_rules(data.id, path, node));
            if extension.is_none_or(|extension| self.is_final(extension, node)) {
                check.add(self.check_schema_at(data.id, path, node));
            }
        }
        check.add(extension.map(|extension| self.check_extension(extension, node)).unwrap_or_default());
        check.violations
    }

    /// Checks a value as a custom value, and its name by `schema_strictness`.
    fn check_own_rules(&self, data: Id, path: &Path, node: Node<'_>) -> Vec<Violation> {
        let checks_names =
            self.rules.strictness == Strictness::High && self.graph.sees(data, WalkFilter::UNNAMED);
        let may_be_custom = node.is_object() && self.graph.sees(data, WalkFilter::EXTENSIBLE_ENUM);
        let mut steps = path.segments().skip(1);
        let Some(last) = steps.next_back().filter(|_| checks_names || may_be_custom) else {
            return Vec::new();
        };
        let outer = self.graph.follow_possible(data, steps);
        let mut walk = DataWalk::new(self, self.reports_insights(path, node));
        match last {
            Segment::Key(key) if checks_names && self.graph.is_unnamed(&outer, key) => {
                walk.unnamed_at(node, path);
            }
            _ if may_be_custom => {
                let ids = self.graph.all_possible(&self.graph.inside(&outer, last));
                if ids.iter().any(|id| self.graph.get(*id).is_extensible_enum) {
                    walk.custom(node, path);
                }
            }
            _ => {}
        }
        walk.check.violations
    }

    /// Returns whether the insights in or at this value are a violation, because the module allows none.
    fn reports_insights(&self, path: &Path, node: Node<'_>) -> bool {
        let insights = match Extension::from_path(path) {
            Some(Extension::All) => node.get(KEYS[1]),
            Some(Extension::Insights) => Some(node),
            _ => None,
        };
        !self.rules.overflow.enabled && insights.is_some_and(has_insights)
    }

    /// Checks a value by the schemas that certainly apply to it, and its name by the schemas of the object around it.
    fn check_schema_at(&self, data: Id, path: &Path, node: Node<'_>) -> Vec<Violation> {
        let mut steps = path.segments().skip(1);
        let Some(last) = steps.next_back() else { return Vec::new() };
        let outer = self.graph.follow(data, steps);
        let mut check = DataCheck::default();
        if let Segment::Key(key) = last {
            let mut closed = outer.iter().flat_map(|id| self.graph.certain(*id));
            let unexpected = closed.find(|schema| schema.forbids(key));
            check.add(unexpected.map(|schema| self.unexpected(schema, key, path, node)).unwrap_or_default());
        }
        for id in self.graph.step(&outer, last) {
            check.add(self.violations(&self.errors(id, node), path, node, answer_code));
        }
        check.violations
    }

    /// Returns the violation for a member that a closed object does not allow.
    fn unexpected(&self, schema: &SchemaNode, key: &str, path: &Path, node: Node<'_>) -> Vec<Violation> {
        let keyword = "additionalProperties";
        let error = EngineError {
            at: String::new(),
            keyword: keyword.to_owned(),
            schema: format!("{}/{keyword}", schema.pointer),
            reason: Reason::Unexpected(vec![key.to_owned()]),
        };
        let findings = findings(&[error], &Locator::new(node), self.document());
        findings.into_iter().map(|one| rooted(one, path, Code::OutputSchemaViolation)).collect()
    }
}

/// A value in `data.extensions`, where the manifest allows more than the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extension {
    /// `extensions` itself.
    All,
    /// `extensions.insights`.
    Insights,
    /// The insight at an index, or a value inside it.
    Insight { index: usize, is_complete: bool },
    /// Another member of `extensions`, or a value inside it.
    Other,
}

impl Extension {
    fn from_path(path: &Path) -> Option<Self> {
        let mut steps = path.segments().skip(1);
        if steps.next() != Some(Segment::Key(KEYS[0])) {
            return None;
        }
        Some(match (steps.next(), steps.next()) {
            (None, _) => Self::All,
            (Some(Segment::Key(key)), None) if key == KEYS[1] => Self::Insights,
            (Some(Segment::Key(key)), Some(Segment::Index(index))) if key == KEYS[1] => {
                Self::Insight { index, is_complete: steps.next().is_none() }
            }
            _ => Self::Other,
        })
    }
}

impl Contract {
    /// Checks insights by the rules of the manifest.
    fn check_extension(&self, extension: Extension, node: Node<'_>) -> Vec<Violation> {
        match extension {
            Extension::Insights => self.check_list(node).violations,
            Extension::Insight { index, is_complete: true }
                if self.rules.overflow.enabled && self.is_retained(index) =>
            {
                self.check_insight(node, index)
            }
            _ => Vec::new(),
        }
    }

    /// Returns whether the schema applies to a value as it is: no insights will be removed from it first (ruling R30).
    fn is_final(&self, extension: Extension, node: Node<'_>) -> bool {
        match extension {
            Extension::All => node.get(KEYS[1]).is_none_or(|insights| self.is_final_list(insights)),
            Extension::Insights => self.is_final_list(node),
            Extension::Insight { index, .. } => self.facts.names_insights && self.is_retained(index),
            Extension::Other => true,
        }
    }

    fn is_final_list(&self, insights: Node<'_>) -> bool {
        self.facts.names_insights && (insights.is_empty() || self.is_retained(insights.len() - 1))
    }

    /// Returns whether the insight at an index is within the limit, or over a limit that is a violation.
    fn is_retained(&self, index: usize) -> bool {
        let overflow = &self.rules.overflow;
        !overflow.enabled || self.rules.tier == Some(Tier::Exec) || index < overflow.max_items as usize
    }
}
