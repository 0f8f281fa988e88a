use cog_spec::Code;
use petgraph::{algo::is_cyclic_directed, graph::DiGraph};
use proptest::prelude::*;

use super::*;
use crate::{
    Answer, Callee,
    testing::{Modules, checked, composed, findings, module, shown},
};

const PIPELINE: &str = "requires:
  - {name: reader, version: ^1.0.0, timeout_ms: 500}
  - {name: judge, optional: true, fallback: plain}
pattern: sequential
dataflow:
  - {from: input, to: reader, mapping: {text: $.text}}
  - {from: reader.output, to: judge, mapping: {ids: '$.data.issues[*].id'}, condition: $.data.issues.length > 0}
  - {from: [reader.output, judge.output], to: output, mapping: {issues: $.reader.data.issues, score: $.judge.data.score}}";

fn code(checked: &CheckResult) -> Code {
    checked.findings.first().unwrap_or_else(|| panic!("no finding")).code
}

#[test]
fn pipeline_has_no_findings() {
    let checked = checked(PIPELINE, "");
    assert_eq!(shown(&checked), [""; 0]);
    let flow = checked.into_flow().unwrap();
    let root = flow.root();
    let names: Vec<_> = root.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["reader", "judge", "plain"]);
    assert_eq!((root.answer, root.steps.len(), root.outputs.len()), (Answer::Output, 2, 1));
    assert_eq!(root.parts[0].timeout, Some(std::time::Duration::from_millis(500)));
    assert!(root.parts[1].optional && root.parts[1].fallback == Some(2));
    assert!(flow.plans().skip(1).all(|(_, plan)| !plan.is_composed()));
}

#[test]
fn rules_keep_their_index_after_an_invalid_one() {
    let rules = "routing:
  - {condition: $.data.level =, next: plain}
  - {condition: $.data.levl == 'low', next: null}
  - {from: judge.output, condition: $.ok, next: null}
  - {next: number}";
    let composition =
        format!("dataflow:\n  - {{from: input, to: reader, mapping: {{text: $.text}}}}\n{rules}");
    let number = r#"{"input": {"properties": {"text": {"type": "integer"}}}, "data": {}}"#;
    let modules = Modules::new().with("number", module("number", "", "Do it.", number));
    let found = check(composed("root", &composition, ""), &modules);
    let locations: Vec<String> = found.findings.iter().map(|found| format!("{:?}", found.location)).collect();
    for (location, expected) in
        locations.iter().zip(["0/condition", "2/from", "1/condition", "3/next"].iter().chain([&"none"; 9]))
    {
        assert!(location.contains(&format!("/routing/{expected}\"")), "{locations:#?}");
    }
    assert_eq!(locations.len(), 4, "{:?}", shown(&found));
}

#[test]
fn invalid_step_has_no_further_findings() {
    for (composition, expected) in [
        (
            "dataflow:\n  - {from: inptu, to: plain}\n  - {from: plain.output, to: output, mapping: {score: $.data.x}}",
            "error composition-step: `inptu` is not a source",
        ),
        (
            "dataflow:\n  - {from: input, to: reader, mapping: {text: '$.['}}\n  - {from: reader.output, to: output, mapping: {}}",
            "error composition-mapping: invalid value, column",
        ),
        (
            "dataflow:\n  - {from: input, to: plain}\nrouting:\n  - {from: plain, condition: $.data.x == 1, next: null}",
            "error composition-step: `plain` is not a source",
        ),
        (
            "pattern: iterative\niteration: {from: plain, until: $.data.x == 1}\ndataflow:\n  - {from: input, to: reader, mapping: {text: $.text}}",
            "error composition-step: `plain` is not a source",
        ),
    ] {
        let found = findings(composition, "");
        assert!(found.len() == 1 && found[0].starts_with(expected), "{composition}: {found:?}");
    }
}

