//! Arguments of `calibrate`.

use std::path::PathBuf;

use clap::Args;

use super::ListFormat;

/// `cog calibrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each line of FILE is a run whose truth is known: {\"case\": \"t1\", \"confidence\": 0.9, \"right\": true}. Runs of the \
same case count as one case. Instead of `confidence`, `envelope` can hold the envelope of the run. Other members are \
ignored.

With --from-labels, the runs are those that people labelled right, wrong or corrected. Runs with the same input are one case.

With --target, exit code 0 if there is a threshold, otherwise 1. The promise holds for inputs like the cases of FILE.

Examples:
  cog calibrate my-module --runs runs.jsonl
  cog calibrate my-module --from-labels
  cog calibrate my-module --runs runs.jsonl --target 0.95 --risk 0.1
  cog calibrate my-module --runs runs.jsonl --target 0.9 --format json | jq .gate")]
pub(crate) struct CalibrateArgs {
    /// Module name, or path of its directory
    pub(crate) module: String,
    /// Runs whose truth is known, as JSON Lines; `-` for stdin
    #[arg(long, value_name = "FILE", required_unless_present = "from_labels")]
    pub(crate) runs: Option<PathBuf>,
    /// Take the labelled runs of the module's current version, instead of a file
    #[arg(long, conflicts_with = "runs")]
    pub(crate) from_labels: bool,
    /// Find the threshold above which at least this share of answers is right, such as 0.9
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true)]
    pub(crate) target: Option<f64>,
    /// How often the promise may be broken: 0.1 is once in ten calibrations [default: 0.1]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true, requires = "target")]
    pub(crate) risk: Option<f64>,
    #[command(flatten)]
    pub(crate) format: ListFormat,
}

fn share(text: &str) -> Result<f64, &'static str> {
    let share = text.parse::<f64>().ok();
    share
        .filter(|share| (0.001..=0.999).contains(share))
        .ok_or("not a share from 0.001 to 0.999, such as 0.9")
}
