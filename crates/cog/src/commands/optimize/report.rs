//! The report of a search: the difference of the prompts, a table with intervals, and what became of each step.

use std::fmt::Write as _;

use cog_contract::optimize::{Comparison, Part, Split};
use cog_json::{ToJson, Writer};
use cog_module::{Module, golden::GoldenCase};
use cog_run::BudgetUsage;
use cog_trust::{
    Rate,
    interval::{self, Interval},
};
use similar::{ChangeTag, TextDiff};

use super::search::{End, Found, Outcome, Step};
use crate::output::{Console, Palette, Table, printable};

/// The confidence of the intervals.
const INTERVAL: f64 = 0.95;
/// The lines around a change that a difference shows.
const CONTEXT: usize = 3;

/// What a search found.
pub(super) struct Report {
    module: String,
    /// The names of the cases.
    names: Vec<String>,
    /// How many cases each part has, in the order of [`Part::ALL`].
    sizes: [usize; 3],
    old: String,
    /// The best prompt, if it is not the one of the module.
    new: Option<String>,
    /// How many validation cases the old and the best prompt have right.
    validation: [usize; 2],
    held_out: Option<HeldOut>,
    steps: Vec<Step>,
    pub(super) end: End,
    spent: BudgetUsage,
}

/// The outcomes of the held-out cases.
pub(super) struct HeldOut {
    pub(super) old: Vec<bool>,
    pub(super) new: Vec<bool>,
    pub(super) comparison: Comparison,
}

impl Report {
    pub(super) fn new(
        module: &Module,
        cases: &[GoldenCase],
        split: &Split,
        found: Found,
        held_out: Option<HeldOut>,
        spent: BudgetUsage,
    ) -> Self {
        let validation = [0, found.best].map(|index| found.validation(split, index));
        let best = found.candidates.into_iter().nth(found.best).filter(|_| found.best > 0);
        Self {
            module: module.manifest.name.clone(),
            names: cases.iter().map(|case| case.name.clone()).collect(),
            sizes: Part::ALL.map(|part| split.cases(part).len()),
            old: module.prompt.text().to_owned(),
            new: best.map(|best| best.proposal.prompt),
            validation,
            held_out,
            steps: found.steps,
            end: found.end,
            spent,
        }
    }

    /// Returns the prompt that is proposed: the best one, unless the held-out cases are against it.
    pub(super) fn proposed(&self) -> Option<&str> {
        let is_supported = self.held_out.as_ref().is_some_and(|held_out| !held_out.comparison.is_against());
        self.new.as_deref().filter(|_| is_supported)
    }

    /// Returns the sentence that says what the search found.
    fn verdict(&self, is_applied: bool) -> String {
        match (&self.new, &self.held_out) {
            (None, _) => format!("No better prompt was found: {}.", end(&self.end)),
            (Some(_), None) => {
                "A better prompt is not proposed: it was not compared on the held-out cases.".to_owned()
            }
            (Some(_), Some(held_out)) if held_out.comparison.is_against() => {
                "The best prompt is not proposed: more held-out cases fail with it than before.".to_owned()
            }
            (Some(_), Some(_)) if is_applied => "A better prompt was found.".to_owned(),
            (Some(_), Some(_)) => "A better prompt is proposed. --apply writes it to prompt.md.".to_owned(),
        }
    }

    /// Formats the report as text. `is_applied` is whether the prompt is written too.
    pub(super) fn describe(&self, is_applied: bool, console: &Console) -> String {
        let palette = console.out().palette;
        let mut text = String::new();
        for (index, step) in self.steps.iter().enumerate() {
            let number = palette.dim(format_args!("step {}", index + 1));
            let _ = writeln!(text, "{number}  {}", self.step(step));
        }
        let _ = writeln!(text, "{}\n", palette.dim(format_args!("ended: {}", end(&self.end))));
        if let Some(new) = &self.new {
            text += &difference(&self.old, new, palette);
            let _ = writeln!(text, "\n{}", self.table().render(palette, console.out_columns()));
        }
        let _ = writeln!(text, "{}", palette.bold(self.verdict(is_applied)));
        let _ = writeln!(text, "{}", palette.dim(self.spending()));
        text
    }

    fn step(&self, step: &Step) -> String {
        let names = step.cases.iter().filter_map(|case| self.names.get(*case)).map(String::as_str);
        let names = names.collect::<Vec<_>>().join(", ");
        let outcome = match &step.outcome {
            Outcome::Refused(why) => format!("refused: {why}"),
            Outcome::NotBetter => "not kept: all of them still fail".to_owned(),
            Outcome::Kept { small, validation } => format!(
                "kept: {small} of {} right, and {validation} of {} in validation",
                step.cases.len(),
                self.size(Part::Validation)
            ),
        };
        format!("from prompt {} and {names}: {outcome}", step.parent)
    }

    fn size(&self, part: Part) -> usize {
        let [training, validation, held_out] = self.sizes;
        match part {
            Part::Training => training,
            Part::Validation => validation,
            Part::HeldOut => held_out,
        }
    }

