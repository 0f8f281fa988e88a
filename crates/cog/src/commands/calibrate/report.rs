//! The report of a calibration: as text, as JSON, and as one HTML page.

mod page;
mod plot;

use cog_json::{Array, ToJson, Writer};
use cog_spec::{Calibration, ScoreCount};
use cog_trust::{
    Auroc, Bin, Brier, CalibrationError, Combination, Coverage, EvidenceMap, Gate, Goal, Interval,
    LogisticMap, Observation, Run, Sample, Trial, combine,
};

use super::golden::KindRuns;
use crate::output::{Console, Palette, Table};

/// The confidence of the intervals.
const INTERVAL: f64 = 0.95;

/// The cases below which the share of equal answers is not mapped.
const FEWEST_FOR_AGREEMENT: usize = 50;

/// The maximum number of cases of a stored calibration that is shown.
const MAX_STORED: u64 = 100_000;

/// The points of the risk-coverage curve in JSON.
const POINTS: usize = 100;

/// The points of the risk-coverage curve on a terminal.
const LINES: usize = 10;

/// What the stated confidences of a sample are worth.
pub(in crate::commands) struct Report {
    module: String,
    sample: Sample,
    map: EvidenceMap,
    /// What cross-validation says about several kinds of evidence.
    trials: Vec<Trial>,
    /// The cases by the map itself; none if the sample has the same scores.
    compared: Vec<ScoreCount>,
    gate: Option<(Goal, Gate)>,
    /// How well each kind of evidence sorts the answers.
    kinds: Vec<KindReport>,
}

/// How well a kind of evidence sorts right and wrong answers.
struct KindReport {
    kind: &'static str,
    cases: u64,
    auroc: Option<Auroc>,
}

impl Report {
    /// Creates the report of runs with these kinds of evidence.
    pub(super) fn new(module: &str, kinds: &[&str], runs: &[Observation], goal: Option<Goal>) -> Self {
        let Combination { mut map, runs, by_map, trials } = combine(kinds, runs);
        let sample = Sample::new(&runs);
        // With few cases, the share of equal answers is nearer to the truth than any map of it.
        if map.kinds().eq(["agreement"]) && sample.cases() < FEWEST_FOR_AGREEMENT {
            map = EvidenceMap::of("agreement", LogisticMap::AS_STATED);
        }
        Self {
            module: module.to_owned(),
            map,
            trials,
            compared: if by_map.is_empty() { Vec::new() } else { Sample::new(&by_map).scores() },
            gate: goal.map(|goal| (goal, goal.gate(&sample))),
            kinds: Vec::new(),
            sample,
        }
    }

    /// Creates the report of a stored calibration, from its scores. None if these are of too many cases to have been measured.
    pub(in crate::commands) fn of_stored(
        module: &str,
        calibration: &Calibration,
        goal: Option<Goal>,
    ) -> Option<Self> {
        if calibration.cases().cases > MAX_STORED {
            return None;
        }
        let scores = calibration.scores.iter();
        let runs = scores.flat_map(|count| (0..count.cases).map(|case| (count.score, case < count.right)));
        let runs = runs.enumerate().filter_map(|(case, (score, right))| Run::new(case, score, right));
        let sample = Sample::new(&runs.collect::<Vec<_>>());
        Some(Self {
            module: module.to_owned(),
            map: calibration.map.clone(),
            trials: Vec::new(),
            compared: Vec::new(),
            gate: goal.map(|goal| (goal, goal.gate(&sample))),
            kinds: Vec::new(),
            sample,
        })
    }

    /// Adds the comparison of the kinds of evidence.
    pub(super) fn compare(&mut self, kinds: &[KindRuns]) {
        let report = |KindRuns { kind, runs }: &KindRuns| {
            let sample = Sample::new(runs);
            KindReport { kind, cases: sample.cases() as u64, auroc: sample.auroc() }
        };
        self.kinds = kinds.iter().map(report).collect();
    }

    /// Returns the map, to be stored.
    pub(super) fn map(&self) -> &EvidenceMap {
        &self.map
    }

