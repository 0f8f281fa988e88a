//! The time to check a composition, and to evaluate conditions.
//!
//! `cargo bench -p cog-flow --bench check` prints each figure with its limit, and fails if one exceeds it. Both sides of a ratio
//! run alternately, and the best run of each counts.

use std::collections::HashMap;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cog_flow::{Condition, Lookup, LookupError, check};
use cog_json::Value;
use cog_module::{Module, ModuleFiles};
use cog_testkit::bench::{limit, ratio, time};

/// The time in which 1,000 modules are checked.
const MAX_CHECK: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    let (Some(few), Some(many)) = (Modules::new(100), Modules::new(1000)) else { return ExitCode::FAILURE };
    let inputs: Vec<String> = (0..10_000).map(envelope).collect();
    let values: Vec<Value> = inputs.iter().map(|text| Value::parse(text).unwrap_or_default()).collect();
    let conditions = conditions();
    let evaluate = || {
        let pairs = values.iter().zip(conditions.iter().cycle());
        black_box(pairs.filter(|(value, condition)| condition.is_true(black_box(value.node()))).count());
    };
    let parse = || inputs.iter().for_each(|text| drop(black_box(Value::parse(black_box(text)))));
    let results = [
        limit(3.0, "evaluating 10,000 conditions ÷ parsing their inputs", ratio(evaluate, parse)),
        limit(12.0, "checking 1,000 modules ÷ 100", ratio(|| many.check(), || few.check())),
        limit(1.0, "checking 1,000 modules ÷ 50 ms", best(|| many.check()) / MAX_CHECK.as_secs_f64()),
    ];
    if results.iter().all(|within| *within) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Modules in memory. The first calls ten others in steps, each of which calls ten more, and so on.
struct Modules {
    root: Arc<Module>,
    by_name: HashMap<String, Arc<Module>>,
}

impl Modules {
    fn new(count: usize) -> Option<Self> {
        let modules = (0..count).map(|index| Some((format!("m{index}"), module(index, count)?)));
        let by_name: HashMap<String, Arc<Module>> = modules.collect::<Option<_>>()?;
        Some(Self { root: by_name.get("m0").cloned()?, by_name })
    }

    fn check(&self) {
        let checked = check(Arc::clone(&self.root), self);
        assert!(checked.findings.is_empty(), "{:?}", checked.findings.first().map(|found| &found.message));
        black_box(checked.into_flow().is_ok());
    }
}

impl Lookup for Modules {
    fn find(&self, name: &str) -> Result<Arc<Module>, LookupError> {
        self.by_name.get(name).cloned().ok_or(LookupError::NotFound)
    }

    fn names(&self) -> Vec<String> {
        self.by_name.keys().cloned().collect()
    }
}

const SCHEMA: &str = r#"{
    "input": {"type": "object", "properties": {"text": {"type": "string"}, "limit": {"type": "integer"}}},
    "data": {"type": "object", "properties": {"text": {"type": "string"}, "issues": {"type": "array", "items": {"type": "object"}}}}
}"#;

fn module(index: usize, count: usize) -> Option<Arc<Module>> {
    let step = |next: usize| {
        format!(
            "    - {{from: input, to: m{next}, condition: $.limit > 3 && exists($.text), mapping: {{text: $.text, limit: $.limit}}}}\n"
        )
    };
    let steps: String = (index * 10 + 1..=index * 10 + 10).filter(|next| *next < count).map(step).collect();
    let more = if steps.is_empty() { String::new() } else { format!("composition:\n  dataflow:\n{steps}") };
    let prompt = if steps.is_empty() { "Do it." } else { "" };
    let manifest = format!("name: m{index}\nversion: 1.0.0\nresponsibility: Bench\nexcludes: []\n{more}");
    let files = ModuleFiles::default().with("module.yaml", manifest).with("prompt.md", prompt);
    files.with("schema.json", SCHEMA).load().ok().map(Arc::new)
}

fn conditions() -> Vec<Condition> {
    let texts = [
        "$.meta.confidence >= 0.8 && $.meta.risk != 'high'",
        "$.data.issues.length > 2 || !exists($.data.summary)",
        "$.data.issues[0].severity == 'high' && $.data.issues[-1].line < 100",
    ];
    texts.iter().filter_map(|text| Condition::parse(text).ok()).collect()
}

fn envelope(index: usize) -> String {
    format!(
        r#"{{"ok":true,"meta":{{"confidence":0.{},"risk":"low","explain":"Two issues were found in the code."}},"data":{{"issues":[{{"line":{index},"severity":"high","message":"The input is not checked."}},{{"line":2,"severity":"low","message":"The name is not clear."}}],"rationale":"The code passes its input to a shell."}}}}"#,
        index % 10
    )
}

/// Returns the best time of 20 runs, in seconds.
fn best(run: impl Fn()) -> f64 {
    (0..20).map(|_| time(&run)).min().unwrap_or(Duration::MAX).as_secs_f64()
}