    fn table(&self) -> Table {
        let mut table =
            Table::new(["prompt", "validation", "95 % interval", "held out", "95 % interval", "paired test"]);
        let [old, new] = self.validation;
        let held_out = self.held_out.as_ref();
        let count = |right: &[bool]| right.iter().filter(|right| **right).count();
        let rows = [
            ("old", old, held_out.map(|it| count(&it.old))),
            ("new", new, held_out.map(|it| count(&it.new))),
        ];
        for (name, validation, right) in rows {
            let paired = held_out.filter(|_| name == "new").map_or_else(String::new, |it| {
                let Comparison { only_old, only_new, .. } = it.comparison;
                format!("+{only_new} −{only_old}, p {:.3}", it.comparison.p_value())
            });
            let [first, first_interval] = cells(validation, self.size(Part::Validation));
            let [second, second_interval] = match right {
                Some(right) => cells(right, self.size(Part::HeldOut)),
                None => ["not run".to_owned(), String::new()],
            };
            table.row([name.to_owned(), first, first_interval, second, second_interval, paired]);
        }
        table
    }

    fn spending(&self) -> String {
        let BudgetUsage { calls, tokens, cost, .. } = self.spent;
        let cost = cost.map(|cost| format!(" · ${cost}")).unwrap_or_default();
        format!("{calls} calls · {tokens} tokens{cost}")
    }
}

/// Formats a rate and its interval: `3 of 4`, `19 to 99 %`.
fn cells(right: usize, cases: usize) -> [String; 2] {
    let Interval { low, high } = rate_interval(right, cases);
    [format!("{right} of {cases}"), format!("{:.0} to {:.0} %", low * 100.0, high * 100.0)]
}

fn rate_interval(right: usize, cases: usize) -> Interval {
    Rate::new(right as u64, cases as u64).map_or(Interval::UNKNOWN, |rate| interval::exact(rate, INTERVAL))
}

fn end(end: &End) -> String {
    match end {
        End::NothingFails => "no training case fails".to_owned(),
        End::Spent => "the budget allows no further step".to_owned(),
        End::Steps => "all steps are used".to_owned(),
        End::Stuck => "the last steps kept nothing".to_owned(),
        End::Failed(error) => format!("{}: {}", error.code, error.message),
    }
}

/// Formats the difference of two prompts.
fn difference(old: &str, new: &str, palette: Palette) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut text = String::new();
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            let _ = writeln!(text, "{}", palette.dim("  …"));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            // A model wrote it: it must not move the cursor.
            let line = printable(change.value().trim_end_matches('\n'));
            let _ = match change.tag() {
                ChangeTag::Equal => writeln!(text, "{}", palette.dim(format_args!("  {line}"))),
                ChangeTag::Delete => writeln!(text, "{}", palette.error(format_args!("- {line}"))),
                ChangeTag::Insert => writeln!(text, "{}", palette.success(format_args!("+ {line}"))),
            };
        }
    }
    text
}

// As JSON.

/// Written by hand: what is proposed is computed.
impl ToJson for Report {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("module", &self.module);
            w.key("cases").object(|w| {
                for part in Part::ALL {
                    w.field(part.as_str(), &(self.size(part) as u64));
                }
            });
            w.key("steps").array(|w| self.steps.iter().for_each(|step| self.write_step(step, w)));
            w.field("ended", &end(&self.end));
            w.field("proposed", &self.proposed().is_some());
            w.field("verdict", &self.verdict(false));
            let [old, new] = self.validation;
            w.key("old").object(|w| {
                w.field("prompt", &self.old);
                self.write_outcomes(old, self.held_out.as_ref().map(|it| it.old.as_slice()), w);
            });
            if let Some(prompt) = &self.new {
                w.key("new").object(|w| {
                    w.field("prompt", prompt);
                    self.write_outcomes(new, self.held_out.as_ref().map(|it| it.new.as_slice()), w);
                });
            }
            if let Some(HeldOut { comparison, .. }) = &self.held_out {
                w.key("held_out").object(|w| {
                    w.field("cases", &comparison.cases);
                    w.field("newly_failing", &comparison.only_old);
                    w.field("newly_passing", &comparison.only_new);
                    w.field("p_value", &comparison.p_value());
                });
            }
            let BudgetUsage { calls, tokens, cost, .. } = self.spent;
            w.key("spent").object(|w| {
                w.field("calls", &calls);
                w.field("tokens", &tokens);
                w.field("cost", &cost);
            });
        });
    }
}

impl Report {
    fn write_step(&self, step: &Step, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("from", &(step.parent as u64));
            w.key("cases").array(|w| {
                for name in step.cases.iter().filter_map(|case| self.names.get(*case)) {
                    w.item(name);
                }
            });
            match &step.outcome {
                Outcome::Refused(why) => {
                    w.field("outcome", "refused");
                    w.field("reason", why);
                }
                Outcome::NotBetter => {
                    w.field("outcome", "not_better");
                }
                Outcome::Kept { small, validation } => {
                    w.field("outcome", "kept");
                    w.field("right", &(*small as u64));
                    w.field("validation", &(*validation as u64));
                }
            }
        });
    }

    fn write_outcomes(&self, validation: usize, held_out: Option<&[bool]>, w: &mut Writer<'_>) {
        write_rate("validation", validation, self.size(Part::Validation), w);
        if let Some(right) = held_out {
            write_rate("held_out", right.iter().filter(|right| **right).count(), right.len(), w);
        }
    }
}

fn write_rate(name: &str, right: usize, cases: usize, w: &mut Writer<'_>) {
    let Interval { low, high } = rate_interval(right, cases);
    w.key(name).object(|w| {
        w.field("right", &(right as u64));
        w.field("cases", &(cases as u64));
        w.key("interval").array(|w| {
            w.item(&low).item(&high);
        });
    });
}