    /// Returns the cases, to be stored.
    pub(super) fn scores(&self) -> Vec<ScoreCount> {
        self.sample.scores()
    }

    /// Returns the cases as recent runs are compared with them, if that differs, to be stored.
    pub(super) fn compared(&self) -> Vec<ScoreCount> {
        self.compared.clone()
    }

    /// Whether a threshold was wanted and cannot be promised.
    pub(super) fn lacks_threshold(&self) -> bool {
        matches!(self.gate, Some((_, Gate::Needed { .. })))
    }

    /// Returns points of the risk-coverage curve, about equally far from each other.
    fn coverage(&self, count: usize) -> Vec<Coverage> {
        let all = self.sample.coverage();
        let part = |point: &Coverage| (point.accepted * count as f64).ceil() as u64;
        let mut points: Vec<Coverage> = Vec::new();
        for point in all {
            match points.last_mut() {
                Some(last) if part(last) == part(&point) => *last = point,
                _ => points.push(point),
            }
        }
        points
    }

    /// Formats the report as an HTML page.
    pub(super) fn page(&self) -> String {
        page::page(self)
    }

    /// Formats the report for a terminal.
    pub(super) fn describe(&self, console: &Console) -> String {
        let palette = console.out().palette;
        let columns = console.out_columns();
        let cases = self.sample.cases();
        let runs = self.sample.runs();
        let mut text = format!("{} {cases} cases, {runs} runs\n\n", palette.name(&self.module));
        text += &self.figures().render(palette, columns);
        text += &format!("\n{}", self.reliability().render(palette, columns));
        text += &format!("\n{}", self.curve().render(palette, columns));
        if self.kinds.len() > 1 {
            text += &format!("\n{}", self.kinds_table().render(palette, columns));
        }
        if !self.trials.is_empty() {
            text += &format!("\n{}", self.trials_table().render(palette, columns));
        }
        if let Some((goal, gate)) = &self.gate {
            text += &format!("\n{}", describe_gate(*goal, gate, cases, palette));
        }
        text
    }

    fn figures(&self) -> Table {
        let mut table = Table::new(["figure", "value", "meaning"]);
        let mut row = |name: &str, value: Option<f64>, meaning: String| {
            let value = value.map_or_else(|| "none".to_owned(), |value| format!("{value:.3}"));
            table.row([name.to_owned(), value, meaning]);
        };
        let interval = self.sample.accuracy_interval(INTERVAL);
        row("accuracy", self.sample.accuracy(), format!("exact 95 % interval {}", range(interval)));
        let stated = self.sample.stated_mean();
        let over = stated.zip(self.sample.accuracy()).map_or(0.0, |(stated, accuracy)| stated - accuracy);
        let direction = if over >= 0.0 { "more" } else { "less" };
        row("stated mean", stated, format!("{:.3} {direction} than the accuracy", over.abs()));
        let brier = self.sample.brier();
        let skill = brier.and_then(|brier| brier.skill);
        let skill = skill.map_or_else(
            || "no skill to measure: all answers are right, or all are wrong".to_owned(),
            |skill| format!("skill {skill:.3}; always stating the accuracy has 0"),
        );
        row("Brier score", brier.map(|brier| brier.score), skill);
        let error = self.sample.calibration_error();
        let null = error.map_or(0.0, |error| error.null);
        row(
            "calibration error",
            error.map(|error| error.value),
            format!("a perfect source with as many cases reads {null:.3}"),
        );
        let auroc = self.sample.auroc();
        let meaning = auroc.map_or_else(
            || "needs right and wrong answers".to_owned(),
            |auroc| format!("95 % interval {}; 0.5 is chance", range(auroc.interval)),
        );
        row("AUROC", auroc.map(|auroc| auroc.value), meaning);
        let EvidenceMap { intercept, slopes } = &self.map;
        let (probability, meaning) = match self.map.single() {
            Some(map) => {
                let slope = map.slope;
                let meaning =
                    format!("probability of a stated 0.9; intercept {intercept:.3}, slope {slope:.3}");
                (map.probability(0.9), meaning)
            }
            None => {
                let slopes: Vec<String> =
                    slopes.iter().map(|(kind, slope)| format!("{kind} {slope:.3}")).collect();
                let meaning = format!(
                    "probability if all evidence is 0.9; intercept {intercept:.3}, slopes {}",
                    slopes.join(", ")
                );
                (self.map.score(|_| Some(0.9)).unwrap_or_default(), meaning)
            }
        };
        row("map", Some(probability), meaning);
        table
    }

