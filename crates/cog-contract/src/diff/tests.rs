use cog_module::ModuleFiles;

use super::*;

const MANIFEST: &str =
    "name: sort\nversion: 1.0.0\nresponsibility: Sorts a message\ntier: decision\nexcludes: []\n";
const SCHEMA: &str = r#"{
  "input": { "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"], "additionalProperties": false },
  "meta": { "type": "object" },
  "data": { "type": "object", "properties": { "rationale": { "type": "string" }, "queue": { "enum": ["billing", "other"] } },
            "required": ["rationale", "queue"] }
}"#;
const PROMPT: &str = "Sort $ARGUMENTS into a queue.\n";

fn files(manifest: &str, prompt: &str, schema: &str) -> ModuleFiles {
    ModuleFiles::default()
        .with("module.yaml", manifest.to_owned())
        .with("prompt.md", prompt.to_owned())
        .with("schema.json", schema.to_owned())
}

fn module(manifest: &str, prompt: &str, schema: &str) -> Module {
    files(manifest, prompt, schema).load().unwrap()
}

/// Returns the difference from the module above to the same one with a replacement in each file.
fn after(replacements: &[(&str, &str)]) -> Difference {
    let mut text = [MANIFEST.to_owned(), PROMPT.to_owned(), SCHEMA.to_owned()];
    for (from, to) in replacements {
        assert!(text.iter().any(|file| file.contains(from)), "{from}");
        text = text.map(|file| file.replace(from, to));
    }
    let [manifest, prompt, schema] = text;
    diff(&module(MANIFEST, PROMPT, SCHEMA), &module(&manifest, &prompt, &schema))
}

/// Returns `part path kind effect` of the only change.
fn only(difference: &Difference) -> String {
    let [change] = difference.changes.as_slice() else { panic!("{:?}", difference.changes) };
    format!("{} {} {} {}", change.part.as_str(), change.path, change.kind, change.effect.as_str())
}

#[test]
fn equal_modules_do_not_differ() {
    let difference = after(&[]);
    assert_eq!((difference.verdict(), difference.version_step()), (Verdict::Equal, VersionStep::None));
    assert_eq!(difference.changes, []);
    assert!(difference.is_version_raised());
}

#[test]
fn verdict_and_step_follow_from_the_changes() {
    for (from, to, verdict, step) in [
        ("Sorts a message", "Sorts one message", Verdict::Equal, VersionStep::Patch),
        ("version: 1.0.0", "version: 1.0.1", Verdict::Equal, VersionStep::None),
        ("into a queue", "into the right queue", Verdict::Compatible, VersionStep::Patch),
        ("\"required\": [\"text\"]", "\"required\": []", Verdict::Compatible, VersionStep::Minor),
        ("[\"billing\", \"other\"]", "[\"billing\"]", Verdict::Compatible, VersionStep::Minor),
        (
            "[\"billing\", \"other\"]",
            "[\"billing\", \"other\", \"sales\"]",
            Verdict::Breaking,
            VersionStep::Major,
        ),
        ("name: sort", "name: sorter", Verdict::Breaking, VersionStep::Major),
    ] {
        let difference = after(&[(from, to)]);
        let found = (difference.verdict(), difference.version_step());
        assert_eq!(found, (verdict, step), "{to}: {:?}", difference.changes);
    }
}

#[test]
fn callers_and_readers_are_told_apart() {
    let input = after(&[(
        "\"text\": { \"type\": \"string\" }",
        "\"text\": { \"type\": \"string\", \"minLength\": 1 }",
    )]);
    assert_eq!(only(&input), "input input.text min_length_added breaks_callers");
    let example = input.changes[0].example.as_ref().unwrap().to_serde();
    assert_eq!(example, serde_json::json!({ "text": "" }));
    let data = after(&[("\"required\": [\"rationale\", \"queue\"]", "\"required\": [\"rationale\"]")]);
    assert_eq!(only(&data), "data data.queue required_removed breaks_readers");
}

#[test]
fn rules_about_answers_are_shown_by_an_answer() {
    let manifest = |text: &str| format!("{MANIFEST}{text}");
    let compare = |old: &str, new: &str| {
        diff(&module(&manifest(old), PROMPT, SCHEMA), &module(&manifest(new), PROMPT, SCHEMA))
    };
    for (old, new, expected, member) in [
        ("schema_strictness: high\n", "schema_strictness: medium\n", "schema_strictness", "/undeclared"),
        (
            "overflow: { enabled: false }\n",
            "overflow: { enabled: true }\n",
            "overflow.enabled",
            "/extensions/insights",
        ),
    ] {
        let difference = compare(old, new);
        assert_eq!(only(&difference), format!("manifest {expected} value_changed breaks_readers"));
        let example = difference.changes[0].example.as_ref().unwrap();
        assert!(example.to_serde().pointer(member).is_some(), "{}", example.to_serde());
        let accepts = |text: &str| {
            let module = module(&manifest(text), PROMPT, SCHEMA);
            module.contract.check_data(example.node()).violations.is_empty()
        };
        assert!(!accepts(old) && accepts(new));
        assert_eq!(only(&compare(new, old)), format!("manifest {expected} value_changed compatible"));
    }
}

