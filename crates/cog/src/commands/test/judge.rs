//! The criteria of `$judge`, which the module `answer-judge` decides.

use cog_json::Value;
use cog_module::golden::Mismatch;
use cog_run::{RunInput, RunOptions, Runtime};
use cog_spec::{Code, ErrorBody};
use serde_json::json;

use super::{bench::Bench, plan::Job, report::Verdict};

/// The module that decides whether an answer meets a criterion. A module of this name in the module directories replaces
/// the built-in one.
const MODULE: &str = "answer-judge";

impl Bench<'_> {
    /// Decides whether the answer meets each criterion of its case.
    pub(super) async fn judge(&self, job: &Job<'_>, envelope: &Value) -> Verdict {
        let Some(runtime) = self.judge.as_ref().or(job.variant.runtime.as_ref()) else {
            return Verdict::NotJudged;
        };
        let mut mismatches = Vec::new();
        for criterion in &job.case.criteria {
            match self.unmet(runtime, job, envelope, criterion).await {
                Ok(unmet) => mismatches.extend(unmet.map(|reason| mismatch("judge", criterion, &reason))),
                Err(error) => mismatches.push(mismatch(error.code.as_str(), criterion, &error.message)),
            }
        }
        if mismatches.is_empty() { Verdict::Passed } else { Verdict::Failed(mismatches) }
    }

    /// Returns why the answer does not meet a criterion; none if it does.
    async fn unmet(
        &self,
        runtime: &Runtime,
        job: &Job<'_>,
        envelope: &Value,
        criterion: &str,
    ) -> Result<Option<String>, ErrorBody> {
        let answer = envelope.get("data").unwrap_or(envelope.node()).to_serde();
        let input = json!({ "criterion": criterion, "answer": answer, "input": job.case.input.to_serde() });
        let module = self.runtime.load(MODULE)?;
        let judged = runtime.run(&module, RunInput::Json(Value::from(input)), RunOptions::default()).await;
        if let Some(error) = judged.error() {
            return Err(error.clone());
        }
        let judged: Judgement = judged.data_as().map_err(|error| {
            ErrorBody::new(
                Code::ModuleInvalid,
                format!("{MODULE} must return `meets` and `rationale`: {error}"),
            )
        })?;
        Ok((!judged.meets).then_some(judged.rationale))
    }
}

/// The data of the module.
#[derive(Debug, serde::Deserialize)]
struct Judgement {
    meets: bool,
    rationale: String,
}

fn mismatch(rule: &str, criterion: &str, reason: &str) -> Mismatch {
    let message = format!("does not meet \"{criterion}\": {reason}");
    Mismatch { path: "data".to_owned(), rule: rule.to_owned(), message }
}
