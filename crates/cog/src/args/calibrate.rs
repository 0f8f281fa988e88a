//! Arguments of `calibrate`.

use std::path::PathBuf;

use clap::{Args, builder::PossibleValuesParser};
use cog_spec::{Calibration, Evidence};

use super::{GenerationArgs, ListFormat, ModelArgs, batch::dollars};

/// `cog calibrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --runs, runs the golden tests of the module on the provider, and writes calibration.json in the directory of the \
module; for a built-in module, in the state directory. Runs with a gate read it.

With --runs, each line of FILE is a run whose truth is known: {\"case\": \"t1\", \"confidence\": 0.9, \"right\": true}. Runs of \
the same case count as one case. Instead of `confidence`, `envelope` can hold the envelope of the run. Other members are \
ignored.

With --from-labels, the runs are those that people labelled right, wrong or corrected. Runs with the same input are one case.

With --target, exit code 0 if there is a threshold, otherwise 1. The promise holds for inputs like these cases. With \
--check, exit code 1 if a calibration is stale or drifted, or has too few cases for the gate.

Examples:
  cog calibrate my-module --provider openai
  cog calibrate my-module --provider openai --evidence stated,grounding
  cog calibrate my-module --check
  cog calibrate my-module --check --runs recent.jsonl
  cog calibrate my-module --from-labels
  cog calibrate my-module --runs runs.jsonl --target 0.95 --risk 0.1
  cog calibrate my-module --runs runs.jsonl --html report.html
  cog calibrate my-module --runs runs.jsonl --target 0.9 --format json | jq .gate")]
pub(crate) struct CalibrateArgs {
    /// Module name, or path of its directory
    pub(crate) module: String,
    /// Runs whose truth is known, as JSON Lines; `-` for stdin; with --check, recent runs
    #[arg(long, value_name = "FILE")]
    pub(crate) runs: Option<PathBuf>,
    /// Take the labelled runs of the module's current version, instead of a file
    #[arg(long, conflicts_with_all = ["runs", "check"])]
    pub(crate) from_labels: bool,
    /// Find the threshold above which at least this share of answers is right, such as 0.9
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true)]
    pub(crate) target: Option<f64>,
    /// How often the promise may be broken: 0.1 is once in ten calibrations [default: 0.1]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true, requires = "target")]
    pub(crate) risk: Option<f64>,
    /// What to calibrate: the confidence as the model states it, or kinds of evidence
    ///
    /// The golden tests collect it. Of several kinds, with commas, the map reads the ones that help.
    #[arg(long, value_name = "KINDS", value_delimiter = ',', default_value = Calibration::STATED, value_parser = PossibleValuesParser::new(Evidence::KINDS))]
    evidence: Vec<String>,
    /// Only print the report, and store nothing
    #[arg(long, conflicts_with_all = ["runs", "from_labels", "check"])]
    pub(crate) no_write: bool,
    /// Store the calibration of the runs, which --provider and --model have made
    #[arg(long, conflicts_with = "check")]
    pub(crate) write: bool,
    /// Check the stored calibrations: fails if one is stale, has too few cases, or differs from recent runs
    #[arg(long)]
    pub(crate) check: bool,
    /// Also write the report with its plots to this file, as one HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Maximum number of cases to run at the same time
    #[arg(long, short, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000), allow_negative_numbers = true)]
    pub(crate) jobs: u32,
    /// Stop calling the model when all calls together cost this many US dollars
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    pub(crate) max_cost: Option<f64>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) generation: GenerationArgs,
}

impl CalibrateArgs {
    /// Returns the kinds of evidence, each once.
    pub(crate) fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = Vec::new();
        for kind in &self.evidence {
            if !kinds.contains(&kind.as_str()) {
                kinds.push(kind);
            }
        }
        kinds
    }
}

pub(super) fn share(text: &str) -> Result<f64, &'static str> {
    let share = text.parse::<f64>().ok();
    share
        .filter(|share| (0.001..=0.999).contains(share))
        .ok_or("not a share from 0.001 to 0.999, such as 0.9")
}
