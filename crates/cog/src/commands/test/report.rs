//! What the tests came to, for people and as JSON.

use cog_json::{ToJson, Writer};
use cog_module::golden::Mismatch;
use cog_spec::{Code, ErrorBody};

use crate::{exit::Exit, output::Paint};

/// All modules.
pub(super) struct Report {
    pub(super) suites: Vec<Suite>,
}

/// One module.
pub(super) struct Suite {
    /// The name it was asked for with.
    pub(super) module: String,
    /// Its cases, or why it does not load.
    pub(super) cases: Result<Vec<CaseReport>, ErrorBody>,
}

/// One case.
pub(super) struct CaseReport {
    pub(super) name: String,
    pub(super) verdict: Verdict,
    /// How long the answer took, where one was asked for.
    pub(super) time_ms: Option<u64>,
}

/// What a case came to.
pub(super) enum Verdict {
    /// The answer is as expected.
    Passed,
    /// It is not.
    Failed(Vec<Mismatch>),
    /// It was not, and is the expected one now.
    Updated,
    /// Nobody was asked; input and expected file fit the contract.
    ContractOnly,
}

impl Verdict {
    /// A failure of one finding.
    pub(super) fn failed(path: &str, rule: &str, message: &str) -> Self {
        Verdict::Failed(vec![Mismatch {
            path: path.to_owned(),
            rule: rule.to_owned(),
            message: message.to_owned(),
        }])
    }

    /// The verdict in a word.
    pub(super) const fn as_str(&self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed(_) => "failed",
            Verdict::Updated => "updated",
            Verdict::ContractOnly => "contract only",
        }
    }

    /// What differs.
    pub(super) fn mismatches(&self) -> &[Mismatch] {
        match self {
            Verdict::Failed(mismatches) => mismatches,
            Verdict::Passed | Verdict::Updated | Verdict::ContractOnly => &[],
        }
    }
}

/// The verdicts, in the order in which they are summed up.
const VERDICTS: [&str; 4] = ["passed", "failed", "updated", "contract only"];

impl Report {
    /// How the program ends: an invalid module weighs more than a failed test.
    pub(super) fn exit(&self) -> Exit {
        let is_invalid =
            |suite: &Suite| suite.cases.as_ref().is_err_and(|error| error.code == Code::ModuleInvalid.into());
        if self.suites.iter().any(is_invalid) {
            return Exit::Invalid;
        }
        let lost = self.suites.iter().any(|suite| suite.cases.is_err());
        if lost || self.count("failed") > 0 { Exit::Failed } else { Exit::Ok }
    }

    fn count(&self, verdict: &str) -> usize {
        let cases = self.suites.iter().filter_map(|suite| suite.cases.as_ref().ok()).flatten();
        cases.filter(|case| case.verdict.as_str() == verdict).count()
    }

    /// The report for people.
    pub(super) fn describe(&self, paint: Paint) -> String {
        let mut text: String = self.suites.iter().map(|suite| suite.describe(paint)).collect();
        let counts = VERDICTS.map(|verdict| (verdict, self.count(verdict)));
        let told: Vec<_> = counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(verdict, count)| format!("{count} {verdict}"))
            .collect();
        let sum = if told.is_empty() { "no golden tests".to_owned() } else { told.join(", ") };
        text += &format!("\n{}\n", paint.bold(sum));
        if self.count("contract only") > 0 {
            let hint =
                "contract only: no model was called; use --provider NAME to run, --record to save replies";
            text += &format!("{}\n", paint.dim(hint));
        }
        text
    }
}

impl Suite {
    fn describe(&self, paint: Paint) -> String {
        let name = paint.name(&self.module);
        match &self.cases {
            Err(error) => format!("{name}\n  {} {}\n", paint.bad("invalid"), error.message),
            Ok(cases) if cases.is_empty() => format!("{name}\n  {}\n", paint.dim("no golden tests")),
            Ok(cases) => {
                format!("{name}\n{}", cases.iter().map(|case| case.describe(paint)).collect::<String>())
            }
        }
    }
}

impl CaseReport {
    fn describe(&self, paint: Paint) -> String {
        let word = format!("{:<13}", self.verdict.as_str());
        let word = match self.verdict {
            Verdict::Passed => paint.good(word),
            Verdict::Failed(_) => paint.bad(word),
            Verdict::Updated | Verdict::ContractOnly => paint.odd(word),
        };
        let time = self.time_ms.map(|ms| paint.dim(format_args!(" {ms} ms"))).unwrap_or_default();
        let mut text = format!("  {word} {}{time}\n", self.name);
        for Mismatch { path, message, .. } in self.verdict.mismatches() {
            let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
            text += &format!("      {place}{message}\n");
        }
        text
    }
}

impl ToJson for Report {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            for verdict in VERDICTS {
                w.field(&verdict.replace(' ', "_"), &(self.count(verdict) as u64));
            }
            w.field("modules", &self.suites);
        });
    }
}

impl ToJson for Suite {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("module", &self.module);
            match &self.cases {
                Ok(cases) => w.field("cases", cases),
                Err(error) => w.field("error", error),
            };
        });
    }
}

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
