use cog_spec::Code;

use crate::testing::{checked, findings, shown};

/// Three pages are read, each from its own field.
fn pages(pattern: &str, names: [&str; 3]) -> String {
    let step = |(name, field): (&str, &str)| {
        let name = if name.is_empty() { String::new() } else { format!(", as: {name}") };
        format!("  - {{from: input, to: reader{name}, mapping: {{text: $.{field}}}}}\n")
    };
    let steps: String = names.into_iter().zip(["text", "text", "text"]).map(step).collect();
    format!("pattern: {pattern}\ndataflow:\n{steps}")
}

const TWICE: &str = "error composition-step: `reader` runs twice, but has one result (Name the result of one of them: \
                     `as: NAME` in the step, and read `NAME.output`.)";

#[test]
fn module_that_two_steps_run_without_names_is_an_error_with_both_places() {
    for pattern in ["sequential", "parallel", "conditional"] {
        let found = checked(&pages(pattern, ["", "", ""]), "{{reader.data}}");
        let errors: Vec<String> =
            shown(&found).into_iter().filter(|found| found.starts_with("error")).collect();
        assert_eq!(errors, [TWICE, TWICE], "{pattern}");
        let first = &found.findings[0];
        assert_eq!(first.code, Code::ModuleInvalid);
        let diagnostic = first.diagnostic();
        let location =
            diagnostic.location.as_ref().map(|at| (at.line, at.excerpt[at.marked.clone()].to_owned()));
        assert_eq!(location, Some((11, "reader".to_owned())));
        assert!(
            diagnostic.message.ends_with("(the other place is module.yaml:10)"),
            "{}",
            diagnostic.message
        );
        let message = first.to_error(&found.flow().root().module).message;
        assert_eq!(
            message,
            "root: `reader` runs twice, but has one result (module.yaml:10 and module.yaml:11)"
        );
    }
}

#[test]
fn one_of_the_results_needs_no_name() {
    for names in [["first", "second", "third"], ["", "second", "third"], ["first", "", "reader-2"]] {
        let last = if names[1].is_empty() { "reader" } else { names[1] };
        let steps = format!(
            "{}  - {{from: [input, {last}.output], to: output, mapping: {{issues: $.{last}.data.issues}}}}",
            pages("parallel", names)
        );
        assert_eq!(findings(&steps, ""), [""; 0], "{names:?}");
    }
    assert_eq!(findings(&pages("parallel", ["", "", "third"]), "{{third.data}}"), [TWICE]);
    let own = pages("parallel", ["", "reader", "third"]);
    assert_eq!(findings(&own, "{{third.data}}"), [TWICE], "a name that is that of the module");
    let rounds = format!("iteration: {{until: $.ok, max_rounds: 2}}\n{}", pages("iterative", ["", "", ""]));
    assert_eq!(findings(&rounds, ""), [""; 0], "each round replaces the result");
}

#[test]
fn named_results_have_the_types_of_their_module() {
    let steps = pages("parallel", ["first", "second", "third"]);
    let prompt = "{{first.data.summary}} {{second.data.sumary}} {{third.meta.risk}}";
    assert_eq!(
        findings(&steps, prompt),
        [
            "error prompt-call: `{{second.data.sumary}}`: no schema defines the member `sumary` (Did you mean `summary`?)"
        ]
    );
    let step = "  - {from: [first.output, second.output], to: judge, mapping: {ids: $.second.data.level}}";
    let found = findings(&format!("{steps}{step}"), "{{judge.data}}");
    assert!(
        found[0].contains("`ids` in the input of `judge` is array of integer, but the path selects"),
        "{found:?}"
    );
}

