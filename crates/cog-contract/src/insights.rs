//! What the runs of a module showed that its contract did not foresee, and the changes that follow.
//!
//! Runs are counted one at a time, and counters are bounded, so the memory does not depend on their number.
//!
//! ```
//! use cog_contract::insights::{Insights, ProposalKind, Run};
//! use cog_json::Value;
//!
//! let mut insights = Insights::new("custom");
//! for _ in 0..5 {
//!     let envelope = Value::parse(r#"{"ok": true, "data": {"queue": {"custom": "sales", "reason": "A new offer"}}}"#)?;
//!     insights.add(Run { input: None, envelope: envelope.node() });
//! }
//! let proposals = insights.proposals(5, None);
//! assert_eq!(proposals[0].kind, ProposalKind::EnumValue);
//! assert_eq!((proposals[0].path.as_str(), proposals[0].count), ("data.queue", 5));
//! # Ok::<(), cog_json::SyntaxError>(())
//! ```

mod apply;
mod counters;
mod proposals;
mod text;

use std::collections::HashSet;

use cog_json::{Node, ToJson, Writer};
use cog_module::Module;

use self::counters::{Counter, Samples};
pub use self::{
    apply::{ApplyError, Edited, apply},
    proposals::{MIN_CASES, MIN_CONSTANT, Proposal, ProposalKind},
};

/// One run.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Its input, if it is known.
    pub input: Option<Node<'a>>,
    /// Its envelope.
    pub envelope: Node<'a>,
}

/// The counts of runs.
#[derive(Debug)]
pub struct Insights {
    /// The name of `custom` in the object that replaces the value of an enum.
    tag: String,
    runs: u64,
    answers: u64,
    codes: Counter<String, ()>,
    /// Insights beyond the schema, by the path that they suggest.
    mappings: Counter<String, Samples>,
    /// Values beyond an enum, by path and value; the reasons are samples.
    customs: Counter<(String, String), Samples>,
    /// Violations of answers and of inputs, by path and rule.
    violations: Counter<(String, String), Option<Range>>,
    /// Repairs by path and rule.
    repairs: Counter<(String, String), ()>,
    /// The fields of the data.
    fields: Counter<String, Field>,
    labels: LabelCounts,
}

/// The runs that people labelled, by their last label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LabelCounts {
    /// The answers that are right.
    pub right: u64,
    /// The answers that are wrong, with corrected ones.
    pub wrong: u64,
}

impl LabelCounts {
    /// Returns the number of labelled runs.
    pub fn total(self) -> u64 {
        self.right + self.wrong
    }
}

impl ToJson for LabelCounts {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("right", &self.right);
            w.field("wrong", &self.wrong);
        });
    }
}

/// The numbers or lengths that were refused.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    low: f64,
    high: f64,
}

/// What a field contained.
#[derive(Debug, Clone, Default)]
struct Field {
    nulls: u64,
    /// The value of every run so far, as JSON; none if there were several, or if it is long.
    only: Option<String>,
    /// Whether the first value was counted.
    is_seen: bool,
}

/// The maximum number of values of one answer that are counted.
const MAX_VALUES: usize = 2_000;
/// The maximum depth of values that are counted.
const MAX_DEPTH: usize = 12;
/// The maximum length of a value that is compared, as JSON.
const MAX_VALUE: usize = 200;

impl Insights {
    /// Starts counting for a module whose enums have this `unknown_tag`.
    pub fn new(tag: &str) -> Self {
        Self {
            tag: tag.to_owned(),
            runs: 0,
            answers: 0,
            codes: Counter::default(),
            mappings: Counter::default(),
            customs: Counter::default(),
            violations: Counter::default(),
            repairs: Counter::default(),
            fields: Counter::default(),
            labels: LabelCounts::default(),
        }
    }

    /// Counts a labelled run.
    pub fn add_label(&mut self, is_right: bool) {
        match is_right {
            true => self.labels.right += 1,
            false => self.labels.wrong += 1,
        }
    }

