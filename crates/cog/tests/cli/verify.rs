use crate::support::{Place, json, snapshot, with_stdin};

#[test]
fn valid_envelope() {
    let place = Place::new();
    place.write(
        "e.json",
        r#"{"ok": true, "meta": {"confidence": 1, "risk": "low", "explain": "x"}, "data": {"rationale": "y"}}"#,
    );
    snapshot!(place.cog(["verify", "e.json"]));
}

#[test]
fn invalid_envelope_as_text() {
    let place = Place::new();
    place.write("e.json", r#"{"ok": true, "meta": {"confidence": 2, "risk": "low"}, "data": {}}"#);
    snapshot!(place.cog(["verify", "e.json", "--format", "human"]));
}

#[test]
fn bare_answer_with_module() {
    let place = Place::new();
    place.write("a.json", r#"{"verdict": "maybe", "issues": []}"#);
    snapshot!(place.cog(["verify", "a.json", "--module", "code-reviewer"]));
}

#[test]
fn answer_that_fails_a_check_of_its_module() {
    let place = Place::new();
    assert!(place.cog(["new", "invoice", "--kind", "extract"]).status().unwrap().success());
    let manifest = "cognitive/modules/invoice/module.yaml";
    let checks = "checks:
  - name: known_rationale
    that: contains($.input.text, $.data.rationale)
  - name: long_rationale
    that: length($.data.rationale) > 100
";
    place.write(manifest, format!("{}{checks}", place.read(manifest)));
    place.write("input.json", r#"{"text": "Bill of Acme, 3 EUR."}"#);
    place.write("answer.json", r#"{"name": "Acme", "date": null, "amount": 3, "rationale": "It says so."}"#);
    let verify = ["verify", "answer.json", "--kind", "answer", "--module", "invoice"];
    snapshot!(place.cog(verify));
    snapshot!(place.cog(verify).args(["--input", "input.json"]));
}

#[test]
fn verify_rejects_text_that_is_not_json() {
    for text in ["", "nonsense", "\u{0}"] {
        let output = with_stdin(Place::new().cog(["verify", "-"]), text);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(json(&output)["violations"].as_array().map(Vec::len), Some(1), "{text:?}");
    }
}

#[test]
fn names_the_byte_that_is_not_utf8() {
    let place = Place::new();
    place.write("latin1.json", b"{\"ok\": true, \"x\": \"caf\xe9\"}");
    let output = place.cog(["verify", "latin1.json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = "not JSON: not UTF-8 text: invalid byte 0xE9 (`é` in Latin-1) at offset 22";
    assert_eq!(json(&output)["violations"][0]["message"], message);
}

#[test]
fn missing_file() {
    snapshot!(Place::new().cog(["verify", "nowhere.json"]));
}
