use crate::{
    check,
    testing::{Modules, findings, module, shown},
};

/// Returns the findings of a step that reads `reader.output`.
fn step(step: &str) -> Vec<String> {
    findings(
        &format!("dataflow:\n  - {{from: input, to: reader, mapping: {{text: $.text}}}}\n  - {step}"),
        "",
    )
}

#[test]
fn source_field_must_exist() {
    for (path, expected) in [
        ("$.data.sumary", "no schema defines the member `sumary` (Did you mean `summary`?)"),
        ("$.summary", "no schema defines the member `summary` (Write `$.data.summary`.)"),
        ("$.data.issues[*].name", "no schema defines the member `name`"),
        ("$.data.summary.x", "the value has the type string, so it has no member `x`"),
        (
            "$.data.issues.length",
            "the value has the type array, so it has no member `length` (`.length` counts only at the end of a path in a condition.)",
        ),
        ("$.error", "no schema defines the member `error` (It has: ok, meta, data.)"),
        ("$.data.done[0]", "the value has the type boolean, so it has no elements"),
    ] {
        let found = step(&format!("{{from: reader.output, to: plain, mapping: {{x: '{path}'}}}}"));
        assert_eq!(found, [format!("error composition-mapping: {expected}")], "{path}");
    }
    assert_eq!(
        step(
            "{from: reader.output, to: plain, mapping: {x: '$.data.issues[0].id', y: $..id, z: $.meta.model}}"
        ),
        [""; 0]
    );
}

#[test]
fn target_field_must_exist_and_fit() {
    for (mapping, expected) in [
        ("{tex: $.data.summary}", "the input of `judge` has no field `tex` (Did you mean `text`?)"),
        (
            "{text: $.data.issues}",
            "`text` in the input of `judge` is string, but the path selects array of object",
        ),
        (
            "{ids: $.data.summary}",
            "`ids` in the input of `judge` is array of integer, but the path selects string",
        ),
        (
            "{ids: '$.data.issues[*].title'}",
            "`ids` in the input of `judge` is array of integer, but the path selects array of string",
        ),
        ("{text: '$..summary'}", "`text` in the input of `judge` is string, but the path selects array"),
    ] {
        let found = step(&format!("{{from: reader.output, to: judge, mapping: {mapping}}}"));
        let help = " (Select another value, or change one of the schemas.)";
        let help = if expected.contains("but the path") { help } else { "" };
        assert_eq!(found, [format!("error composition-mapping: {expected}{help}")], "{mapping}");
    }
    assert_eq!(
        step("{from: reader.output, to: judge, mapping: {ids: '$.data.issues[*].id', text: $.data.level}}"),
        [""; 0]
    );
}

#[test]
fn required_fields_must_be_given() {
    let found = findings("dataflow:\n  - {from: input, to: reader, mapping: {limit: $.count}}", "");
    assert_eq!(
        found,
        [
            "error composition-mapping: the input of `reader` requires `text`, which the step does not give (Add `text:` with a path to `mapping`.)"
        ]
    );
    let found = findings(
        "dataflow:\n  - {from: input, to: judge, mapping: {}}\n  - {from: judge.output, to: [plain, reader]}",
        "",
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("the input of `reader` requires `text`"), "{found:?}");
}

#[test]
fn payload_must_fit() {
    let found = findings(
        "dataflow:\n  - {from: input, to: reader, mapping: {text: $.text}}\n  - {from: [reader.output, input], to: plain, aggregate: array}",
        "",
    );
    assert_eq!(found, [""; 0]);
    let found = findings(
        "dataflow:\n  - {from: input, to: reader, mapping: {text: $.text}}\n  - {from: [reader.output, input], to: judge, aggregate: array}",
        "",
    );
    assert!(found[0].contains("the input of `judge` is object, but the step passes array"), "{found:?}");
}

#[test]
fn answer_has_its_fields() {
    let found =
        step("{from: reader.output, to: output, mapping: {score: $.data.summary, isues: $.data.issues}}");
    assert_eq!(
        found,
        [
            "error composition-mapping: `score` in the answer is number, but the path selects string (Select another value, or change one of the schemas.)",
            "error composition-mapping: the answer has no field `isues` (Did you mean `issues`?)",
        ]
    );
}