    /// Several kinds of evidence, of which the map reads the ones that help.
    fn trials_table(&self) -> Table {
        let mut table = Table::new(["evidence", "log loss in cross-validation", "map"]);
        for Trial { kinds, log_loss, is_chosen } in &self.trials {
            let chosen = if *is_chosen { "reads it" } else { "" };
            table.row([kinds.join(" + "), format!("{log_loss:.3}"), chosen.to_owned()]);
        }
        table
    }

    fn kinds_table(&self) -> Table {
        let mut table = Table::new(["evidence", "cases", "AUROC", "95 % interval"]);
        for KindReport { kind, cases, auroc } in &self.kinds {
            let value = auroc.map_or_else(|| "none".to_owned(), |auroc| format!("{:.3}", auroc.value));
            let bounds = auroc.map_or_else(String::new, |auroc| range(auroc.interval));
            table.row([(*kind).to_owned(), cases.to_string(), value, bounds]);
        }
        table
    }

    fn reliability(&self) -> Table {
        let mut table = Table::new(["stated", "mean", "right", "cases", "95 % interval"]);
        for Bin { low, high, cases, stated, accuracy, interval } in self.sample.reliability() {
            let stated_range =
                if low < high { format!("{low:.3} to {high:.3}") } else { format!("{low:.3}") };
            let cases = if cases.fract() == 0.0 { format!("{cases}") } else { format!("{cases:.1}") };
            let [mean, right] = [stated, accuracy].map(|value| format!("{value:.3}"));
            table.row([stated_range, mean, right, cases, range(interval)]);
        }
        table
    }

    fn curve(&self) -> Table {
        let mut table = Table::new(["accepted from", "accepted", "right of accepted"]);
        for Coverage { threshold, accepted, accuracy } in self.coverage(LINES) {
            table.row([format!("{threshold:.3}"), percent(accepted), percent(accuracy)]);
        }
        table
    }
}

fn range(interval: Interval) -> String {
    format!("{:.3} to {:.3}", interval.low, interval.high)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats what is promised, or what is missing.
fn describe_gate(goal: Goal, gate: &Gate, cases: usize, palette: Palette) -> String {
    let target = trimmed(goal.target() * 100.0);
    let risk = trimmed(goal.risk() * 100.0);
    match gate {
        Gate::Threshold { threshold, accepted, right } => format!(
            "{} accepts {accepted} of {cases} cases, {right} of them right\n\
             At least {target} % of the answers that state {threshold} or more are right. This is wrong for at most {risk} % of \
             calibrations.\nIt holds for inputs like these cases, and for the same model, prompt and schema.\n",
            palette.success(format_args!("threshold {threshold}")),
        ),
        Gate::Needed { answers, at_least } => {
            let which = at_least.map_or_else(String::new, |least| format!(" that state {least} or more"));
            let plural = if *answers == 1 { "answer" } else { "answers" };
            let verb = if *answers == 1 { "is" } else { "are" };
            format!(
                "{} for {target} % right at a risk of {risk} %\n{answers} more right {plural}{which} {verb} needed.\n",
                palette.error("no threshold"),
            )
        }
    }
}

/// Formats a percentage with as many digits as it has: 90, 99.9.
fn trimmed(percentage: f64) -> String {
    let text = format!("{percentage:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl ToJson for KindReport {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("kind", self.kind);
            w.field("cases", &self.cases);
            w.field("auroc", &self.auroc.map(|auroc| auroc.value));
            w.field("interval", &self.auroc.map(|auroc| bounds(auroc.interval)));
        });
    }
}

