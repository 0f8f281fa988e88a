//! The workbench: `cog serve --workbench`, and `cog open`.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Command, Stdio},
};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use super::{Serving, begun};
use crate::support::{Place, stderr, stdout};

/// An answer of a module of the kind `classify`.
fn label(label: &str) -> Reply {
    let data = json!({ "label": label, "rationale": "Because." });
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "Fine." });
    Reply::text(json!({ "ok": true, "meta": meta, "data": data }).to_string())
}

/// A server with a workbench over the module `sorter`, which `cog new` has created.
struct Stage {
    server: Serving,
    mock: Mock,
    place: Place,
}

impl Stage {
    fn start(replies: impl IntoIterator<Item = Reply>, flags: &[&str]) -> Self {
        let place = Place::new();
        let made = place.cog(["new", "sorter", "--kind", "classify"]).output().unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
        let mock = Mock::start(replies);
        let mut command = place.cog(["serve", "--port", "0", "--workbench"]);
        command.args(flags).env("LLM_PROVIDER", "openai").env("LLM_MODEL", "m").env("OPENAI_API_KEY", "none");
        command.env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi)).env("COG_LOGS_SERVER", "true");
        command.env("COG_LOGS_CONTENTS", "true");
        Self { server: Serving::start(command), mock, place }
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> (u16, String) {
        call(&self.server.address, method, path, "", &body.to_string())
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = call(&self.server.address, "GET", path, "", "");
        assert_eq!(status, 200, "{path} {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Sends a request that succeeds.
    fn post(&self, path: &str, body: &Value) -> Value {
        let (status, text) = self.call("POST", path, body);
        assert_eq!(status, 200, "{path} {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Runs the golden tests, and returns the lines of the response.
    fn tests(&self, body: &Value) -> Vec<Value> {
        let (status, text) = self.call("POST", &format!("{SORTER}/tests"), body);
        assert_eq!(status, 200, "{text}");
        let lines = text.lines().filter(|line| line.starts_with('{'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn end(self) -> Place {
        self.server.signal("TERM");
        assert_eq!(self.server.ended(), Some(0));
        self.place
    }
}

const SORTER: &str = "/v1/workbench/modules/sorter";

/// Returns the status and the body of a response, whose chunks are joined.
fn call(address: &str, method: &str, path: &str, more: &str, body: &str) -> (u16, String) {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{more}\r\n{body}"
    );
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn server_has_no_workbench_unless_it_is_started_for_it() {
    let place = Place::new();
    let server = Serving::start(place.cog(["serve", "--port", "0", "--provider", "offline"]));
    for (method, path) in [
        ("GET", "/v1/workbench"),
        ("GET", "/v1/workbench/modules/code-reviewer"),
        ("PUT", "/v1/workbench/modules/code-reviewer/files/prompt"),
        ("POST", "/v1/workbench/modules/code-reviewer/tests"),
        ("GET", "/v1/workbench/runs"),
    ] {
        let (status, body) = call(&server.address, method, path, "", "{}");
        assert!(status == 404 && body.contains("route not found"), "{method} {path} {body}");
    }
    assert!(!call(&server.address, "GET", "/", "", "").1.contains("workbench"));
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn workbench_is_for_this_machine_or_for_clients_with_a_token() {
    let place = Place::new();
    let serve = ["serve", "--port", "0", "--provider", "offline", "--listen", "0.0.0.0", "--workbench"];
    let output = place.cog(serve).arg("--insecure").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("the workbench is for clients with a token"), "{}", stderr(&output));
    let output = place.cog(["serve", "--edit"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    place.write("tokens", "me:abcdefghij0123456789\n");
    let server = Serving::start({
        let mut command = place.cog(serve);
        command.args(["--token-file", "tokens"]);
        command
    });
    let port = server.address.rsplit(':').next().unwrap();
    let address = format!("127.0.0.1:{port}");
    assert_eq!(call(&address, "GET", "/v1/workbench", "", "").0, 401);
    let token = "Authorization: Bearer abcdefghij0123456789\r\n";
    assert_eq!(call(&address, "GET", "/v1/workbench", token, "").0, 200);
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn golden_tests_are_reported_as_they_end() {
    let stage = Stage::start([label("positive"), label("negative"), label("positive")], &[]);
    let lines = stage.tests(&json!({}));
    let (summary, cases) = lines.split_last().unwrap();
    assert!(
        cases.len() > 1 && cases.iter().all(|line| line["case"]["verdict"] == "contract_only"),
        "{lines:?}"
    );
    assert_eq!(summary["summary"]["contract_only"], cases.len());
    assert_eq!(summary["summary"]["interval"], Value::Null);
    assert!(stage.mock.requests().is_empty());

    let lines = stage.tests(&json!({ "provider": "openai", "model": "other", "cases": ["case1"] }));
    assert_eq!(lines.len(), 2, "{lines:?}");
    let case = &lines[0]["case"];
    assert_eq!(
        (&case["name"], &case["passed"], &case["verdict"]),
        (&json!("case1"), &json!(true), &json!("passed"))
    );
    assert_eq!(case["envelope"]["data"]["label"], "positive");
    assert_eq!(case["expected"]["_validate"]["label"], "positive");
    assert_eq!(lines[1]["summary"]["passed"], 1);
    assert!(lines[1]["summary"]["interval"][0].as_f64().unwrap() < 0.5);
    assert_eq!(stage.mock.requests()[0].body["model"], "other");

    let lines = stage.tests(&json!({ "provider": "openai", "cases": ["case1"] }));
    let case = &lines[0]["case"];
    assert!(
        case["passed"] == false && case["failures"][0]["path"].as_str().unwrap().ends_with("label"),
        "{case}"
    );
    assert_eq!(lines[1]["summary"]["failed"], 1);

    let (status, body) = stage.call("POST", &format!("{SORTER}/tests"), &json!({ "provider": "opnai" }));
    assert!(status == 400 && body.contains("E1004") && body.contains("Did you mean `openai`?"), "{body}");
    stage.end();
}

#[test]
fn client_that_leaves_ends_its_tests() {
    let stage = Stage::start([begun()], &["--shutdown-timeout", "100ms"]);
    let head = format!("POST {SORTER}/tests HTTP/1.1");
    let stream = stage.server.send(&head, r#"{"provider": "openai", "cases": ["case1"]}"#);
    while stage.mock.requests().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    drop(stream);
    while stage.mock.interrupted() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // The tests of a client that stays are stopped when the server ends.
    let _stream = stage.server.send(&head, r#"{"provider": "openai", "cases": ["case1"]}"#);
    while stage.mock.requests().len() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    stage.end();
}

#[test]
fn runs_are_listed_and_labelled() {
    let stage = Stage::start([label("positive"), label("negative")], &[]);
    let input = |text: &str| json!({ "input": { "text": text } });
    stage.post("/v1/modules/sorter/execute", &input("Thank you!"));
    stage.post("/v1/modules/sorter/execute", &input("It is broken."));
    let listed = stage.get("/v1/workbench/runs?module=sorter&limit=1");
    let runs = listed["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    let run = &runs[0];
    assert_eq!((&run["module"], &run["ok"], &run["risk"]), (&json!("sorter"), &json!(true), &json!("low")));
    assert_eq!(run["input"]["text"], "It is broken.");
    assert_eq!(run["envelope"]["data"]["label"], "negative");
    assert_eq!(stage.get("/v1/workbench/runs?module=other")["runs"], json!([]));

    let id = run["id"].as_str().unwrap();
    let path = format!("/v1/workbench/runs/{id}");
    assert_eq!(stage.get(&path)["input"], run["input"]);
    let (status, body) = stage.call(
        "POST",
        &format!("{path}/label"),
        &json!({ "label": "corrected", "data": { "label": 7 } }),
    );
    assert!(status == 400 && body.contains("E1001"), "{body}");
    let given = stage.post(&format!("{path}/label"), &json!({ "label": "wrong", "note": "It is neutral." }));
    assert_eq!((&given["run"], &given["label"]), (&json!(id), &json!("wrong")));
    assert_eq!(stage.get(&path)["label"], "wrong");
    let insights = stage.get(&format!("{SORTER}/insights"));
    let place = stage.end();
    let printed = place.cog(["insights", "sorter", "--format", "json"]).output().unwrap();
    assert_eq!(insights, serde_json::from_str::<Value>(&stdout(&printed)).unwrap());
    let logged = place.cog(["logs", "show", id]).output().unwrap();
    assert!(stdout(&logged).contains("It is neutral."), "{}", stdout(&logged));
}

#[test]
fn run_becomes_a_golden_test() {
    let stage = Stage::start([label("positive")], &["--edit"]);
    let about = stage.get("/v1/workbench");
    assert_eq!((&about["edit"], &about["logs"]), (&json!(true), &json!(true)));
    assert_eq!(
        about["providers"][0],
        json!({ "name": "openai", "model": "m", "configured": true }),
        "the chosen one is first"
    );
    let input = json!({ "text": "Great work, and on time." });
    let envelope = stage.post("/v1/modules/sorter/execute", &json!({ "input": input }));
    let case = |name: &str, input: &Value| json!({ "name": name, "input": input, "envelope": envelope });
    let cases = format!("{SORTER}/cases");
    let added = stage.post(&cases, &case("on-time", &input));
    assert_eq!(added["path"], "tests/on-time.expected.json");
    for (name, input, expected) in [
        ("on-time", &json!({ "text": "Other." }), 409),
        ("other", &input, 409),
        ("../other", &json!({ "text": "Other." }), 400),
        ("Other", &json!({ "text": "Other." }), 400),
        ("other", &json!({ "text": 7 }), 400),
        ("other", &json!({}), 400),
    ] {
        let (status, body) = stage.call("POST", &cases, &case(name, input));
        assert_eq!(status, expected, "{name} {input} {body}");
    }
    let refused =
        json!({ "name": "other", "input": { "text": "Other." }, "envelope": { "label": "positive" } });
    assert_eq!(stage.call("POST", &cases, &refused).0, 400);
    let lines = stage.tests(&json!({ "provider": "openai", "cases": ["on-time"] }));
    assert_eq!(lines[0]["case"]["verdict"], "passed", "{lines:?}");
    let place = stage.end();
    let expected: Value =
        serde_json::from_str(&place.read("cognitive/modules/sorter/tests/on-time.expected.json")).unwrap();
    assert_eq!(expected, json!({ "_validate": { "label": "positive" } }));
    assert!(place.cog(["test", "sorter", "--case", "on-time"]).output().unwrap().status.success());
}

#[test]
fn files_are_written_only_with_edit() {
    let stage = Stage::start([label("positive")], &[]);
    let file = &stage.get(SORTER)["files"]["prompt"];
    let save = json!({ "text": "Sort $ARGUMENTS.", "hash": file["hash"] });
    let (status, body) = stage.call("PUT", &format!("{SORTER}/files/prompt"), &save);
    assert!(status == 403 && body.contains("--edit"), "{body}");
    let case = json!({ "name": "a", "input": { "text": "b" }, "envelope": {} });
    assert_eq!(stage.call("POST", &format!("{SORTER}/cases"), &case).0, 403);
    let place = stage.end();
    assert_eq!(place.read("cognitive/modules/sorter/prompt.md"), file["text"].as_str().unwrap());
}

#[test]
fn stored_calibration_is_shown() {
    let place = Place::new();
    assert!(place.cog(["new", "sorter", "--kind", "classify"]).output().unwrap().status.success());
    let run = |number: u32| {
        let confidence = f64::from(number % 10) / 10.0;
        json!({ "case": format!("c{number}"), "confidence": confidence, "right": number % 10 >= 4 })
            .to_string()
            + "\n"
    };
    let runs: String = (0..60).map(run).collect();
    place.write("runs.jsonl", runs);
    let mut calibrate =
        place.cog(["calibrate", "sorter", "--runs", "runs.jsonl", "--write", "-p", "openai", "--model", "m"]);
    let output = calibrate.env("OPENAI_API_KEY", "none").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let server = Serving::start(place.cog(["serve", "--port", "0", "--provider", "offline", "--workbench"]));
    let get = |path: &str| -> Value {
        let (status, body) = call(&server.address, "GET", path, "", "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    };
    let trust = get(&format!("{SORTER}/trust"));
    let calibration = &trust["calibration"];
    assert_eq!((&calibration["provider"], &calibration["model"]), (&json!("openai"), &json!("m")), "{trust}");
    let report = &calibration["report"];
    assert_eq!((&report["cases"], &trust["others"]), (&json!(60), &json!([])));
    assert!(report["reliability"].as_array().unwrap().len() > 1, "{report}");
    assert!(report["risk_coverage"].as_array().unwrap().len() > 1, "{report}");
    assert_eq!(get("/v1/workbench/modules/code-reviewer/trust")["calibration"], Value::Null);
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));
}

// `cog open`.

/// A server of `cog open`, and the address that it has printed.
struct Opened {
    child: Child,
    page: String,
}

impl Opened {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut page = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut page).unwrap();
        Self { child, page: page.trim().to_owned() }
    }

    fn address(&self) -> &str {
        self.page.strip_prefix("http://").unwrap().split('/').next().unwrap()
    }

    fn token(&self) -> String {
        let token = self.page.split("#token=").nth(1).unwrap().split('&').next().unwrap();
        format!("Authorization: Bearer {token}\r\n")
    }

    fn end(mut self) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn open_serves_one_browser() {
    let place = Place::new();
    assert!(place.cog(["new", "sorter", "--kind", "classify"]).output().unwrap().status.success());
    // Settings of a server for others do not count.
    place.write("tokens", "me:abcdefghij0123456789\n");
    let mut command = place.cog(["open", "sorter", "--edit", "--provider", "offline"]);
    command.env("COG_SERVE_TOKEN_FILE", "tokens").env("COG_SERVE_LISTEN", "0.0.0.0");
    command.arg("--no-browser");
    let opened = Opened::start(command);
    assert!(
        opened.page.ends_with("&module=sorter") && opened.address().starts_with("127.0.0.1:"),
        "{}",
        opened.page
    );
    let (status, _) = call(opened.address(), "GET", "/v1/workbench", "", "");
    assert_eq!(status, 401);
    let others = "Authorization: Bearer abcdefghij0123456789\r\n";
    assert_eq!(call(opened.address(), "GET", "/v1/workbench", others, "").0, 401);
    let (status, about) = call(opened.address(), "GET", "/v1/workbench", &opened.token(), "");
    assert!(status == 200 && about.contains("\"edit\":true"), "{about}");
    // The operator sees the runs of the page in the log, and whole errors.
    let body = r#"{"input": {"text": "Fine."}}"#;
    let (status, _) = call(opened.address(), "POST", "/v1/modules/sorter/execute", &opened.token(), body);
    assert_eq!(status, 200);
    let runs = call(opened.address(), "GET", "/v1/workbench/runs", &opened.token(), "").1;
    assert!(runs.contains("\"module\":\"sorter\""), "{runs}");
    opened.end();
}

#[test]
fn open_starts_the_browser_with_the_address() {
    let place = Place::new();
    place.copy_module("format-v25", "work/format-v25");
    place.write(
        "browser",
        "#!/bin/sh\nprintf %s \"$1\" > \"$HOME/opened.tmp\" && mv \"$HOME/opened.tmp\" \"$HOME/opened\"\n",
    );
    let browser = format!("sh {}/browser", place.path().display());
    let open = |more: &[&'static str]| {
        let mut command = place.cog(["open", "./work/format-v25", "--provider", "offline"]);
        command.args(more).env("BROWSER", &browser).env("PATH", std::env!("PATH"));
        Opened::start(command)
    };
    let opened = open(&[]);
    while !place.path().join("opened").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(place.read("opened"), opened.page);
    assert!(opened.page.ends_with("&module=format-v25"), "{}", opened.page);
    opened.end();
    std::fs::remove_file(place.path().join("opened")).unwrap();
    let opened = open(&["--no-browser"]);
    assert_eq!(call(opened.address(), "GET", "/v1/workbench", &opened.token(), "").0, 200);
    opened.end();
    assert!(!place.path().join("opened").exists());
    let unknown = place.cog(["open", "sortre"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("E4006"), "{}", stderr(&unknown));
}
