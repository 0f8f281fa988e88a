//! MCP servers that require OAuth: signing in, renewing tokens, and what goes wrong.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Output, Stdio},
};

use cog_testkit::{Mock, OAuthProblems, ProtectedServer, Reply, Wire};
use serde_json::Value;

use crate::support::{Place, stderr};

/// Returns a place whose settings name a server.
fn place(server: &ProtectedServer, more: &str) -> Place {
    let place = Place::new();
    configure(&place, server, more);
    place
}

fn configure(place: &Place, server: &ProtectedServer, more: &str) {
    place.write(".config/cog/config.toml", format!("[mcp.safe]\nurl = \"{}\"\n{more}", server.url()));
}

/// Requests a URL as a browser does, without following redirects. Returns the head and the body.
fn get(url: &str) -> String {
    let (host, target) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

/// Signs in: opens the address that the command prints, and goes where the authorization server sends the browser.
fn login(place: &Place) -> (Option<i32>, String) {
    let mut command = place.cog(["-vv", "mcp", "login", "safe"]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut messages = String::new();
    while let Some(Ok(line)) = lines.next() {
        messages += &format!("{line}\n");
        if let Some((_, address)) = line.split_once("open this address in a browser: ") {
            let answer = get(address);
            let back = answer.lines().find_map(|line| line.strip_prefix("location: "));
            let back = back.unwrap_or_else(|| panic!("{answer}"));
            let port = back.split('?').next().unwrap();
            assert!(get(&format!("{port}?code=x&state=forged")).starts_with("HTTP/1.1 404"), "{back}");
            get(back);
        }
    }
    (child.wait().unwrap().code(), messages)
}

fn signed_in(server: &ProtectedServer) -> Place {
    let place = place(server, "");
    let (code, messages) = login(&place);
    assert_eq!(code, Some(0), "{messages}");
    assert!(!messages.contains("canary"), "no token is logged: {messages}");
    place
}

fn call(place: &Place) -> Output {
    place.cog(["mcp", "call", "safe", "whoami"]).output().unwrap()
}

/// Calls the tool, which returns the token that the server received.
fn token(place: &Place) -> String {
    let output = call(place);
    let text = String::from_utf8_lossy(&output.stdout);
    let result: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text} {}", stderr(&output)));
    result["result"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

fn grants(server: &ProtectedServer) -> Vec<String> {
    server.token_requests().iter().map(|fields| fields["grant_type"].clone()).collect()
}

#[test]
fn person_signs_in_and_the_token_is_stored_for_this_user() {
    let server = ProtectedServer::start(OAuthProblems::default()).unwrap();
    let place = signed_in(&server);
    assert_eq!(token(&place), token(&place));
    assert_eq!(grants(&server), ["authorization_code"]);
    let directory = place.path().join(".local/state/cog/mcp");
    let files: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|file| file.unwrap()).collect();
    assert!(!files.is_empty());
    #[cfg(unix)]
    for file in files {
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600, "{}", file.path().display());
    }
    let logout = place.cog(["mcp", "logout", "safe"]).output().unwrap();
    let messages = stderr(&logout);
    assert!(
        messages.contains("removed the tokens of `safe` from this machine, and revoked them"),
        "{messages}"
    );
    let revoked = server.revocations();
    let hints: Vec<&str> = revoked.iter().map(|fields| fields["token_type_hint"].as_str()).collect();
    assert_eq!(hints, ["refresh_token", "access_token"]);
    assert!(revoked[0]["token"].starts_with("refresh-canary") && revoked[0]["client_id"] == "registered");
    assert!(!messages.contains("canary"), "{messages}");
    let after = call(&place);
    assert!(stderr(&after).contains("cog mcp login safe"), "{}", stderr(&after));
}

#[test]
fn tokens_are_removed_also_if_they_cannot_be_revoked() {
    let problems = OAuthProblems::default;
    for (problems, expected) in [
        (OAuthProblems { no_revocation: true, ..problems() }, "cannot revoke them"),
        (OAuthProblems { revocation_fails: true, ..problems() }, "were not revoked"),
        (
            OAuthProblems { revocation_elsewhere: true, ..problems() },
            "is not at the server that issues the tokens",
        ),
        (OAuthProblems { no_metadata: true, ..problems() }, "publishes no metadata"),
    ] {
        let server = ProtectedServer::start(OAuthProblems::default()).unwrap();
        let place = signed_in(&server);
        server.set_problems(problems.clone());
        let logout = place.cog(["mcp", "logout", "safe"]).output().unwrap();
        let messages = stderr(&logout);
        assert!(logout.status.success() && messages.contains(expected), "{problems:?} {messages}");
        assert!(messages.contains("removed the tokens") && !messages.contains("canary"), "{messages}");
        let again = place.cog(["mcp", "logout", "safe"]).output().unwrap();
        assert!(stderr(&again).contains("there are no tokens"), "{}", stderr(&again));
    }
}

#[test]
fn tokens_of_another_issuer_are_not_sent_to_this_one() {
    let server = ProtectedServer::start(OAuthProblems::default()).unwrap();
    let place = signed_in(&server);
    let directory = place.path().join(".local/state/cog/mcp");
    let file = std::fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path());
    let file = file.into_iter().find(|path| path.extension().is_some_and(|end| end == "json")).unwrap();
    let relative = file.strip_prefix(place.path()).unwrap().to_str().unwrap().to_owned();
    let mut grant: Value = serde_json::from_str(&place.read(&relative)).unwrap();
    grant["credentials"]["issuer"] = "https://login.example".into();
    place.write(&relative, grant.to_string());
    let messages = stderr(&place.cog(["mcp", "logout", "safe"]).output().unwrap());
    assert!(messages.contains("another authorization server has issued them"), "{messages}");
    assert!(server.revocations().is_empty());
    assert!(!file.exists());
}