#[test]
fn empty_name_is_an_error() {
    let step = "dataflow:\n  - {from: input, to: plain}";
    for (composition, at) in [
        ("dataflow:\n  - {from: input, to: ''}".to_owned(), "/dataflow/0/to"),
        (
            "dataflow:\n  - {from: input, to: ['', plain]}\n  - {from: plain.output, to: output}".to_owned(),
            "/dataflow/0/to/0",
        ),
        (format!("{step}\nrouting: [{{next: ''}}]"), "/routing/0/next"),
        (format!("requires: [{{name: plain, fallback: ''}}]\n{step}"), "/requires/0/fallback"),
    ] {
        let found = checked(&composition, "");
        assert_eq!(shown(&found).len(), 1, "{composition}: {:?}", shown(&found));
        assert!(shown(&found)[0].starts_with("error composition-module: the name of a module is empty"));
        assert!(format!("{:?}", found.findings[0].location).contains(&format!("{at}\"")), "{composition}");
    }
}

#[test]
fn fallback_has_no_result_of_its_own() {
    let requires = "requires: [{name: plain, fallback: reader}]\ndataflow:\n  - {from: input, to: plain, mapping: {text: $.text}}";
    let step = format!("{requires}\n  - {{from: reader.output, to: output}}");
    assert_eq!(
        findings(&step, ""),
        [
            "error composition-step: `reader` is a fallback: its result is the result of `plain` (Read `plain.output`.)"
        ]
    );
    assert_eq!(
        findings(requires, "{{reader.data}} {{plain.data}} {{input.text}}"),
        [
            "error prompt-call: `{{reader.data}}` reads a fallback: its result is the result of `plain` (Write `{{plain.…}}`.)",
            "error prompt-call: `{{input.text}}` reads the result of `input`, which nothing runs (A field of the input cannot be inserted; `$INPUT` inserts the complete input.)",
        ]
    );
    let both = format!("{requires}\n  - {{from: input, to: reader, mapping: {{text: $.text}}}}");
    assert_eq!(findings(&both, "{{reader.data}} {{plain.data}}"), [""; 0]);
}

#[test]
fn many_warnings_leave_room_for_an_error() {
    let warning = |step: u32| format!("  - {{from: [input, input], to: plain, as: p{step}}}\n");
    let warning: String = (0..250).map(warning).collect();
    let checked = checked(&format!("dataflow:\n{warning}  - {{from: nothing, to: plain}}\n"), "");
    let errors = shown(&checked).iter().filter(|found| found.starts_with("error")).count();
    assert_eq!((errors, checked.findings.len()), (1, 201));
}

#[test]
fn long_chain_of_fallbacks_is_compared_in_part() {
    let requires: String =
        (0..1_500).map(|part| format!("  - {{name: p{part}, fallback: p{}}}\n", part + 1)).collect();
    let steps: String = (0..1_500).map(|part| format!("  - {{from: input, to: p{part}}}\n")).collect();
    let reference = "{{p0.data.anything}} {{p0.meta.confidense}}";
    let checked = checked(&format!("requires:\n{requires}dataflow:\n{steps}"), reference);
    let found = shown(&checked);
    let about_types: Vec<_> = found.iter().filter(|found| !found.contains("not found")).collect();
    assert_eq!(about_types.len(), 1, "{about_types:?}");
    assert!(
        about_types[0].contains("the member `confidense` (Did you mean `confidence`?)"),
        "{about_types:?}"
    );
}

#[test]
fn module_without_a_composition_is_not_composed() {
    let checked = check(module("root", "", "Do it.", crate::testing::ROOT), &Modules::new());
    assert_eq!(shown(&checked), [""; 0]);
    assert!(!checked.into_flow().unwrap().is_composed());
}

#[test]
fn missing_module_is_an_error_unless_it_is_optional() {
    let step = "dataflow:\n  - {from: input, to: reder, mapping: {text: $.text}}";
    assert_eq!(
        findings(step, ""),
        ["error composition-module: module `reder` not found (Did you mean `reader`?)"]
    );
    assert_eq!(code(&checked(step, "")), Code::ModuleNotFound);
    for requires in ["{name: reder, optional: true}", "{name: reder, fallback: reader}"] {
        let found = checked(&format!("requires: [{requires}]\n{step}"), "");
        assert!(shown(&found)[0].starts_with("warning composition-module: module `reder` not found"));
        let flow = found.into_flow().unwrap();
        assert_eq!(flow.root().parts[0].plan, None);
    }
    let called = findings("requires: []", "Use @call:reder[optional].");
    assert!(called[0].starts_with("warning composition-module: module `reder`"), "{called:?}");
}

