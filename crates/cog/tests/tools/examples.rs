//! Runs the examples of every command's help.

use std::process::{Command, Output};

use cog_testkit::{Mock, Reply};
use serde_json::{Value, json};

use crate::{nats::Nats, scene::bash};

#[test]
fn examples_in_help_work() {
    let mut tried = 0;
    let mut failed = Vec::new();
    for command in commands() {
        let words: Vec<&str> = command.split(' ').collect();
        for example in examples(&help(&words)).into_iter().filter(|example| !needs_others(example)) {
            let output = typed(&example);
            tried += 1;
            if !is_as_described(&example, &output) {
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
                failed.push(format!("$ {example}\n{stderr}{}", String::from_utf8_lossy(&output.stdout)));
            }
        }
    }
    assert!(tried > 55, "only {tried} examples were found");
    assert!(failed.is_empty(), "{} of {tried} fail:\n{}", failed.len(), failed.join("\n"));
}

/// Whether an example needs the batch interface of a vendor, workers, a server, a terminal, prices, or a trusted directory. The
/// command-line tests `batch::via`, `serve`, `serve::workbench`, `mcp_sign_in`, `optimize` and `gate` and the tests `nats::batches` and `mcp_odd` run
/// these commands.
fn needs_others(example: &str) -> bool {
    let needs_workers = example.starts_with("cog batch ") && example.contains("--nats ");
    let needs_queue = example.starts_with("cog batch status") || example.starts_with("cog jobs ");
    let needs_server = ["cog mcp tools", "cog mcp call", "cog mcp login", "cog mcp logout"]
        .iter()
        .any(|start| example.starts_with(start));
    needs_server
        || needs_workers
        || needs_queue
        || example.contains("--via ")
        || example.starts_with("cog healthcheck")
        || example.starts_with("cog open")
        || example.starts_with("cog review")
        || example.starts_with("cog optimize")
        || example.starts_with("cog calibrate my-module --check")
}

/// `cog media check` exits with 1 for a refused URL; all other examples succeed.
fn is_as_described(example: &str, output: &Output) -> bool {
    let refuses = example.starts_with("cog media check") && example.contains("localhost");
    output.status.code() == Some(i32::from(refuses))
}

/// Returns the program, every command and every subcommand.
fn commands() -> Vec<String> {
    let whole = listed(&[]);
    let steps = whole
        .iter()
        .flat_map(|command| listed(&[command]).into_iter().map(move |step| format!("{command} {step}")));
    whole.iter().cloned().chain(steps.collect::<Vec<_>>()).chain(["--help".to_owned()]).collect()
}

