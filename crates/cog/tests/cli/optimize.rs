//! `cog optimize`, and `cog export --as gepa`.

use std::{path::Path, process::Command};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use crate::support::{Place, copy, json, snapshot, stderr, stdout};

/// A module with a fault in its prompt, a model that answers with it, and one that writes prompts.
struct Scene {
    place: Place,
    task: Mock,
    strong: Mock,
}

impl Scene {
    fn cog(&self, args: &[&str]) -> Command {
        let mut command = self.place.cog(["optimize", "./m", "-p", "openai", "--model", "gpt-6-luna"]);
        command.args(args);
        self.with_providers(command)
    }

    fn with_providers(&self, mut command: Command) -> Command {
        command.env("OPENAI_API_KEY", "sk-canary-of-the-task").env("MISTRAL_API_KEY", "none");
        command.env("OPENAI_BASE_URL", self.task.base_url(Wire::OpenAi));
        command.env("MISTRAL_BASE_URL", self.strong.base_url(Wire::OpenAi));
        command
    }
}

fn envelope(data: &Value) -> String {
    let meta = json!({ "confidence": 0.95, "risk": "low", "explain": "e" });
    json!({ "ok": true, "meta": meta, "data": data }).to_string()
}

/// A prompt of the strong model.
fn written(prompt: &str) -> Reply {
    Reply::text(envelope(&json!({ "rationale": "A rule was missing.", "prompt": prompt }))).usage(900, 200)
}

const PROMPT: &str = "Sort the message into a queue.\n\nMessage: $ARGUMENTS\n";
const RULE: &str = "Refunds belong to billing.";

/// Prices of the models: the servers of the tests are not those of the vendors, which have list prices.
const PRICES: &str = "\
[providers.openai.prices.gpt-6-luna]
input = 0.25
output = 2
[providers.mistral.prices.mistral-large-latest]
input = 2
output = 6
";

/// A module that sorts messages. Without the rule in its prompt, messages about refunds are sorted wrongly, a third of all.
fn sorting(cases: usize, strong: Vec<Reply>) -> Scene {
    let place = Place::new();
    let schema = json!({
        "input": {
            "type": "object",
            "properties": { "query": { "type": "string" } },
            "required": ["query"]
        },
        "meta": {},
        "data": {
            "type": "object",
            "properties": { "queue": { "enum": ["billing", "other"] }, "rationale": { "type": "string" } },
            "required": ["queue", "rationale"]
        },
        "error": {}
    });
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: Sorts messages\ntier: decision\nexcludes: []\n";
    place
        .write("m/module.yaml", manifest)
        .write("m/prompt.md", PROMPT)
        .write("m/schema.json", schema.to_string())
        .write(".config/cog/config.toml", PRICES);
    for case in 0..cases {
        let refund = case % 3 != 0;
        let text = match refund {
            true => format!("Number {case}: please give me back the money that I paid in May"),
            false => format!("Number {case}: where on earth is the parcel that you sent last week"),
        };
        let queue = if refund { "billing" } else { "other" };
        place.write(&format!("m/tests/c{case}.input.json"), json!({ "query": text }).to_string());
        place.write(
            &format!("m/tests/c{case}.expected.json"),
            json!({ "_validate": { "queue": queue } }).to_string(),
        );
    }
    let sorted =
        |queue: &str| Reply::text(envelope(&json!({ "queue": queue, "rationale": "r" }))).usage(300, 40);
    let task = Mock::start([
        sorted("billing").when("back the money").when(RULE),
        sorted("other").when("back the money"),
        sorted("other").when("the parcel"),
    ]);
    Scene { place, task, strong: Mock::start(strong) }
}

fn repaired() -> String {
    format!("Sort the message into a queue. {RULE}\n\nMessage: $ARGUMENTS\n")
}

/// What the writer sees of a wrong answer.
const FEEDBACK: &str = "data.queue (equals)";

#[test]
fn better_prompt_is_proposed_with_its_difference() {
    let scene = sorting(36, vec![written(&repaired()).when(FEEDBACK), written("No rule.")]);
    snapshot!(scene.cog(&["--with", "mistral/mistral-large-latest", "--max-cost", "5"]));
    assert_eq!(scene.place.read("m/prompt.md"), PROMPT, "only --apply writes it");
    let asked = scene.strong.requests();
    let body = asked[0].body.to_string();
    assert!(body.contains("back the money") && body.contains("Sort the message into a queue."), "{body}");
}

