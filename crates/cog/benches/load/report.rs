//! The table, and its verdict.

use std::process::ExitCode;

/// Prints each figure as it is found, and remembers whether a bound was missed.
#[derive(Default)]
pub(crate) struct Report {
    missed: usize,
}

impl Report {
    /// A figure that says what the others are to be seen beside.
    pub(crate) fn note(&mut self, what: &str, figure: f64, unit: &str) {
        println!("          {what:<58} {figure:>12.2} {unit}");
    }

    pub(crate) fn at_most(&mut self, what: &str, figure: f64, unit: &str, bound: f64) {
        self.bound(what, figure, unit, figure <= bound, &format!("at most {bound}"));
    }

    pub(crate) fn at_least(&mut self, what: &str, figure: f64, unit: &str, bound: f64) {
        self.bound(what, figure, unit, figure >= bound, &format!("at least {bound}"));
    }

    fn bound(&mut self, what: &str, figure: f64, unit: &str, is_kept: bool, bound: &str) {
        self.missed += usize::from(!is_kept);
        let verdict = if is_kept { "kept" } else { "MISSED" };
        println!("{verdict:>8}  {what:<58} {figure:>12.2} {unit} ({bound})");
    }

    pub(crate) fn end(&self) -> ExitCode {
        if self.missed == 0 {
            return ExitCode::SUCCESS;
        }
        println!("{} bounds are missed", self.missed);
        ExitCode::FAILURE
    }
}

/// The value below which this share of the sorted values lies.
pub(crate) fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into the values"
    )]
    let at = (last as f64 * share).round() as usize;
    values.get(at).copied().unwrap_or_default()
}
