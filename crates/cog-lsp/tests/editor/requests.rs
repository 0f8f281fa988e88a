//! What an editor asks, and what it shows.

#![expect(clippy::disallowed_methods, reason = "the tests write modules")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use cog_module::{Finder, Level, Origin, validate};
use cog_testkit::{EditedModule, Mistakes};
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf,
        WriteHalf,
    },
    task::JoinHandle,
    time::timeout,
};

/// The longest time for an answer: a server that does not answer fails the test.
const PATIENCE: Duration = Duration::from_secs(60);

struct Editor {
    to: WriteHalf<DuplexStream>,
    from: BufReader<ReadHalf<DuplexStream>>,
    server: JoinHandle<()>,
    id: u64,
    /// The last diagnostics of each file.
    diagnostics: BTreeMap<String, Vec<Value>>,
}

impl Editor {
    async fn start(root: &Path) -> Self {
        let (here, there) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(there);
        let finder = |directory: &Path| Finder::new(directory, Vec::new(), None);
        #[expect(clippy::disallowed_methods, reason = "the server ends with the test")]
        let server = tokio::spawn(cog_lsp::serve(input, output, finder));
        let (from, to) = tokio::io::split(here);
        let mut editor = Self { to, from: BufReader::new(from), server, id: 0, diagnostics: BTreeMap::new() };
        let folder = json!({ "uri": uri(root), "name": "root" });
        let parameters = json!({
            "capabilities": {}, "workspaceFolders": [folder], "initializationOptions": { "codeLens": true },
        });
        editor.request("initialize", parameters).await;
        editor.notify("initialized", json!({})).await;
        editor
    }

    async fn send(&mut self, text: &str) {
        let message = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        self.to.write_all(message.as_bytes()).await.unwrap();
    }

    async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()).await;
    }

    /// Sends a request, and returns its answer.
    async fn request(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())
            .await;
        loop {
            let message = self.receive().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Returns the next message, and notes diagnostics.
    async fn receive(&mut self) -> Value {
        let message = timeout(PATIENCE, self.read()).await.expect("an answer");
        if message["method"] == "textDocument/publishDiagnostics" {
            let file = message["params"]["uri"].as_str().unwrap().to_owned();
            self.diagnostics.insert(file, message["params"]["diagnostics"].as_array().unwrap().clone());
        }
        message
    }

    async fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.from.read_line(&mut line).await.unwrap();
            match line.trim().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    async fn open(&mut self, path: &Path, text: &str) {
        let document = json!({ "uri": uri(path), "languageId": "yaml", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document })).await;
    }

    /// Opens a file, and waits for its diagnostics.
    async fn check(&mut self, path: &Path, text: &str) {
        self.open(path, text).await;
        loop {
            let message = self.receive().await;
            if message["params"]["uri"] == uri(path) {
                return;
            }
        }
    }

    /// Sends a request about the end of the first occurrence of text in a file.
    async fn ask(&mut self, method: &str, path: &Path, text: &str, more: Value) -> Value {
        let whole = fs::read_to_string(path).unwrap();
        let end = whole.find(text).unwrap() + text.len();
        let before = &whole[..end];
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap().encode_utf16().count();
        let mut params = json!({
            "textDocument": { "uri": uri(path) }, "position": { "line": line, "character": column },
        });
        params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        self.request(method, params).await["result"].clone()
    }

    async fn labels(&mut self, path: &Path, text: &str) -> Vec<String> {
        let items = self.ask("textDocument/completion", path, text, json!({})).await;
        let labels = items.as_array().into_iter().flatten();
        labels.map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    }

    /// Closes the connection without a word, and returns whether the server ends.
    async fn ends_after_close(self) -> bool {
        let Self { to, from, server, .. } = self;
        drop(to);
        drop(from);
        timeout(PATIENCE, server).await.is_ok()
    }
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// What a diagnostic is about: rule, message, line and column from 1.
type Finding = (String, String, u64, u64);

/// Returns what `cog validate` finds.
fn validated(directory: &Path) -> Vec<Finding> {
    let found = validate(&Origin::Directory(directory.to_owned()), Level::Any).diagnostics;
    let mut findings: Vec<Finding> = found
        .into_iter()
        .map(|found| {
            let (line, column) =
                found.location.as_ref().map_or((1, 1), |at| (at.line.into(), at.column.into()));
            let message = format!("{}\n{}", found.message, found.suggestion.unwrap_or_default());
            (found.rule.to_string(), message.trim_end().to_owned(), line, column)
        })
        .collect();
    findings.sort();
    findings
}