#[test]
fn version_must_be_in_the_range() {
    let found = |version: &str| {
        let requires = format!("requires: [{{name: plain, version: '{version}'}}]");
        findings(&format!("{requires}\ndataflow:\n  - {{from: input, to: plain}}"), "")
    };
    for version in ["1.2.0", ">=1.0.0", "^1.0.0", "~1.2.0", "*", ">=1.0, <2"] {
        assert_eq!(found(version), [""; 0], "{version}");
    }
    for version in ["1.0.0", ">=2.0.0", "^0.9.0", "~1.1.0"] {
        let message = format!(
            "error composition-module: `plain` has version 1.2.0, but the composition requires `{version}` \
             (Install a matching version, or change `version` to `1.2.0`.)"
        );
        assert_eq!(found(version), [message], "{version}");
    }
    let help = "(Write `1.0.0`, `>=1.0.0`, `^1.0.0`, `~1.0.0` or `*`.)";
    assert_eq!(
        found("latest"),
        [format!("error composition-module: `latest` is not a range of versions {help}")]
    );
}

#[test]
fn cycle_is_reported_with_its_path() {
    let step = |to: &str| format!("dataflow:\n  - {{from: input, to: {to}}}");
    let modules = || Modules::new().composed("a", &step("b")).composed("b", &step("c"));
    let root = || composed("root", &step("a"), "");
    let found = check(root(), &modules().composed("c", &step("a")));
    assert_eq!(
        shown(&found),
        ["error composition-cycle: modules call each other in a cycle: a → b → c → a \
          (Remove one of these calls, or move the common part into a module that calls no other.)"]
    );
    assert_eq!(code(&found), Code::CircularDependency);
    let through_fallback = "requires: [{name: plain, fallback: a}]\ndataflow:\n  - {from: input, to: plain}";
    assert!(shown(&check(root(), &modules().composed("c", through_fallback)))[0].contains("a → b → c → a"));
    let called = composed("c", "requires: []", "Use @call:a.");
    assert!(shown(&check(root(), &modules().with("c", called)))[0].contains("a → b → c → a"));
    let back_to_root = root();
    let modules = modules().composed("c", &step("root")).with("root", Arc::clone(&back_to_root));
    assert!(shown(&check(back_to_root, &modules))[0].contains("root → a → b → c → root"));
}

#[test]
fn module_that_calls_itself_is_a_cycle() {
    for (composition, prompt) in [
        ("requires: [{name: root}]", ""),
        ("requires: [{name: plain, fallback: root}]\ndataflow:\n  - {from: input, to: plain}", ""),
        ("requires: []", "Use @call:root."),
    ] {
        let found = checked(composition, prompt);
        assert!(
            shown(&found)[0].starts_with("error composition-cycle: the module calls itself: root → root")
        );
        assert_eq!(code(&found), Code::CircularDependency);
    }
    let fallbacks = "requires: [{name: plain, fallback: judge}, {name: judge, fallback: plain}]\ndataflow:\n  - {from: input, to: plain}";
    assert_eq!(
        findings(fallbacks, "")[0],
        "error composition-cycle: the fallbacks lead to each other: plain → judge → plain (Remove one of the fallbacks.)"
    );
}

#[test]
fn own_prompt_as_a_step_is_not_a_cycle() {
    let steps = "dataflow:
  - {from: input, to: reader, mapping: {text: $.text}}
  - {from: reader.output, to: root, mapping: {text: $.data.summary}}";
    let found = checked(steps, "Judge $INPUT.");
    assert_eq!(shown(&found), [""; 0]);
    let flow = found.into_flow().unwrap();
    assert_eq!(flow.root().steps[1].to, crate::Target::Modules(vec![Callee::Own]));
    assert_eq!(flow.root().answer, Answer::Result);
    assert_eq!(
        findings(steps, "")[0],
        "error composition-step: `root` is this module, whose prompt is empty (Write a `prompt.md`, or name another module.)"
    );
}

