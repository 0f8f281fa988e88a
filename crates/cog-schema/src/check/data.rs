use cog_json::{Node, Path, Segment};
use cog_spec::{Code, Strictness};

use super::insights::{InsightsCheck, insights, without_insights};
use super::{answer_code, below, mistyped, root, unreported};
use crate::contract::Contract;
use crate::engine::EngineError;
use crate::shape::{PathStack, SchemaNode, Visit, WalkFilter};
use crate::violation::Violation;

/// What a check of an answer's data reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataCheck {
    /// Where the data break the contract; empty when they keep it.
    pub violations: Vec<Violation>,
    /// Fields that the schema does not name and that are kept, each worth a warning (W3007): only where
    /// `schema_strictness` is medium (ruling R8).
    pub unknown: Vec<String>,
    /// Words of the model's own in extensible enums.
    pub custom: Vec<CustomValue>,
    /// More insights than `overflow.max_items`, to be cut with a warning (W3004). In tier exec they are a
    /// violation instead (ruling R30).
    pub excess_insights: Option<ExcessInsights>,
}

/// A word of the model's own, in the place of one of an extensible enum (ruling R22).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomValue {
    /// Where.
    pub path: String,
    /// The word.
    pub word: String,
}

/// How many insights there are, and how many there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExcessInsights {
    /// How many were found.
    pub found: usize,
    /// How many are kept.
    pub max: u32,
}

/// Fields that v1 and v2.1 answer beside their data, from where they are copied into meta (ruling R28).
const META_FIELDS: [&str; 3] = ["confidence", "risk", "explain"];

impl Contract {
    /// Checks the data of an answer: the schema, strictness, enums, rationale and insights (rulings R8, R22,
    /// R30), with paths from `data`.
    pub fn check_data(&self, data: Node<'_>) -> DataCheck {
        let insights = insights(data);
        let extra = insights.map_or_else(InsightsCheck::default, |insights| self.check_insights(insights));
        let mut check = self.walk_data(data, extra.violations.iter().any(|one| one.rule == "overflow"));
        check.excess_insights = extra.excess;
        let errors = self.data_errors(data, insights.is_some());
        if !errors.is_empty() {
            check.add(self.violations(&errors, (&root("data"), data), answer_code));
        }
        check.add(extra.violations);
        if let Some(missing) = self.check_rationale(data) {
            check.violations.retain(|other| other.path != missing.path);
            check.violations.push(missing);
        }
        check.violations.extend(self.check_shape(data));
        check
    }

    /// The schema's own errors, which do not speak of insights that it does not name.
    fn data_errors(&self, data: Node<'_>, has_insights: bool) -> Vec<EngineError> {
        let Some(part) = &self.data else { return Vec::new() };
        let errors = self.errors(part.shape, data);
        if errors.is_empty() || !has_insights || self.facts.names_insights {
            return errors;
        }
        without_insights(data).map_or(errors, |rest| self.errors(part.shape, rest.node()))
    }

    fn walk_data(&self, data: Node<'_>, insights_reported: bool) -> DataCheck {
        let mut walk = DataWalk { contract: self, check: DataCheck::default(), insights_reported };
        if let Some(part) = self.data.as_ref().filter(|part| self.shapes.sees(part.shape, walk.filter())) {
            self.shapes.walk(&[part.shape], data, &PathStack::root("data"), &mut walk);
        }
        walk.check
    }

    /// What the formats demand of data whatever the schema says.
    fn check_shape(&self, data: Node<'_>) -> Option<Violation> {
        let asks_for_envelope = self.rules.format.asks_for_envelope();
        if !data.is_object() {
            let is_due = asks_for_envelope && self.data.is_none();
            return is_due.then(|| mistyped(&root("data"), data, "an object"));
        }
        let is_due = self.rules.require_confidence && !asks_for_envelope;
        (is_due && data.get("confidence").is_none()).then(|| {
            let path = below(&root("data"), "confidence");
            let message = "`confidence` is missing; `constraints.require_confidence` requires it";
            Violation::new(&path, "required", Code::OutputSchemaViolation, message)
        })
    }

    /// Whether a field right in the data is known without being named.
    fn is_known_in_data(&self, key: &str) -> bool {
        match key {
            "rationale" => true,
            "extensions" => self.rules.overflow.enabled,
            _ => !self.rules.format.asks_for_envelope() && META_FIELDS.contains(&key),
        }
    }
}

impl DataCheck {
    /// Adds what is not yet reported of a place.
    fn add(&mut self, violations: Vec<Violation>) {
        self.violations.extend(unreported(violations, &self.violations));
    }
}

struct DataWalk<'a> {
    contract: &'a Contract,
    check: DataCheck,
    insights_reported: bool,
}

impl Visit for DataWalk<'_> {
    fn filter(&self) -> WalkFilter {
        match self.contract.rules.strictness {
            Strictness::Low => WalkFilter::WORD,
            Strictness::High | Strictness::Medium => WalkFilter::WORD.with(WalkFilter::UNNAMED),
        }
    }

    fn value(&mut self, shape: &SchemaNode, node: Node<'_>, stack: &PathStack<'_>) {
        if !shape.is_word || !node.is_object() {
            return;
        }
        let path = stack.path();
        match self.contract.check_custom(node, &path) {
            Ok(word) => self.check.custom.push(CustomValue { path: path.to_string(), word }),
            Err(violation) => self.check.add(vec![violation]),
        }
    }

    fn unnamed(&mut self, member: Node<'_>, stack: &PathStack<'_>) {
        let path = stack.path();
        let [Some("data"), Some(key), inner] = keys(&path) else { return self.report(&path) };
        let allows_insights = self.contract.rules.overflow.enabled || self.insights_reported;
        match inner {
            None if key == "extensions" && allows_insights => self.report_extensions(member, &path),
            None if self.contract.is_known_in_data(key) => {}
            Some("insights") if path.segments().len() == 3 && key == "extensions" && allows_insights => {}
            _ => self.report(&path),
        }
    }
}

impl DataWalk<'_> {
    /// `extensions` holds insights; anything else in it is unknown.
    fn report_extensions(&mut self, extensions: Node<'_>, path: &Path) {
        for (key, _) in extensions.members().filter(|(key, _)| *key != "insights") {
            self.report(&below(path, key));
        }
    }

    fn report(&mut self, path: &Path) {
        if self.contract.rules.strictness == Strictness::Medium {
            return self.check.unknown.push(path.to_string());
        }
        let message = "unknown field; `schema_strictness: high` allows only the fields of the schema";
        let violation = Violation::new(path, "additionalProperties", Code::OutputSchemaViolation, message);
        self.check
            .violations
            .push(violation.suggest("Add the field to the schema, or exclude it in the prompt."));
    }
}

/// The first three steps of a path, where they are keys.
fn keys(path: &Path) -> [Option<&str>; 3] {
    let mut steps = path.segments().map(|segment| match segment {
        Segment::Key(key) => Some(key),
        Segment::Index(_) => None,
    });
    [steps.next().flatten(), steps.next().flatten(), steps.next().flatten()]
}
