use crate::support::{Place, json, snapshot, with_stdin};

#[test]
fn a_good_envelope() {
    let place = Place::new();
    place.write(
        "e.json",
        r#"{"ok": true, "meta": {"confidence": 1, "risk": "low", "explain": "x"}, "data": {"rationale": "y"}}"#,
    );
    snapshot!(place.cog(["verify", "e.json"]));
}

#[test]
fn a_bad_envelope_for_people() {
    let place = Place::new();
    place.write("e.json", r#"{"ok": true, "meta": {"confidence": 2, "risk": "low"}, "data": {}}"#);
    snapshot!(place.cog(["verify", "e.json", "--format", "human"]));
}

#[test]
fn a_bare_answer_against_a_module() {
    let place = Place::new();
    place.write("a.json", r#"{"verdict": "maybe", "issues": []}"#);
    snapshot!(place.cog(["verify", "a.json", "--module", "code-reviewer"]));
}

#[test]
fn what_is_no_json_is_one_violation() {
    for text in ["", "nonsense", "\u{0}"] {
        let output = with_stdin(Place::new().cog(["verify", "-"]), text);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(json(&output)["violations"].as_array().map(Vec::len), Some(1), "{text:?}");
    }
}

#[test]
fn a_file_that_is_not_there() {
    snapshot!(Place::new().cog(["verify", "nowhere.json"]));
}
