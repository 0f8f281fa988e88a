//! What holds for every sample. `tests/reference` compares the values with scipy and scikit-learn.

use proptest::prelude::*;

use super::*;

fn sample(runs: &[(usize, f64, bool)]) -> Sample {
    let runs = runs.iter().map(|(case, stated, right)| Run::new(*case, *stated, *right).unwrap());
    Sample::new(&runs.collect::<Vec<_>>())
}

/// A set of cases: so many that state this, and how many of them are right.
fn cases(groups: &[(f64, usize, usize)]) -> Sample {
    let mut runs = Vec::new();
    for (stated, count, right) in groups {
        runs.extend((0..*count).map(|number| (*stated, number < *right)));
    }
    sample(
        &runs.iter().enumerate().map(|(case, (stated, right))| (case, *stated, *right)).collect::<Vec<_>>(),
    )
}

fn goal(target: f64, risk: f64) -> Goal {
    Goal::new(target, risk).unwrap()
}

#[test]
fn confidence_is_from_0_to_1() {
    for stated in [f64::NAN, -0.1, 1.1, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(Run::new(0, stated, true), None, "{stated}");
    }
    assert!(Run::new(0, 0.0, true).is_some() && Run::new(0, 1.0, true).is_some());
}

#[test]
fn goal_is_between_0_and_1() {
    for (target, risk) in [(0.0, 0.1), (1.0, 0.1), (0.9, 0.0), (0.9, 1.0), (f64::NAN, 0.1), (0.9, f64::NAN)] {
        assert_eq!(Goal::new(target, risk), None, "{target} {risk}");
    }
}

#[test]
fn no_run_has_no_statistics() {
    let empty = sample(&[]);
    assert_eq!((empty.accuracy(), empty.stated_mean(), empty.log_loss()), (None, None, None));
    assert_eq!((empty.brier(), empty.auroc(), empty.calibration_error()), (None, None, None));
    assert_eq!(empty.accuracy_interval(0.95), Interval::UNKNOWN);
    assert!(empty.reliability().is_empty() && empty.coverage().is_empty());
    assert_eq!(empty.map(), LogisticMap::AS_STATED);
    assert_eq!(goal(0.9, 0.1).gate(&empty), Gate::Needed { answers: 22, at_least: None });
}

#[test]
fn one_case_says_little() {
    let one = cases(&[(0.9, 1, 1)]);
    assert_eq!((one.accuracy(), one.auroc()), (Some(1.0), None));
    assert_eq!(one.brier().unwrap().skill, None);
    // A perfect source is right with 0.9: 0.9 * 0.1 + 0.1 * 0.9.
    let error = one.calibration_error().unwrap();
    assert!((error.value - 0.1).abs() < 1e-12 && (error.null - 0.18).abs() < 1e-12, "{error:?}");
    assert_eq!(goal(0.9, 0.1).gate(&one), Gate::Needed { answers: 21, at_least: Some(0.9) });
}

/// The numbers of cases that the exact bound needs if all are right, from `log(risk) / log(target)`.
#[test]
fn fewest_cases_of_a_promise() {
    for (target, risk, fewest) in
        [(0.8, 0.1, 11), (0.9, 0.1, 22), (0.95, 0.1, 45), (0.99, 0.1, 230), (0.8, 0.05, 14), (0.95, 0.05, 59)]
    {
        assert_eq!(goal(target, risk).fewest_cases(), fewest, "{target} {risk}");
    }
}

#[test]
fn wrong_answer_at_the_top_stops_the_gate() {
    // By itself the lower threshold would hold: 100 of 105.
    let gate = goal(0.8, 0.1).gate(&cases(&[(0.99, 15, 10), (0.9, 90, 90)]));
    let Gate::Needed { answers, at_least } = gate else { panic!("{gate:?}") };
    assert_eq!(at_least, Some(0.99));
    let more = |answers: u64| {
        goal(0.8, 0.1).gate(&cases(&[
            (0.99, 5, 0),
            (0.99, 10 + answers as usize, 10 + answers as usize),
            (0.9, 90, 90),
        ]))
    };
    assert!(matches!(more(answers), Gate::Threshold { threshold: 0.9, .. }), "{answers}");
    assert!(matches!(more(answers - 1), Gate::Needed { .. }), "{answers}");
}

#[test]
fn all_wrong_answers_need_many_right_ones() {
    let gate = goal(0.9, 0.1).gate(&cases(&[(1.0, 10, 0)]));
    // P(at most 10 wrong of n) <= 0.1 for a rate of 0.1: scipy.stats.binom.cdf(10, 152, 0.1) is the first one below 0.1.
    assert_eq!(gate, Gate::Needed { answers: 142, at_least: Some(1.0) });
}

#[test]
fn repeats_of_a_case_do_not_make_a_promise() {
    let runs: Vec<_> = (0..1_000).map(|number| (number % 10, 0.9, true)).collect();
    assert_eq!(goal(0.9, 0.1).gate(&sample(&runs)), Gate::Needed { answers: 12, at_least: Some(0.9) });
    // `scipy.stats.beta.ppf(0.025, 10, 1)`.
    assert!((sample(&runs).accuracy_interval(0.95).low - 0.6915028921812392).abs() < 1e-9);
}

