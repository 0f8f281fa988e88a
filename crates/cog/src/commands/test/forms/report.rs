//! The report on forms, as text and as JSON.

use std::path::PathBuf;

use cog_json::{Array, ToJson, Writer};
use cog_run::AskedForms;
use cog_spec::{Code, ErrorBody, Form};

use super::choose::{Best, BestReason, Candidate, Outcome, Pairing, Undecided};
use crate::{
    commands::test::report::{CaseReport, Suite, Verdict},
    error::Exit,
    output::{Console, Layout, Palette, Table, wrap},
};

/// The report on all modules.
pub(super) struct FormsReport {
    pub(super) modules: Vec<ModuleForms>,
}

/// The forms of one module on one model.
pub(super) struct ModuleForms {
    /// The name as given.
    pub(super) module: String,
    /// The comparison, or why there is none.
    pub(super) comparison: Result<Comparison, ErrorBody>,
}

/// The forms of a module, measured on its golden tests.
pub(super) struct Comparison {
    pub(super) asked: AskedForms,
    /// The number of golden tests.
    pub(super) cases: usize,
    pub(super) measured: Vec<Measured>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) best: Result<Best, Undecided>,
    /// The file in which the best form was stored.
    pub(super) kept: Option<PathBuf>,
}

/// The runs in one form.
pub(super) struct Measured {
    pub(super) form: &'static Form,
    pub(super) suite: Suite,
}

/// A form that was not measured.
pub(super) struct Skipped {
    pub(super) form: &'static Form,
    pub(super) reason: String,
}

/// A form compared with the one in use.
struct Row {
    form: &'static Form,
    is_in_use: bool,
    candidate: Candidate,
    /// The comparison with the form in use; none for the form itself.
    pairing: Option<Pairing>,
}

impl FormsReport {
    /// Returns the exit code: an invalid module outranks one that could not be measured.
    pub(super) fn exit(&self) -> Exit {
        let mut errors = self.modules.iter().filter_map(|module| module.comparison.as_ref().err());
        if errors.clone().any(|error| error.code == Code::ModuleInvalid.into()) {
            return Exit::Invalid;
        }
        let mut comparisons = self.modules.iter().filter_map(|module| module.comparison.as_ref().ok());
        let is_undecided = comparisons.any(|comparison| comparison.best.is_err());
        if errors.next().is_some() || is_undecided { Exit::Failed } else { Exit::Ok }
    }

    /// Formats the report as text.
    pub(super) fn describe(&self, console: &Console) -> String {
        let layout = Layout { palette: console.out().palette, width: console.width() };
        let modules: Vec<_> =
            self.modules.iter().map(|module| module.describe(layout, console.out_columns())).collect();
        match modules.is_empty() {
            true => "no golden tests\n".to_owned(),
            false => modules.join("\n"),
        }
    }
}

impl ModuleForms {
    fn describe(&self, layout: Layout, columns: Option<usize>) -> String {
        let palette = layout.palette;
        let comparison = match &self.comparison {
            Ok(comparison) => comparison,
            Err(error) => {
                let help = error.suggestion.as_ref().map(|help| format!("  {help}\n")).unwrap_or_default();
                return format!(
                    "{}\n  {} {}: {}\n{help}",
                    palette.name(&self.module),
                    palette.error("not compared"),
                    error.code,
                    error.message
                );
            }
        };
        let mut text = format!("{}\n", palette.bold(self.title(comparison)));
        text += &comparison.table(palette, columns);
        for line in comparison.notes() {
            text += &format!("{}\n", wrap(&line, layout.width).join("\n  "));
        }
        text + &format!("{}\n", palette.bold(comparison.verdict()))
    }

    /// Returns the module, the model and the number of cases.
    pub(super) fn title(&self, comparison: &Comparison) -> String {
        let AskedForms { provider, model, .. } = &comparison.asked;
        let cases = match comparison.cases {
            1 => "1 golden test".to_owned(),
            cases => format!("{cases} golden tests"),
        };
        format!("{} on {provider}/{model}: {cases}", self.module)
    }
}

/// The columns of the table.
pub(super) const HEADER: [&str; 9] =
    ["form", "right", "95 % interval", "paired test", "first try", "input", "output", "cost", "time"];

impl Comparison {
    fn table(&self, palette: Palette, columns: Option<usize>) -> String {
        let mut table = Table::new(HEADER);
        self.cells().into_iter().for_each(|row| table.row(row));
        table.render(palette, columns)
    }

    /// Returns the cells of the table, a row for each form.
    pub(super) fn cells(&self) -> Vec<[String; 9]> {
        self.rows().iter().zip(&self.measured).map(|(row, measured)| row.cells(&measured.suite)).collect()
    }

    fn rows(&self) -> Vec<Row> {
        let candidates: Vec<Candidate> = self.measured.iter().map(Measured::candidate).collect();
        let current = candidates.iter().find(|candidate| candidate.form == self.asked.in_use).cloned();
        candidates
            .into_iter()
            .map(|candidate| {
                let other = current.as_ref().filter(|current| current.form != candidate.form);
                let pairing = other.map(|current| candidate.pairing(current));
                Row {
                    form: candidate.form,
                    is_in_use: candidate.form == self.asked.in_use,
                    candidate,
                    pairing,
                }
            })
            .collect()
    }