#[test]
fn name_that_cannot_be_given_is_an_error() {
    let reader = |name: &str| {
        format!("dataflow:\n  - {{from: input, to: reader, as: {name}, mapping: {{text: $.text}}}}")
    };
    let judge = "\n  - {from: input, to: judge, mapping: {}}";
    for (composition, expected) in [
        (
            reader("input"),
            "`input` cannot name a result: it means the input of the composition (Choose another name.)",
        ),
        (
            reader("output"),
            "`output` cannot name a result: it means the output of the composition (Choose another name.)",
        ),
        (reader("root"), "`root` cannot name a result: it is the name of this module (Choose another name.)"),
        (
            reader("'Page 1'"),
            "`Page 1` is not a name for a result (Use lower case letters, digits and hyphens, such as `first-page`.)",
        ),
        (
            format!("{}{judge}", reader("judge")),
            "`judge` cannot name a result of `reader`: a module has this name (Choose another name.)",
        ),
        (
            format!("requires: [{{name: reader, fallback: plain}}]\n{}", reader("plain")),
            "`plain` cannot name a result of `reader`: a module has this name (Choose another name.)",
        ),
        (
            format!("{}\n  - {{from: input, to: judge, as: page, mapping: {{}}}}", reader("page")),
            "two results have the name `page` (Give each result a name of its own.)",
        ),
        (
            format!("{}\n  - {{from: page.output, to: output, as: answer, mapping: {{}}}}", reader("page")),
            "the answer has no name: `as` is for the result of a module (Remove `as`.)",
        ),
        (
            format!(
                "{}\n  - {{from: input, to: [judge, plain], as: both, mapping: {{}}}}\n  - {{from: both.output, to: output, mapping: {{}}}}",
                reader("page")
            ),
            "`as` names one result, but the step runs 2 modules (Write a step for each module.)",
        ),
        (
            format!("{}\n  - {{from: input, to: root, as: own}}", reader("page")),
            "`as` cannot name the result of the module's own prompt (Remove `as`, or move the prompt into a module of its own.)",
        ),
    ] {
        let found = findings(&composition, "Do it.");
        let errors: Vec<&String> = found.iter().filter(|found| found.starts_with("error")).collect();
        assert_eq!(errors, [&format!("error composition-step: {expected}")], "{composition}");
    }
}

#[test]
fn call_is_a_run_like_a_step() {
    let step = |name: &str| format!("dataflow:\n  - {{from: input, to: plain{name}}}");
    let help = "Read the result of the call with `{{plain.data}}`, or name another one: `as: NAME` in a step to `plain`.";
    assert_eq!(
        findings(&step(""), "@call:plain {{plain.data}}"),
        [format!("error composition-step: `plain` runs twice, but has one result ({help})")]
    );
    let found = checked(&step(""), "See:\n@call:plain").findings.remove(0).diagnostic();
    assert!(found.message.ends_with("(the other place is prompt.md:2)"), "{}", found.message);
    assert_eq!(findings(&step(", as: stepped"), "@call:plain {{stepped.data}}"), [""; 0]);
    assert_eq!(
        findings(&step(""), "@call:plain({\"a\": 1})[as=called] {{called.data}} {{plain.data}}"),
        [""; 0]
    );
    let rules = "routing: [{condition: $.meta.confidence > 0.5, next: plain}, {next: judge}]\ndataflow:\n  - {from: input, to: judge, mapping: {}}";
    let found = findings(rules, "@call:plain");
    assert!(found.iter().any(|found| found.contains("`plain` runs twice, but has one result")), "{found:?}");
}

#[test]
fn call_that_is_named_again_means_the_same_result() {
    for prompt in [
        "@call:judge @call:judge",
        "@call:judge(a $INPUT)[optional] and `@call:judge`, again @call:judge",
        "@call:judge(a) @call:judge( a )",
        "@call:judge(a)[as=one, optional] @call:judge",
        "@call:judge(a)[as=one] @call:judge(a)[as=one]",
        "@call:judge @call:judge(b)[as=two] @call:judge {{two.data}}",
        "@call:judge(a)[as=one] @call:judge(b) @call:plain({{one.data}})",
        "First @call:judge tells, then:\n@call:judge(a $INPUT)",
        "@call:judge says what @call:plain({{judge.data}}) needs: @call:judge and @call:plain",
    ] {
        let found = checked("requires: []", prompt);
        assert_eq!(shown(&found), [""; 0], "{prompt}");
    }
    let differ = "error prompt-call: two calls of `judge` differ, but have one result (Name the result of one of them: \
                  `@call:judge(…)[as=NAME]`. To read the first one again, write `{{judge.data}}`.)";
    for (prompt, expected) in [
        ("@call:judge(a) @call:judge(b)", differ),
        ("@call:judge @call:judge[optional]", differ),
        ("@call:judge(a)[as=one] @call:judge(b) @call:judge(c)", differ),
        ("@call:judge(a)[as=judge] @call:judge(b)", differ),
        (
            "@call:judge(a)[as=one] @call:judge(b)[as=two] @call:judge",
            "error prompt-call: `@call:judge` can mean 2 results, which have names (Read one of them by its name, such as \
             `{{one.data}}`.)",
        ),
        (
            "@call:judge(a)[as=one] @call:judge(b)[as=one]",
            "error prompt-call: two results have the name `one` (Give each result a name of its own.)",
        ),
        (
            "@call:judge(a)[as=plain] @call:plain",
            "error prompt-call: `plain` cannot name a result of `judge`: a module has this name (Choose another name.)",
        ),
        (
            "@call:judge(a)[as=output]",
            "error prompt-call: `output` cannot name a result: it means the output of the composition (Choose another name.)",
        ),
        (
            "@call:judge(a)[as=one] {{judge.data}}",
            "error prompt-call: `{{judge.data}}` reads the result of `judge`, which nothing runs (The results of `judge` have \
             names: write `{{one.…}}`.)",
        ),
        (
            "@call:plain({{one.data}}) @call:judge(a)[as=one]",
            "error prompt-call: `{{one.data}}` reads a result that no earlier call of the prompt has (Write \
             `@call:judge[as=one]` before it.)",
        ),
    ] {
        assert_eq!(findings("requires: []", prompt), [expected], "{prompt}");
    }
    let rounds = "pattern: iterative\niteration: {max_rounds: 2}\ndataflow:\n  - {from: input, to: plain, mapping: {}}";
    assert!(findings(rounds, "@call:judge(a) @call:judge(b)").contains(&differ.to_owned()), "calls run once");
}

