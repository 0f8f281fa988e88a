//! Every statistic equals the one of scipy or scikit-learn on generated answers. It needs a Python with both, which
//! `cargo xtask test` installs.

#![expect(clippy::disallowed_methods, reason = "tests read the environment")]

use std::{path::Path, process::Command};

use cog_trust::{Gate, Goal, Interval, Observation, Run, Sample, combine, drift};
use serde::Deserialize;

const SETS: usize = 500;

#[derive(Deserialize)]
struct Set {
    runs: Vec<(usize, f64, bool)>,
    figures: Figures,
}

#[derive(Deserialize)]
struct Figures {
    cases: usize,
    accuracy: f64,
    interval: (f64, f64),
    stated_mean: f64,
    brier: f64,
    skill: Option<f64>,
    log_loss: f64,
    auroc: Option<f64>,
    auroc_interval: Option<(f64, f64)>,
    map: (f64, f64),
    gates: Vec<(f64, f64, Option<(f64, u64)>)>,
    drift: Option<(f64, f64)>,
    together: Option<Together>,
    calibration: Option<Calibration>,
}

/// Two kinds of evidence of the same answers.
#[derive(Deserialize)]
struct Together {
    evidence: Vec<(f64, f64)>,
    /// Of a cross-validation of the first kind, the second one, and both.
    log_losses: (f64, f64, f64),
    map: Vec<f64>,
}

#[derive(Deserialize)]
struct Calibration {
    bins: Vec<(f64, f64)>,
    ece: f64,
    null: f64,
}

#[track_caller]
fn close(name: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{name}: {found} is not {expected}");
}

#[track_caller]
fn close_interval(name: &str, found: Interval, expected: (f64, f64)) {
    close(name, found.low, expected.0, 1e-9);
    close(name, found.high, expected.1, 1e-9);
}

#[test]
fn statistics_equal_those_of_scipy_and_scikit_learn() {
    let interpreter =
        std::env::var_os("COG_TEST_PYTHON").expect("COG_TEST_PYTHON: a Python with scipy and scikit-learn");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/figures.py");
    let output = Command::new(interpreter).arg(script).arg(SETS.to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut checked = 0;
    for line in lines.lines() {
        check(&serde_json::from_str(line).unwrap());
        checked += 1;
    }
    assert_eq!(checked, SETS);
}

fn check(set: &Set) {
    let Figures { cases, accuracy, interval, stated_mean, brier, skill, log_loss, .. } = &set.figures;
    let runs: Vec<Run> =
        set.runs.iter().map(|(case, stated, right)| Run::new(*case, *stated, *right).unwrap()).collect();
    let sample = Sample::new(&runs);
    assert_eq!((sample.cases(), sample.runs()), (*cases, set.runs.len()));
    close("accuracy", sample.accuracy().unwrap(), *accuracy, 1e-9);
    close_interval("interval of the accuracy", sample.accuracy_interval(0.95), *interval);
    close("stated mean", sample.stated_mean().unwrap(), *stated_mean, 1e-9);
    close("Brier score", sample.brier().unwrap().score, *brier, 1e-9);
    assert_eq!(sample.brier().unwrap().skill.is_some(), skill.is_some());
    if let Some(expected) = skill {
        close("skill", sample.brier().unwrap().skill.unwrap(), *expected, 1e-9);
    }
    close("log loss", sample.log_loss().unwrap(), *log_loss, 1e-9);
    let auroc = sample.auroc();
    assert_eq!(auroc.is_some(), set.figures.auroc.is_some());
    if let (Some(found), Some(area), Some(expected)) = (auroc, set.figures.auroc, set.figures.auroc_interval)
    {
        close("AUROC", found.value, area, 1e-9);
        close_interval("interval of the AUROC", found.interval, expected);
    }
    let map = sample.map();
    close("intercept", map.intercept, set.figures.map.0, 1e-6);
    close("slope", map.slope, set.figures.map.1, 1e-6);
    check_gates(set, &sample);
    check_drift(set);
    if let Some(together) = &set.figures.together {
        check_together(set, together);
    }
    if let Some(Calibration { bins, ece, null }) = &set.figures.calibration {
        let found = sample.reliability();
        assert_eq!(found.len(), bins.len(), "{:?}", set.runs);
        for (found, (stated, accuracy)) in found.iter().zip(bins) {
            close("mean of a bin", found.stated, *stated, 1e-9);
            close("accuracy of a bin", found.accuracy, *accuracy, 1e-9);
        }
        let error = sample.calibration_error().unwrap();
        close("calibration error", error.value, *ece, 1e-9);
        close("calibration error of a perfect source", error.null, *null, 1e-9);
    }
}

fn check_drift(set: &Set) {
    let half = |start: usize| {
        let runs = set.runs.iter().skip(start).step_by(2).enumerate();
        let runs: Vec<Run> =
            runs.map(|(case, (_, stated, right))| Run::new(case, *stated, *right).unwrap()).collect();
        Sample::new(&runs).scores()
    };
    let found = drift::compare(&half(0), &half(1));
    assert_eq!(found.is_some(), set.figures.drift.is_some());
    if let (Some(found), Some((distance, p_value))) = (found, set.figures.drift) {
        close("distance", found.distance, distance, 1e-9);
        close("p-value of the drift", found.p_value, p_value, 1e-9);
    }
}

fn check_together(set: &Set, together: &Together) {
    let both = set.runs.iter().zip(&together.evidence);
    let observations: Vec<Observation> = both
        .map(|((case, _, right), (a, b))| Observation::new(*case, vec![*a, *b], *right).unwrap())
        .collect();
    let found = combine(&["a", "b"], &observations);
    let (a, b, both) = together.log_losses;
    for (trial, expected) in found.trials.iter().zip([a, b, both]) {
        close("log loss in cross-validation", trial.log_loss, expected, 1e-6);
    }
    assert_eq!(found.trials.len(), 3);
    if let [intercept, a, b] = together.map[..]
        && found.map.slopes.len() == 2
    {
        close("intercept", found.map.intercept, intercept, 1e-6);
        close("slope of a", found.map.slopes["a"], a, 1e-6);
        close("slope of b", found.map.slopes["b"], b, 1e-6);
    }
}

fn check_gates(set: &Set, sample: &Sample) {
    for (target, risk, expected) in &set.figures.gates {
        let goal = Goal::new(*target, *risk).unwrap();
        let gate = goal.gate(sample);
        let found = match gate {
            Gate::Threshold { threshold, accepted, .. } => Some((threshold, accepted)),
            Gate::Needed { .. } => None,
        };
        assert_eq!(found, *expected, "{target} {risk} {:?}", set.runs);
        if let Gate::Needed { answers, at_least } = gate {
            check_needed(set, goal, answers, at_least.unwrap());
        }
    }
}

/// With the answers that are needed there is a threshold; with one fewer there is none.
fn check_needed(set: &Set, goal: Goal, answers: u64, at_least: f64) {
    let with = |more: u64| {
        let before = set.runs.iter().map(|(case, stated, right)| (*case, *stated, *right));
        let added = (0..more as usize).map(|number| (1_000_000 + number, at_least, true));
        let runs: Vec<Run> =
            before.chain(added).map(|(case, stated, right)| Run::new(case, stated, right).unwrap()).collect();
        goal.gate(&Sample::new(&runs))
    };
    assert!(matches!(with(answers), Gate::Threshold { .. }), "{answers} at {at_least}");
    assert!(matches!(with(answers - 1), Gate::Needed { .. }), "{answers} - 1 at {at_least}");
}
