use serde_json::Value;

use crate::support::{Place, json, snapshot, stderr, with_stdin};

/// Lines of runs: for each group, what they state, how many there are, and how many of them are right.
fn runs(groups: &[(f64, usize, usize)]) -> String {
    let each =
        groups.iter().flat_map(|(stated, count, right)| (0..*count).map(move |at| (stated, at < *right)));
    let lines = each.enumerate().map(|(case, (stated, right))| {
        format!("{{\"case\": \"t{case}\", \"confidence\": {stated}, \"right\": {right}}}\n")
    });
    lines.collect()
}

/// 40 cases: the more they state, the more often they are right.
const GROUPS: [(f64, usize, usize); 4] = [(0.98, 12, 12), (0.9, 16, 15), (0.8, 8, 6), (0.6, 4, 2)];

fn place(runs: &str) -> Place {
    let place = Place::new();
    place.write("runs.jsonl", runs);
    place
}

fn calibrated(place: &Place, flags: &[&str]) -> Value {
    let args = ["calibrate", "code-reviewer", "--runs", "runs.jsonl", "--format", "json"];
    json(&place.cog(args.into_iter().chain(flags.iter().copied())).output().unwrap())
}

#[track_caller]
fn assert_close(found: &Value, expected: f64) {
    assert!((found.as_f64().unwrap() - expected).abs() < 1e-9, "{found} is not {expected}");
}

#[test]
fn report_with_a_threshold() {
    let flags = ["--target", "0.8", "--risk", "0.1", "--format", "human"];
    snapshot!(
        place(&runs(&GROUPS))
            .cog(["calibrate", "code-reviewer", "--runs", "runs.jsonl"].into_iter().chain(flags))
    );
}

#[test]
fn report_of_what_is_needed() {
    let flags = ["--target", "0.9", "--format", "human"];
    snapshot!(
        place(&runs(&GROUPS))
            .cog(["calibrate", "code-reviewer", "--runs", "runs.jsonl"].into_iter().chain(flags))
    );
}

/// The values are printed by `figures` of `crates/cog-trust/tests/reference/figures.py`.
#[test]
fn figures_equal_those_of_scipy_and_scikit_learn() {
    let report = calibrated(&place(&runs(&GROUPS)), &["--target", "0.8", "--risk", "0.1"]);
    assert_eq!((&report["cases"], &report["runs"]), (&40.into(), &40.into()));
    for (pointer, expected) in [
        ("/accuracy", 0.875),
        ("/interval/0", 0.7319670826382796),
        ("/interval/1", 0.9581403738613833),
        ("/stated_mean", 0.874),
        ("/brier/score", 0.08812),
        ("/brier/skill", 0.1943314285714285),
        ("/log_loss", 0.28843487899263565),
        ("/ece/value", 0.041),
        ("/ece/null", 0.06410609924977546),
        ("/auroc/value", 0.8428571428571429),
        ("/auroc/interval/0", 0.5724767501886755),
        ("/auroc/interval/1", 0.9503526582069884),
        ("/gate/target", 0.8),
        ("/gate/risk", 0.1),
        ("/gate/threshold", 0.8),
        ("/gate/accepted", 36.0),
        ("/map/intercept", -0.19827126786188262),
        ("/map/slope", 1.1687946256587642),
    ] {
        assert_close(report.pointer(pointer).unwrap_or_else(|| panic!("{pointer} in {report}")), expected);
    }
    assert_eq!((&report["gate"]["needed"], &report["map"]["kind"]), (&Value::Null, &"logistic".into()));
    assert_eq!(report["reliability"].as_array().unwrap().len(), 3);
    let curve = report["risk_coverage"].as_array().unwrap();
    assert_eq!(curve.len(), 4);
    assert_close(&curve[1]["accepted"], 0.7);
    assert_close(&curve[1]["accuracy"], 27.0 / 28.0);
}

#[test]
fn needed_answers_suffice() {
    let place = place(&runs(&GROUPS));
    let report = calibrated(&place, &["--target", "0.9"]);
    assert_eq!((&report["gate"]["threshold"], &report["gate"]["risk"]), (&Value::Null, &0.1.into()));
    let needed = report["gate"]["needed"].as_u64().unwrap() as usize;
    let at = report["gate"]["needed_at"].as_f64().unwrap();
    for (more, has_threshold) in [(needed - 1, false), (needed, true)] {
        place.write("runs.jsonl", runs(&[&GROUPS[..], &[(at, more, more)]].concat()));
        assert_eq!(calibrated(&place, &["--target", "0.9"])["gate"]["threshold"].is_number(), has_threshold);
    }
}