#[test]
fn case_that_is_repeated_counts_once() {
    let once = sample(&[(0, 0.9, true), (1, 0.6, false)]);
    let often = sample(&[(0, 0.9, true), (1, 0.6, false), (1, 0.6, false), (1, 0.6, false)]);
    assert_eq!((once.accuracy(), often.accuracy()), (Some(0.5), Some(0.5)));
    assert!((once.brier().unwrap().score - often.brier().unwrap().score).abs() < 1e-12);
    assert!((once.map().slope - often.map().slope).abs() < 1e-9);
}

#[test]
fn separated_answers_have_an_interval_of_their_auroc() {
    let auroc = cases(&[(0.9, 5, 5), (0.5, 5, 0)]).auroc().unwrap();
    assert_eq!((auroc.value, auroc.interval.high), (1.0, 1.0));
    assert!(auroc.interval.low > 0.5 && auroc.interval.low < 0.9, "{auroc:?}");
}

#[test]
fn coverage_falls_as_the_threshold_rises() {
    let points = cases(&[(0.9, 6, 6), (0.5, 4, 2)]).coverage();
    let expected = [(0.9, 0.6, 1.0), (0.5, 1.0, 0.8)];
    assert_eq!(points.len(), expected.len());
    for (point, (threshold, accepted, accuracy)) in points.iter().zip(expected) {
        assert_eq!(point.threshold, threshold);
        assert!((point.accepted - accepted).abs() < 1e-12 && (point.accuracy - accuracy).abs() < 1e-12);
    }
}

#[test]
fn map_of_few_cases_stays_close_to_as_stated() {
    let few = cases(&[(0.9, 1, 0)]).map();
    let many = cases(&[(0.9, 2_000, 1_000)]).map();
    assert!(few.probability(0.9) > 0.5, "{few:?}");
    assert!((many.probability(0.9) - 0.5).abs() < 0.01, "{many:?}");
}

proptest! {
    #[test]
    fn statistics_are_numbers(runs in prop::collection::vec((0_usize..20, prop_oneof![Just(0.0), Just(1.0), Just(0.9), 0.0..=1.0_f64], any::<bool>()), 1..60)) {
        let sample = sample(&runs);
        let brier = sample.brier().unwrap();
        let error = sample.calibration_error().unwrap();
        let map = sample.map();
        for value in [sample.accuracy().unwrap(), brier.score, error.value, error.null, map.probability(0.0), map.probability(1.0)] {
            prop_assert!((-1e-12..=1.0 + 1e-12).contains(&value), "{}", value);
        }
        prop_assert!(sample.log_loss().unwrap().is_finite() && brier.skill.is_none_or(f64::is_finite));
        let interval = sample.accuracy_interval(0.95);
        prop_assert!(interval.low <= sample.accuracy().unwrap() + 1e-9 && sample.accuracy().unwrap() <= interval.high + 1e-9);
        if let Some(auroc) = sample.auroc() {
            prop_assert!(auroc.interval.low <= auroc.value && auroc.value <= auroc.interval.high);
        }
        let bins = sample.reliability();
        prop_assert!(bins.len() <= 5);
        prop_assert!((bins.iter().map(|bin| bin.cases).sum::<f64>() - sample.cases() as f64).abs() < 1e-9);
    }

    /// The order of the cases changes nothing.
    #[test]
    fn order_of_cases_is_irrelevant(mut runs in prop::collection::vec((prop_oneof![Just(0.9), 0.0..=1.0_f64], any::<bool>()), 1..60)) {
        let numbered = |runs: &[(f64, bool)]| {
            sample(&runs.iter().enumerate().map(|(case, (stated, right))| (case, *stated, *right)).collect::<Vec<_>>())
        };
        let before = numbered(&runs);
        runs.reverse();
        let after = numbered(&runs);
        let goal = goal(0.7, 0.2);
        prop_assert_eq!(goal.gate(&before), goal.gate(&after));
        let difference = before.calibration_error().unwrap().value - after.calibration_error().unwrap().value;
        prop_assert!(difference.abs() < 1e-9);
    }
}

#[test]
fn scores_give_the_same_threshold_as_the_runs() {
    for groups in [&[(0.98, 12, 12), (0.9, 16, 15), (0.8, 8, 6), (0.6, 4, 2)][..], &[(0.9, 3, 3)], &[]] {
        let sample = cases(groups);
        for target in [0.5, 0.8, 0.9, 0.99] {
            let goal = Goal::new(target, 0.1).unwrap();
            assert_eq!(goal.gate_of_scores(&sample.scores()), goal.gate(&sample), "{groups:?} {target}");
        }
    }
}

#[test]
fn scores_count_the_first_run_of_a_case() {
    let scores = sample(&[(1, 0.9, true), (1, 0.9, false), (2, 0.90004, false), (3, 0.2, true)]).scores();
    let scores: Vec<_> = scores.iter().map(|count| (count.score, count.cases, count.right)).collect();
    assert_eq!(scores, [(0.9, 2, 1), (0.2, 1, 1)]);
}