#[test]
fn new_field_breaks_readers_of_a_strict_module() {
    let schema = SCHEMA.replace("\"queue\": {", "\"notes\": { \"type\": \"array\", \"items\": { \"type\": \"object\", \"properties\": { \"line\": {} } } }, \"queue\": {");
    let new = schema.replace("\"line\": {} }", "\"line\": {}, \"text\": { \"type\": \"string\" } }");
    for (strictness, effect) in
        [("high", Effect::BreaksReaders), ("medium", Effect::Compatible), ("low", Effect::Compatible)]
    {
        let manifest = format!("{MANIFEST}schema_strictness: {strictness}\n");
        let [old, new] = [&schema, &new].map(|schema| module(&manifest, PROMPT, schema));
        let difference = diff(&old, &new);
        assert_eq!(only(&difference), format!("data data.notes[].text field_added {}", effect.as_str()));
        let example = difference.changes[0].example.as_ref();
        assert_eq!(example.is_some(), effect == Effect::BreaksReaders);
        if let Some(example) = example {
            assert!(new.contract.check_data(example.node()).violations.is_empty());
            assert!(!old.contract.check_data(example.node()).violations.is_empty());
        }
    }
}

#[test]
fn new_error_code_breaks_readers() {
    let coded = module(&format!("{MANIFEST}error_codes: {{ E6001: The queue is closed }}\n"), PROMPT, SCHEMA);
    let plain = module(MANIFEST, PROMPT, SCHEMA);
    let forth = diff(&plain, &coded);
    assert_eq!(only(&forth), "manifest error_codes value_changed breaks_readers");
    let example = forth.changes[0].example.as_ref().unwrap();
    assert_eq!(example.to_serde()["code"], "E6001");
    assert!(coded.contract.check_error(example.node()).is_empty());
    assert!(!plain.contract.check_error(example.node()).is_empty());
    assert_eq!(only(&diff(&coded, &plain)), "manifest error_codes value_changed compatible");
}

#[test]
fn check_may_be_added_and_its_removal_is_not_decided() {
    let checked = |checks: &str| module(&format!("{MANIFEST}checks: [{checks}]\n"), PROMPT, SCHEMA);
    let one = checked("{ name: reasoned, that: length($.data.rationale) > 0 }");
    let other = checked("{ name: reasoned, that: length($.data.rationale) > 0, message: Say why. }");
    let plain = module(MANIFEST, PROMPT, SCHEMA);
    assert_eq!(only(&diff(&plain, &one)), "manifest checks value_changed compatible");
    assert_eq!(only(&diff(&one, &other)), "manifest checks value_changed compatible");
    assert_eq!(only(&diff(&one, &plain)), "manifest checks value_changed unknown");
}

#[test]
fn what_callers_may_do_no_longer_breaks_them() {
    for (old, new, path) in [
        (
            "invocation: { agent_invocable: true }\n",
            "invocation: { agent_invocable: false }\n",
            "invocation.agent_invocable",
        ),
        ("", "runtime_requirements: { max_input_tokens: 100 }\n", "runtime_requirements.max_input_tokens"),
    ] {
        let [old, new] = [old, new].map(|text| module(&format!("{MANIFEST}{text}"), PROMPT, SCHEMA));
        let forth = diff(&old, &new);
        assert_eq!((forth.changes[0].path.as_str(), forth.changes[0].effect), (path, Effect::BreaksCallers));
        assert_eq!(diff(&new, &old).changes[0].effect, Effect::Compatible);
    }
}

#[test]
fn golden_tests_are_compared_by_name() {
    let with = |cases: &[(&str, &str, &str)]| {
        let mut files = files(MANIFEST, PROMPT, SCHEMA);
        for (name, text, queue) in cases {
            let input = format!(r#"{{"text": "{text}"}}"#);
            let expected = format!(r#"{{"queue": "{queue}", "rationale": "Because."}}"#);
            files = files
                .with(format!("tests/{name}.input.json"), input)
                .with(format!("tests/{name}.expected.json"), expected);
        }
        files.load().unwrap()
    };
    let old = with(&[
        ("a", "refund", "billing"),
        ("b", "hello", "other"),
        ("c", "x", "other"),
        ("d", "y", "other"),
    ]);
    let new = with(&[
        ("a", "refund", "billing"),
        ("b", "hello", "billing"),
        ("c", "z", "other"),
        ("e", "y", "other"),
    ]);
    let difference = diff(&old, &new);
    let found: Vec<_> =
        difference.golden_tests.iter().map(|test| format!("{} {}", test.name, test.kind.as_str())).collect();
    assert_eq!(found, ["b expectation_changed", "c input_changed", "e added", "d removed"]);
    assert_eq!(difference.verdict(), Verdict::Equal);
}

#[test]
fn version_must_follow_the_changes() {
    let removed = ("\"required\": [\"rationale\", \"queue\"]", "\"required\": [\"rationale\"]");
    let low = after(&[removed, ("version: 1.0.0", "version: 1.1.0")]);
    assert_eq!((low.next_version().as_deref(), low.is_version_raised()), (Some("2.0.0"), false));
    assert!(after(&[removed, ("version: 1.0.0", "version: 2.0.0")]).is_version_raised());
}