#[test]
fn token_that_expires_during_a_run_is_renewed_once() {
    let server = ProtectedServer::start(OAuthProblems::default()).unwrap();
    let place = signed_in(&server);
    server.set_problems(OAuthProblems { revokes_after: Some(1), ..OAuthProblems::default() });
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n\
        policies: { tools_allowed: true, network: allow }\ntools: { allowed: [safe__whoami] }\n";
    place.write("m/module.yaml", manifest).write("m/prompt.md", "Answer this: $ARGUMENTS\n");
    let schema = r#"{"input": {"type": "object"}, "data": {"type": "object", "required": ["rationale"],
        "properties": {"rationale": {"type": "string"}}}}"#;
    place.write("m/schema.json", schema);
    let answer = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
        "data": {"rationale": "Nothing was unclear."}, "error": null}"#;
    let calls = || Reply::tool_calls([("safe__whoami", "{}"), ("safe__whoami", "{}")]);
    let mock = Mock::start([calls(), calls(), Reply::text(answer)]);
    let mut command =
        place.cog(["run", "./m", "--provider", "openai", "--model", "gpt-4.1", "--input-json", "{}"]);
    command.env("OPENAI_API_KEY", "none").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let last = mock.requests().pop().unwrap().body;
    let results = last["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    let results: Vec<&str> = results.map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(results.len(), 4);
    assert!(results.iter().all(|result| result.contains("access-canary")), "{results:?}");
    assert_eq!(grants(&server), ["authorization_code", "refresh_token"], "a refresh token is valid once");
}

#[test]
fn many_processes_renew_a_token_once() {
    let server =
        ProtectedServer::start(OAuthProblems { lifetime: Some(0), ..OAuthProblems::default() }).unwrap();
    let place = signed_in(&server);
    server.set_problems(OAuthProblems::default());
    let tokens: Vec<String> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..6).map(|_| scope.spawn(|| token(&place))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(tokens.iter().all(|token| *token == tokens[0]), "{tokens:?}");
    assert_eq!(grants(&server), ["authorization_code", "refresh_token"]);
}

#[test]
fn sign_in_that_has_ended_is_an_error_with_the_command_to_run() {
    let server =
        ProtectedServer::start(OAuthProblems { lifetime: Some(0), ..OAuthProblems::default() }).unwrap();
    let place = signed_in(&server);
    server.set_problems(OAuthProblems { rejects_refresh: true, ..OAuthProblems::default() });
    let output = call(&place);
    let messages = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    for part in ["E4001", "sign-in", "cog mcp login safe"] {
        assert!(messages.contains(part), "{messages}");
    }
}

