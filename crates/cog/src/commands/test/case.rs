//! One run of a golden test: calls the provider, replays a recording, or checks the contract only.

use std::path::PathBuf;

use cog_host::{Host, Hosted, Use, providers::RecordMode};
use cog_json::{ToJson as _, Value};
use cog_module::{
    Module, Origin,
    golden::{self, GoldenCase, Mismatch},
};
use cog_run::{RunInput, RunOptions, Runtime};
use cog_spec::{Ask, Code, Envelope, ErrorBody, Form, Generation};

use super::{
    Bench,
    answer::{self, Answer},
    figures::Figures,
    judge::{self, Judge},
    plan::Job,
    report::{Attempt, Verdict},
};

/// The source of a case's answer.
enum AnswerSource<'a> {
    /// A call in the runtime of the variant.
    Call(&'a Runtime),
    /// A call that is recorded in this directory.
    Record(PathBuf),
    /// The recording in this directory.
    Replay(PathBuf),
    /// No answer.
    ContractOnly,
}

impl Bench<'_> {
    pub(super) async fn attempt(&self, job: &Job<'_>) -> Attempt {
        self.attempt_with_envelope(job).await.0
    }

    /// Returns also the envelope, which a report does not keep; none if there is no answer.
    pub(super) async fn attempt_with_envelope(&self, job: &Job<'_>) -> (Attempt, Option<Value>) {
        let envelope = match self.answer(job).await {
            Ok(Some(envelope)) => envelope,
            Ok(None) => return (Attempt::new(contract_only(job.module, job.case)), None),
            Err(error) => {
                return (Attempt::new(Verdict::error(error.code.as_str(), &error.message)), None);
            }
        };
        let json = Value::parse(&envelope.to_json()).unwrap_or_default();
        let verdict = match self.compare(job.module, job.case, &envelope, &json) {
            Verdict::Passed if !job.case.criteria.is_empty() => self.judge(job, &json).await,
            verdict => verdict,
        };
        let is_shown = matches!(verdict, Verdict::Failed(_)) && envelope.is_ok();
        let answer = is_shown.then(|| Answer::new(job.case, &json));
        (Attempt { verdict, figures: Some(Figures::new(&envelope)), answer }, Some(json))
    }

    /// Returns the answer of a case, if there is a provider or a recording.
    async fn answer(&self, job: &Job<'_>) -> Result<Option<Envelope>, ErrorBody> {
        let source = self.source(job)?;
        let tape = match &source {
            AnswerSource::ContractOnly => return Ok(None),
            AnswerSource::Call(runtime) => return Ok(Some(self.execute(runtime, job, &source).await)),
            AnswerSource::Record(directory) => RecordMode::Record(directory),
            AnswerSource::Replay(directory) => RecordMode::Replay(directory),
        };
        let host = Host { record_mode: tape, tools: job.variant.tools.clone(), ..Host::new(self.settings) };
        let Hosted { runtime, recording, .. } = host.runtime(Use::Test)?;
        let envelope = self.execute(&runtime, job, &source).await;
        // A later replay would fail, or test something else.
        match recording.error() {
            Some(error) => Err(error.into()),
            None => Ok(Some(envelope)),
        }
    }

    async fn execute(&self, runtime: &Runtime, job: &Job<'_>, source: &AnswerSource<'_>) -> Envelope {
        let input = RunInput::Json(job.case.input.clone());
        let mut options = self.run_options(job.form);
        if matches!(source, AnswerSource::Replay(_)) {
            options.budgets.clear(); // a replay costs nothing
        }
        runtime.run(job.module, input, options).await
    }

    /// Returns the options of a run, in a form if forms are compared.
    pub(super) fn run_options(&self, form: Option<&'static Form>) -> RunOptions {
        let generation = Generation { ask: form.map(Ask::Form), ..Generation::default() };
        RunOptions { generation, budgets: Vec::from_iter(self.budget.clone()), ..RunOptions::default() }
    }

    fn source<'a>(&self, job: &Job<'a>) -> Result<AnswerSource<'a>, ErrorBody> {
        Ok(match (&job.variant.runtime, recording(job.module, job.case, job.form)) {
            (Some(runtime), _) => AnswerSource::Call(runtime),
            (None, _) if self.args.record => {
                let directory = cassette(job.module, job.case, job.form)?;
                // A recording appends, and calls of the old one could be replayed later.
                delete_recording(&directory)?;
                AnswerSource::Record(directory)
            }
            (None, Some(directory)) => AnswerSource::Replay(directory),
            (None, None) => AnswerSource::ContractOnly,
        })
    }

    /// Compares the answer with the expected one. With `--update`, replaces the expected one.
    fn compare(&self, module: &Module, case: &GoldenCase, envelope: &Envelope, json: &Value) -> Verdict {
        match judge::compare(case, envelope, json) {
            Verdict::Failed(mismatches) if self.args.update && envelope.is_ok() => {
                update(module, case, json, mismatches)
            }
            verdict => verdict,
        }
    }

    /// Decides whether the answer meets each criterion of its case.
    async fn judge(&self, job: &Job<'_>, envelope: &Value) -> Verdict {
        let Some(runtime) = self.judge.as_ref().or(job.variant.runtime.as_ref()) else {
            return Verdict::NotJudged;
        };
        let judge = Judge { loader: &self.runtime, runtime, options: self.run_options(None) };
        judge.verdict(job.case, envelope).await
    }
}

/// Replaces the expected answer of a case with another one.
fn update(module: &Module, case: &GoldenCase, json: &Value, mut mismatches: Vec<Mismatch>) -> Verdict {
    match answer::write(module, case, json) {
        Ok(true) => Verdict::Updated,
        Ok(false) => {
            mismatches.push(Mismatch {
                path: "--update".to_owned(),
                rule: "rules".to_owned(),
                message: "the expected file contains rules, so it is not replaced".to_owned(),
            });
            Verdict::Failed(mismatches)
        }
        Err(error) => Verdict::failed("", error.code.as_str(), &error.message),
    }
}

/// Returns the directory in which the exchange of a case is recorded; only modules on disk can be recorded.
fn cassette(module: &Module, case: &GoldenCase, form: Option<&Form>) -> Result<PathBuf, ErrorBody> {
    match (&module.origin, case.input_file.parent()) {
        (Origin::Directory(_), Some(directory)) => Ok(directory.join(match form {
            Some(form) => format!("{}.{form}.cassette", case.name),
            None => format!("{}.cassette", case.name),
        })),
        _ => Err(answer::built_in(module)),
    }
}

/// Returns the recording of a case, in a form if forms are compared; none if there is none.
pub(super) fn recording(module: &Module, case: &GoldenCase, form: Option<&Form>) -> Option<PathBuf> {
    match form {
        Some(_) => cassette(module, case, form).ok().filter(|directory| directory.is_dir()),
        None => case.cassette.clone(),
    }
}

/// Deletes an old recording.
fn delete_recording(directory: &std::path::Path) -> Result<(), ErrorBody> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            let message = format!("cannot replace the recording {}: {error}", directory.display());
            Err(ErrorBody::new(Code::InvalidReference, message))
        }
        _ => Ok(()),
    }
}

fn contract_only(module: &Module, case: &GoldenCase) -> Verdict {
    let mismatches: Vec<_> =
        golden::check_case(module, case).into_iter().map(|(_, mismatch)| mismatch).collect();
    if mismatches.is_empty() { Verdict::ContractOnly } else { Verdict::Failed(mismatches) }
}
