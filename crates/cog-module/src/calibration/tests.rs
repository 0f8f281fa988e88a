use std::path::PathBuf;

use cog_spec::LogisticMap;

use super::*;
use crate::{Trust, testing::Directory};

fn key(model: &str) -> CalibrationKey {
    CalibrationKey {
        provider: "openai".to_owned(),
        model: model.to_owned(),
        effort: None,
        form: Form::ENVELOPE,
        evidence: EvidenceRequest::default(),
    }
}

fn new(model: &str) -> NewCalibration {
    NewCalibration {
        key: key(model),
        map: EvidenceMap::of(Calibration::STATED, LogisticMap { intercept: -0.5, slope: 0.75 }),
        scores: vec![
            ScoreCount { score: 0.95, cases: 30, right: 29 },
            ScoreCount { score: 0.6, cases: 4, right: 2 },
        ],
        compared: Vec::new(),
    }
}

fn measured() -> Directory {
    let directory = Directory::v22();
    directory.load().unwrap().keep_calibration(None, new("m")).unwrap();
    directory
}

/// Returns why a calibration is not valid; none if it is.
fn why(directory: &Directory, key: &CalibrationKey) -> Option<String> {
    let module = directory.load().unwrap();
    match module.calibrations(None).find(&module, key) {
        CalibrationEntry::Valid(_) => None,
        CalibrationEntry::Stale(_, reason) => Some(format!("stale: {reason}")),
        CalibrationEntry::Missing(reason) => Some(format!("missing: {reason}")),
    }
}

#[test]
fn kept_calibration_is_found_for_its_model() {
    let directory = measured();
    let module = directory.load().unwrap();
    let found = module.calibrations(None);
    let CalibrationEntry::Valid(calibration) = found.find(&module, &key("m")) else { panic!("not valid") };
    assert_eq!((&calibration.map, &calibration.scores), (&new("m").map, &new("m").scores));
    let total = calibration.cases();
    assert_eq!((total.cases, total.right), (34, 31));
    assert_eq!(why(&directory, &key("n")).unwrap(), "missing: openai/m was not measured".replace("/m", "/n"));
    let with_effort = CalibrationKey { effort: Some(Effort::Low), ..key("m") };
    assert!(why(&directory, &with_effort).unwrap().contains("was not measured with effort `low`"));
}

#[test]
fn kept_calibration_replaces_only_the_one_of_its_model() {
    let directory = measured();
    let module = directory.load().unwrap();
    module.keep_calibration(None, new("a")).unwrap();
    module.keep_calibration(None, NewCalibration { scores: Vec::new(), ..new("m") }).unwrap();
    let found = module.calibrations(None);
    let cases: Vec<_> = found.models().map(|it| (it.model.as_str(), it.cases().cases)).collect();
    assert_eq!(cases, [("a", 34), ("m", 0)]);
}

#[test]
fn what_an_answer_depends_on_makes_it_stale() {
    for (file, from, to) in [
        ("prompt.md", "$ARGUMENTS", "$ARGUMENTS well"),
        ("schema.json", "billing", "payment"),
        ("module.yaml", "responsibility:", "responsibility: Also"),
    ] {
        let directory = measured();
        let text = directory.read(file).replacen(from, to, 1);
        let directory = directory.with(file, text);
        let reason = why(&directory, &key("m"));
        assert_eq!(reason.as_deref(), Some("stale: manifest, prompt or schema has changed since"), "{file}");
    }
    let other_form = CalibrationKey { form: Form::ANSWER, ..key("m") };
    assert!(why(&measured(), &other_form).unwrap().starts_with("stale: the model was asked in the form"));
}

#[test]
fn agreement_of_another_number_of_runs_is_other_evidence() {
    let directory = Directory::v22();
    let collecting = |evidence: &str| CalibrationKey { evidence: evidence.parse().unwrap(), ..key("m") };
    let slopes = [("agreement".to_owned(), 0.5), ("judge".to_owned(), 0.5)];
    let map = EvidenceMap { intercept: 0.0, slopes: slopes.into() };
    let measured = NewCalibration { key: collecting("agreement=5,judge"), map, ..new("m") };
    directory.load().unwrap().keep_calibration(None, measured).unwrap();
    assert_eq!(why(&directory, &collecting("agreement=5,grounding,judge")), None);
    let fewer = why(&directory, &collecting("agreement=3,judge")).unwrap();
    assert_eq!(fewer, "stale: its agreement is of 5 runs, and this one of 3");
    let other = why(&directory, &collecting("agreement=5,judge=mine")).unwrap();
    assert_eq!(other, "stale: its judge is `answer-judge`, and is now `mine`");
    assert_eq!(why(&directory, &key("m")), None, "the answer itself lacks the evidence");
}

