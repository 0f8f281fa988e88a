use cog_json::{Kind, Node, Path, Segment, ToJson, Value, Writer};
use cog_spec::{Code, Strictness, Tier};

use super::{absent, answer_code, below, mistyped, root, unreported};
use crate::{
    contract::Contract,
    engine::EngineError,
    finding::{counted, found},
    graph::{PathStack, SchemaNode, Visit, WalkFilter},
    violation::Violation,
};

/// The result of a check of an answer's data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataCheck {
    /// The violations; empty if the data satisfies the contract.
    pub violations: Vec<Violation>,
    /// The fields that the schema does not define, if `schema_strictness` is medium. They stay, each with a warning
    /// (W3007, ruling R8).
    pub unknown: Vec<String>,
    /// Set if there are more insights than `overflow.max_items`: they are truncated with a warning (W3004). In tier exec
    /// they are a violation instead (ruling R30).
    pub excess_insights: Option<ExcessInsights>,
}

/// The fields that answers of v1 and v2.1 contain in their data, and that are copied into meta (ruling R28).
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
            check.add(self.violations(&errors, &root("data"), data, answer_code));
        }
        check.add(extra.violations);
        // The schema may require it as well; E3003 says more than its `required`.
        if let Some(missing) = self.check_rationale(data) {
            check.violations.retain(|other| other.path != missing.path);
            check.violations.push(missing);
        }
        check.violations.extend(self.check_format(data));
        check
    }

    /// Returns the errors of the schema. Insights are removed first if the schema does not define them.
    fn data_errors(&self, data: Node<'_>, has_insights: bool) -> Vec<EngineError> {
        let Some(part) = &self.data else { return Vec::new() };
        let errors = self.errors(part.id, data);
        // Copying the data without its insights is only necessary where something is wrong, which may be the insights.
        if errors.is_empty() || !has_insights || self.facts.names_insights {
            return errors;
        }
        without_insights(data).map_or(errors, |rest| self.errors(part.id, rest.node()))
    }

    fn walk_data(&self, data: Node<'_>, insights_reported: bool) -> DataCheck {
        let mut walk = DataWalk::new(self, insights_reported);
        if let Some(part) = self.data.as_ref().filter(|part| self.graph.sees(part.id, walk.filter())) {
            self.graph.walk(&[part.id], data, &PathStack::root("data"), &mut walk);
        }
        walk.check
    }

    /// Checks the requirements of the formats, which do not depend on the schema.
    fn check_format(&self, data: Node<'_>) -> Option<Violation> {
        let asks_for_envelope = self.rules.format.asks_for_envelope();
        if !data.is_object() {
            let is_required = asks_for_envelope && self.data.is_none();
            return is_required.then(|| mistyped(&root("data"), data, "an object"));
        }
        let is_required = self.rules.require_confidence && !asks_for_envelope;
        (is_required && data.get("confidence").is_none()).then(|| {
            let path = below(&root("data"), "confidence");
            let message = "`confidence` is missing; `constraints.require_confidence` requires it";
            Violation::new(&path, "required", Code::OutputSchemaViolation, message)
        })
    }

    /// Returns whether a top-level field of the data is known although the schema does not define it.
    pub(crate) fn is_known_in_data(&self, key: &str) -> bool {
        match key {
            "rationale" => true,
            "extensions" => self.rules.overflow.enabled,
            _ => !self.rules.format.asks_for_envelope() && META_FIELDS.contains(&key),
        }
    }
}

impl DataCheck {
    /// Adds the violations whose path has none yet.
    pub(super) fn add(&mut self, violations: Vec<Violation>) {
        self.violations.extend(unreported(violations, &self.violations));
    }
}

/// Finds custom values and members that no schema defines.
pub(super) struct DataWalk<'a> {
    contract: &'a Contract,
    pub(super) check: DataCheck,
    /// There is a violation for insights of a module that allows none.
    insights_reported: bool,
}