#[test]
fn child_with_the_name_of_its_parent_is_another_module() {
    let child = composed("root", "dataflow:\n  - {from: input, to: root}", "Answer.");
    let root = composed("root", "dataflow:\n  - {from: input, to: child}", "");
    let found = check(root, &Modules::new().with("child", child));
    assert_eq!(shown(&found), [""; 0]);
}

#[test]
fn depth_is_limited() {
    let chain = |length: usize, max: &str| {
        let step = |next: usize| format!("{max}dataflow:\n  - {{from: input, to: m{next}}}");
        let last = module(&format!("m{length}"), "", "Do it.", crate::testing::ROOT);
        let modules = (2..length)
            .fold(Modules::new(), |modules, index| modules.composed(&format!("m{index}"), &step(index + 1)));
        check(composed("m1", &step(2), ""), &modules.with(&format!("m{length}"), last))
    };
    assert_eq!(shown(&chain(5, "")), [""; 0]);
    let found = chain(6, "");
    assert_eq!(
        shown(&found),
        [
            "error composition-depth: 6 modules call each other in a row, but `max_depth` is 5: m1 → m2 → m3 → m4 → m5 → m6 \
          (Flatten the composition, or raise `composition.max_depth` (at most 32).)"
        ]
    );
    assert_eq!(code(&found), Code::MaxDepthExceeded);
    assert_eq!(shown(&chain(6, "max_depth: 6\n")), [""; 0]);
    let long = shown(&chain(1_000, ""));
    assert!(long[0].contains("1000 modules") && long[0].contains("(960 more)"), "{}", &long[0][..80]);
}

#[test]
fn a_thousand_modules_with_all_paths_between_their_layers_are_checked() {
    const WIDTH: usize = 32;
    let step = |layer: usize| {
        let next: Vec<_> = (0..WIDTH).map(|index| format!("m{layer}-{index}")).collect();
        format!("max_depth: 32\ndataflow:\n  - {{from: input, to: [{}]}}", next.join(", "))
    };
    let name = |layer: usize, index: usize| format!("m{layer}-{index}");
    let layers = (1..32).flat_map(|layer| (0..WIDTH).map(move |index| (layer, index)));
    let modules = layers.fold(Modules::new(), |modules, (layer, index)| match layer {
        31 => {
            modules.with(&name(layer, index), module(&name(layer, index), "", "Do it.", crate::testing::ROOT))
        }
        _ => modules.composed(&name(layer, index), &step(layer + 1)),
    });
    let found = check(composed("root", &step(1), ""), &modules);
    assert_eq!(shown(&found), [""; 0]);
    assert_eq!(found.flow().plans().count(), 31 * WIDTH + 1);
}

#[test]
fn invalid_child_is_reported_in_its_own_file() {
    let child = "dataflow:\n  - {from: input, to: plain, condition: $.x = 1}";
    let found = check(
        composed("root", "dataflow:\n  - {from: input, to: child}", ""),
        &Modules::new().composed("child", child),
    );
    assert_eq!(
        shown(&found),
        ["error composition-condition: invalid condition, column 5: unknown operator `=` (Write `==`.)"]
    );
    assert_eq!(
        found.findings[0].to_error(&found.flow().root().module).message,
        "child: invalid condition, column 5: unknown operator `=`"
    );
    let location = found.findings[0].diagnostic().location.unwrap();
    assert_eq!((location.line, location.excerpt.get(location.marked.clone())), (9, Some("=")));
}