#[test]
fn without_a_target_there_is_a_report_only() {
    let place = place(&runs(&GROUPS));
    let output = place.cog(["calibrate", "code-reviewer", "--runs", "runs.jsonl"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(json(&output)["gate"], Value::Null);
}

#[test]
fn confidence_is_read_from_an_envelope() {
    let line = |case: usize, right: bool| {
        let meta = r#"{"confidence": 0.9, "risk": "low", "explain": "x"}"#;
        format!(
            "{{\"case\": {case}, \"right\": {right}, \"envelope\": {{\"ok\": true, \"meta\": {meta}, \"data\": {{}}}}, \"evidence\": {{}}}}\n"
        )
    };
    let place = place(&(line(1, true) + "\n" + &line(1, false) + &line(2, true)));
    let report = calibrated(&place, &[]);
    assert_eq!(
        (&report["cases"], &report["runs"], &report["stated_mean"]),
        (&2.into(), &3.into(), &0.9.into())
    );
    assert_eq!(report["accuracy"], 0.75);
}

#[test]
fn samples_that_say_nothing() {
    for (groups, needed) in [
        // The fewest cases that can certify 90 % at 90 % confidence are 22.
        (&[(0.9, 1, 1)][..], 21),
        (&[(1.0, 10, 10)], 12),
        (&[(0.0, 10, 10)], 12),
        // scipy.stats.binom.cdf(10, 151, 0.1) > 0.1 >= binom.cdf(10, 152, 0.1)
        (&[(1.0, 10, 0)], 142),
    ] {
        let place = place(&runs(groups));
        let report = calibrated(&place, &["--target", "0.9"]);
        assert_eq!(report["gate"]["needed"], needed, "{groups:?}");
        let nothing = (&report["auroc"]["value"], &report["auroc"]["interval"], &report["brier"]["skill"]);
        assert_eq!(nothing, (&Value::Null, &Value::Null, &Value::Null), "{groups:?}");
    }
}

#[test]
fn invalid_lines_are_reported_with_their_number() {
    let lines = [
        r#"{"case": "a", "confidence": 0.9, "right": true}"#,
        r#"{"case": "b", "confidence": NaN, "right": true}"#,
        r#"{"case": "c", "confidence": 1.2, "right": true}"#,
        r#"{"case": "d", "confidence": 0.9}"#,
        r#"{"case": "e", "confidence": 0.9, "right": "yes"}"#,
        r#"{"confidence": 0.9, "right": true}"#,
        r#"{"case": "f", "right": true}"#,
        r#"{"case": "g", "envelope": {"ok": true, "meta": {}}, "right": true}"#,
        "[1]",
        r#"{"case": ["h"], "confidence": "0.9", "right": true}"#,
    ];
    snapshot!(place(&lines.join("\n")).cog(["calibrate", "code-reviewer", "--runs", "runs.jsonl"]));
}

#[test]
fn file_without_runs_is_an_error() {
    snapshot!(place("\n").cog(["calibrate", "code-reviewer", "--runs", "runs.jsonl"]));
    snapshot!(Place::new().cog(["calibrate", "code-reviewer", "--runs", "missing.jsonl"]));
}

#[test]
fn target_is_a_share() {
    snapshot!(place("").cog(["calibrate", "code-reviewer", "--runs", "runs.jsonl", "--target", "90"]));
}

#[test]
fn runs_are_read_from_stdin_and_the_module_from_a_path() {
    let place = place(&runs(&GROUPS));
    assert!(place.cog(["new", "m", "--in", "."]).output().unwrap().status.success());
    let output = with_stdin(place.cog(["calibrate", "./m", "--runs", "-"]), &runs(&GROUPS));
    assert_eq!(json(&output)["cases"], 40);
}

#[test]
fn report_as_a_page() {
    let place = place(&runs(&GROUPS));
    let args =
        ["calibrate", "code-reviewer", "--runs", "runs.jsonl", "--target", "0.8", "--html", "report.html"];
    assert!(place.cog(args).output().unwrap().status.success());
    let page = place.read("report.html");
    for part in [
        "<title>cog calibrate: code-reviewer: 40 cases, 40 runs</title>",
        "of them right",
        "default-src 'none'",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for absent in ["<script", "http://", "https://", "NaN"] {
        assert!(!page.contains(absent), "{absent}: {page}");
    }
    let bins = calibrated(&place, &[])["reliability"].as_array().unwrap().len();
    assert_eq!((page.matches("class=\"interval\"").count(), page.matches("<svg").count()), (bins, 2));
    // All answers right and equally confident, and a single wrong one: no line has a width.
    for groups in [[(0.9, 3, 3)], [(1.0, 1, 0)]] {
        place.write("runs.jsonl", runs(&groups));
        place.cog(args[..4].iter().copied()).args(["--html", "report.html"]).output().unwrap();
        assert!(!place.read("report.html").contains("NaN"));
    }
}
