//! One golden test: ask, or replay, or check the contract alone.

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
    asking::{self, Tape},
    running,
};

/// Where the answer of a case comes from.
enum Way {
    /// The provider that was given with `--provider`.
    Ask,
    /// The same, kept in this directory.
    Record(PathBuf),
    /// The recording in this directory.
    Replay(PathBuf),
    /// Nowhere.
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

    /// The answer of a case; none where nobody is asked.
    async fn answer(&self, module: &Arc<Module>, case: &GoldenCase) -> Result<Option<Envelope>, ErrorBody> {
        let way = self.way(module, case)?;
        let tape = match &way {
            Way::ContractOnly => return Ok(None),
            Way::Ask => Tape::Off,
            Way::Record(directory) => Tape::Record(directory),
            Way::Replay(directory) => Tape::Replay(directory),
        };
        let asked = asking::asked(self.settings, tape)?;
        let runtime = running::runtime(self.settings, asked.providers);
        let input = RunInput::Json(case.input.clone());
        Ok(Some(runtime.execute(module, input, RunOptions::default()).await))
    }

    fn way(&self, module: &Module, case: &GoldenCase) -> Result<Way, ErrorBody> {
        let given = self.args.model.names_provider();
        Ok(match (&case.cassette, given, self.args.record) {
            (_, true, true) => {
                let directory = self.cassette(module, case)?;
                forget(&directory)?;
                Way::Record(directory)
            }
            (_, true, false) => Way::Ask,
            (Some(directory), false, _) => Way::Replay(directory.clone()),
            (None, false, _) => Way::ContractOnly,
        })
    }

    /// Compares; with `--update` an answer that differs becomes the expected one.
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
            let told = Mismatch {
                path: "error".to_owned(),
                rule: error.code.as_str().to_owned(),
                message: error.message.clone(),
            };
            mismatches.insert(0, told);
        }
        Verdict::Failed(mismatches)
    }
}

/// A recording that is made anew begins empty.
fn forget(directory: &std::path::Path) -> Result<(), ErrorBody> {
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