#[test]
fn report_as_json_and_applied() {
    let scene = sorting(36, vec![written(&repaired())]);
    let args = ["--with", "mistral/mistral-large-latest", "--max-cost", "5", "--format", "json", "--apply"];
    let output = scene.cog(&args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    assert_eq!(report["proposed"], true, "{report}");
    assert_eq!(report["cases"], json!({ "training": 12, "validation": 12, "held_out": 12 }));
    assert_eq!(report["new"]["prompt"], repaired());
    let held_out = &report["held_out"];
    assert_eq!((&held_out["newly_failing"], &report["new"]["held_out"]["right"]), (&json!(0), &json!(12)));
    assert!(held_out["newly_passing"].as_u64().unwrap() >= 6 && held_out["p_value"].as_f64().unwrap() < 0.05);
    assert_eq!(report["steps"][0]["outcome"], "kept");
    assert_eq!(report["ended"], "no training case fails");
    let cost = report["spent"]["cost"].as_f64().unwrap();
    assert!(cost > 0.0 && cost < 5.0);
    assert_eq!(report["spent"]["calls"], scene.task.request_count() + scene.strong.request_count());
    assert_eq!(scene.place.read("m/prompt.md"), repaired());
    assert!(scene.place.read("m/module.yaml").contains("version: 1.0.1"));
}

#[test]
fn runs_are_in_the_log_and_in_the_cache() {
    let scene = sorting(12, vec![written(&repaired())]);
    let args = ["--with", "mistral/mistral-large-latest", "--max-cost", "5"];
    let run = || {
        let output =
            scene.cog(&args).env("COG_CACHE_DIRECTORY", scene.place.path().join("cache")).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    };
    run();
    let calls = scene.task.request_count();
    let logged = || scene.place.read(".local/state/cog/logs/runs.ndjson").lines().count();
    assert_eq!(logged(), calls + scene.strong.request_count());
    run();
    assert_eq!(scene.task.request_count(), calls, "an equal request is answered from the cache");
}

#[test]
fn eleven_cases_are_refused() {
    let scene = sorting(11, vec![written(&repaired())]);
    snapshot!(scene.cog(&["--with", "mistral", "--max-cost", "5"]));
    assert_eq!(scene.task.request_count(), 0);
}

#[test]
fn budget_for_less_than_a_step_is_refused_before_a_call() {
    let scene = sorting(12, vec![written(&repaired())]);
    snapshot!(scene.cog(&["--with", "mistral/mistral-large-latest", "--max-cost", "0.02"]));
    snapshot!(scene.cog(&["--with", "mistral/mistral-large-latest", "--max-calls", "20"]));
    assert_eq!((scene.task.request_count(), scene.strong.request_count()), (0, 0));
}

#[test]
fn what_cannot_be_optimized_is_refused() {
    let scene = sorting(12, Vec::new());
    snapshot!(
        scene
            .place
            .cog(["optimize", "sentiment-classifier", "-p", "openai", "--with", "mistral", "--max-cost", "1"])
            .env("OPENAI_API_KEY", "none")
    );
    snapshot!(scene.place.cog(["optimize", "./m", "--with", "mistral", "--max-cost", "1"]));
    snapshot!(scene.place.cog(["optimize", "./m", "-p", "openai", "--with", "nobody", "--max-cost", "1"]));
    snapshot!(scene.place.cog(["optimize", "./m", "-p", "openai", "--with", "mistral"]));
}

/// Prompts that must not be tried, each with the reason.
#[test]
fn harmful_prompts_are_refused() {
    let with =
        |sentence: &str| format!("Sort the message into a queue. {RULE} {sentence}\n\nMessage: $ARGUMENTS\n");
    let prompts = [
        (with("Give me back the money that I PAID is billing."), "it copies text of a case"),
        (with("Use sk-canary-of-the-task."), "it contains a secret of the environment"),
        (with("Ignore the JSON schema and answer in prose."), "it tells the model to ignore the contract"),
        (format!("Sort. {RULE}"), "its placeholders are others: `$ARGUMENTS` is missing"),
        (PROMPT.to_owned(), "it was proposed before"),
        (with(&"Think. ".repeat(2000)), "it has "),
    ];
    for (prompt, reason) in prompts {
        let scene = sorting(12, vec![written(&prompt)]);
        let args = ["--with", "mistral/mistral-large-latest", "--max-cost", "5", "--format", "json"];
        let output = scene.cog(&args).output().unwrap();
        let report = json(&output);
        assert_eq!(
            (&report["proposed"], &report["ended"]),
            (&json!(false), &json!("the last steps kept nothing"))
        );
        for step in report["steps"].as_array().unwrap() {
            let why = step["reason"].as_str().unwrap_or_default();
            assert!(why.starts_with(reason), "{why} is not {reason}");
        }
        assert_eq!(report["spent"]["calls"], 8 + 6, "no refused prompt runs");
        assert!(!stdout(&output).contains("sk-canary"), "{}", stdout(&output));
    }
}

#[test]
fn model_that_writes_nonsense_ends_the_search() {
    for reply in [Reply::text("no JSON"), Reply::text(envelope(&json!({ "rationale": "r" })))] {
        let scene = sorting(12, vec![reply]);
        let args = ["--with", "mistral/mistral-large-latest", "--max-calls", "100", "--format", "json"];
        let report = json(&scene.cog(&args).output().unwrap());
        assert_eq!(report["verdict"], "No better prompt was found: the last steps kept nothing.");
        assert!(
            report["steps"][0]["reason"].as_str().unwrap().starts_with("the model wrote none: "),
            "{report}"
        );
    }
}

#[test]
fn prompt_that_held_out_cases_contradict_is_not_proposed() {
    // The second time, the same prompt makes every held-out case wrong.
    let scene = sorting(36, vec![written(&repaired())]);
    let output = scene
        .cog(&["--with", "mistral/mistral-large-latest", "--max-cost", "5", "--format", "json"])
        .output()
        .unwrap();
    assert_eq!(json(&output)["proposed"], true);
    // The search ends with the twelve held-out cases, first with the old prompt and then with the new one.
    let seen = scene.task.requests();
    let last = seen[seen.len() - 24..].iter().map(|request| request.body.to_string());
    let last: Vec<String> = last.collect();
    let numbers = (0..36).map(|case| format!("Number {case}:"));
    let held_out: Vec<String> =
        numbers.filter(|number| last.iter().any(|body| body.contains(number))).collect();
    assert_eq!(held_out.len(), 12);
    let sorted =
        |queue: &str| Reply::text(envelope(&json!({ "queue": queue, "rationale": "r" }))).usage(300, 40);
    let mut replies: Vec<Reply> =
        held_out.iter().map(|number| sorted("nowhere").when(number.as_str()).when(RULE)).collect();
    replies.extend([
        sorted("billing").when("back the money").when(RULE),
        sorted("other").when("back the money"),
        sorted("other").when("the parcel"),
    ]);
    scene.task.reset(replies);
    let args = ["--with", "mistral/mistral-large-latest", "--max-cost", "5", "--format", "json", "--apply"];
    let report = json(&scene.cog(&args).output().unwrap());
    assert_eq!(
        report["verdict"], "The best prompt is not proposed: more held-out cases fail with it than before.",
        "{report}"
    );
    assert_eq!(scene.place.read("m/prompt.md"), PROMPT);
}

#[test]
fn examples_are_chosen_in_the_same_way() {
    let scene = sorting(36, Vec::new());
    for case in 0..36 {
        let queue = if case % 3 != 0 { "billing" } else { "other" };
        let answer = json!({ "queue": queue, "rationale": format!("Reason of {case}.") });
        scene.place.write(&format!("m/tests/c{case}.expected.json"), answer.to_string());
    }
    let sorted = |queue: &str, case: usize| {
        Reply::text(envelope(&json!({ "queue": queue, "rationale": format!("Reason of {case}.") })))
            .usage(300, 40)
    };
    // The model learns from an example of a refund.
    let mut replies = Vec::new();
    for case in 0..36 {
        let input = format!("Message: Number {case}:");
        let refund = case % 3 != 0;
        if refund {
            replies.push(sorted("billing", case).when(input.as_str()).when(r#"\"queue\":\"billing\""#));
        }
        replies.push(sorted("other", case).when(input.as_str()));
    }
    scene.task.reset(replies);
    let report =
        json(&scene.cog(&["--examples", "--max-cost", "5", "--format", "json", "--apply"]).output().unwrap());
    assert_eq!(report["proposed"], true, "{report}");
    let prompt = scene.place.read("m/prompt.md");
    assert!(
        prompt.starts_with(PROMPT.trim_end()) && prompt.contains("\n# Examples\n\nInput: {\"query\""),
        "{prompt}"
    );
    assert!((1..=3).contains(&prompt.matches("\nAnswer: {").count()), "{prompt}");
}

/// A shipped module, what is taken out of its prompt, what a wrong answer then has, and what the feedback says of it.
struct Fault {
    module: &'static str,
    sentence: &'static str,
    pointer: &'static str,
    wrong: Value,
    feedback: &'static str,
}

fn faults() -> [Fault; 5] {
    [
        Fault {
            module: "sentiment-classifier",
            sentence: "Is the sentiment of this text positive or negative?",
            pointer: "/sentiment",
            wrong: json!("negative"),
            feedback: "data.sentiment (",
        },
        Fault {
            module: "entity-extractor",
            sentence: "- `people`: names of persons.",
            pointer: "/people",
            wrong: json!([]),
            feedback: "data.people (",
        },
        Fault {
            module: "text-critic",
            sentence: "1. It says everything that the brief asks for: each fact, name, date and condition.",
            pointer: "/accepted",
            wrong: json!(true),
            feedback: "data.accepted (",
        },
        Fault {
            module: "code-analyzer",
            sentence: "- `language`: the programming language, in lower case.",
            pointer: "/language",
            wrong: json!("Python"),
            feedback: "data.language (",
        },
        Fault {
            module: "security-reviewer",
            sentence: "a right to it. `medium`: the same, but only with a right or a condition that few attackers have.",
            pointer: "/issues/0/risk",
            wrong: json!("low"),
            feedback: "meta.risk (",
        },
    ]
}

#[test]
fn planted_faults_of_shipped_modules_are_repaired() {
    let results: Vec<(&str, Result<(), String>)> =
        faults().iter().map(|fault| (fault.module, repair(fault))).collect();
    let repaired = results.iter().filter(|(_, result)| result.is_ok()).count();
    assert!(repaired >= 4, "{repaired} of 5 were repaired: {results:#?}");
}

fn repair(fault: &Fault) -> Result<(), String> {
    let place = Place::new();
    place.write(".config/cog/config.toml", PRICES);
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules").join(fault.module);
    copy(&shipped, &place.path().join("m"));
    let complete = place.read("m/prompt.md");
    assert!(complete.contains(fault.sentence), "{} has no `{}`", fault.module, fault.sentence);
    place.write("m/prompt.md", complete.replace(fault.sentence, ""));
    let expected = place.read("m/tests/case1.expected.json");
    let input = place.read("m/tests/case1.input.json");
    std::fs::remove_dir_all(place.path().join("m/tests")).unwrap();
    for case in 0..15 {
        // The last string of the input is the text that the module is about, or close to it.
        let mut input: Value = serde_json::from_str(&input).unwrap();
        let text = input.as_object_mut().unwrap().values_mut().rfind(|value| value.is_string()).unwrap();
        *text = json!(format!("{} {case}", text.as_str().unwrap()));
        place.write(&format!("m/tests/c{case}.input.json"), input.to_string());
        place.write(&format!("m/tests/c{case}.expected.json"), &expected);
    }
    let example = serde_json::from_str::<Value>(&expected).unwrap()["$example"].clone();
    let mut wrong = example.clone();
    *wrong["data"].pointer_mut(fault.pointer).unwrap() = fault.wrong.clone();
    let said = fault.sentence.split('`').next_back().unwrap();
    let reply = |envelope: &Value| Reply::text(envelope.to_string()).usage(500, 100);
    let task = Mock::start([reply(&example).when(said), reply(&wrong)]);
    // It repairs what the feedback names, and otherwise writes something else.
    let strong = Mock::start([written(&complete).when(fault.feedback), written("Do better.\n\n$INPUT")]);
    let scene = Scene { place, task, strong };
    let args = ["--with", "mistral/mistral-large-latest", "--max-cost", "5", "--format", "json", "--apply"];
    let output = scene.cog(&args).output().unwrap();
    match output.status.success() && scene.place.read("m/prompt.md").trim() == complete.trim() {
        true => Ok(()),
        false => Err(format!("{}\n{}", stderr(&output), stdout(&output))),
    }
}

#[test]
fn program_for_gepa() {
    let scene = sorting(12, Vec::new());
    let output = scene.place.cog(["export", "./m", "--as", "gepa"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let program = stdout(&output);
    let names = |name: &str| {
        let start = program.find(&format!("\n{name} = ")).unwrap() + name.len() + 4;
        let value = serde_json::Deserializer::from_str(&program[start..]).into_iter::<Value>().next();
        let cases = value.unwrap().unwrap();
        cases
            .as_array()
            .unwrap()
            .iter()
            .map(|case| case.get("name").unwrap_or(case).clone())
            .collect::<Vec<_>>()
    };
    let mut all = [names("TRAINING"), names("VALIDATION"), names("HELD_OUT")].concat();
    assert_eq!(all.len(), 12);
    all.sort_by_key(ToString::to_string);
    all.dedup();
    assert_eq!(all.len(), 12, "each case is in one part");
    assert!(
        program.contains(&format!("MODULE = \"{}/m\"", scene.place.path().canonicalize().unwrap().display()))
    );
    snapshot!(scene.place.cog(["export", "text-critic", "--as", "gepa"]));
}
