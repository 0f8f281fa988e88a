//! One golden test: calls the provider, replays a recording, or checks the contract only.

use std::{path::PathBuf, sync::Arc};

use cog_json::{ToJson as _, Value};
use cog_module::{
    Module,
    golden::{self, GoldenCase, Mismatch},
};
use cog_run::{RunInput, RunOptions};
use cog_spec::{Code, Envelope, ErrorBody};

use super::{Bench, CaseReport, Verdict, update};
use crate::commands::{
    providers::{self, RecordMode},
    runtime,
};

/// The source of a case's answer.
enum AnswerSource {
    /// A call to the provider of `--provider`.
    Call,
    /// A call that is recorded in this directory.
    Record(PathBuf),
    /// The recording in this directory.
    Replay(PathBuf),
    /// No answer.
    ContractOnly,
}

impl Bench<'_> {
    pub(super) async fn case(&self, module: &Arc<Module>, case: &GoldenCase) -> CaseReport {
        let (verdict, time_ms) = match self.answer(module, case).await {
            Ok(Some(envelope)) => {
                (self.judge(module, case, &envelope), envelope.meta.runtime.processing_time_ms)
            }
            Ok(None) => (contract_only(module, case), None),
            Err(error) => (Verdict::failed("", error.code.as_str(), &error.message), None),
        };
        CaseReport { name: case.name.clone(), verdict, time_ms }
    }

    /// Returns the answer of a case, if there is a provider or a recording.
    async fn answer(&self, module: &Arc<Module>, case: &GoldenCase) -> Result<Option<Envelope>, ErrorBody> {
        let source = self.source(module, case)?;
        let tape = match &source {
            AnswerSource::ContractOnly => return Ok(None),
            AnswerSource::Call => RecordMode::Off,
            AnswerSource::Record(directory) => RecordMode::Record(directory),
            AnswerSource::Replay(directory) => RecordMode::Replay(directory),
        };
        let selected = providers::select(self.settings, tape)?;
        let runtime = runtime::runtime(self.settings, selected.providers);
        let input = RunInput::Json(case.input.clone());
        Ok(Some(runtime.execute(module, input, RunOptions::default()).await))
    }

    fn source(&self, module: &Module, case: &GoldenCase) -> Result<AnswerSource, ErrorBody> {
        let given = self.args.model.names_provider();
        Ok(match (&case.cassette, given, self.args.record) {
            (_, true, true) => {
                let directory = self.cassette(module, case)?;
                delete_recording(&directory)?;
                AnswerSource::Record(directory)
            }
            (_, true, false) => AnswerSource::Call,
            (Some(directory), false, _) => AnswerSource::Replay(directory.clone()),
            (None, false, _) => AnswerSource::ContractOnly,
        })
    }

    /// Compares the answer with the expected one. With `--update`, replaces the expected one.
    fn judge(&self, module: &Module, case: &GoldenCase, envelope: &Envelope) -> Verdict {
        let json = Value::parse(&envelope.to_json()).unwrap_or_default();
        let mut mismatches = golden::compare(&case.expected, json.node());
        if mismatches.is_empty() {
            return Verdict::Passed;
        }
        if self.args.update && envelope.is_ok() {
            return match update::write(module, case, &json) {
                Ok(true) => Verdict::Updated,
                Ok(false) => Verdict::Failed(mismatches),
                Err(error) => Verdict::failed("", error.code.as_str(), &error.message),
            };
        }
        if let Some(error) = envelope.error() {
            let failure = Mismatch {
                path: "error".to_owned(),
                rule: error.code.as_str().to_owned(),
                message: error.message.clone(),
            };
            mismatches.insert(0, failure);
        }
        Verdict::Failed(mismatches)
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