/// Returns what an editor shows after it has opened all files of a module.
async fn shown(directory: &Path) -> Vec<Finding> {
    let mut editor = Editor::start(directory.parent().unwrap()).await;
    let mut files = vec![directory.to_owned()];
    let mut open: Vec<PathBuf> = Vec::new();
    while let Some(path) = files.pop() {
        match path.is_dir() {
            true => files.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path())),
            false => open.push(path),
        }
    }
    // A module without a manifest is none to an editor: it is checked on the command line.
    for path in &open {
        if let Ok(text) = fs::read_to_string(path) {
            editor.open(path, &text).await;
        }
    }
    // The last check has the text of all files, and reports the last file that was opened.
    let last = open.iter().rev().find(|path| fs::read_to_string(path).is_ok()).unwrap().clone();
    editor.check(&last, &fs::read_to_string(&last).unwrap()).await;
    editor.request("textDocument/codeLens", json!({ "textDocument": { "uri": uri(&last) } })).await;
    let mut findings: Vec<Finding> = editor
        .diagnostics
        .values()
        .flatten()
        .map(|found| {
            let start = &found["range"]["start"];
            let text = |key: &str| found[key].as_str().unwrap().to_owned();
            let at = |key: &str| start[key].as_u64().unwrap() + 1;
            (text("code"), text("message"), at("line"), at("character"))
        })
        .collect();
    findings.sort();
    findings
}

#[tokio::test]
async fn diagnostics_are_those_of_validate() {
    let Mistakes { wrong, right } = Mistakes::read();
    for case in wrong.iter().chain(&right) {
        let place = tempfile::tempdir().unwrap();
        let directory = case.write(place.path());
        let has_manifest =
            ["module.yaml", "MODULE.md", "module.md"].iter().any(|name| directory.join(name).is_file());
        if has_manifest {
            assert_eq!(shown(&directory).await, validated(&directory), "{}", case.name);
        }
    }
}

/// A module with a check, and its directory.
fn module() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let modules = place.path().join("cognitive/modules");
    fs::create_dir_all(&modules).unwrap();
    let right: Vec<EditedModule> = Mistakes::read().right;
    let directory = right.first().unwrap().write(&modules);
    let manifest = directory.join("module.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(manifest, text + "checks:\n  - name: short\n    that: length($.data.reply) < 500\n").unwrap();
    let prompt = "Give the `reply` and the `queue` of $ARGUMENTS.\n\n@call:\n";
    fs::write(directory.join("prompt.md"), prompt).unwrap();
    (place, directory)
}

#[tokio::test]
async fn completes_keys_values_paths_placeholders_and_modules() {
    let (place, directory) = module();
    let mut editor = Editor::start(place.path()).await;
    let manifest = directory.join("module.yaml");
    let prompt = directory.join("prompt.md");

    let keys = editor.labels(&manifest, "checks:\n  - na").await;
    assert_eq!(keys, ["name", "that", "grounded", "when", "message", "severity"]);
    assert_eq!(editor.labels(&manifest, "tier: ").await, ["exec", "decision", "exploration"]);
    assert!(editor.labels(&manifest, "generation:\n  temp").await.contains(&"max_tokens".to_owned()));
    let paths = editor.labels(&manifest, "length($.data.").await;
    assert!(paths.contains(&"$.data.tags".to_owned()) && paths.contains(&"$.input.customer.plan".to_owned()));
    assert!(editor.labels(&prompt, "of $").await.contains(&"$ARGUMENTS".to_owned()));
    assert!(editor.labels(&prompt, "the `").await.contains(&"due_hours".to_owned()));
    let modules = editor.labels(&prompt, "@call:").await;
    assert!(modules.contains(&"ticket-triage".to_owned()) && modules.contains(&"code-reviewer".to_owned()));
}

#[tokio::test]
async fn explains_keys_and_fields() {
    let (place, directory) = module();
    let mut editor = Editor::start(place.path()).await;
    let key = editor.ask("textDocument/hover", &directory.join("module.yaml"), "tie", json!({})).await;
    let text = key["contents"]["value"].as_str().unwrap().to_owned();
    assert!(text.contains("without a person") && text.contains("`decision`"), "{text}");
    let field = editor.ask("textDocument/hover", &directory.join("prompt.md"), "the `que", json!({})).await;
    let text = field["contents"]["value"].as_str().unwrap().to_owned();
    assert!(text.contains("data.queue") && text.contains("how-to"), "{text}");
}

#[tokio::test]
async fn field_is_renamed_in_every_file() {
    let (place, directory) = module();
    let mut editor = Editor::start(place.path()).await;
    let prompt = directory.join("prompt.md");
    // The text of an open file counts, not that on disk.
    editor.open(&prompt, "\u{1F600} Give the `reply`.\n").await;

    let schema = directory.join("schema.json");
    let found =
        editor.ask("textDocument/definition", &directory.join("module.yaml"), "$.data.re", json!({})).await;
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(found[0]["uri"], uri(&schema));

    let at = json!({ "context": { "includeDeclaration": true } });
    let found = editor.ask("textDocument/references", &schema, "      \"repl", at).await;
    assert_eq!(found.as_array().unwrap().len(), 5, "{found}");

    let edit =
        editor.ask("textDocument/rename", &schema, "      \"repl", json!({ "newName": "answer" })).await;
    let changes = edit["changes"].as_object().unwrap();
    assert_eq!(changes.len(), 4);
    assert_eq!(changes[&uri(&schema)].as_array().unwrap().len(), 2);
    let start = &changes[&uri(&prompt)][0]["range"]["start"];
    assert_eq!(*start, json!({ "line": 0, "character": 13 }));

    let edit =
        editor.ask("textDocument/rename", &schema, "      \"repl", json!({ "newName": "queue" })).await;
    assert_eq!(edit, Value::Null);
}