#[test]
fn mention_before_the_call_means_its_result() {
    let prompt =
        "What `@call:judge` says of @call:plain, both below.\n@call:judge(a)\n@call:plain({{judge.data}})";
    let checked = checked("requires: []", prompt);
    assert_eq!(shown(&checked), [""; 0]);
    let flow = checked.into_flow().unwrap();
    let plan = flow.root();
    let part = |name: &str| plan.parts.iter().position(|part| part.name == name).unwrap();
    let mentioned: Vec<usize> = plan.mentions.iter().map(|mention| mention.part).collect();
    assert_eq!(mentioned, [part("judge"), part("plain"), part("judge"), part("plain")]);
    assert!(plan.mentions.is_sorted_by_key(|mention| mention.position));
    assert_eq!(plan.calls.iter().map(|call| call.part).collect::<Vec<_>>(), [part("judge"), part("plain")]);
}

#[test]
fn requires_is_about_every_result_of_its_module() {
    let requires =
        "requires: [{name: reader, version: ^1.0.0, optional: true, timeout_ms: 500, fallback: plain}]\n";
    let steps = format!("{requires}{}", pages("parallel", ["first", "second", "third"]));
    let checked = checked(&steps, "{{first.data}} {{second.data}} {{third.data}}");
    assert_eq!(shown(&checked), [""; 0]);
    let flow = checked.into_flow().unwrap();
    let parts = &flow.root().parts;
    let names: Vec<_> = parts.iter().map(|part| (part.name.as_str(), part.module.as_str())).collect();
    assert_eq!(names, [("plain", "plain"), ("first", "reader"), ("second", "reader"), ("third", "reader")]);
    assert!(
        parts[1..].iter().all(|part| part.optional && part.fallback == Some(0) && part.timeout.is_some())
    );
    let old = steps.replace("^1.0.0", "^2.0.0");
    let found = findings(&old, "{{first.data}} {{second.data}} {{third.data}}");
    assert!(found.iter().all(|found| found.starts_with("warning")) && found.len() == 3, "{found:?}");
}

#[test]
fn result_of_a_module_whose_results_have_names_is_read_by_them() {
    let steps = pages("parallel", ["first", "second", "third"]);
    let step = "  - {from: reader.output, to: output, mapping: {issues: $.data.issues}}";
    let found = findings(&format!("{steps}{step}"), "");
    assert_eq!(
        found,
        [
            "error composition-step: the step reads the result of `reader`, which nothing runs (The results of `reader` have \
             names: read `first.output` or `second.output` or `third.output`.)"
        ]
    );
}

#[test]
fn rule_starts_a_step_by_the_name_of_its_result() {
    let rules = "pattern: conditional
dataflow:
  - {from: input, to: reader, mapping: {text: $.text}}
  - {from: reader.output, to: reader, as: deep, mapping: {text: $.data.summary}}
routing:
  - {condition: $.meta.confidence > 0.8, next: null}
  - {next: deep}";
    let checked = checked(rules, "");
    assert_eq!(shown(&checked), [""; 0]);
    let flow = checked.into_flow().unwrap();
    assert!(flow.root().steps[1].is_routed && !flow.root().steps[0].is_routed);
}
