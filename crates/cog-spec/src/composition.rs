//! `composition` of a manifest: the modules that a module calls (docs/spec/composition.md).

use crate::string_enum::string_enum;

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
    /// The fields of the target, each with a JSONPath; none passes everything.
    pub mapping: Option<Vec<(String, String)>>,
    /// The condition under which the step runs.
    pub condition: Option<String>,
    /// How several sources become one value.
    pub aggregate: Option<Aggregate>,
    /// `as`: the name of its result; none for the name of its module.
    pub result_name: Option<String>,
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
}

impl IterationRule {
    /// The default maximum number of rounds.
    pub const MAX_ROUNDS: u32 = 3;
}

impl Default for IterationRule {
    fn default() -> Self {
        Self { from: Vec::new(), until: None, max_rounds: Self::MAX_ROUNDS }
    }
}
