//! Runs the examples of every command's help.

#![expect(clippy::disallowed_methods, reason = "the examples speak of files, which are laid out here")]

use std::{
    path::Path,
    process::{Command, Output},
};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

/// Creates the directories, files and programs that the examples require.
const SCENE: &str = r#"
    echo '{"code": "x = 1"}' > input.json
    git init -q . && git add input.json && echo '{"code": "x = 2"}' > input.json
    LLM_PROVIDER=offline COG_LOGS_CONTENTS=on cog run code-reviewer input.json > answer.json 2> notes
    sed -i 's/"id":"[^"]*"/"id":"7fk2mq3d"/' ~/.local/state/cog/logs/runs.ndjson
    /usr/bin/convert -size 64x48 xc:orange photo.jpg
    /usr/bin/convert -size 64x48 xc:orange served.png
    ffmpeg -loglevel error -f lavfi -i testsrc=d=2:s=96x64 -f lavfi -i sine=d=2 -pix_fmt yuv420p talk.mp4
    ffmpeg -loglevel error -i talk.mp4 talk.mp3
    printf 'https://example.com/a.png\n' > urls.txt
    echo '[{"role": "user", "content": "What is this?"}]' > history.json
    cp history.json trace.json
    cog messages archive history.json archive
    echo '{"query": "What is this?"}' > question.json
    echo '{"handoff": {"primary_objective": "Build a snake game"}}' > plan.json
    cog handoff new --answer plan.json --from planner --to coder -o p1.json
    cog handoff new --parent p1.json --to tester -o p2.json
    echo '{"contents": [{"role": "user", "parts": [{"text": "Which pages?"}]}]}' > request.json
    printf '#!/bin/sh\ncat %s/answer.json\n' "$PWD" > "$TOOLS/my-runtime" && chmod +x "$TOOLS/my-runtime"
"#;

/// Shell functions: `serve` starts a server and waits for its URL, `stop` ends it.
const SERVER: &str = r#"
    serve() {
        cog serve "$@" 2> log &
        server=$!
        until address=$(grep -o 'http://[0-9.:]*' log) || ! kill -0 $server 2> notes; do sleep 0.05; done
    }
    stop() { kill -TERM $server; wait $server || { cat log >&2; return 1; }; }
"#;

#[test]
fn examples_in_help_work() {
    let mut tried = 0;
    let mut failed = Vec::new();
    for command in commands() {
        let words: Vec<&str> = command.split(' ').collect();
        for example in examples(&help(&words)) {
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

/// Returns the commands that a help text lists.
fn listed(command: &[&str]) -> Vec<String> {
    let overview = help(command);
    let list = overview.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list.take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

fn help(command: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cog")).args(command).arg("--help").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Each example on one line.
fn examples(help: &str) -> Vec<String> {
    let help = help.replace("\\\n", "");
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    lines.take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
}

/// Runs a line in bash, in its own directory and home, with a model that answers correctly.
fn typed(example: &str) -> Output {
    let place = tempfile::tempdir().unwrap();
    let tools = tempfile::tempdir().unwrap();
    let mock = Mock::start((0..4).map(|_| reply(example)).collect::<Vec<_>>());
    let makes_a_module = example.starts_with("cog new");
    let module =
        if makes_a_module { "" } else { "cog new my-module 2> notes && cp -r cognitive/modules/my-module ." };
    let stream = place.path().join("stream.ndjson");
    std::fs::write(&stream, STREAM).unwrap();
    std::fs::write(place.path().join("report.pdf"), DOCUMENT).unwrap();
    // No server exists at the URLs of the examples, so a file supplies the bytes, and URLs are checked by form.
    let example = example.replace("http://localhost:8000/run", &format!("file://{}", stream.display()));
    let image = format!("curl -s file://{}", place.path().join("served.png").display());
    let example = example.replace("curl -s https://example.com/a.png", &image);
    let example = example.replace("cog media check http", "cog media check --no-fetch http");
    let example = match example.strip_prefix("cog serve") {
        Some(arguments) => format!("serve {arguments}\nstop"),
        None if example.contains("localhost:8000") => {
            format!("serve --port 0\n{}\nstop", example.replace("localhost:8000", "$address"))
        }
        None => example,
    };
    let script =
        format!("set -eo pipefail\nmkdir -p cognitive/modules\n{SCENE}\n{module}\n{SERVER}\n{example}");
    let cog = Path::new(env!("CARGO_BIN_EXE_cog")).parent().unwrap();
    let path = std::env::join_paths([
        cog,
        tools.path(),
        "/usr/local/bin".as_ref(),
        "/usr/bin".as_ref(),
        "/bin".as_ref(),
    ]);
    let mut bash = Command::new("bash");
    bash.env_clear().env("PATH", path.unwrap()).env("HOME", place.path()).env("TOOLS", tools.path());
    for (key, address, wire) in [
        ("OPENAI_API_KEY", "OPENAI_BASE_URL", Wire::OpenAi),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", Wire::Anthropic),
        ("OLLAMA_API_KEY", "OLLAMA_HOST", Wire::Ollama),
    ] {
        bash.env(key, "sk-canary").env(address, mock.base_url(wire));
    }
    bash.env("LLM_MODEL", "m").args(["-c", &script]).current_dir(place.path()).output().unwrap()
}

/// A PDF of three identical pages.
const DOCUMENT: &str = r"%PDF-1.7
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R 3 0 R 3 0 R] /Count 3 >> endobj
3 0 obj << /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >> endobj
4 0 obj << /Length 43 >>
stream
BT /F1 12 Tf 72 720 Td (Nine to six.) Tj ET
endstream
endobj
5 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj
trailer << /Size 6 /Root 1 0 R >>
%%EOF
";

const STREAM: &str = r#"
{"ok":true,"streaming":true,"session_id":"s1","meta":{"confidence":null,"risk":"medium","explain":"Running m"}}
{"chunk":{"seq":1,"type":"delta","field":"data.answer","delta":"Nine."}}
{"final":true,"meta":{"confidence":0.9,"risk":"low","explain":"Short."},"data":{"answer":"Nine.","rationale":"r"}}
"#;

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