#[test]
fn conditions_fit_the_schemas() {
    for (condition, expected) in [
        ("$.data.level == 1", "column 1: string never equals number (Compare two values of the same type.)"),
        ("$.data.level == 'hihg'", "column 17: the schema does not list `hihg` (Did you mean `high`?)"),
        ("$.data.level == 'x'", "column 17: the schema does not list `x` (It lists: low, high.)"),
        (
            "$.ok && $.data.isues.length > 1",
            "column 9: no schema defines the member `isues` (Did you mean `issues`?)",
        ),
        (
            "$.data.summary > 3",
            "column 1: string and number have no order (Compare two numbers or two strings.)",
        ),
        (
            "$.data.issues < $.data.issues",
            "column 1: array and array have no order (Compare two numbers or two strings.)",
        ),
        ("$.data.summary", "column 1: the value is string, so it is never true (Compare it with a value.)"),
        (
            "$.data.done.length > 1",
            "column 1: the value is boolean, which has no length (Only arrays and strings have a length.)",
        ),
        ("!exists($.dat)", "column 9: no schema defines the member `dat` (Did you mean `data`?)"),
        (
            "$.meta.confidence == 'high'",
            "column 1: number or null never equals string (Compare two values of the same type.)",
        ),
    ] {
        let found = step(&format!("{{from: reader.output, to: plain, condition: \"{condition}\"}}"));
        assert_eq!(found, [format!("error composition-condition: condition, {expected}")], "{condition}");
    }
    for condition in [
        "$.data.level == 'high' && $.data.done && $.meta.confidence >= 0.5",
        "$.data.issues.length == 2 || $.data.summary.length > 3",
        "$.data.summary == null || $.data.issues[0].id != 3.5",
        "exists($.data.issues[0].title) && $.data.issues[0].title < 'z'",
    ] {
        assert_eq!(
            step(&format!("{{from: reader.output, to: plain, condition: \"{condition}\"}}")),
            [""; 0],
            "{condition}"
        );
    }
}

#[test]
fn documents_of_several_sources() {
    for (from, good, bad) in [
        ("[input, reader.output]", "$.input.text == $.reader.data.summary", "$.text == 'x'"),
        ("[input, reader.output], aggregate: merge", "$.text == $.data.summary", "$.nothing == 'x'"),
        ("[input, reader.output], aggregate: first", "$.text == 'x' || $.ok", "$.reader == 'x'"),
        ("[input, reader.output], aggregate: array", "$[0].text == $[1].data.summary", "$.text == 'x'"),
    ] {
        assert_eq!(step(&format!("{{from: {from}, to: plain, condition: \"{good}\"}}")), [""; 0], "{good}");
        let found = step(&format!("{{from: {from}, to: plain, condition: \"{bad}\"}}"));
        assert_eq!(found.len(), 1, "{bad}: {found:?}");
    }
}

#[test]
fn routes_and_rounds_read_the_result_so_far() {
    let rules = |rule: &str| {
        findings(
            &format!(
                "dataflow:\n  - {{from: input, to: reader, mapping: {{text: $.text}}}}\nrouting:\n  - {{condition: \"{rule}\", next: null}}"
            ),
            "",
        )
    };
    assert_eq!(rules("$.data.level == 'low'"), [""; 0]);
    assert!(rules("$.data.score > 1")[0].contains("no schema defines the member `score`"));
    let rounds = findings(
        "pattern: iterative\niteration: {until: $.data.don, max_rounds: 2}\ndataflow:\n  - {from: input, to: reader, mapping: {text: $.text}}",
        "",
    );
    assert!(rounds[0].contains("the member `don` (Did you mean `done`?)"), "{rounds:?}");
}