#[tokio::test]
async fn misspelt_key_has_a_quick_fix() {
    let (place, directory) = module();
    let mut editor = Editor::start(place.path()).await;
    let manifest = directory.join("module.yaml");
    let text = fs::read_to_string(&manifest).unwrap().replace("response:", "respnse:");
    editor.check(&manifest, &text).await;
    let found = editor.diagnostics[&uri(&manifest)].clone();
    let context = json!({ "diagnostics": found });
    let params =
        json!({ "textDocument": { "uri": uri(&manifest) }, "range": found[0]["range"], "context": context });
    let actions = editor.request("textDocument/codeAction", params).await["result"].clone();
    assert_eq!(actions[0]["title"], "Replace with `response`");
    assert_eq!(actions[0]["edit"]["changes"][uri(&manifest)][0]["newText"], "response");
}

#[tokio::test]
async fn last_of_many_edits_counts() {
    let (place, directory) = module();
    let mut editor = Editor::start(place.path()).await;
    let manifest = directory.join("module.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    editor.check(&manifest, &text).await;
    for number in 0..200 {
        let text = format!("{text}misspelt_{number}: 1\n");
        let change = json!({
            "textDocument": { "uri": uri(&manifest), "version": number + 2 },
            "contentChanges": [{ "text": text }],
        });
        editor.notify("textDocument/didChange", change).await;
    }
    let is_last = |found: &[Value]| {
        found.iter().any(|found| found["message"].as_str().unwrap().contains("misspelt_199"))
    };
    while !is_last(&editor.diagnostics[&uri(&manifest)]) {
        editor.receive().await;
    }
    assert_eq!(editor.diagnostics[&uri(&manifest)].len(), 1);
}

#[tokio::test]
async fn odd_messages_do_not_end_the_server() {
    let (place, directory) = module();
    let mut editor = Editor::start(place.path()).await;
    editor.notify("$/unknown", json!({ "a": 1 })).await;
    editor.notify("textDocument/didChange", json!({ "textDocument": 1 })).await;
    let unknown = editor.request("cog/unknown", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601);
    let outside =
        json!({ "textDocument": { "uri": "untitled:1" }, "position": { "line": 9, "character": 9 } });
    assert_eq!(editor.request("textDocument/hover", outside).await["result"], Value::Null);
    let manifest = directory.join("module.yaml");
    editor.check(&manifest, "tier: [").await;
    assert_eq!(editor.diagnostics[&uri(&manifest)][0]["code"], "yaml-syntax");
    // Broken messages are answered, and the next one is read.
    for (broken, code) in [
        ("{\"jsonrpc\": \"2.0\", \"id\": ", -32_700),
        ("", -32_700),
        ("[]", -32_700),
        ("{\"jsonrpc\": \"1.0\", \"id\": 7, \"method\": \"shutdown\"}", -32_600),
    ] {
        editor.send(broken).await;
        assert_eq!(editor.receive().await["error"]["code"], code, "{broken}");
    }
    editor.to.write_all(b"Content-Length: none\r\n\r\nhello\r\n\r\n").await.unwrap();
    assert_eq!(editor.receive().await["error"]["code"], -32_700);
    let hover =
        json!({ "textDocument": { "uri": uri(&manifest) }, "position": { "line": 0, "character": 2 } });
    assert!(editor.request("textDocument/hover", hover).await.get("error").is_none());
}

#[tokio::test]
async fn server_ends_with_exit_although_the_connection_is_open() {
    let (place, directory) = module();
    let mut editor = Editor::start(place.path()).await;
    editor.check(&directory.join("prompt.md"), "new").await;
    editor.send(r#"{"jsonrpc": "2.0", "id": 99, "method": "shutdown"}"#).await;
    while editor.receive().await["id"] != 99 {}
    editor.send(r#"{"jsonrpc": "2.0", "method": "exit"}"#).await;
    assert!(timeout(PATIENCE, editor.server).await.is_ok());
}

#[tokio::test]
async fn server_ends_with_the_connection() {
    let (place, directory) = module();
    let mut editor = Editor::start(place.path()).await;
    editor.open(&directory.join("prompt.md"), "new").await;
    assert!(editor.ends_after_close().await);
}
