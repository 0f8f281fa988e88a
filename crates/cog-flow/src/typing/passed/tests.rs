use crate::{
    check,
    testing::{Modules, composed, module, shown},
};

/// Returns the findings of a composition with these further modules, by the schemas of their inputs.
fn findings(composition: &str, prompt: &str, inputs: &[(&str, &str)]) -> Vec<String> {
    let modules = inputs.iter().fold(Modules::new(), |modules, (name, input)| {
        let schema = format!(r#"{{"input": {input}, "data": {{"type": "object", "properties": {{"n": {{"type": "integer"}}, "o": {{"type": "object", "properties": {{"text": {{"type": "integer"}}}}}}}}}}}}"#);
        modules.with(name, module(name, "", "Do it.", &schema))
    });
    shown(&check(composed("root", composition, prompt), &modules))
}

/// An input with a number where that of `root` has a text.
const NUMBER: (&str, &str) =
    ("number", r#"{"type": "object", "required": ["text"], "properties": {"text": {"type": "integer"}}}"#);
const CLOSED: (&str, &str) =
    ("closed", r#"{"type": "object", "properties": {"id": {}}, "additionalProperties": false}"#);

#[test]
fn fallback_receives_the_values_of_the_part() {
    let composition = |fallback: &str, mapping: &str| {
        format!(
            "requires:\n  - {{name: plain, fallback: {fallback}}}\ndataflow:\n  - {{from: input, to: plain{mapping}}}"
        )
    };
    let mapped = findings(&composition("reader", ", mapping: {limit: $.text, other: $.text}"), "", &[]);
    assert_eq!(
        mapped,
        [
            "error composition-mapping: `limit` in the input of `reader` (a fallback of `plain`) is integer, but the path selects string (Select another value, or change one of the schemas.)",
            "error composition-mapping: the input of `reader` (a fallback of `plain`) requires `text`, which the step does not give (Add `text:` with a path to `mapping`.)",
        ]
    );
    let refused = findings(&composition("closed", ", mapping: {other: $.text}"), "", &[CLOSED]);
    assert_eq!(
        refused,
        ["error composition-mapping: the input of `closed` (a fallback of `plain`) has no field `other`"]
    );
    let passed = findings(&composition("number", ""), "", &[NUMBER]);
    assert_eq!(
        passed,
        [
            "error composition-mapping: `text` in the input of `number` (a fallback of `plain`) is integer, but the step passes string (Add `mapping:` with a path for each field.)"
        ]
    );
    let chain = "requires:\n  - {name: plain, fallback: judge}\n  - {name: judge, fallback: number}\ndataflow:\n  - {from: input, to: plain}";
    assert!(findings(chain, "", &[NUMBER])[0].contains("`number` (a fallback of `plain`)"));
    assert_eq!(
        findings(&composition("reader", ", mapping: {text: $.text, other: $.count}"), "", &[]),
        [""; 0]
    );
}

#[test]
fn rule_without_a_step_passes_the_input() {
    let routing = |next: &str, more: &str| {
        format!("dataflow:\n  - {{from: input, to: plain}}\n{more}routing:\n  - {{next: {next}}}")
    };
    assert_eq!(
        findings(&routing("number", ""), "", &[NUMBER]),
        [
            "error composition-mapping: `text` in the input of `number` is integer, but the rule passes string (Add a step with `to: number` and a `mapping` to `dataflow`: the rule starts it.)"
        ]
    );
    let step = "  - {from: input, to: number, mapping: {text: $.count}}\n";
    assert_eq!(findings(&routing("number", step), "", &[NUMBER]), [""; 0]);
    assert_eq!(findings(&routing("reader", ""), "", &[]), [""; 0]);
}

#[test]
fn required_field_without_a_schema_must_be_given() {
    let input =
        ("loose", r#"{"type": "object", "required": ["id"], "properties": {"text": {"type": "string"}}}"#);
    let step = |mapping: &str| format!("dataflow:\n  - {{from: input, to: loose, mapping: {mapping}}}");
    assert_eq!(
        findings(&step("{text: $.text}"), "", &[input]),
        [
            "error composition-mapping: the input of `loose` requires `id`, which the step does not give (Add `id:` with a path to `mapping`.)"
        ]
    );
    assert_eq!(findings(&step("{id: $.count}"), "", &[input]), [""; 0]);
}

#[test]
fn call_without_arguments_passes_the_input() {
    assert_eq!(
        findings("requires: []", "Use @call:number.", &[NUMBER]),
        [
            "error prompt-call: `text` in the input of `number` is integer, but the call passes string (Write the input as a JSON object in the parentheses: `@call:number({…})`.)"
        ]
    );
    assert_eq!(findings("requires: []", "Use @call:number($INPUT).", &[NUMBER]).len(), 1);
    assert_eq!(findings("requires: []", "Use @call:reader and @call:closed.", &[CLOSED]), [""; 0]);
    let fallback = "requires:\n  - {name: reader, fallback: number}";
    assert!(
        findings(fallback, "Use @call:reader.", &[NUMBER])[0].contains("`number` (a fallback of `reader`)")
    );
}

#[test]
fn arguments_of_a_call_fit_the_input() {
    for (call, expected) in [
        ("@call:number({\"text\": \"x\"})", "the input of `number`: `input.text` "),
        ("@call:number({\"txt\": 1})", "the input of `number`: `input.text` "),
        (
            "@call:number({\"text\": \"$ARGUMENTS\"})",
            "`text` in the input of `number` is integer, but the call passes string",
        ),
        (
            "@call:number({\"other\": $INPUT})",
            "the input of `number` requires `text`, which the call does not give",
        ),
        (
            "@call:number(some words)",
            "the arguments are a text, but the input of `number` has no field for a text",
        ),
        (
            "@call:closed({\"id\": {{plain.data}}, \"x\": \"$0\"})",
            "the input of `closed` has no field `x`, which the call passes",
        ),
        (
            "@call:number({{closed.data.n}})",
            "the arguments are a text, but the input of `number` has no field for a text",
        ),
        (
            "@call:reader({{closed.data.o}})",
            "`text` in the input of `reader` is string, but the call passes integer",
        ),
        (
            "@call:number({\"text\": null, \"other\": $0})",
            "`text` in the input of `number` is integer, but the call passes null",
        ),
        ("@call:reader({{closed.data.p}})", "`{{closed.data.p}}`: no schema defines the member `p`"),
    ] {
        let before = if call.contains("@call:closed") { "@call:plain" } else { "@call:closed" };
        let found = findings("requires: []", &format!("{before} and {call}"), &[NUMBER, CLOSED]);
        assert_eq!(found.len(), 1, "{call}: {found:?}");
        assert!(found[0].starts_with(&format!("error prompt-call: {expected}")), "{call}: {found:?}");
    }
    for call in [
        "@call:number({\"text\": $0})",
        "@call:number({\"$0\": 1})",
        "@call:reader({\"text\": \"x\", \"{{closed.data.n}}\": 1})",
        "@call:reader({\"text\": \"$0\", \"more\": {\"$1\": 1}})",
        "@call:number({\"text\": {{closed.data.n}}})",
        "@call:number($ARGUMENTS)",
        "@call:reader(some words)",
        "@call:reader({{closed.data}} and more)",
        "@call:plain({ not JSON)",
    ] {
        let found = findings("requires: []", &format!("@call:closed and {call}"), &[NUMBER, CLOSED]);
        assert_eq!(found, [""; 0], "{call}");
    }
}

#[test]
fn part_must_be_invocable_by_agents() {
    let closed = |more: &str| {
        let module = module(
            "users",
            "invocation: {agent_invocable: false}\n",
            "Do it.",
            r#"{"input": {}, "data": {}}"#,
        );
        let composition =
            format!("requires: [{{name: users{more}}}]\ndataflow:\n  - {{from: input, to: users}}");
        check(composed("root", &composition, ""), &Modules::new().with("users", module))
    };
    let found = closed("");
    assert_eq!(
        shown(&found),
        [
            "error composition-module: `users` cannot be a part: its manifest has `invocation.agent_invocable: false` (Call another module, or allow agents to call `users` in its manifest.)"
        ]
    );
    assert_eq!(found.findings[0].code, cog_spec::Code::PermissionDenied);
    assert!(shown(&closed(", optional: true"))[0].starts_with("warning"));
    assert!(shown(&closed(", fallback: plain"))[0].starts_with("warning"));
}