/// Written by hand: the figures are computed.
impl ToJson for Report {
    fn write_json(&self, w: &mut Writer<'_>) {
        let sample = &self.sample;
        w.object(|w| {
            w.field("cases", &(sample.cases() as u64));
            w.field("runs", &(sample.runs() as u64));
            w.field("accuracy", &sample.accuracy());
            w.field("interval", &bounds(sample.accuracy_interval(INTERVAL))[..]);
            w.field("stated_mean", &sample.stated_mean());
            let brier = sample.brier();
            w.key("brier").object(|w| {
                w.field("score", &brier.map(|Brier { score, .. }| score));
                w.field("skill", &brier.and_then(|Brier { skill, .. }| skill));
            });
            w.field("log_loss", &sample.log_loss());
            let error = sample.calibration_error();
            w.key("ece").object(|w| {
                w.field("value", &error.map(|CalibrationError { value, .. }| value));
                w.field("null", &error.map(|CalibrationError { null, .. }| null));
            });
            let auroc = sample.auroc();
            w.key("auroc").object(|w| {
                w.field("value", &auroc.map(|Auroc { value, .. }| value));
                w.field("interval", &auroc.map(|Auroc { interval, .. }| bounds(interval)));
            });
            w.key("gate");
            match &self.gate {
                Some((goal, gate)) => write_gate(w, *goal, gate),
                None => w.null(),
            }
            if !self.kinds.is_empty() {
                w.field("evidence", &Array(&self.kinds));
            }
            w.key("map").object(|w| {
                w.field("kind", "logistic");
                w.field("intercept", &self.map.intercept);
                match self.map.single() {
                    Some(map) => {
                        w.field("slope", &map.slope);
                    }
                    None => {
                        w.key("slopes").object(|w| {
                            for (kind, slope) in &self.map.slopes {
                                w.field(kind, slope);
                            }
                        });
                    }
                }
            });
            if !self.trials.is_empty() {
                w.field("cross_validation", &Array(&self.trials.iter().map(JsonTrial).collect::<Vec<_>>()));
            }
            w.field(
                "reliability",
                &Array(&sample.reliability().into_iter().map(JsonBin).collect::<Vec<_>>()),
            );
            let points: Vec<_> = self.coverage(POINTS).into_iter().map(JsonPoint).collect();
            w.field("risk_coverage", &Array(&points));
        });
    }
}

fn bounds(interval: Interval) -> [f64; 2] {
    [interval.low, interval.high]
}

fn write_gate(w: &mut Writer<'_>, goal: Goal, gate: &Gate) {
    let (threshold, accepted, needed) = match gate {
        Gate::Threshold { threshold, accepted, .. } => (Some(*threshold), *accepted, None),
        Gate::Needed { answers, .. } => (None, 0, Some(*answers)),
    };
    w.object(|w| {
        w.field("target", &goal.target());
        w.field("risk", &goal.risk());
        w.field("threshold", &threshold);
        w.field("accepted", &accepted);
        w.field("needed", &needed);
        if let Gate::Needed { at_least, .. } = gate {
            w.field("needed_at", at_least);
        }
    });
}

struct JsonTrial<'a>(&'a Trial);

impl ToJson for JsonTrial<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let Trial { kinds, log_loss, is_chosen } = self.0;
        w.object(|w| {
            w.field("evidence", &kinds[..]);
            w.field("log_loss", log_loss);
            w.field("chosen", is_chosen);
        });
    }
}

struct JsonBin(Bin);

impl ToJson for JsonBin {
    fn write_json(&self, w: &mut Writer<'_>) {
        let Bin { low, high, cases, stated, accuracy, interval } = self.0;
        w.object(|w| {
            w.field("low", &low);
            w.field("high", &high);
            w.field("cases", &cases);
            w.field("stated", &stated);
            w.field("accuracy", &accuracy);
            w.field("interval", &bounds(interval)[..]);
        });
    }
}

struct JsonPoint(Coverage);

impl ToJson for JsonPoint {
    fn write_json(&self, w: &mut Writer<'_>) {
        let Coverage { threshold, accepted, accuracy } = self.0;
        w.object(|w| {
            w.field("threshold", &threshold);
            w.field("accepted", &accepted);
            w.field("accuracy", &accuracy);
        });
    }
}