#[test]
fn server_that_rejects_new_tokens_is_not_asked_for_ever() {
    let server = ProtectedServer::start(OAuthProblems::default()).unwrap();
    let place = signed_in(&server);
    server.set_problems(OAuthProblems { rejects_tokens: true, ..OAuthProblems::default() });
    let output = call(&place);
    let messages = stderr(&output);
    assert!(messages.contains("401") && messages.contains("just issued"), "{messages}");
    assert!(server.token_requests().len() <= 3, "{:?}", grants(&server));
}

#[test]
fn authorization_server_that_cannot_be_trusted_gets_no_code() {
    let problems = OAuthProblems::default;
    for (problems, expected) in [
        (OAuthProblems { wrong_issuer: true, ..problems() }, "issuer mismatch"),
        (OAuthProblems { wrong_answer_issuer: true, ..problems() }, "issuer mismatch"),
        (OAuthProblems { no_metadata: true, ..problems() }, "publishes no metadata"),
        (OAuthProblems { denies: true, ..problems() }, "access_denied"),
        (OAuthProblems { no_registration: true, ..problems() }, "oauth.client_id"),
    ] {
        let server = ProtectedServer::start(problems.clone()).unwrap();
        let (code, messages) = login(&place(&server, ""));
        assert_eq!(code, Some(1), "{problems:?} {messages}");
        assert!(messages.contains(expected), "{problems:?} {messages}");
        assert!(server.token_requests().is_empty(), "{problems:?}");
    }
    let server = ProtectedServer::start(problems()).unwrap();
    let (code, messages) = login(&place(&server, "oauth = { issuer = \"https://login.example\" }\n"));
    assert!(code == Some(1) && messages.contains("`oauth.issuer` is"), "{messages}");
}

#[test]
fn client_signs_in_as_itself() {
    let server = ProtectedServer::start(OAuthProblems::default()).unwrap();
    let oauth = |secret: &str| {
        format!(
            "oauth = {{ grant = \"client_credentials\", client_id = \"robot\", client_secret = \"{secret}\" }}\n"
        )
    };
    let place = place(&server, &oauth("s3cret"));
    assert_eq!(token(&place), token(&place));
    assert_eq!(grants(&server), ["client_credentials"]);
    server.expire_tokens();
    token(&place);
    assert_eq!(grants(&server), ["client_credentials", "client_credentials"]);
    let wrong = self::place(&server, &oauth("wrong-canary"));
    let messages = stderr(&call(&wrong));
    assert!(messages.contains("invalid_grant") && !messages.contains("wrong-canary"), "{messages}");
}

#[test]
fn tokens_are_not_sent_to_another_server() {
    let server = ProtectedServer::start(OAuthProblems::default()).unwrap();
    let place = signed_in(&server);
    let other = ProtectedServer::start(OAuthProblems::default()).unwrap();
    configure(&place, &other, "");
    let output = call(&place);
    assert!(stderr(&output).contains("cog mcp login safe"), "{}", stderr(&output));
    assert!(other.presented_tokens().iter().all(String::is_empty), "{:?}", other.presented_tokens());
    configure(&place, &server, "");
    assert!(token(&place).starts_with("access-canary"));
}

#[test]
fn settings_of_a_sign_in_are_checked() {
    let server = ProtectedServer::start(OAuthProblems::default()).unwrap();
    for (more, expected) in [
        ("oauth = { grant = \"client_credentials\" }", "needs `oauth.client_id`"),
        ("oauth = { client_secret = \"a\" }", "needs `oauth.client_id`"),
        ("token = \"a\"\noauth = { client_id = \"a\" }", "set either `token` or `oauth`"),
        ("oauth = { flow = \"device\" }", "flow"),
    ] {
        let output = call(&place(&server, more));
        assert!(stderr(&output).contains(expected), "{more}: {}", stderr(&output));
    }
    let place = place(&server, "token = \"a\"\n");
    let output = place.cog(["mcp", "login", "safe"]).output().unwrap();
    assert!(stderr(&output).contains("its `token` is set"), "{}", stderr(&output));
    let output = place.cog(["mcp", "login", "other"]).output().unwrap();
    assert!(stderr(&output).contains("no MCP server `other`"), "{}", stderr(&output));
    assert!(server.token_requests().is_empty());
}
