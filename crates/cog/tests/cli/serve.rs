//! `cog serve`: startup, rejected settings, and shutdown.

mod checks;
mod compositions;
mod decisions;
mod feedback;
mod killed;
mod secrets;
mod service;
mod state;
mod workbench;

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, ChildStderr, Command, Stdio},
    time::Duration,
};

use cog_testkit::{Mock, Reply, Wire};

use crate::support::{Place, snapshot};

const TOKEN: &str = "abcdefghij0123456789";

#[test]
fn weak_token() {
    let place = Place::new();
    place.write("tokens", "# mine\nme:sk-canary\n");
    snapshot!(place.cog(["serve", "--provider", "offline", "--token-file", "tokens"]));
}

#[test]
fn invalid_origin() {
    snapshot!(Place::new().cog(["serve", "--provider", "offline", "--allow-origin", "https://a.example,*"]));
}

#[test]
fn port_in_use_is_a_usage_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = Place::new().cog(["serve", "--provider", "offline", "--port", &port]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("error: cannot listen at") && message.contains("choose another --port"),
        "{message}"
    );
}

#[test]
fn modules_of_paths_are_served() {
    let place = Place::new();
    place.copy_module("format-v25", "work/format-v25").copy_module("format-v22", "set/format-v22");
    let names = |arguments: &[&'static str], directory: &str| {
        let mut command = place.cog(["serve", "--provider", "offline", "--port", "0"]);
        command.args(arguments).current_dir(place.path().join(directory));
        let serving = Serving::start(command);
        let mut text = String::new();
        let mut reply = serving.send("GET /v1/modules HTTP/1.1\r\nConnection: close", "");
        reply.read_to_string(&mut text).unwrap();
        serving.signal("TERM");
        assert_eq!(serving.ended(), Some(0));
        ["format-v25", "format-v22", "code-reviewer"].map(|name| text.contains(&format!("\"{name}\"")))
    };
    assert_eq!(names(&["work/format-v25", "set"], ""), [true, true, false]);
    assert_eq!(names(&["work/format-v25"], ""), [true, false, false]);
    assert_eq!(names(&["work/format-v25", "--builtin"], ""), [true, false, true]);
    assert_eq!(names(&[], "set/format-v22"), [false, true, true]);
    assert_eq!(names(&[], ""), [false, false, true]);
    // A ConfigMap of Kubernetes is mounted as links to files of a hidden directory.
    #[cfg(unix)]
    {
        place.copy_module("format-v25", "mounted/format-v25/..2026");
        std::os::unix::fs::symlink("..2026", place.path().join("mounted/format-v25/..data")).unwrap();
        for file in ["module.yaml", "prompt.md", "schema.json"] {
            let link = place.path().join("mounted/format-v25").join(file);
            std::os::unix::fs::symlink(format!("..data/{file}"), link).unwrap();
        }
        assert_eq!(names(&["mounted/format-v25"], ""), [true, false, false]);
        assert!(place.cog(["validate", "mounted/format-v25"]).output().unwrap().status.success());
    }
    snapshot!("serve_builtin_without_path", place.cog(["serve", "--builtin"]));
    snapshot!(place.cog(["serve", "--provider", "offline", "nowhere"]));
}