    /// Returns the labelled runs.
    pub fn labels(&self) -> LabelCounts {
        self.labels
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Counts a run.
    pub fn add(&mut self, run: Run<'_>) {
        self.runs += 1;
        let envelope = run.envelope;
        self.add_repairs(envelope);
        if let Some(error) = envelope.get("error").filter(|node| node.is_object()) {
            self.add_error(error, run.input);
        }
        if let Some(data) = envelope.get("data").filter(|node| node.is_object()) {
            self.answers += 1;
            self.add_data(data);
        }
    }

    /// Counts a run whose answer is not known, only the code of its error.
    pub fn add_outcome(&mut self, code: Option<&str>) {
        self.runs += 1;
        if let Some(code) = code {
            self.codes.add(text::short(code), |()| {});
        }
    }

    fn add_repairs(&mut self, envelope: Node<'_>) {
        let repairs = envelope.get("meta").and_then(|meta| meta.get("repairs"));
        let mut seen = HashSet::new();
        for repair in repairs.into_iter().flat_map(Node::elements).take(MAX_VALUES) {
            let key = (text::path_of(repair, "path"), text::member(repair, "rule"));
            if seen.insert(key.clone()) {
                self.repairs.add(key, |()| {});
            }
        }
    }

    fn add_error(&mut self, error: Node<'_>, input: Option<Node<'_>>) {
        self.codes.add(text::member(error, "code"), |()| {});
        let violations = error.get("details").and_then(|details| details.get("violations"));
        let mut seen = HashSet::new();
        for violation in violations.into_iter().flat_map(Node::elements).take(MAX_VALUES) {
            let path = text::member(violation, "path");
            let key = (text::without_indexes(&path), text::member(violation, "rule"));
            if !seen.insert(key.clone()) {
                continue;
            }
            let refused =
                path.strip_prefix("input.").and_then(|path| text::at(input?, path)).and_then(measure);
            self.violations.add(key, |range| {
                if let Some(found) = refused {
                    let known = range.unwrap_or(Range { low: found, high: found });
                    *range = Some(Range { low: known.low.min(found), high: known.high.max(found) });
                }
            });
        }
    }

    fn add_data(&mut self, data: Node<'_>) {
        let mut walk = Walk { insights: self, left: MAX_VALUES, seen: HashSet::new() };
        walk.object(data, "data", 0);
        self.add_insights(data);
    }

    fn add_insights(&mut self, data: Node<'_>) {
        let insights = data.get("extensions").and_then(|extensions| extensions.get("insights"));
        let mut seen = HashSet::new();
        for insight in insights.into_iter().flat_map(Node::elements).take(MAX_VALUES) {
            let path = text::mapped(&text::member(insight, "suggested_mapping"));
            let text = text::member(insight, "text");
            if !path.is_empty() && seen.insert(path.clone()) {
                self.mappings.add(path, |samples| samples.add(&text));
            }
        }
    }
}

/// Returns the number, or the length of the text or list.
fn measure(value: Node<'_>) -> Option<f64> {
    if let Some(text) = value.as_str() {
        return Some(text.chars().count() as f64);
    }
    if value.is_array() || value.is_object() {
        return Some(value.len() as f64);
    }
    value.as_f64()
}

/// Visits the fields of an answer, each path once.
struct Walk<'i> {
    insights: &'i mut Insights,
    left: usize,
    seen: HashSet<String>,
}

