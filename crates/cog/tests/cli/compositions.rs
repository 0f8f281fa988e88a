//! The compositions that ship: run offline, with each protocol, and from recordings.

use std::process::Command;

use cog_testkit::{Mock, Wire};
use serde_json::Value;

use crate::{
    golden::{Golden, goldens, replies, shipped},
    support::{Place, copy, json, stderr, stdout, with_stdin},
};

pub(crate) const COMPOSITIONS: [&str; 3] = ["review-pipeline", "text-refiner", "review-comment"];

/// The number of model calls of all golden tests: 4, 5 and 4 for the reviews, 4 and 2 for the texts, 2 and 2 for the
/// comments.
const CALLS: usize = 23;

/// Fails unless an envelope or a final chunk has the golden answer, with the meta that the parts determine.
pub(crate) fn check(golden: &Golden, answer: &Value) {
    let Golden { module, name, answer: expected, .. } = golden;
    assert_eq!(answer["data"], expected["data"], "{module} {name}: {answer}");
    for (key, value) in expected["meta"].as_object().unwrap() {
        assert_eq!(&answer["meta"][key], value, "{module} {name}: {answer}");
    }
}

fn all_goldens() -> impl Iterator<Item = Golden> {
    COMPOSITIONS.into_iter().flat_map(goldens)
}

/// Returns the paths of the parts that ran.
fn parts(answer: &Value) -> Vec<&str> {
    let parts = answer["meta"]["parts"].as_array().unwrap().iter();
    parts.filter(|part| part["status"] == "done").map(|part| part["path"].as_str().unwrap()).collect()
}

/// Lets a command call a provider at the mock.
pub(crate) fn with_provider(mut command: Command, wire: Wire, mock: &Mock) -> Command {
    let name = wire.provider().to_uppercase();
    command.env(format!("{name}_API_KEY"), "sk-canary").env(format!("{name}_BASE_URL"), mock.base_url(wire));
    command.envs(wire.protocol_setting().map(|protocol| ("OPENAI_PROTOCOL", protocol)));
    command.args(["--provider", wire.provider(), "--model", "m"]);
    command
}

#[test]
fn golden_answers_of_the_parts_make_the_golden_answer() {
    let place = Place::new();
    for golden in all_goldens() {
        let output = place.cog(["run", &golden.module, "--input-json", &golden.input.to_string()]).output();
        check(&golden, &json(&output.unwrap()));
    }
}

#[test]
fn confidence_of_the_merged_review_decides_about_a_complete_review() {
    let place = Place::new();
    for golden in goldens("review-pipeline") {
        let output =
            place.cog(["run", "review-pipeline", "--input-json", &golden.input.to_string()]).output();
        let answer = json(&output.unwrap());
        let merger =
            answer["meta"]["parts"].as_array().unwrap().iter().find(|part| part["path"] == "review-merger");
        let is_certain = merger.unwrap()["confidence"].as_f64().unwrap() >= 0.7;
        assert_eq!(parts(&answer).contains(&"code-reviewer"), !is_certain, "{}: {answer}", golden.name);
        assert_eq!(is_certain, golden.name != "case2");
    }
}

#[test]
fn rounds_end_when_the_text_is_accepted() {
    let place = Place::new();
    let rounds = goldens("text-refiner").into_iter().map(|golden| {
        let output = place.cog(["run", "text-refiner", "--input-json", &golden.input.to_string()]).output();
        parts(&json(&output.unwrap())).len() / 2
    });
    assert_eq!(rounds.collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn golden_tests_pass_with_each_protocol_and_from_its_recording() {
    for wire in Wire::ALL {
        let (place, mock) = (Place::new(), Mock::start(replies()));
        COMPOSITIONS.iter().for_each(|module| copy(&shipped(module), &place.path().join(module)));
        let tests = || {
            place.cog(["test", "./review-pipeline", "./text-refiner", "./review-comment", "--format", "json"])
        };
        let mut recording = with_provider(tests(), wire, &mock);
        let recorded = json(&recording.arg("--record").output().unwrap());
        assert_eq!(
            (&recorded["passed"], &recorded["failed"]),
            (&7.into(), &0.into()),
            "{wire:?}: {recorded}"
        );
        assert_eq!(mock.requests().len(), CALLS, "{wire:?}");
        drop(mock);
        let replayed = json(&tests().arg("--require-model").output().unwrap());
        assert_eq!(
            (&replayed["passed"], &replayed["failed"]),
            (&7.into(), &0.into()),
            "{wire:?}: {replayed}"
        );
    }
}

#[test]
fn recorded_stream_is_replayed_without_a_key() {
    let (place, mock) = (Place::new(), Mock::start(replies()));
    for golden in all_goldens() {
        let (tape, input) = (format!("{}-{}", golden.module, golden.name), golden.input.to_string());
        let run = || place.cog(["run", &golden.module, "--input-json", &input, "--stream"]);
        let mut recording = with_provider(run(), Wire::OpenAi, &mock);
        assert!(recording.args(["--record", &tape]).output().unwrap().status.success());
        let replayed = run().args(["--replay", &tape]).output().unwrap();
        let last = stdout(&replayed).lines().last().map(|line| serde_json::from_str(line).unwrap());
        check(&golden, &last.unwrap_or_else(|| panic!("{tape}: {}", stderr(&replayed))));
        let verify = place.cog(["verify", "-", "--kind", "stream", "--module", &golden.module]);
        assert_eq!(json(&with_stdin(verify, &stdout(&replayed)))["valid"], true, "{tape}");
    }
    assert_eq!(mock.requests().len(), CALLS);
}