#[test]
fn names_are_suggested() {
    for (step, expected) in [
        (
            "{from: inptu, to: plain}",
            "error composition-step: `inptu` is not a source (Did you mean `input`?)",
        ),
        (
            "{from: reader, to: plain}",
            "error composition-step: `reader` is not a source (Write `reader.output`.)",
        ),
        (
            "{from: reader.data, to: plain}",
            "error composition-step: `reader.data` is not a source (Write `reader.output`.)",
        ),
        (
            "{from: reader.output, to: plain.output}",
            "error composition-step: `plain.output` is a source, not a target (Write `plain`.)",
        ),
        (
            "{from: input, to: [plain, output]}",
            "error composition-step: `output` cannot be in a list with modules (Add a step of its own for `output`.)",
        ),
        (
            "{from: input, to: ../plain}",
            "error composition-module: `../plain` is not a valid module name (Use the name of a module, not a path; `cog list` shows all names.)",
        ),
        (
            "{from: input, to: [plain, plain]}",
            "error composition-step: `plain` is listed twice in `to` (Remove one of them.)",
        ),
        (
            "{from: judge.output, to: plain}",
            "error composition-step: the step reads the result of `judge`, which nothing runs (Add a step with `to: judge` before it.)",
        ),
        (
            "{from: plain.output, to: plain}",
            "error composition-step: the step reads the result of `plain`, which runs in a later step (Write the steps in the order in which they run.)",
        ),
    ] {
        let found = findings(
            &format!("dataflow:\n  - {{from: input, to: reader, mapping: {{text: $.text}}}}\n  - {step}"),
            "",
        );
        assert!(found.contains(&expected.to_owned()), "{step}: {found:?}");
    }
}

#[test]
fn what_has_no_effect_is_a_warning() {
    let rounds = "pattern: iterative\niteration: {max_rounds: 2}\n";
    let step = "dataflow:\n  - {from: input, to: plain}";
    for (composition, prompt, expected) in [
        (
            "requires: [{name: judge}]",
            "Do it.",
            "warning composition-module: `judge` is required, but nothing runs it",
        ),
        (
            &*format!("pattern: conditional\n{step}"),
            "",
            "warning composition-step: the pattern `conditional` has no conditions",
        ),
        (
            &*format!("{step}\niteration: {{max_rounds: 2}}"),
            "",
            "warning composition-step: `iteration` has no effect in the pattern `sequential`",
        ),
        (
            &*step.replace("plain", "plain, condition: 1 > 2"),
            "",
            "warning composition-condition: the condition is never true: this step never runs",
        ),
        (
            &*format!("{step}\nrouting:\n  - {{next: null}}\n  - {{next: judge}}"),
            "",
            "warning composition-condition: this rule never decides: rule 1 before it is always true",
        ),
        (
            &*format!(
                "{step}\n  - {{from: input, to: judge, condition: exists($.text)}}\nrouting:\n  - {{next: judge}}"
            ),
            "",
            "warning composition-step: the condition has no effect: a rule of the routing starts this step",
        ),
        (
            &*format!(
                "{step}\n  - {{from: input, to: [judge, reader], mapping: {{text: $.text}}}}\nrouting:\n  - {{next: judge}}"
            ),
            "",
            "warning composition-step: `reader` never runs: the step waits for a rule, and none names `reader`",
        ),
        (
            &*format!(
                "{rounds}{step}\n  - {{from: input, to: judge}}\n  - {{from: plain.output, to: judge, mapping: {{}}}}\nrouting:\n  - {{next: judge}}"
            ),
            "",
            "warning composition-step: this step never runs: the rule starts the first step to `judge`",
        ),
        (
            &*format!(
                "{rounds}{step}\n  - {{from: input, to: judge}}\n  - {{from: plain.output, to: [judge, reader], mapping: {{text: $.data.x}}}}\n\
                 routing:\n  - {{condition: $.meta.confidence > 0.5, next: judge}}\n  - {{next: reader}}"
            ),
            "",
            "warning composition-step: this step never runs `judge`: the rule starts the first step to `judge`",
        ),
        (
            &*format!("{step}\n  - {{from: plain.output, to: output}}"),
            "Do it.",
            "warning composition-step: the prompt is not used: no step runs it",
        ),
        (step, "Do it.", "warning composition-step: the prompt reads no result of the steps"),
    ] {
        let found = findings(composition, prompt);
        assert!(found.iter().any(|found| found.starts_with(expected)), "{composition}: {found:?}");
        assert!(found.iter().all(|found| found.starts_with("warning")), "{composition}: {found:?}");
    }
}