fn observations(runs: &[(&[f64], bool)]) -> Vec<Observation> {
    runs.iter()
        .enumerate()
        .map(|(case, (evidence, right))| Observation::new(case, evidence.to_vec(), *right).unwrap())
        .collect()
}

#[test]
fn evidence_is_from_0_to_1_and_there_is_some() {
    assert_eq!(Observation::new(0, Vec::new(), true), None);
    assert_eq!(Observation::new(0, vec![0.5, f64::NAN], true), None);
    assert_eq!(Observation::new(0, vec![0.5, 1.1], true), None);
}

#[test]
fn one_kind_is_mapped_as_a_sample_is() {
    let runs = observations(&[(&[0.9], true), (&[0.9], false), (&[0.4], false)]);
    let found = combine(&["stated"], &runs);
    let sample = sample(&[(0, 0.9, true), (1, 0.9, false), (2, 0.4, false)]);
    assert_eq!((found.map.single(), found.trials), (Some(sample.map()), Vec::new()));
    assert_eq!(Sample::new(&found.runs).scores(), sample.scores());
}

/// Draws cases whose evidence has this many kinds, of which the first ones say something. Kinds that say nothing are as spread.
fn drawn(cases: usize, kinds: usize, telling: usize, mut state: u64) -> Vec<Observation> {
    let mut next = move || {
        // Knuth's MMIX.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    };
    let draw = |case| {
        let evidence: Vec<f64> = (0..kinds).map(|_| (next() * 20.0).round() / 20.0).collect();
        let logit: f64 = evidence.iter().take(telling).map(|value| 6.0 * (value - 0.4)).sum();
        let right = next() < LogisticMap::probability_at(logit);
        Observation::new(case, evidence, right).unwrap()
    };
    (0..cases).map(draw).collect()
}

#[test]
fn kinds_enter_the_map_only_if_they_help() {
    let names = ["a", "b", "c"];
    let both = combine(&names, &drawn(400, 3, 2, 1));
    assert!(both.map.slopes.contains_key("a") && both.map.slopes.contains_key("b"), "{both:?}");
    // Noise enters in about one of six data sets, because the bound is one standard error.
    let noisy = (0..40).filter(|seed| combine(&names, &drawn(100, 3, 1, *seed)).map.slopes.len() > 1);
    assert!(noisy.count() <= 14);
    let chosen: Vec<_> = both.trials.iter().filter(|trial| trial.is_chosen).collect();
    assert_eq!(chosen.len(), 1);
    let lowest = both.trials.iter().map(|trial| trial.log_loss).fold(f64::MAX, f64::min);
    assert!(chosen[0].log_loss <= lowest + 0.02, "{both:?}");
}

/// The promise of a threshold holds for the probability by several kinds, although their map comes from the same cases.
#[test]
fn promise_holds_for_several_kinds() {
    let goal = goal(0.8, 0.1);
    let (mut broken, mut accepted) = (0, 0);
    let draws = 300_u32;
    for seed in 0..u64::from(draws) {
        let found = combine(&["a", "b"], &drawn(100, 2, 2, 1_000 + seed));
        let Gate::Threshold { threshold, .. } = goal.gate(&Sample::new(&found.runs)) else { continue };
        // Fresh cases, as many as make their own spread small.
        let fresh = drawn(2_000, 2, 2, 1_000_000 + seed);
        let (mut cases, mut right) = (0, 0);
        for observation in &fresh {
            let value = |kind: &str| observation.evidence().get(usize::from(kind == "b")).copied();
            let score = found.map.score(value).unwrap();
            if score >= threshold {
                cases += 1;
                right += usize::from(observation.is_right());
            }
        }
        accepted += usize::from(cases > 0);
        broken += usize::from((right as f64) < 0.8 * cases as f64);
    }
    let bound = 0.1 + 3.0 * (0.1_f64 * 0.9 / f64::from(draws)).sqrt();
    assert!(accepted > 200 && (broken as f64) < bound * f64::from(draws), "{broken} of {accepted}");
}

proptest! {
    #[test]
    fn combined_map_is_finite(runs in prop::collection::vec((0_usize..10, prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0_f64], prop_oneof![Just(1.0), 0.0..=1.0_f64], any::<bool>()), 0..40)) {
        let runs: Vec<_> = runs.iter().map(|(case, one, other, right)| Observation::new(*case, vec![*one, *other], *right).unwrap()).collect();
        let found = combine(&["a", "b"], &runs);
        prop_assert!(found.map.intercept.is_finite() && found.map.slopes.values().all(|slope| slope.is_finite()));
        prop_assert_eq!(found.runs.len(), runs.len());
        for (run, observation) in found.by_map.iter().zip(&runs) {
            let value = |kind: &str| observation.evidence().get(usize::from(kind == "b")).copied();
            prop_assert!((found.map.score(value).unwrap() - run.stated()).abs() <= 1e-4);
        }
    }
}
