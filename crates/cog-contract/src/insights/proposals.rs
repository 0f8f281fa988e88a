//! The changes that counts propose.

use cog_json::{ToJson, Writer};
use cog_module::Module;
use cog_trust::{
    Rate,
    interval::{Interval, wilson},
};
use serde_json::{Value, json};

use super::{
    Field, Insights, Range,
    apply::{enum_of, schema_of},
    counters::Samples,
};

/// The number of runs that must show something before it is proposed.
pub const MIN_CASES: u64 = 5;
/// The number of answers in which a field must be the same before that is proposed.
pub const MIN_CONSTANT: u64 = 30;

/// The confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// A change that runs propose.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// What would change.
    pub kind: ProposalKind,
    /// The field, such as `data.issues[].severity`.
    pub path: String,
    /// The value of the enum, the schema of the field, the keyword with its bound, or the sentence for the prompt.
    pub value: Option<Value>,
    /// The number of runs that show it.
    pub count: u64,
    /// The number of runs that could have shown it.
    pub cases: u64,
    /// The share of them.
    pub share: f64,
    /// The interval of the share, with a confidence of 95 %.
    pub interval: Interval,
    /// The reasons that answers gave, or what insights said.
    pub reasons: Vec<String>,
}

/// What a proposal changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalKind {
    /// A value is added to an enum.
    EnumValue,
    /// An optional field is added.
    Field,
    /// A bound is moved.
    Bound,
    /// A sentence is added to the prompt.
    Prompt,
}

impl ProposalKind {
    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EnumValue => "enum_value",
            Self::Field => "field",
            Self::Bound => "bound",
            Self::Prompt => "prompt",
        }
    }
}

impl Insights {
    /// Returns the changes that at least `min_cases` runs propose, the most frequent first. With a module, values and fields that
    /// its schema already has are left out.
    pub fn proposals(&self, min_cases: u64, module: Option<&Module>) -> Vec<Proposal> {
        let mut proposals = Vec::new();
        for ((path, value), count, reasons) in self.customs.sorted().filter(|found| found.1 >= min_cases) {
            let is_known = module.is_some_and(|module| lists(module, path, value));
            if !is_known {
                let found = self.proposal(
                    ProposalKind::EnumValue,
                    path,
                    Some(json!(value)),
                    count,
                    self.fields.count(path),
                );
                proposals.push(Proposal { reasons: reasons.texts().to_vec(), ..found });
            }
        }
        for (path, count, samples) in self.mappings.sorted().filter(|found| found.1 >= min_cases) {
            proposals.push(self.mapped(path, count, samples, module));
        }
        for ((path, rule), count, range) in self.violations.sorted().filter(|found| found.1 >= min_cases) {
            proposals.push(self.violated(path, rule, count, range.as_ref()));
        }
        for ((path, rule), count, ()) in self.repairs.sorted().filter(|found| found.1 >= min_cases) {
            let place = if path.is_empty() { "the reply" } else { path };
            let sentence =
                format!("Write `{place}` so that it needs no repair: `{rule}` was repaired in {count} runs.");
            proposals.push(self.proposal(
                ProposalKind::Prompt,
                path,
                Some(json!(sentence)),
                count,
                self.runs,
            ));
        }
        for (path, count, field) in
            self.fields.sorted().filter(|found| found.1 >= min_cases.max(MIN_CONSTANT))
        {
            proposals.extend(self.constant(path, count, field));
        }
        proposals.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.path.cmp(&b.path)));
        proposals
    }

    fn proposal(
        &self,
        kind: ProposalKind,
        path: &str,
        value: Option<Value>,
        count: u64,
        cases: u64,
    ) -> Proposal {
        // A counter that dropped rare keys knows too few cases.
        let cases = cases.max(count);
        let rate = Rate::new(count, cases);
        Proposal {
            kind,
            path: path.to_owned(),
            value,
            count,
            cases,
            share: rate.and_then(Rate::share).unwrap_or_default(),
            interval: rate.map_or(Interval::UNKNOWN, |rate| wilson(rate, CONFIDENCE)),
            reasons: Vec::new(),
        }
    }

    /// Proposes the field that insights suggest; for a field that exists, a sentence of the prompt.
    fn mapped(&self, path: &str, count: u64, samples: &Samples, module: Option<&Module>) -> Proposal {
        let exists = module.is_some_and(|module| schema_of(&module.schema, path).is_some());
        let found = if exists {
            let sentence = format!("Write in `{path}` what belongs there, not in `extensions.insights`.");
            self.proposal(ProposalKind::Prompt, path, Some(json!(sentence)), count, self.answers)
        } else {
            self.proposal(ProposalKind::Field, path, Some(inferred(samples.texts())), count, self.answers)
        };
        Proposal { reasons: samples.texts().to_vec(), ..found }
    }

    /// Proposes a wider bound where the refused values are known, otherwise a sentence of the prompt.
    fn violated(&self, path: &str, rule: &str, count: u64, range: Option<&Range>) -> Proposal {
        let bound = range.and_then(|range| match rule {
            "maxLength" | "maximum" | "maxItems" | "maxProperties" => Some(range.high),
            "minLength" | "minimum" | "minItems" | "minProperties" => Some(range.low),
            // These bounds exclude their own value.
            "exclusiveMaximum" => Some(range.high + 1.0),
            "exclusiveMinimum" => Some(range.low - 1.0),
            _ => None,
        });
        if let Some(bound) = bound {
            return self.proposal(
                ProposalKind::Bound,
                path,
                Some(json!({ rule: number(bound) })),
                count,
                self.runs,
            );
        }
        if path.starts_with("input") {
            return self.proposal(ProposalKind::Bound, path, None, count, self.runs).because(rule);
        }
        let sentence = format!("Keep to the schema of `{path}`: `{rule}` was violated in {count} runs.");
        self.proposal(ProposalKind::Prompt, path, Some(json!(sentence)), count, self.runs).because(rule)
    }

    /// Proposes what follows from a field that never changes.
    fn constant(&self, path: &str, count: u64, field: &Field) -> Option<Proposal> {
        if field.nulls == count {
            let sentence =
                format!("`{path}` was null in all {count} answers: say when it has a value, or remove it.");
            return Some(self.proposal(ProposalKind::Prompt, path, Some(json!(sentence)), count, count));
        }
        let only: Value = serde_json::from_str(field.only.as_deref()?).ok()?;
        // A text that is equal by chance is no enum.
        let value = json!({ "const": only });
        Some(self.proposal(ProposalKind::Bound, path, Some(value), count, count))
    }
}