/// Whoever has a token runs what is named, and nothing else at the operator's expense. What is named may call the others.
#[test]
fn modules_that_are_not_named_are_run_only_by_those_that_are() {
    let place = Place::new();
    assert!(place.cog(["new", "review", "--from", "review-pipeline"]).output().unwrap().status.success());
    let named = ["serve", "cognitive/modules/review", "--provider", "offline", "--port", "0"];
    let serving = Serving::start(place.cog(named));
    assert!(serving.started.contains("1 module at"), "{}", serving.started);
    let answer = |module: &str| {
        let head = format!("POST /v1/modules/{module}/execute HTTP/1.1\r\nConnection: close");
        let mut text = String::new();
        serving.send(&head, r#"{"input": {"code": "eval(input())"}}"#).read_to_string(&mut text).unwrap();
        text
    };
    let refused = answer("code-reviewer");
    assert!(refused.starts_with("HTTP/1.1 404") && refused.contains("E4006"), "{refused}");
    let composed = answer("review");
    assert!(composed.starts_with("HTTP/1.1 200") && composed.contains("\"ok\":true"), "{composed}");
    serving.signal("TERM");
    assert_eq!(serving.ended(), Some(0));
}

#[test]
fn access_log_has_module_code_tokens_and_cost_but_no_contents() {
    let reply = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "canary"},
        "data": {"verdict": "approve", "issues": [], "rationale": "canary"}}"#;
    let mock = Mock::start([Reply::text(reply).usage(11, 7), Reply::error(400, "no")]);
    let place = Place::new();
    let mut command = place.cog(["serve", "--port", "0", "--log-format", "json"]);
    command.env("LLM_PROVIDER", "openai").env("OPENAI_API_KEY", "none").env("LLM_MODEL", "m");
    command.env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    let mut serving = Serving::start(command);
    for _ in 0..2 {
        let head = "POST /v1/modules/code-reviewer/execute HTTP/1.1\r\nConnection: close";
        serving.send(head, r#"{"input": {"code": "canary"}}"#).read_to_string(&mut String::new()).unwrap();
    }
    serving.signal("TERM");
    let mut log = String::new();
    serving.messages.read_to_string(&mut log).unwrap();
    assert_eq!(serving.ended(), Some(0));
    assert!(!log.contains("canary"), "{log}");
    let lines: Vec<serde_json::Value> =
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut lines = lines.iter().filter(|line| line.to_string().contains("/execute"));
    let answered = lines.next().unwrap().to_string();
    for part in
        [r#""module":"code-reviewer""#, r#""input_tokens":11"#, r#""output_tokens":7"#, r#""client":"#]
    {
        assert!(answered.contains(part), "{part}: {answered}");
    }
    assert!(!answered.contains(r#""code":"#), "{answered}");
    let failed = lines.next().unwrap().to_string();
    assert!(failed.contains(r#""code":"E"#) && failed.contains(r#""request_id":"#), "{failed}");
}

#[test]
fn project_file_cannot_set_listen_address() {
    for line in ["insecure = true", "allow_host = \"evil.example\"", "token_file = \"mine\""] {
        let place = Place::new();
        place.write("cog.toml", format!("[server]\n{line}\n"));
        let output = place.cog(["serve", "--provider", "offline"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Whoever cloned the directory in which the server starts did not grant its modules the operator's tools.
#[test]
fn module_of_the_working_directory_gets_tools_only_with_trust() {
    const MANIFEST: &str = "name: m\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n\
        policies: { tools_allowed: true }\ntools: { allowed: [code-simplifier] }\n";
    const SCHEMA: &str = r#"{"input": {"type": "object"}, "data": {"type": "object", "properties": {
        "result": {"type": "string"}, "rationale": {"type": "string"}}}}"#;
    const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
        "data": {"result": "fine", "rationale": "Nothing was unclear."}}"#;
    let place = Place::new();
    place.write("cognitive/modules/m/module.yaml", MANIFEST);
    place
        .write("cognitive/modules/m/prompt.md", "Answer.\n")
        .write("cognitive/modules/m/schema.json", SCHEMA);
    for (trust, is_offered) in [(&[][..], false), (&["--trust"], true)] {
        let mock = Mock::start([Reply::text(ANSWER)]);
        let mut command = place.cog(["serve", "--port", "0"]);
        command.args(trust).env("LLM_PROVIDER", "openai").env("OPENAI_API_KEY", "none");
        command.env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
        let serving = Serving::start(command);
        let head = "POST /v1/modules/m/execute HTTP/1.1\r\nConnection: close";
        let mut text = String::new();
        serving.send(head, r#"{"input": {"query": "why?"}}"#).read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        assert_eq!(text.contains("W4017"), !is_offered, "{text}");
        assert_eq!(mock.requests()[0].body["tools"].is_array(), is_offered);
        serving.signal("TERM");
        assert_eq!(serving.ended(), Some(0));
    }
}

/// A running server.
pub(crate) struct Serving {
    child: Child,
    /// What it has written until it was ready.
    started: String,
    pub(crate) messages: BufReader<ChildStderr>,
    address: String,
}

impl Serving {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut lines = String::new();
        while !lines.contains("http://") {
            assert_ne!(messages.read_line(&mut lines).unwrap(), 0, "{lines}");
        }
        let address = lines.split("http://").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        Self { child, started: lines, messages, address }
    }

    /// Returns the response so far.
    pub(crate) fn send(&self, head: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let length = body.len();
        let rest =
            format!("Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(format!("{head}\r\n{rest}{body}").as_bytes()).unwrap();
        stream
    }

    /// Starts an endless stream, and waits for its first chunk.
    fn stream(&self) -> TcpStream {
        self.read_stream().0
    }

    /// Starts an endless stream, and returns its first output.
    fn read_stream(&self) -> (TcpStream, String) {
        let head = "POST /v1/modules/code-reviewer/execute HTTP/1.1\r\nAccept: application/x-ndjson";
        let mut stream = self.send(head, r#"{"input": {"code": "x"}}"#);
        let mut said = String::new();
        while !said.contains("\"chunk\"") {
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).unwrap();
            assert_ne!(read, 0, "{said}");
            said.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        (stream, said)
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(sent.unwrap().success());
    }

    /// Reads the log up to a line that contains this text.
    fn wait_for(&mut self, text: &str) {
        let mut lines = String::new();
        while !lines.contains(text) {
            assert_ne!(self.messages.read_line(&mut lines).unwrap(), 0, "{lines}");
        }
    }

    fn ended(mut self) -> Option<i32> {
        let _ = std::io::copy(&mut self.messages, &mut std::io::sink());
        self.child.wait().unwrap().code()
    }
}

#[test]
fn server_reports_its_url_and_responds() {
    let server = Serving::start(Place::new().cog(["serve", "--port", "0", "--provider", "offline"]));
    let get = |path: &str| {
        let mut answer = String::new();
        let head = format!("GET {path} HTTP/1.1\r\nConnection: close");
        server.send(&head, "").read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(get("/ready").starts_with("HTTP/1.1 200"));
    assert!(get("/v1/modules").contains("code-reviewer"));
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));
}

/// A server whose model never completes its answer.
fn serving(place: &Place, mock: &Mock, more: &[&str]) -> Serving {
    let mut command = place.cog(["serve", "--port", "0"].iter().chain(more).copied());
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    Serving::start(command)
}

fn endless() -> Mock {
    Mock::start([begun()])
}

/// The beginning of an answer without its end.
fn begun() -> Reply {
    let text = r#"{\"ok\": true, \"data\": {\"verdict\": \"cha"#;
    let delta = format!(r#"{{"choices": [{{"index": 0, "delta": {{"content": "{text}"}}}}]}}"#);
    Reply::raw(format!("data: {delta}\n\n")).hang()
}

#[test]
fn signal_lets_streams_finish() {
    for signal in ["TERM", "INT"] {
        let (place, mock) = (Place::new(), endless());
        let server = serving(&place, &mock, &["--shutdown-timeout", "100ms"]);
        let mut stream = server.stream();
        server.signal(signal);
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(rest.contains(r#""code":"E2010""#) && rest.contains(r#""reason":"shutdown""#), "{rest}");
        assert_eq!(server.ended(), Some(0), "{signal}");
        // The mock may notice the disconnect later.
        while mock.interrupted() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn log_has_requests_and_no_secrets() {
    let (place, mock) = (Place::new(), endless());
    let mut server = serving(&place, &mock, &["-v"]);
    let head = "GET /v1/modules?key=my-canary HTTP/1.1\r\nX-Request-Id: r-1\r\nCookie: my-canary\r\n\
                Authorization: Bearer my-canary\r\nConnection: close";
    server.send(head, "my-canary").read_to_string(&mut String::new()).unwrap();
    server.signal("TERM");
    let mut messages = String::new();
    server.messages.read_to_string(&mut messages).unwrap();
    let line = messages.lines().find(|line| line.contains("r-1")).unwrap();
    for part in ["method=\"GET\"", "path=\"/v1/modules\"", "status=200", "client=peer:127.0.0.1"] {
        assert!(line.contains(part), "{line}");
    }
    assert!(!messages.contains("canary"), "{messages}");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn second_signal_exits_immediately() {
    let (place, mock) = (Place::new(), endless());
    let mut server = serving(&place, &mock, &["--shutdown-timeout", "10m"]);
    let _stream = server.stream();
    server.signal("TERM");
    let mut line = String::new();
    while !line.contains("shutting down") {
        assert_ne!(server.messages.read_line(&mut line).unwrap(), 0, "{line}");
    }
    server.signal("TERM");
    assert_eq!(server.ended(), Some(130));
}

#[test]
fn token_of_file_authenticates() {
    use std::os::unix::fs::PermissionsExt;

    let (place, mock) = (Place::new(), endless());
    place.write("tokens", TOKEN);
    std::fs::set_permissions(place.path().join("tokens"), PermissionsExt::from_mode(0o600)).unwrap();
    let server = serving(&place, &mock, &["--listen", "0.0.0.0", "--token-file", "tokens"]);
    let port = server.address.rsplit(':').next().unwrap();
    let server = Serving { address: format!("127.0.0.1:{port}"), ..server };
    let status = |line: &str| {
        let mut answer = String::new();
        let head = format!("GET /v1/modules HTTP/1.1\r\nConnection: close{line}");
        server.send(&head, "").read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status(""), "401");
    assert_eq!(status(&format!("\r\nAuthorization: Bearer {TOKEN}")), "200");
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn sighup_reads_the_tokens_again_and_ends_nothing() {
    let (place, mock) = (Place::new(), endless());
    place.write("tokens", TOKEN);
    let mut server = serving(&place, &mock, &["--token-file", "tokens"]);
    let status = |server: &Serving, token: &str| {
        let mut answer = String::new();
        let head = format!("GET /v1/modules HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer {token}");
        server.send(&head, "").read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    let reload = |server: &mut Serving, text: &str, note: &str| {
        place.write("tokens", text);
        server.signal("HUP");
        server.wait_for(note);
    };
    assert_eq!(status(&server, TOKEN), "200");
    let other = TOKEN.to_uppercase();
    reload(&mut server, &other, "SIGHUP: using 1 tokens");
    assert_eq!((status(&server, TOKEN).as_str(), status(&server, &other).as_str()), ("401", "200"));
    reload(&mut server, "short", "SIGHUP: keeping the current tokens");
    assert_eq!(status(&server, &other), "200");
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn healthcheck_fails_when_the_server_is_not_ready() {
    let (place, mock) = (Place::new(), endless());
    let server = serving(&place, &mock, &["--drain-delay", "10m"]);
    let address = server.address.clone();
    let check = || {
        let checked = place.cog(["healthcheck", &address]).output().unwrap();
        (checked.status.code(), String::from_utf8(checked.stderr).unwrap())
    };
    assert_eq!(check(), (Some(0), String::new()));
    server.signal("TERM");
    while check().0 == Some(0) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (code, message) = check();
    assert_eq!(code, Some(1));
    assert!(message.contains("is not ready: HTTP/1.1 503"), "{message}");
    server.signal("TERM");
    assert_eq!(server.ended(), Some(130));
    assert!(check().1.contains("cannot be reached"));
}

#[test]
fn broken_module_is_named_at_the_start() {
    let (place, mock) = (Place::new(), endless());
    place.write(
        "cognitive/modules/bad/module.yaml",
        "name: bad\nversion: 1.0.0\nresponsibility: Answer\nexcludes: []\n",
    );
    place.write("cognitive/modules/bad/prompt.md", "Answer.");
    place.write("cognitive/modules/bad/schema.json", "{ half");
    let mut server = serving(&place, &mock, &[]);
    server.signal("TERM");
    let mut log = server.started.clone();
    server.messages.read_to_string(&mut log).unwrap();
    assert!(log.contains("warning: module not loaded: bad: "), "{log}");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn log_has_the_error_that_a_client_with_a_token_does_not_see() {
    let (place, mock) = (Place::new(), Mock::start([Reply::error(401, "project zebra is locked")]));
    place.write("tokens", TOKEN);
    let mut server = serving(&place, &mock, &["--token-file", "tokens"]);
    let head = format!(
        "POST /v1/modules/code-reviewer/execute HTTP/1.1\r\nX-Request-Id: r-9\r\nAuthorization: Bearer {TOKEN}\r\n\
         Connection: close"
    );
    let mut answer = String::new();
    server.send(&head, r#"{"input": {"code": "x"}}"#).read_to_string(&mut answer).unwrap();
    assert!(answer.contains("r-9") && answer.contains("E4001") && !answer.contains("zebra"), "{answer}");
    server.signal("TERM");
    let mut log = String::new();
    server.messages.read_to_string(&mut log).unwrap();
    let line = log.lines().find(|line| line.contains("zebra")).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("r-9") && line.contains("E4001"), "{line}");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn server_logs_warnings_by_default() {
    let (place, mock) = (Place::new(), Mock::start([Reply::error(500, "down")]));
    let mut server = serving(&place, &mock, &[]);
    let head = "POST /v1/modules/code-reviewer/execute HTTP/1.1\r\nConnection: close";
    server.send(head, r#"{"input": {"code": "x"}}"#).read_to_string(&mut String::new()).unwrap();
    server.signal("TERM");
    let mut log = String::new();
    server.messages.read_to_string(&mut log).unwrap();
    let line = log.lines().find(|line| line.contains("WARN")).unwrap_or_else(|| panic!("{log}"));
    assert!(line.starts_with("20") && line.contains("Z  WARN"), "{line}");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn invalid_setting() {
    snapshot!(Place::new().cog(["serve", "--max-body-bytes", "many"]));
}

#[test]
fn public_address_requires_token() {
    snapshot!(Place::new().cog(["serve", "--listen", "0.0.0.0"]));
}

#[test]
fn project_file_can_set_limits_only() {
    let place = Place::new();
    place.write("cog.toml", "[server]\nshutdown_timeout = \"3s\"\nlisten = \"0.0.0.0\"\n");
    snapshot!(place.cog(["serve"]));
}

#[test]
fn misspelt_limit_is_an_error() {
    let place = Place::new();
    place.write("cog.toml", "[server]\ndrain_dealy = \"3s\"\n");
    snapshot!(place.cog(["serve"]));
}
