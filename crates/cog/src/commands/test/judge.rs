//! The verdict on an answer: compared with the expected file, and judged by a model if that has criteria (`$judge`).

use cog_json::{Object, Value};
use cog_module::golden::{self, GoldenCase, Mismatch};
use cog_run::{RunInput, RunOptions, Runtime};
use cog_spec::{Code, Envelope, ErrorBody};

use super::{figures, report::Verdict};

/// Compares an answer with the expected one; `json` is the envelope.
pub(in crate::commands) fn compare(case: &GoldenCase, envelope: &Envelope, json: &Value) -> Verdict {
    let mut mismatches = golden::compare(&case.expected, json.node());
    if mismatches.is_empty() {
        return Verdict::Passed;
    }
    if let Some(error) = envelope.error() {
        // Without an answer, the other differences only follow from the error.
        mismatches.retain(|found| found.path.starts_with("error."));
        mismatches.insert(0, failure(error));
        if figures::is_about_provider(error) {
            return Verdict::Error(mismatches);
        }
    }
    Verdict::Failed(mismatches)
}

fn failure(error: &ErrorBody) -> Mismatch {
    let suggestion =
        error.suggestion.as_ref().map(|suggestion| format!(". {suggestion}")).unwrap_or_default();
    Mismatch {
        path: "error".to_owned(),
        rule: error.code.as_str().to_owned(),
        message: format!("{}: {}{suggestion}", error.code, error.attributed_message()),
    }
}

/// The module that decides whether an answer meets a criterion. A module of this name in the module directories replaces
/// the built-in one.
pub(in crate::commands) const MODULE: &str = "answer-judge";

/// Decides whether answers meet the criteria of their cases.
pub(in crate::commands) struct Judge<'a> {
    /// Finds the module that judges.
    pub(in crate::commands) loader: &'a Runtime,
    /// Calls the model that judges.
    pub(in crate::commands) runtime: &'a Runtime,
    /// The options of each call.
    pub(in crate::commands) options: RunOptions,
}

impl Judge<'_> {
    /// Decides whether an answer meets each criterion of its case.
    pub(in crate::commands) async fn verdict(&self, case: &GoldenCase, envelope: &Value) -> Verdict {
        let mut mismatches = Vec::new();
        let mut is_decided = true;
        for criterion in &case.criteria {
            match self.unmet(case, envelope, criterion).await {
                Ok(unmet) => mismatches.extend(unmet.map(|reason| mismatch("judge", criterion, &reason))),
                Err(error) => {
                    is_decided &= !figures::is_about_provider(&error);
                    mismatches.push(mismatch(error.code.as_str(), criterion, &error.message));
                }
            }
        }
        match mismatches.is_empty() {
            true => Verdict::Passed,
            false if is_decided => Verdict::Failed(mismatches),
            false => Verdict::Error(mismatches),
        }
    }

    /// Returns why the answer does not meet a criterion; none if it does.
    async fn unmet(
        &self,
        case: &GoldenCase,
        envelope: &Value,
        criterion: &str,
    ) -> Result<Option<String>, ErrorBody> {
        let answer = envelope.get("data").unwrap_or(envelope.node()).to_value();
        let module = self.loader.load(MODULE)?;
        let input = judged_input(case, criterion, answer);
        let judged = self.runtime.run(&module, input, self.options.clone()).await;
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

/// Returns the input of the module that judges.
pub(in crate::commands) fn judged_input(case: &GoldenCase, criterion: &str, answer: Value) -> RunInput {
    let criterion = Value::from(serde_json::Value::from(criterion));
    let members = [("criterion", criterion), ("answer", answer), ("input", case.input.clone())];
    let input: Object = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    RunInput::Json(input.to_value())
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