#[test]
fn composition_without_an_answer_is_an_error() {
    for (composition, expected) in [
        ("requires: []", "error composition-step: the composition has no answer"),
        ("routing: [{next: null}]", "error composition-step: the composition has no answer"),
        (
            "pattern: iterative\ndataflow:\n  - {from: input, to: plain}",
            "error composition-step: the pattern `iterative` has no `iteration`",
        ),
        (
            "dataflow:\n  - {from: input, to: output, aggregate: array}",
            "error composition-step: an answer is an object, not a list",
        ),
        (
            "dataflow:\n  - {from: input, to: plain}\nrouting:\n  - {next: output}",
            "error composition-step: `output` is not a module",
        ),
    ] {
        let found = findings(composition, "");
        assert!(found[0].starts_with(expected), "{composition}: {found:?}");
    }
}

#[test]
fn references_and_calls_of_the_prompt() {
    let steps = "dataflow:\n  - {from: input, to: reader, mapping: {text: $.text}}";
    assert_eq!(findings(steps, "Judge {{reader.data.issues[0].title}} {{reader.meta.risk}}."), [""; 0]);
    for (prompt, expected) in [
        (
            "See {{readr.data}}.",
            "error prompt-call: `{{readr.data}}` reads the result of `readr`, which nothing runs (Did you mean `reader`?)",
        ),
        (
            "{{reader.data.isues}}",
            "error prompt-call: `{{reader.data.isues}}`: no schema defines the member `isues` (Did you mean `issues`?)",
        ),
        (
            "{{reader.issues}}",
            "error prompt-call: `{{reader.issues}}`: no schema defines the member `issues` (Write `$.data.issues`.)",
        ),
        (
            "@call:plain(a) @call:plain(b) {{reader.data}}",
            "error prompt-call: two calls of `plain` differ, but have one result (Name the result of one of them: `@call:plain(…)[as=NAME]`. To read the first one again, write `{{plain.data}}`.)",
        ),
        (
            "@call:plain(@call:judge) {{reader.data}}",
            "error prompt-call: `@call:judge` is inside the arguments of another call (Call it before, and read its result with `{{judge.data}}`.)",
        ),
        (
            "@call:plain({{judge.data}}) {{reader.data}}",
            "error prompt-call: `{{judge.data}}` reads a result that no earlier call of the prompt has (Write `@call:judge` before it.)",
        ),
    ] {
        let found = findings(steps, prompt);
        assert!(found.contains(&expected.to_owned()), "{prompt}: {found:?}");
    }
    let calls = checked(
        "requires: []",
        "@call:reader(a $INPUT)[async, timeout=2s, tier=exec] @call:judge({{reader.data.summary}})",
    );
    assert_eq!(shown(&calls), [""; 0]);
    let flow = calls.into_flow().unwrap();
    let first = &flow.root().calls[0];
    let second = &flow.root().calls[1];
    assert!(first.is_async && first.tier == Some(cog_spec::Tier::Exec) && !second.is_async);
    assert_eq!((first.timeout, second.timeout), (Some(std::time::Duration::from_secs(2)), None));
    assert_eq!((flow.root().answer, first.arguments.as_ref().unwrap().parts().len()), (Answer::OwnPrompt, 2));
}

#[test]
fn routed_step_waits_for_its_rule() {
    let found = checked(
        "pattern: conditional
dataflow:
  - {from: input, to: reader, mapping: {text: $.text}}
  - {from: reader.output, to: judge, mapping: {text: $.data.summary}}
routing:
  - {condition: $.meta.confidence >= 0.8, next: null}
  - {next: judge}",
        "",
    );
    assert_eq!(shown(&found), [""; 0]);
    let flow = found.into_flow().unwrap();
    assert_eq!(flow.root().steps.iter().map(|step| step.is_routed).collect::<Vec<_>>(), [false, true]);
    assert_eq!(
        flow.root().routes.iter().map(|route| route.next).collect::<Vec<_>>(),
        [None, Some(Callee::Part(1))]
    );
}