#[test]
fn result_that_becomes_the_answer_fits_it() {
    let steps = "dataflow:\n  - {from: input, to: reader, mapping: {text: $.text}}\n";
    let parts = Modules::new().with(
        "closed",
        module(
            "closed",
            "",
            "Do it.",
            r#"{"input": {}, "data": {"type": "object", "properties": {"score": {"type": "string"}}}}"#,
        ),
    );
    let answer = r#"{"input": {"type": "object", "properties": {"text": {"type": "string"}}},
        "data": {"type": "object", "required": ["score"], "properties": {"score": {"type": "number"}, "issues": {"type": "array"}}}}"#;
    let found = |composition: &str| {
        let lines: String = composition.lines().map(|line| format!("  {line}\n")).collect();
        let root = module("root", &format!("composition:\n{lines}"), "", answer);
        shown(&check(root, &parts))
    };
    let lacks = |by: &str, help: &str| {
        format!(
            "error composition-mapping: the answer requires `score`, which the result of `{by}` does not give ({help})"
        )
    };
    let as_is = "It is the answer as it is: add a step to `output` with a `mapping`, or change a schema.";
    let instead =
        "The rule returns this result instead of the steps to `output`: remove the rule, or change a schema.";
    let rule = "routing:\n  - {condition: $.data.done, next: ";
    assert_eq!(found(&format!("{steps}{rule}null}}")), [lacks("reader", as_is)]);
    assert_eq!(found(steps), [lacks("reader", as_is)], "without rules");
    // A rule that always applies leaves the result of the steps out.
    assert_eq!(found(&format!("{steps}routing:\n  - {{next: judge}}")), [""; 0]);
    let fallback =
        format!("requires: [{{name: judge, fallback: reader}}]\n{steps}routing:\n  - {{next: judge}}");
    assert_eq!(
        found(&fallback.replace("to: reader, mapping", "to: plain, mapping")),
        [lacks("reader", as_is)]
    );
    let types = found(&format!("{steps}routing:\n  - {{next: closed}}"));
    assert_eq!(
        types,
        [format!(
            "error composition-mapping: `score` in the answer is number, but the result of `closed` passes string ({as_is})"
        )]
    );
    let outputs = "  - {from: judge.output, to: output, mapping: {score: $.data.score}}\n";
    let steps = format!(
        "{steps}  - {{from: input, to: judge, mapping: {{text: $.text}}}}\n  - {{from: input, to: reader, as: last, mapping: {{text: $.text}}}}\n{outputs}"
    );
    assert_eq!(found(&format!("{steps}{rule}null}}")), [lacks("last", instead)]);
    assert_eq!(found(&format!("{steps}{rule}plain}}")), [""; 0], "the steps to `output` give the answer");
}

#[test]
fn constants_and_defaults_fit_the_schemas() {
    for (mapping, expected) in [
        ("{text: \"$.data.summary ?? 'none'\", ids: [1, 2]}", ""),
        (
            "{text: \"$.data.summary ?? $.data.level ?? ''\", ids: '$.data.none ?? []'}",
            "no schema defines the member `none`",
        ),
        ("{text: 5}", "the constant does not fit the input of `judge`: "),
        (
            "{text: \"'x'\", ids: \"$.data.issues ?? []\"}",
            "`ids` in the input of `judge` is array of integer",
        ),
        ("{ids: [1, x]}", "the constant does not fit the input of `judge`: "),
        ("{text: $.data.summary ?? 1}", "the constant does not fit the input of `judge`: "),
        ("{tex: \"'x'\"}", "the input of `judge` has no field `tex` (Did you mean `text`?)"),
        (
            "{text: formal}",
            "invalid value, column 1: neither a path nor a constant (Write `$.formal` for a path, or `'formal'` for a string.)",
        ),
    ] {
        let found = step(&format!("{{from: reader.output, to: judge, mapping: {mapping}}}"));
        match expected {
            "" => assert_eq!(found, [""; 0], "{mapping}"),
            expected => assert!(found.len() == 1 && found[0].contains(expected), "{mapping}: {found:?}"),
        }
    }
    let answer =
        step("{from: reader.output, to: output, mapping: {score: \"'high'\", issues: \"$.data.issues\"}}");
    assert!(answer.len() == 1 && answer[0].contains("the constant does not fit the answer: "), "{answer:?}");
}