impl Visit for DataWalk<'_> {
    fn filter(&self) -> WalkFilter {
        match self.contract.rules.strictness {
            Strictness::Low => WalkFilter::EXTENSIBLE_ENUM,
            Strictness::High | Strictness::Medium => WalkFilter::EXTENSIBLE_ENUM.with(WalkFilter::UNNAMED),
        }
    }

    fn value(&mut self, shape: &SchemaNode, node: Node<'_>, stack: &PathStack<'_>) {
        if shape.is_extensible_enum && node.is_object() {
            self.custom(node, &stack.path());
        }
    }

    fn unnamed(&mut self, member: Node<'_>, stack: &PathStack<'_>) {
        self.unnamed_at(member, &stack.path());
    }
}

impl<'a> DataWalk<'a> {
    pub(super) fn new(contract: &'a Contract, insights_reported: bool) -> Self {
        Self { contract, check: DataCheck::default(), insights_reported }
    }

    /// Checks an object that replaces a listed value.
    pub(super) fn custom(&mut self, object: Node<'_>, path: &Path) {
        if let Err(violation) = self.contract.check_custom(object, path) {
            self.check.add(vec![violation]);
        }
    }

    /// Reports a member that no schema defines, unless the specification allows it.
    pub(super) fn unnamed_at(&mut self, member: Node<'_>, path: &Path) {
        let [Some("data"), Some(key), inner] = keys(path) else { return self.report(path) };
        let allows_insights = self.contract.rules.overflow.enabled || self.insights_reported;
        match inner {
            None if key == "extensions" && allows_insights => self.report_extensions(member, path),
            None if self.contract.is_known_in_data(key) => {}
            Some("insights") if path.segments().len() == 3 && key == "extensions" && allows_insights => {}
            _ => self.report(path),
        }
    }

    /// Reports the unknown members of `extensions`: all except `insights`.
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

/// Returns the first three steps of a path; none for an index.
fn keys(path: &Path) -> [Option<&str>; 3] {
    let mut steps = path.segments().map(|segment| match segment {
        Segment::Key(key) => Some(key),
        Segment::Index(_) => None,
    });
    [steps.next().flatten(), steps.next().flatten(), steps.next().flatten()]
}

impl Contract {
    /// Checks `data.rationale` (rulings R29, R30): E3003 if it is required and missing or empty; E3001 if it is not a
    /// string, since v2.2, unless the schema defines it.
    pub fn check_rationale(&self, data: Node<'_>) -> Option<Violation> {
        if !data.is_object() || !self.facts.requires_rationale {
            return None;
        }
        match data.get("rationale") {
            Some(rationale) => self.check_rationale_text(rationale),
            None => Some(missing("`rationale` is missing")),
        }
    }

    /// Checks a rationale that is present.
    pub(super) fn check_rationale_text(&self, rationale: Node<'_>) -> Option<Violation> {
        if !self.facts.requires_rationale {
            return None;
        }
        if is_empty(rationale) {
            return Some(missing(format!("`rationale` is empty: found {}", found(rationale))));
        }
        let must_be_text = self.rules.format.asks_for_envelope() && !self.facts.names_rationale;
        (must_be_text && !rationale.is_string()).then(|| mistyped(&rationale_path(), rationale, "a string"))
    }
}

fn missing(message: impl Into<String>) -> Violation {
    Violation::new(&rationale_path(), "rationale", Code::MissingRationale, message)
}

fn rationale_path() -> Path {
    below(&root("data"), "rationale")
}

fn is_empty(node: Node<'_>) -> bool {
    match node.kind() {
        Kind::Null => true,
        Kind::String => node.as_str().is_some_and(|text| text.trim().is_empty()),
        Kind::Array | Kind::Object => node.is_empty(),
        Kind::Bool | Kind::Number => false,
    }
}

// `data.extensions.insights`: what does not fit the schema (docs/spec/tiers-and-repair.md; rulings R8, R30).

/// The number of insights, if it is over the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExcessInsights {
    /// The number of insights found.
    pub found: usize,
    /// The maximum; the rest is removed.
    pub max: u32,
}

pub(super) const KEYS: [&str; 2] = ["extensions", "insights"];

/// The result of a check of insights.
#[derive(Debug, Default)]
pub(super) struct InsightsCheck {
    pub(super) violations: Vec<Violation>,
    pub(super) excess: Option<ExcessInsights>,
}