fn listed(command: &[&str]) -> Vec<String> {
    commands_of(&help(command)).filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Returns the commands that a help page lists before its arguments and options.
pub(crate) fn commands_of(help: &str) -> impl Iterator<Item = &str> {
    help.lines()
        .take_while(|line| !["Arguments:", "Options:", "Global options:"].contains(line))
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
}

pub(crate) fn help(command: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cog")).args(command).arg("--help").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Each example on one line.
fn examples(help: &str) -> Vec<String> {
    let help = help.replace("\\\n", "");
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    lines.take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
}

/// Writes the skills that are imported.
const SKILLS: &str = "cog export code-reviewer --as skill > notes\nmkdir -p .claude/skills/pdf-reader\n\
    printf '%s\\n' --- 'name: pdf-reader' 'description: Reads PDF files.' --- 'Read the file.' > .claude/skills/pdf-reader/SKILL.md";

/// Commits everything to the branch main.
const COMMIT: &str =
    "git add . && git -c user.name=a -c user.email=a@example.com commit -qm 1 && git branch -qM main";

/// Writes twelve golden tests.
const CASES: &str =
    "for i in $(seq 12); do echo '{\"query\": \"When? '$i'\"}' > my-module/tests/t$i.input.json
    cp my-module/tests/case1.expected.json my-module/tests/t$i.expected.json; done";

/// The files that examples name, and how they are made.
const FILES: [(&str, &str); 10] = [
    ("--run 7fk2", LABELLED),
    ("--from-labels", LABELLED),
    (
        "openai.json",
        "export MISTRAL_API_KEY=test MISTRAL_BASE_URL=$OPENAI_BASE_URL\ncog test my-module --provider openai --format json > openai.json 2> notes",
    ),
    (
        "runs.jsonl",
        r#"for i in $(seq 60); do echo '{"case": "t'$i'", "confidence": 0.97, "right": true}'; done > runs.jsonl"#,
    ),
    ("recent.jsonl", r#"cog calibrate my-module > notes 2>&1; echo '{"confidence": 0.97}' > recent.jsonl"#),
    ("cog optimize", CASES),
    ("--as gepa", CASES),
    ("cases.csv my-module", r"printf 'query,expected.answer\nWhen?,Nine\n' > cases.csv"),
    (
        "cases.jsonl ./my-module",
        r#"echo '{"input": {"query": "When?"}, "expected": {"answer": "At nine.", "rationale": "It says so."}}' > cases.jsonl"#,
    ),
    (
        "import promptfooconfig.yaml",
        r#"echo 'tests: [{vars: {query: When?}, assert: [{type: contains, value: nine}]}]' > promptfooconfig.yaml"#,
    ),
];

/// Adds a labelled run of the module to the log, instead of those that are there.
const LABELLED: &str = r#"
    cog logs clear > notes
    COG_LOGS_CONTENTS=on cog run my-module --args When? --provider offline > notes 2>&1
    sed -i 's/"id":"[^"]*"/"id":"7fk2mq3d"/' ~/.local/state/cog/logs/runs.ndjson
    cog logs label 7fk2 right > notes
"#;

/// Runs a line in bash, in its own directory and home, with a model that answers correctly.
fn typed(example: &str) -> Output {
    let mock = Mock::start((0..4).map(|_| reply(example)).collect::<Vec<_>>());
    let makes_a_module = example.starts_with("cog new");
    let module = if makes_a_module {
        ""
    } else {
        "cog new my-module 2> notes && rm cognitive/modules/*/tests/case2.* && cp -r cognitive/modules/my-module ."
    };
    // No server exists at the URLs of the examples, so a file supplies the bytes, and URLs are checked by form.
    let example = example.replace("http://localhost:8000/run", "file://$PWD/stream.ndjson");
    let example = example.replace("curl -s https://example.com/a.png", "curl -s file://$PWD/served.png");
    let example = example.replace("cog media check http", "cog media check --no-fetch http");
    // What is checked was printed before.
    let example = match example.strip_suffix(" --check") {
        Some(prints) => format!("{prints} > notes\n{example}"),
        None => example,
    };
    let example = match example.contains(" main:") || example.contains("--against main") {
        true => format!("{COMMIT}\n{example}"),
        false => example,
    };
    let example = match example.starts_with("cog import") {
        true => format!("{SKILLS}\n{example}"),
        false => example,
    };
    let files = FILES.iter().filter(|(name, _)| example.contains(name)).map(|(_, makes)| *makes);
    let example = files.chain([example.as_str()]).collect::<Vec<_>>().join("\n");
    let nats = example.starts_with("cog worker").then(Nats::start);
    let example = nats.iter().fold(example, |example, nats| {
        let example = example.replace("nats://localhost:4222", &nats.url());
        format!("{example} 2> log & server=$!\nuntil grep -q waiting log; do sleep 0.05; done\nstop")
    });
    let example = match example.strip_prefix("cog mcp serve --http 127.0.0.1:8001") {
        Some(rest) => {
            let started = "until grep -q 'modules at' log; do sleep 0.05; done";
            format!("cog mcp serve --http 127.0.0.1:0 {rest} 2> log & server=$!\n{started}\nstop")
        }
        None => example,
    };
    let example = match example.strip_prefix("cog serve") {
        Some(arguments) => format!("serve {arguments}\nstop"),
        None if example.contains("localhost:8000") => {
            format!("serve --port 0\n{}\nstop", example.replace("localhost:8000", "$address"))
        }
        None => example,
    };
    bash(&mock, &format!("set -e\nmkdir -p cognitive/modules\n{module}\n{example}"))
}

/// Returns a valid answer for the module of an example.
fn reply(example: &str) -> Reply {
    let of_template = json!({
        "answer": "Any time between nine and six.",
        "rationale": "The text gives both hours and asks for the time between them."
    });
    let of_reviewer = json!({ "verdict": "approve", "issues": [], "rationale": "Nothing stands out." });
    let data: Value = match example {
        _ if example.contains("my-module") => of_template,
        _ if example.contains("image-analyzer") => {
            golden(include_str!("../../../../modules/image-analyzer/tests/case1.expected.json"))
        }
        _ if example.contains("planner") => {
            golden(include_str!("../../../../modules/planner/tests/case1.expected.json"))
        }
        _ => of_reviewer,
    };
    let meta = json!({ "confidence": 0.97, "risk": "none", "explain": "As the text says." });
    Reply::text(json!({ "ok": true, "meta": meta, "data": data, "error": null }).to_string())
}

/// Returns the data of the example in an expected file.
fn golden(file: &str) -> Value {
    serde_json::from_str::<Value>(file).unwrap()["$example"]["data"].clone()
}