#[test]
fn value_of_an_optional_part_for_a_required_field_is_a_warning() {
    let head = "requires: [{name: judge, optional: true}]\ndataflow:\n  - {from: input, to: judge, mapping: {text: $.text}}\n";
    let lacks = |field: &str, path: &str, whose: &str, result: &str| {
        format!(
            "warning composition-mapping: {whose} requires `{field}`, which is left out when an optional part fails and `{result}` has \
             no result (Add a default: `{path} ?? VALUE`, or let the schema not require it.)"
        )
    };
    let reader = "the input of `reader`";
    for (step, expected) in [
        (
            "{from: [input, judge.output], to: reader, mapping: {text: $.judge.data.rationale}}",
            vec![lacks("text", "$.judge.data.rationale", reader, "judge")],
        ),
        // With a default, or another value, it is given.
        (
            "{from: [input, judge.output], to: reader, mapping: {text: \"$.judge.data.rationale ?? 'none'\"}}",
            vec![],
        ),
        (
            "{from: [input, judge.output], to: reader, mapping: {text: $.judge.data.rationale ?? $.input.text}}",
            vec![],
        ),
        // Without the result, the step does not run; and its target has no result.
        ("{from: judge.output, to: reader, mapping: {text: $.data.rationale}}", vec![]),
        (
            "{from: judge.output, to: plain}\n  - {from: [input, plain.output], to: reader, mapping: {text: $.plain.data.x}}",
            vec![lacks("text", "$.plain.data.x", reader, "plain")],
        ),
        // A step with a condition can be skipped for other reasons.
        (
            "{from: input, to: plain, condition: exists($.text)}\n  - {from: [input, plain.output], to: reader, mapping: {text: $.plain.data.x}}",
            vec![],
        ),
        ("{from: [judge.output, input], aggregate: first, to: reader, mapping: {text: $.text}}", vec![]),
        (
            "{from: [judge.output, input], aggregate: merge, to: reader, mapping: {text: $.data.rationale}}",
            vec![lacks("text", "$.data.rationale", reader, "judge")],
        ),
    ] {
        let found = findings(&format!("{head}  - {step}"), "Answer {{judge.data}}.");
        assert_eq!(found, expected, "{step}");
    }
    let called = findings(
        "dataflow:\n  - {from: [input, judge.output], to: reader, mapping: {text: $.judge.data.rationale}}",
        "Judge: @call:judge()[optional] {{reader.data}}",
    );
    assert_eq!(called, [lacks("text", "$.judge.data.rationale", reader, "judge")]);
}

#[test]
fn value_of_an_optional_part_in_a_required_field_of_the_answer_is_a_warning() {
    let answer = r#"{"input": {"type": "object", "properties": {"text": {"type": "string"}}},
        "data": {"type": "object", "required": ["score"], "properties": {"score": {"type": "number"}}}}"#;
    let found = |outputs: &str| {
        let steps = format!(
            "requires: [{{name: judge, optional: true}}]\ndataflow:\n  - {{from: input, to: judge, mapping: {{text: $.text}}}}\n{outputs}"
        );
        let lines: String = steps.lines().map(|line| format!("  {line}\n")).collect();
        shown(&check(module("root", &format!("composition:\n{lines}"), "", answer), &Modules::new()))
    };
    let message = "the answer requires `score`, which is left out when an optional part fails and `judge` has no result";
    for (outputs, is_found) in [
        ("  - {from: judge.output, to: output}", true),
        ("  - {from: judge.output, to: output, mapping: {score: $.data.score}}", true),
        ("  - {from: [input, judge.output], to: output, mapping: {score: $.judge.data.score}}", true),
        ("  - {from: [input, judge.output], to: output, mapping: {score: $.judge.data.score ?? 0}}", false),
        // One of the steps always gives it.
        ("  - {from: input, to: output, mapping: {score: 0}}\n  - {from: judge.output, to: output}", false),
        (
            "  - {from: judge.output, to: output, condition: $.ok}\n  - {from: input, to: output, mapping: {score: 0}}",
            false,
        ),
    ] {
        let found = found(outputs);
        assert_eq!(found.len(), usize::from(is_found), "{outputs}: {found:?}");
        assert!(
            found.iter().all(|found| found.contains(message) && found.starts_with("warning")),
            "{found:?}"
        );
    }
}