#[test]
fn result_of_a_routed_step_is_not_read_before_its_rule() {
    let composition = |step: &str, rule: &str| {
        let steps = "{from: input, to: plain}\n  - {from: input, to: judge}";
        format!("dataflow:\n  - {steps}\n{step}routing:\n  - {{{rule}next: judge}}")
    };
    let error = "error composition-step: the result of `judge` is read before a rule of the routing starts `judge` (Read another result, or remove the rule.)";
    let step = "  - {from: judge.output, to: reader, mapping: {text: $.data.rationale}}\n";
    assert_eq!(findings(&composition(step, ""), ""), [error]);
    assert_eq!(findings(&composition("", "from: judge.output, condition: $.ok, "), ""), [error]);
    let output = "  - {from: judge.output, to: output}\n";
    assert_eq!(findings(&composition(output, ""), ""), [""; 0]);
}

#[test]
fn lists_of_a_step_are_limited() {
    let targets: Vec<String> = (0..257).map(|index| format!("m{index}")).collect();
    let found = findings(&format!("dataflow:\n  - {{from: input, to: [{}]}}", targets.join(", ")), "");
    assert!(
        found.iter().any(|found| found.contains("the list has 257 items; the maximum is 256")),
        "{found:?}"
    );
}

fn search(successors: &[&[usize]]) -> Search {
    let successors: Vec<Vec<usize>> = successors.iter().map(|list| list.to_vec()).collect();
    Graph::new(&successors).search()
}

#[test]
fn cycle_has_its_complete_path() {
    let found = search(&[&[1], &[2, 3], &[1], &[0]]);
    assert_eq!(found.cycles, [vec![1, 2], vec![0, 1, 3]]);
    assert_eq!(search(&[&[0]]).cycles, [vec![0]]);
}

#[test]
fn shared_node_is_not_a_cycle() {
    let found = search(&[&[1, 2], &[3], &[3], &[]]);
    assert_eq!(found, Search { cycles: Vec::new(), heights: vec![3, 2, 2, 1] });
}

#[test]
fn deepest_path_is_as_long_as_the_height() {
    let successors: Vec<Vec<usize>> =
        [&[3, 1][..], &[2], &[3], &[]].iter().map(|list| list.to_vec()).collect();
    let graph = Graph::new(&successors);
    let heights = graph.search().heights;
    assert_eq!((graph.deepest_path(0, &heights), heights), (vec![0, 1, 2, 3], vec![4, 3, 2, 1]));
}

#[test]
fn long_chain_does_not_exhaust_the_stack() {
    let successors: Vec<Vec<usize>> = (1..=200_000).map(|next| vec![next]).chain([vec![]]).collect();
    assert_eq!(Graph::new(&successors).search().heights[0], 200_001);
}

/// Returns the longest path from a node of a graph without cycles.
fn height(successors: &[Vec<usize>], node: usize) -> usize {
    successors[node].iter().map(|next| height(successors, *next)).max().unwrap_or_default() + 1
}

proptest! {
    #[test]
    fn finds_a_cycle_exactly_if_there_is_one(
        successors in (1_usize..12).prop_flat_map(|nodes| {
            prop::collection::vec(prop::collection::vec(0..nodes, 0..4), nodes)
        })
    ) {
        let graph = Graph::new(&successors);
        let found = graph.search();
        // Only nodes that the first one reaches are searched.
        let reached = |node: usize| found.heights[node] > 0;
        let edges = successors.iter().enumerate().filter(|(node, _)| reached(*node));
        let edges = edges.flat_map(|(node, next)| next.iter().map(move |next| (node as u32, *next as u32)));
        let all = DiGraph::<(), ()>::from_edges(edges.collect::<Vec<_>>());
        prop_assert_eq!(!found.cycles.is_empty(), is_cyclic_directed(&all));
        for cycle in &found.cycles {
            let steps = cycle.iter().zip(cycle.iter().skip(1).chain(cycle.first()));
            for (from, to) in steps {
                prop_assert!(successors[*from].contains(to));
            }
        }
        if found.cycles.is_empty() {
            prop_assert_eq!(found.heights[0], height(&successors, 0));
            prop_assert_eq!(graph.deepest_path(0, &found.heights).len(), found.heights[0]);
        }
    }
}
