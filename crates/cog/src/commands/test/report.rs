//! The test report, as text and as JSON.

use cog_json::{Array, ToJson, Writer};
use cog_module::golden::Mismatch;
use cog_spec::{Code, ErrorBody};

use crate::{exit::Exit, output::Palette};

/// The report of all modules.
pub(super) struct Report {
    pub(super) suites: Vec<Suite>,
}

/// The report of one module.
pub(super) struct Suite {
    /// The name of the module as given.
    pub(super) module: String,
    /// Its cases, or the error of loading it.
    pub(super) cases: Result<Vec<CaseReport>, ErrorBody>,
}

/// The report of one case.
pub(super) struct CaseReport {
    pub(super) name: String,
    pub(super) verdict: Verdict,
    /// The duration of the run in milliseconds, if there was one.
    pub(super) time_ms: Option<u64>,
}

/// The verdict of a case.
pub(super) enum Verdict {
    /// The answer matches.
    Passed,
    /// The answer differs.
    Failed(Vec<Mismatch>),
    /// The answer differed, and replaced the expected one.
    Updated,
    /// No model was called; the input and the expected file match the schema.
    ContractOnly,
}

impl Verdict {
    /// Creates a failure with one mismatch.
    pub(super) fn failed(path: &str, rule: &str, message: &str) -> Self {
        Verdict::Failed(vec![Mismatch {
            path: path.to_owned(),
            rule: rule.to_owned(),
            message: message.to_owned(),
        }])
    }

    /// Returns the name of the verdict.
    pub(super) const fn as_str(&self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed(_) => "failed",
            Verdict::Updated => "updated",
            Verdict::ContractOnly => "contract only",
        }
    }

    /// Returns the mismatches.
    pub(super) fn mismatches(&self) -> &[Mismatch] {
        match self {
            Verdict::Failed(mismatches) => mismatches,
            Verdict::Passed | Verdict::Updated | Verdict::ContractOnly => &[],
        }
    }
}

/// The verdicts, in the order of the summary.
const VERDICTS: [&str; 4] = ["passed", "failed", "updated", "contract only"];

impl Report {
    /// Returns the exit code; an invalid module outranks a failed test.
    pub(super) fn exit(&self) -> Exit {
        let is_invalid =
            |suite: &Suite| suite.cases.as_ref().is_err_and(|error| error.code == Code::ModuleInvalid.into());
        if self.suites.iter().any(is_invalid) {
            return Exit::Invalid;
        }
        let is_missing = self.suites.iter().any(|suite| suite.cases.is_err());
        if is_missing || self.count("failed") > 0 { Exit::Failed } else { Exit::Ok }
    }

    fn count(&self, verdict: &str) -> usize {
        let cases = self.suites.iter().filter_map(|suite| suite.cases.as_ref().ok()).flatten();
        cases.filter(|case| case.verdict.as_str() == verdict).count()
    }

    /// Formats the report as text.
    pub(super) fn describe(&self, palette: Palette) -> String {
        let mut text: String = self.suites.iter().map(|suite| suite.describe(palette)).collect();
        let counts = VERDICTS.map(|verdict| (verdict, self.count(verdict)));
        let parts: Vec<_> = counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(verdict, count)| format!("{count} {verdict}"))
            .collect();
        let summary = if parts.is_empty() { "no golden tests".to_owned() } else { parts.join(", ") };
        text += &format!("\n{}\n", palette.bold(summary));
        if self.count("contract only") > 0 {
            let hint =
                "contract only: no model was called; use --provider NAME to run, --record to save replies";
            text += &format!("{}\n", palette.dim(hint));
        }
        text
    }
}

impl Suite {
    fn describe(&self, palette: Palette) -> String {
        let name = palette.name(&self.module);
        match &self.cases {
            Err(error) => format!("{name}\n  {} {}\n", palette.error("invalid"), error.message),
            Ok(cases) if cases.is_empty() => format!("{name}\n  {}\n", palette.dim("no golden tests")),
            Ok(cases) => {
                format!("{name}\n{}", cases.iter().map(|case| case.describe(palette)).collect::<String>())
            }
        }
    }
}

impl CaseReport {
    fn describe(&self, palette: Palette) -> String {
        let verdict = format!("{:<13}", self.verdict.as_str());
        let verdict = match self.verdict {
            Verdict::Passed => palette.success(verdict),
            Verdict::Failed(_) => palette.error(verdict),
            Verdict::Updated | Verdict::ContractOnly => palette.warning(verdict),
        };
        let time = self.time_ms.map(|ms| palette.dim(format_args!(" {ms} ms"))).unwrap_or_default();
        let mut text = format!("  {verdict} {}{time}\n", self.name);
        for Mismatch { path, message, .. } in self.verdict.mismatches() {
            let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
            text += &format!("      {place}{message}\n");
        }
        text
    }
}

/// Written by hand: the counts are computed.
impl ToJson for Report {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            for verdict in VERDICTS {
                w.field(&verdict.replace(' ', "_"), &(self.count(verdict) as u64));
            }
            w.field("modules", &Array(&self.suites));
        });
    }
}

/// Written by hand: it has either cases or an error.
impl ToJson for Suite {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("module", &self.module);
            match &self.cases {
                Ok(cases) => w.field("cases", &Array(cases)),
                Err(error) => w.field("error", error),
            };
        });
    }
}

/// Written by hand: the verdict is written as text.
impl ToJson for CaseReport {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", &self.name);
            w.field("verdict", &self.verdict.as_str().replace(' ', "_"));
            w.optional("time_ms", &self.time_ms);
            w.field("mismatches", self.verdict.mismatches());
        });
    }
}
