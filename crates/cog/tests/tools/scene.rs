//! A directory with what the examples and the pages name, and a shell in a copy of it.

#![expect(clippy::disallowed_methods, reason = "the examples name files, which are created here")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::LazyLock,
};

use cog_testkit::{Mock, Wire, as_newcomer};
use tempfile::TempDir;

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
    printf '{"code": "x = 1", "language": "python"}\n"y = 2"\n' > rows.jsonl
    printf 'id,question\n1,What is this?\n' > rows.csv
    echo '{"handoff": {"primary_objective": "Build a snake game"}}' > plan.json
    cog handoff new --answer plan.json --from planner --to coder -o p1.json
    cog handoff new --parent p1.json --to tester -o p2.json
    echo '{"contents": [{"role": "user", "parts": [{"text": "Which pages?"}]}]}' > request.json
    printf '#!/bin/sh\ncat %s/answer.json\n' "$PWD" > my-runtime && chmod +x my-runtime
    docs=~/.local/share/cog/cog-$(cog --version | cut -d ' ' -f 2)-docs
    mkdir -p $docs/cli && touch $docs/index.html $docs/testing.html $docs/cli/run.html
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

/// The directory, which is created once.
static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scene");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("stream.ndjson"), STREAM).unwrap();
    std::fs::write(directory.join("report.pdf"), DOCUMENT).unwrap();
    let output = shell(&directory, &directory).args(["-c", &format!("set -e\n{SCENE}")]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    directory
});

/// Runs a script in a copy of the directory, with providers that reply as the mock.
pub(crate) fn bash(mock: &Mock, script: &str) -> Output {
    let place = copied();
    let mut bash = shell(place.path(), &DIRECTORY);
    for (name, wire) in [
        ("OPENAI", Wire::OpenAi),
        ("LLAMACPP", Wire::OpenAi),
        ("ANTHROPIC", Wire::Anthropic),
        ("GEMINI", Wire::Gemini),
        ("OLLAMA", Wire::Ollama),
    ] {
        bash.env(format!("{name}_API_KEY"), "sk-canary").env(format!("{name}_BASE_URL"), mock.base_url(wire));
    }
    run(bash.env("LLM_MODEL", "m"), script)
}

/// Runs a script in a copy of the directory, with no key and no setting.
pub(crate) fn newcomer(script: &str) -> Output {
    let place = copied();
    run(&mut shell(place.path(), &DIRECTORY), script)
}

fn copied() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let copied = Command::new("cp").arg("-a").arg(DIRECTORY.join(".")).arg(place.path()).status().unwrap();
    assert!(copied.success());
    place
}

fn run(bash: &mut Command, script: &str) -> Output {
    bash.args(["-c", &format!("set -o pipefail\n{SERVER}\n{script}")]).output().unwrap()
}

/// Returns bash with this directory and home, and these programs beside `cog`.
fn shell(directory: &Path, programs: &Path) -> Command {
    let cog = Path::new(env!("CARGO_BIN_EXE_cog")).parent().unwrap();
    let path = [cog, programs, "/usr/local/bin".as_ref(), "/usr/bin".as_ref(), "/bin".as_ref()];
    let mut bash = Command::new("timeout");
    as_newcomer(bash.args(["120", "bash"]).current_dir(directory), directory);
    bash.env("PATH", std::env::join_paths(path).unwrap());
    bash
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
