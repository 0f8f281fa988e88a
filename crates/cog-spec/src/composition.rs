//! `composition` of a manifest: the modules that a module calls (docs/spec/composition.md).

use cog_json::Value;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{CacheHit, Risk, Usage, string_enum::string_enum};

string_enum! {
    /// The order in which the steps of a composition run.
    Pattern {
        /// In the order of the manifest.
        Sequential = "sequential",
        /// Each as soon as its sources are complete.
        Parallel = "parallel",
        /// In the order of the manifest; then the routing decides.
        Conditional = "conditional",
        /// In the order of the manifest, repeated until a condition is true.
        Iterative = "iterative",
    }
}

string_enum! {
    /// How several sources of a step become one value.
    Aggregate {
        /// The members of all sources; of equal members, the later source wins.
        Merge = "merge",
        /// A list of all sources.
        Array = "array",
        /// The first source that has a result.
        First = "first",
    }
}

/// `composition`, as it is written: versions, paths and conditions are text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composition {
    /// The modules that are called.
    pub requires: Vec<Requirement>,
    /// The order of the steps.
    pub pattern: Pattern,
    /// The maximum number of modules on a path of calls.
    pub max_depth: u32,
    /// The maximum duration, in milliseconds.
    pub timeout_ms: u64,
    /// The steps.
    pub dataflow: Vec<DataflowStep>,
    /// The rules that decide after the steps.
    pub routing: Vec<RoutingRule>,
    /// The rounds of the pattern `iterative`.
    pub iteration: Option<IterationRule>,
}

impl Composition {
    /// The default maximum number of modules on a path of calls.
    pub const MAX_DEPTH: u32 = 5;
    /// The default maximum duration, in milliseconds.
    pub const TIMEOUT_MS: u64 = 60_000;
}

impl Default for Composition {
    fn default() -> Self {
        Self {
            requires: Vec::new(),
            pattern: Pattern::Sequential,
            max_depth: Self::MAX_DEPTH,
            timeout_ms: Self::TIMEOUT_MS,
            dataflow: Vec::new(),
            routing: Vec::new(),
            iteration: None,
        }
    }
}

/// An item of `requires`: a module that is called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requirement {
    /// The name of the module.
    pub name: String,
    /// The range of versions, such as `^1.0.0`; none is `*`.
    pub version: Option<String>,
    /// Whether the composition continues without its result.
    pub optional: bool,
    /// The name of the module that runs if this one fails or is missing.
    pub fallback: Option<String>,
    /// The maximum duration of the call, in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// An item of `dataflow`: a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DataflowStep {
    /// The sources: `input`, `NAME.output`.
    pub from: Vec<String>,
    /// The targets: modules, or `output`.
    pub to: Vec<String>,
    /// The fields of the target, each with paths or a constant; none passes everything.
    pub mapping: Option<Vec<(String, String)>>,
    /// The condition under which the step runs.
    pub condition: Option<String>,
    /// How several sources become one value.
    pub aggregate: Option<Aggregate>,
    /// `as`: the name of its result; none for the name of its module.
    pub result_name: Option<String>,
    /// The path of the list for each of whose elements the target runs; none runs it once.
    pub each: Option<String>,
    /// The maximum number of elements at the same time; none for the runtime's own.
    pub max_parallel: Option<u32>,
}

/// An item of `routing`: what runs after the steps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoutingRule {
    /// The sources of the condition; empty for the result so far.
    pub from: Vec<String>,
    /// The condition; none is always true.
    pub condition: Option<String>,
    /// The module that runs next; none makes the result so far the answer.
    pub next: Option<String>,
}

/// `iteration`: the rounds of the pattern `iterative`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IterationRule {
    /// The sources of the condition; empty for the result so far.
    pub from: Vec<String>,
    /// The condition after which no further round starts.
    pub until: Option<String>,
    /// The maximum number of rounds.
    pub max_rounds: u32,
    /// The path of a number: the round with the greatest one gives the answer if `until` is never true.
    pub best: Option<String>,
}

impl IterationRule {
    /// The default maximum number of rounds.
    pub const MAX_ROUNDS: u32 = 3;
}

impl Default for IterationRule {
    fn default() -> Self {
        Self { from: Vec::new(), until: None, max_rounds: Self::MAX_ROUNDS, best: None }
    }
}

// The parts of a composition: what became of them, and their progress (docs/spec/composition.md).

