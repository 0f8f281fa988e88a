//! Random answers pass the same checks here and in an evaluator of its own, in Python.

#![expect(clippy::disallowed_methods, reason = "tests read the environment")]

use std::{path::Path, process::Command};

use cog_json::Value;
use cog_rules::{CheckedAnswer, Checks, Verdict};
use cog_spec::CheckRule;

const ANSWERS: usize = 10_000;

#[test]
fn random_answers_pass_the_same_checks_as_in_python() {
    let interpreter = std::env::var_os("COG_TEST_PYTHON").expect("COG_TEST_PYTHON: a Python");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/evaluate.py");
    let output = Command::new(interpreter).arg(script).arg(ANSWERS.to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut lines = printed.lines();
    let written: Vec<String> = serde_json::from_str(lines.next().unwrap()).unwrap();
    let rules: Vec<CheckRule> = written.iter().map(|text| rule(text)).collect();
    let (checks, findings) = Checks::compile(&rules, None);
    assert_eq!(findings, []);
    // A check that all answers pass, or none, would compare nothing.
    let mut passed = vec![0; written.len()];
    let mut answers = 0;
    for line in lines {
        let sample = Value::parse(line).unwrap();
        let (input, data) = (sample.get("input"), sample.get("data").unwrap());
        let answer = CheckedAnswer::new(input, data);
        let expected = sample.get("passed").unwrap().elements().map(|passed| passed.as_bool().unwrap());
        for ((check, expected), passed) in checks.iter().zip(expected).zip(&mut passed) {
            let found = answer.run(check) == Verdict::Passed;
            assert_eq!(found, expected, "{} of {data}", check.text());
            *passed += usize::from(found);
        }
        answers += 1;
    }
    assert_eq!(answers, ANSWERS);
    for (text, passed) in written.iter().zip(passed) {
        assert!((100..ANSWERS - 100).contains(&passed), "{passed} answers pass `{text}`");
    }
}

fn rule(text: &str) -> CheckRule {
    match text.strip_prefix("grounded: ") {
        Some(path) => CheckRule { grounded: Some(path.to_owned()), ..CheckRule::default() },
        None => CheckRule { that: Some(text.to_owned()), ..CheckRule::default() },
    }
}