/// Returns the insights of an answer, if it has any.
pub(super) fn insights(data: Node<'_>) -> Option<Node<'_>> {
    data.get(KEYS[0])?.get(KEYS[1])
}

/// Returns whether the value of `insights` counts as insights: an empty list does not.
pub(super) fn has_insights(insights: Node<'_>) -> bool {
    !(insights.is_array() && insights.is_empty())
}

/// Returns the data without its insights, and without `extensions` if it contains nothing else.
pub(super) fn without_insights(data: Node<'_>) -> Option<Value> {
    let mut text = String::new();
    Writer::compact(&mut text).object(|w| {
        for (key, value) in data.members() {
            if key != KEYS[0] {
                w.field(key, &value);
            } else if value.members().any(|(key, _)| key != KEYS[1]) {
                w.field(key, &Others(value));
            }
        }
    });
    Value::parse(&text).ok()
}

struct Others<'a>(Node<'a>);

/// Written by hand: an object without one of its members.
impl ToJson for Others<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            for (key, value) in self.0.members().filter(|(key, _)| *key != KEYS[1]) {
                w.field(key, &value);
            }
        });
    }
}

impl Contract {
    /// Checks insights by the rules of the manifest. An empty list counts as none.
    pub(super) fn check_insights(&self, insights: Node<'_>) -> InsightsCheck {
        let mut check = self.check_list(insights);
        if self.rules.overflow.enabled {
            for (index, insight) in insights.elements().enumerate() {
                check.violations.extend(self.check_insight(insight, index));
            }
        }
        check
    }

    /// Checks a list of insights without what is inside them.
    pub(super) fn check_list(&self, insights: Node<'_>) -> InsightsCheck {
        let path = insights_path();
        let mut check = InsightsCheck::default();
        if !has_insights(insights) {
            return check;
        }
        if !self.rules.overflow.enabled {
            let message = format!("found {}; overflow is disabled for this module", found(insights));
            let violation = Violation::new(&path, "overflow", Code::OverflowLimit, message);
            check.violations.push(
                violation.suggest("Set `overflow.enabled: true`, or request no insights in the prompt."),
            );
            return check;
        }
        if !insights.is_array() {
            check.violations.push(mistyped(&path, insights, "an array"));
            return check;
        }
        self.check_count(insights, &path, &mut check);
        check
    }

    fn check_count(&self, insights: Node<'_>, path: &Path, check: &mut InsightsCheck) {
        let found = insights.len();
        let max = self.rules.overflow.max_items;
        if found <= max as usize {
            return;
        }
        if self.rules.tier == Some(Tier::Exec) {
            let message = format!("found {}; allowed: at most {max}", counted(found, "insight"));
            check.violations.push(Violation::new(path, "overflow", Code::OverflowLimit, message));
        } else {
            check.excess = Some(ExcessInsights { found, max });
        }
    }

    /// Checks the insight at an index.
    pub(super) fn check_insight(&self, insight: Node<'_>, index: usize) -> Vec<Violation> {
        let mut path = insights_path();
        path.push_index(index);
        if !insight.is_object() {
            return vec![mistyped(&path, insight, "an object with `text`")];
        }
        let mut required = vec!["text"];
        if self.rules.overflow.require_suggested_mapping {
            required.push("suggested_mapping");
        }
        required.into_iter().filter_map(|key| missing_text(insight, key, &path)).collect()
    }
}

fn missing_text(insight: Node<'_>, key: &str, path: &Path) -> Option<Violation> {
    let path = below(path, key);
    match insight.get(key) {
        None => Some(absent(&path, key)),
        Some(node) => match node.as_str().map(str::trim) {
            None => Some(mistyped(&path, node, "a string")),
            Some("") => {
                let message = "found an empty string; allowed: a non-empty string";
                Some(Violation::new(&path, "minLength", Code::OutputSchemaViolation, message))
            }
            Some(_) => None,
        },
    }
}

fn insights_path() -> Path {
    below(&below(&root("data"), KEYS[0]), KEYS[1])
}