string_enum! {
    /// The status of a part.
    PartStatus {
        /// It has not started.
        Waiting = "waiting",
        /// It runs.
        Running = "running",
        /// It has an answer.
        Done = "done",
        /// It failed.
        Failed = "failed",
        /// It did not run, because no condition selected it.
        Skipped = "skipped",
        /// It was cancelled, because its answer was not needed any more.
        Cancelled = "cancelled",
    }
}

/// A part of a composition as `meta.parts` lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "part"))]
pub struct PartReport {
    /// The path of the part: the names of the modules from the composition down, and the round: `review/style[2]`.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub path: String,
    /// The name of the module.
    pub module: String,
    /// The version of the module; absent if it was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The status at the end of the composition.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub status: PartStatus,
    /// The confidence of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The risk of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub risk: Option<Risk>,
    /// Whether its answer did not pass its gate, so that a person should review it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub review: bool,
    /// The model that replied, as `PROVIDER/MODEL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tokens and the cost, including its own parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The cache of answers, if the answer is from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheHit>,
    /// The time from its start to its answer, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Whether the answer is from an earlier, interrupted run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub restored: bool,
    /// The error of a part that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PartError>,
}

/// The error of a part.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{code}: {message}")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "partError"))]
pub struct PartError {
    /// The error code.
    #[cfg_attr(feature = "schema", schemars(with = "String", length(min = 1)))]
    pub code: String,
    /// A description of the error for people.
    pub message: String,
}

/// The progress of a part: its new status, or a chunk of its answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "partProgress"))]
pub struct PartProgress {
    /// The path of the part, as in `meta.parts`.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub path: String,
    /// The new status; absent for a chunk of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub status: Option<PartStatus>,
    /// The report about a part that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<PartReport>>,
    /// The field of the part's answer that grows, such as `data.rationale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The text to append to the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<String>,
    /// The value that replaces the one of the field; of all data, if there is no field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Anything"))]
    pub data: Option<Value>,
    /// The answer of a part that is done. It is for the log of a session, and not a member of the chunk as clients receive it.
    #[serde(skip)]
    pub answer: Option<PartAnswer>,
}

/// The answer of a part, for a composition that continues after an interruption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartAnswer {
    /// The hash of the module, its input and its settings. The answer counts only for an equal call.
    pub key: String,
    /// The envelope of the part.
    pub envelope: Value,
}

impl PartReport {
    /// Creates the report about a part that has this status.
    pub fn new(path: impl Into<String>, module: impl Into<String>, status: PartStatus) -> Self {
        Self {
            path: path.into(),
            module: module.into(),
            version: None,
            status,
            confidence: None,
            risk: None,
            review: false,
            model: None,
            usage: None,
            cache: None,
            time_ms: None,
            restored: false,
            error: None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests {
    use cog_json::ToJson as _;

    use super::*;

    #[test]
    fn report_reads_back_as_written() {
        let mut report = PartReport::new("a/b[2]", "b", PartStatus::Done);
        report.confidence = Some(0.5);
        report.risk = Some(Risk::Low);
        report.review = true;
        report.usage = Some(Usage { input_tokens: 3, ..Usage::default() });
        report.error = Some(PartError { code: "E2002".to_owned(), message: "late".to_owned() });
        let text = report.to_json();
        assert!(!text.contains("restored"), "{text}");
        assert_eq!(PartReport::deserialize(Value::parse(&text).unwrap().node()), Ok(report));
    }

    #[test]
    fn progress_of_a_chunk_has_only_its_members() {
        let progress = PartProgress {
            path: "a".to_owned(),
            field: Some("data.x".to_owned()),
            delta: Some("y".to_owned()),
            ..PartProgress::default()
        };
        assert_eq!(progress.to_json(), r#"{"path":"a","field":"data.x","delta":"y"}"#);
    }

    #[test]
    fn progress_of_a_part_that_is_done_does_not_contain_its_answer() {
        let answer = PartAnswer { key: "k".to_owned(), envelope: Value::parse("{}").unwrap() };
        let progress = PartProgress { path: "a".to_owned(), answer: Some(answer), ..PartProgress::default() };
        assert_eq!(progress.to_json(), r#"{"path":"a"}"#);
    }

    #[test]
    fn report_says_that_an_answer_is_from_an_earlier_run() {
        let report = PartReport { restored: true, ..PartReport::new("a", "a", PartStatus::Done) };
        assert_eq!(report.to_json(), r#"{"path":"a","module":"a","status":"done","restored":true}"#);
    }
}