impl Walk<'_> {
    fn object(&mut self, object: Node<'_>, path: &str, depth: usize) {
        for (key, value) in object.members() {
            // Insights are counted by what they suggest.
            if path == "data" && key == "extensions" {
                continue;
            }
            self.value(value, &format!("{path}.{}", text::short(key)), depth + 1);
        }
    }

    fn value(&mut self, value: Node<'_>, path: &str, depth: usize) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || depth > MAX_DEPTH {
            return;
        }
        if !value.is_array() {
            self.field(value, path);
        }
        if let Some((custom, reason)) = self.custom(value) {
            let key = (path.to_owned(), custom);
            if self.seen.insert(format!("{path} {}", key.1)) {
                self.insights.customs.add(key, |reasons| reasons.add(&reason));
            }
        } else if value.is_object() {
            self.object(value, path, depth);
        } else if value.is_array() {
            let path = format!("{path}[]");
            value.elements().for_each(|item| self.value(item, &path, depth + 1));
        }
    }

    fn field(&mut self, value: Node<'_>, path: &str) {
        let is_first = self.seen.insert(path.to_owned());
        let is_null = value.is_null();
        let json = if value.is_object() { String::new() } else { value.to_json() };
        let known = (!value.is_object() && json.len() <= MAX_VALUE).then_some(json);
        let update = |field: &mut Field| {
            field.nulls += u64::from(is_null && is_first);
            field.only = if field.is_seen {
                field.only.take().filter(|only| known.as_ref() == Some(only))
            } else {
                known
            };
            field.is_seen = true;
        };
        if is_first {
            self.insights.fields.add(path.to_owned(), update);
        } else {
            self.insights.fields.change(path, update);
        }
    }

    /// Returns the value and the reason of an object that replaces the value of an enum.
    fn custom(&self, value: Node<'_>) -> Option<(String, String)> {
        let custom = value.get(&self.insights.tag)?.as_str()?;
        let reason = value.get("reason")?.as_str()?;
        (value.len() == 2).then(|| (text::short(custom.trim()), text::short(reason)))
    }
}

/// What is counted, for a report.
#[derive(Debug)]
pub struct Report<'a> {
    insights: &'a Insights,
    proposals: Vec<Proposal>,
    min_cases: u64,
}

impl Insights {
    /// Returns the counts and the proposals for a module; for several modules, the proposals do not regard a schema.
    pub fn report(&self, min_cases: u64, module: Option<&Module>) -> Report<'_> {
        Report { insights: self, proposals: self.proposals(min_cases, module), min_cases }
    }
}

impl Report<'_> {
    /// Returns the proposals, the most frequent first.
    pub fn proposals(&self) -> &[Proposal] {
        &self.proposals
    }

    /// Returns the codes of errors with their counts, the most frequent first.
    pub fn codes(&self) -> Vec<(&str, u64)> {
        self.insights.codes.sorted().map(|(code, count, ())| (code.as_str(), count)).collect()
    }

    /// Returns whether rare values were dropped, because there were too many different ones.
    pub fn is_incomplete(&self) -> bool {
        let Insights { codes, mappings, customs, violations, repairs, fields, .. } = self.insights;
        codes.has_dropped
            || mappings.has_dropped
            || customs.has_dropped
            || violations.has_dropped
            || repairs.has_dropped
            || fields.has_dropped
    }
}

/// Written by hand: counters are lists, the most frequent first.
impl ToJson for Report<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let insights = self.insights;
        w.object(|w| {
            w.field("runs", &insights.runs);
            w.field("answers", &insights.answers);
            w.field("min_cases", &self.min_cases);
            w.field("proposals", &cog_json::Array(&self.proposals));
            let codes =
                insights.codes.sorted().map(|(code, count, ())| Counted::new([("code", code)], count));
            w.field("codes", &cog_json::Array(&codes.collect::<Vec<_>>()));
            let violations = insights.violations.sorted();
            let violations = violations
                .map(|((path, rule), count, _)| Counted::new([("path", path), ("rule", rule)], count));
            w.field("violations", &cog_json::Array(&violations.collect::<Vec<_>>()));
            let repairs = insights.repairs.sorted();
            let repairs = repairs
                .map(|((path, rule), count, ())| Counted::new([("path", path), ("rule", rule)], count));
            w.field("repairs", &cog_json::Array(&repairs.collect::<Vec<_>>()));
            w.field("incomplete", &self.is_incomplete());
            w.optional("labels", &Some(insights.labels).filter(|labels| labels.total() > 0));
        });
    }
}

/// Names and a count.
struct Counted<'a> {
    names: Vec<(&'static str, &'a str)>,
    count: u64,
}

impl<'a> Counted<'a> {
    fn new<const N: usize>(names: [(&'static str, &'a String); N], count: u64) -> Self {
        Self { names: names.into_iter().map(|(key, name)| (key, name.as_str())).collect(), count }
    }
}

/// Written by hand: the names are members.
impl ToJson for Counted<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            for (key, name) in &self.names {
                w.field(key, *name);
            }
            w.field("count", &self.count);
        });
    }
}

#[cfg(test)]
mod tests;