    /// Returns the sentences below the table.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!("* in use: {}", self.asked.reason)];
        for measured in &self.measured {
            let cases = measured.suite.cases.iter().flatten();
            let unknown: Vec<&CaseReport> = cases.filter(|case| case.outcome() == Outcome::Unknown).collect();
            if let Some(first) = unknown.first() {
                notes.push(format!("{}: {} without a result: {}", measured.form, unknown.len(), why(first)));
            }
        }
        // Forms often have the same obstacle.
        for skipped in self.skipped.chunk_by(|one, other| one.reason == other.reason) {
            let names: Vec<&str> = skipped.iter().map(|skipped| skipped.form.name).collect();
            let reason = skipped.first().map(|skipped| skipped.reason.as_str()).unwrap_or_default();
            notes.push(format!("not measured: {}: {reason}", names.join(", ")));
        }
        notes
    }

    /// Returns the sentence about the best form.
    pub(super) fn verdict(&self) -> String {
        let in_use = self.asked.in_use;
        let verdict = match self.best {
            Ok(Best { reason: BestReason::InUse, .. }) => format!("best: {in_use}, no other form is better"),
            Ok(Best { form, reason: BestReason::MoreRight(p) }) => {
                format!("best: {form}, more often right than {in_use} (p {p:.3})")
            }
            Ok(Best { form, reason: BestReason::Cheaper }) => {
                format!("best: {form}, at least as often right as {in_use}, and cheaper")
            }
            Err(Undecided::NotMeasured) => {
                format!("not decided: {in_use}, which is in use, was not measured")
            }
            Err(Undecided::Incomplete) => format!("not decided: not every case has a result in {in_use}"),
            Err(Undecided::NothingRight) => "not decided: no form gives a right answer".to_owned(),
        };
        match &self.kept {
            Some(path) => format!("{verdict}; stored in {}", path.display()),
            None => verdict,
        }
    }
}

/// Returns why a case has no result.
fn why(case: &CaseReport) -> String {
    match case.verdict() {
        Verdict::NotJudged => "no model judged it; use --judge NAME".to_owned(),
        verdict => verdict.mismatches().first().map(|found| found.message.clone()).unwrap_or_default(),
    }
}

impl Row {
    fn cells(&self, suite: &Suite) -> [String; 9] {
        let figures = suite.figures();
        let interval = self.candidate.interval();
        let mark = if self.is_in_use { " *" } else { "" };
        let pairing = self.pairing.map(|pairing| {
            let Pairing { only_this, only_other } = pairing;
            format!("+{only_this} −{only_other}, p {:.3}", pairing.p())
        });
        [
            format!("{}{mark}", self.form),
            format!("{} of {}", self.candidate.right(), self.candidate.answered()),
            format!("{:.0} to {:.0} %", interval.low * 100.0, interval.high * 100.0),
            pairing.unwrap_or_default(),
            figures.conforming(),
            figures.input(),
            figures.output(),
            figures.shown_cost(),
            figures.time(),
        ]
    }
}

impl ToJson for FormsReport {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("modules", &Array(&self.modules));
        });
    }
}

/// Written by hand: it has either a comparison or an error.
impl ToJson for ModuleForms {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("module", &self.module);
            match &self.comparison {
                Ok(comparison) => comparison.write_members(w),
                Err(error) => _ = w.field("error", error),
            }
        });
    }
}

impl Comparison {
    fn write_members(&self, w: &mut Writer<'_>) {
        let asked = &self.asked;
        w.field("provider", &asked.provider);
        w.field("model", &asked.model);
        w.field("cases", &(self.cases as u64));
        w.field("form_in_use", asked.in_use.name);
        w.field("form_reason", &asked.reason);
        let rows = self.rows();
        let forms: Vec<_> =
            rows.iter().zip(&self.measured).map(|(row, measured)| JsonRow { row, measured }).collect();
        w.field("forms", &Array(&forms));
        w.field("not_measured", &Array(&self.skipped));
        w.optional("best", &self.best.as_ref().ok().map(|best| best.form.name));
        w.field("verdict", &self.verdict());
        w.optional("kept", &self.kept.as_ref().map(|path| path.display().to_string()));
    }
}

struct JsonRow<'a> {
    row: &'a Row,
    measured: &'a Measured,
}

impl ToJson for JsonRow<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let Self { row, measured } = self;
        let interval = row.candidate.interval();
        let figures = measured.suite.figures();
        w.object(|w| {
            w.field("form", row.form.name);
            w.field("right", &row.candidate.right());
            w.field("answered", &row.candidate.answered());
            w.field("interval", &[interval.low, interval.high][..]);
            if let Some(pairing) = row.pairing {
                w.field("only_right_here", &pairing.only_this);
                w.field("only_right_in_use", &pairing.only_other);
                w.field("p_value", &pairing.p());
            }
            w.field("conforming_runs", &u64::from(figures.conforming));
            figures.write_members(w);
            w.field("cost", &figures.cost());
            match &measured.suite.cases {
                Ok(cases) => w.field("cases", &Array(cases)),
                Err(error) => w.field("error", error),
            };
        });
    }
}

impl ToJson for Skipped {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("form", self.form.name);
            w.field("reason", &self.reason);
        });
    }
}