impl Proposal {
    fn because(mut self, rule: &str) -> Self {
        self.reasons.push(rule.to_owned());
        self
    }
}

/// Returns whether the schema of a field lists a value.
fn lists(module: &Module, path: &str, value: &str) -> bool {
    let listed = schema_of(&module.schema, path).and_then(|(pointer, schema)| {
        module.schema.pointer(&enum_of(&module.schema, &pointer, schema)?)?.as_array()
    });
    listed.is_some_and(|values| values.iter().any(|one| one == value))
}

/// Returns the schema of a field whose values were described as these texts.
fn inferred(samples: &[String]) -> Value {
    let all = |is: fn(&str) -> bool| !samples.is_empty() && samples.iter().all(|sample| is(sample.trim()));
    let kind = if all(|text| text.parse::<i64>().is_ok()) {
        "integer"
    } else if all(|text| text.parse::<f64>().is_ok_and(f64::is_finite)) {
        "number"
    } else if all(|text| matches!(text, "true" | "false")) {
        "boolean"
    } else {
        "string"
    };
    json!({ "type": kind })
}

/// Returns a number without a fraction where it has none.
fn number(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it is a whole number below 2^53")]
        return json!(value as i64);
    }
    json!(value)
}

/// Written by hand: the interval is a pair.
impl ToJson for Proposal {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("kind", self.kind.as_str());
            w.field("path", self.path.as_str());
            w.optional("value", &self.value.as_ref().map(cog_json::Value::from));
            w.field("count", &self.count);
            w.field("cases", &self.cases);
            w.field("share", &rounded(self.share));
            w.field("interval", &[rounded(self.interval.low), rounded(self.interval.high)]);
            w.field("reasons", &self.reasons);
        });
    }
}

/// Returns a share with four digits.
fn rounded(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}
