//! `data.extensions.insights`: what does not fit the schema (docs/spec/tiers-and-repair.md; rulings R8, R30).

use cog_json::{Node, Path, ToJson, Value, Writer};
use cog_spec::{Code, Tier};

use super::{absent, below, mistyped, root};
use crate::contract::Contract;
use crate::finding::{counted, found};
use crate::violation::Violation;

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