#[test]
fn a_gate_a_version_and_line_ends_do_not_make_it_stale() {
    let directory = measured();
    let manifest = directory.read("module.yaml")
        + "confidence:\n  source: calibrated\n  gate: {accuracy: 0.9}\n  below: fail\n";
    let prompt = directory.read("prompt.md").replace('\n', "\r\n");
    let directory = directory.with("module.yaml", manifest).with("prompt.md", prompt);
    assert_eq!(why(&directory, &key("m")), None);
    let gate = directory.load().unwrap().manifest.confidence.gate.unwrap();
    assert_eq!((gate.accuracy, gate.risk), (0.9, 0.1));
}

#[test]
fn edited_calibration_is_stale() {
    for (from, to) in [("0.95", "0.5"), ("29", "30"), ("-0.5", "0.5"), ("\"stated\"", "\"logprob\"")] {
        let directory = measured();
        let text = directory.read("calibration.json").replacen(from, to, 1);
        assert_ne!(text, directory.read("calibration.json"));
        let directory = directory.with("calibration.json", text);
        assert_eq!(why(&directory, &key("m")).as_deref(), Some("stale: it was edited"), "{from}");
    }
}

#[test]
fn calibration_of_another_module_is_stale() {
    let text = measured().read("calibration.json");
    let other = Directory::v22().with("prompt.md", "Another $ARGUMENTS.\n").with("calibration.json", text);
    assert!(why(&other, &key("m")).unwrap().starts_with("stale: "));
}

#[test]
fn untrusted_directory_makes_it_stale() {
    let directory = measured();
    let module = Module { trust: Trust::Untrusted(PathBuf::from("/x")), ..directory.load().unwrap() };
    let found = module.calibrations(None);
    let CalibrationEntry::Stale(_, reason) = found.find(&module, &key("m")) else { panic!("not stale") };
    assert_eq!(reason, "its directory is not trusted");
}

#[test]
fn unusable_file_is_no_calibration_and_is_not_replaced() {
    for (text, problem) in [
        ("{", "is not JSON"),
        ("[]", "has no version"),
        (r#"{"version": 2, "calibrations": []}"#, "has version 2, and this program reads 1"),
        (r#"{"version": 1}"#, "is damaged"),
        (r#"{"version": 1, "calibrations": [{}]}"#, "is damaged"),
    ] {
        let directory = Directory::v22().with("calibration.json", text);
        let reason = why(&directory, &key("m")).unwrap();
        assert!(reason.contains(problem), "{reason}");
        let error = directory.load().unwrap().keep_calibration(None, new("m")).unwrap_err();
        assert!(matches!(error, KeepCalibrationError::Damaged { .. }), "{error}");
        assert_eq!(directory.read("calibration.json"), text);
    }
}

#[test]
fn file_that_is_too_large_is_not_read() {
    let row = r#"{"score":0.5,"cases":1,"right":1},"#;
    let text = format!("{{\"version\": 1, \"calibrations\": [{}]}}", row.repeat(300_000));
    let reason = why(&Directory::v22().with("calibration.json", text), &key("m")).unwrap();
    assert!(reason.contains("larger than 8388608 bytes"), "{reason}");
}

#[test]
fn module_that_is_built_in_has_its_file_in_the_state_directory() {
    let state = Directory::v22();
    let module = crate::load(&Origin::BuiltIn(crate::BuiltinModule::find("code-reviewer").unwrap())).unwrap();
    assert!(matches!(module.keep_calibration(None, new("m")), Err(KeepCalibrationError::NoDirectory)));
    let path = module.keep_calibration(Some(state.path()), new("m")).unwrap();
    assert!(path.ends_with("calibrations/code-reviewer.json"), "{}", path.display());
    let found = module.calibrations(Some(state.path()));
    assert!(matches!(found.find(&module, &key("m")), CalibrationEntry::Valid(_)));
}

#[test]
fn gate_needs_a_calibrated_source_and_an_accuracy() {
    for (text, message) in [
        ("confidence: {gate: {accuracy: 0.9}}\n", "a gate needs a measured confidence"),
        ("confidence: {source: calibrated, gate: {risk: 0.1}}\n", "accuracy"),
        ("confidence: {source: calibrated, gate: {accuracy: 1.5}}\n", "accuracy"),
        ("confidence: {source: guessed}\n", "guessed"),
        ("confidence: {below: retry}\n", "retry"),
    ] {
        let directory = Directory::v22();
        let manifest = directory.read("module.yaml") + text;
        let error = directory.with("module.yaml", manifest).load().unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}