#[test]
fn elements_fit_the_input_and_their_results_are_a_list() {
    let answer = "{from: judge.output, to: output, mapping: {score: \"$.data[0].score\", issues: $.data, rationale: $.meta.explain}}";
    for (each, expected) in [
        (
            "{from: reader.output, to: judge, each: $.data.issues, mapping: {text: item.title, ids: '$.data.issues[*].id'}}",
            "",
        ),
        (
            "{from: reader.output, to: judge, each: '$.data.issues[?@.id > 1]', max_parallel: 2, mapping: {text: item.title ?? 'none'}}",
            "",
        ),
        (
            "{from: reader.output, to: judge, each: $.data.issues, mapping: {text: item.id}}",
            "`text` in the input of `judge` is string, but the path selects integer",
        ),
        (
            "{from: reader.output, to: judge, each: $.data.issues, mapping: {text: item.titel}}",
            "no schema defines the member `titel` (Did you mean `title`?)",
        ),
        (
            "{from: reader.output, to: judge, each: $.data.issues, mapping: {text: index}}",
            "`text` in the input of `judge` is string, but the path selects integer",
        ),
        ("{from: reader.output, to: judge, each: $.data.isues}", "no schema defines the member `isues`"),
        (
            "{from: reader.output, to: judge, each: $.data.summary}",
            "the path selects string, but `each` needs a list",
        ),
        (
            "{from: reader.output, to: judge, mapping: {text: item.title}}",
            "the step runs once: only a list has items",
        ),
        (
            "{from: reader.output, to: judge, max_parallel: 2, mapping: {}}",
            "`max_parallel` has no effect: the step runs once",
        ),
        ("{from: reader.output, to: judge, each: '$.data[', mapping: {}}", "invalid path, column 7"),
    ] {
        let found = step(&format!("{each}\n  - {answer}"));
        match expected {
            "" => assert_eq!(found, [""; 0], "{each}"),
            expected => assert!(found.iter().any(|found| found.contains(expected)), "{each}: {found:?}"),
        }
    }
    let once = "{from: reader.output, to: judge, each: $.data.issues, mapping: {text: item.title}}";
    for (more, expected) in [
        ("{from: judge.output, to: output}", "the answer is object, but the step passes array of object"),
        (
            "{from: judge.output, to: output, mapping: {score: $.data.score}}",
            "the value has the type array, so it has no member `score`",
        ),
        (
            "{from: reader.output, to: output, each: $.data.issues}",
            "`each` is for a module that is called: there is one answer",
        ),
    ] {
        let found = step(&format!("{once}\n  - {more}"));
        assert!(found.iter().any(|found| found.contains(expected)), "{more}: {found:?}");
    }
    let optional = findings(
        "requires: [{name: judge, optional: true}]\ndataflow:\n  - {from: input, to: judge, each: '$[?@.a == 1]', mapping: {text: $.text}}\n  \
         - {from: [input, judge.output], to: reader, mapping: {text: '$.judge.meta.explain'}}\n  \
         - {from: judge.output, to: output, mapping: {issues: '$.data[*].score'}}",
        "",
    );
    assert_eq!(optional, [""; 0], "a list has a result although elements fail");
    // Without steps to `output`, the list itself would be the answer.
    assert!(step(once)[0].contains("the answer is object, but the result of `judge` passes array of object"));
    let rounds = findings(
        "pattern: iterative\niteration: {until: $.ok}\ndataflow:\n  - {from: input, to: reader, mapping: {text: $.text}}\n  \
         - {from: reader.output, to: plain, each: $.data.issues}\n  - {from: reader.output, to: plain}\n  - {from: input, to: output}",
        "",
    );
    assert!(
        rounds.iter().any(|found| found.contains("`plain` runs once here, but for each element of a list")),
        "{rounds:?}"
    );
}

#[test]
fn rounds_that_nothing_ends_or_judges_are_found() {
    let rounds = |iteration: &str| {
        findings(
            &format!(
                "pattern: iterative\niteration: {iteration}\ndataflow:\n  - {{from: input, to: reader, mapping: {{text: $.text}}}}"
            ),
            "",
        )
    };
    for (iteration, expected) in [
        ("{max_rounds: 2}", "without `until`, all 2 rounds run and the last one counts"),
        ("{best: $.data.level}", "`$.data.level` is string, but `best` compares numbers"),
        ("{best: $.data.lvel}", "no schema defines the member `lvel`"),
        ("{best: '$.data.issues[*].id'}", "`best` is not a path to one value"),
    ] {
        let found = rounds(iteration);
        assert!(found.len() == 1 && found[0].contains(expected), "{iteration}: {found:?}");
    }
    assert_eq!(rounds("{best: $.meta.confidence, max_rounds: 2}"), [""; 0]);
    assert_eq!(rounds("{until: $.data.done}"), [""; 0]);
}
