//! `cog doctor`, and the detection of a running Ollama.

use cog_testkit::{Mock, Reply, Wire};

use crate::{
    runs::{REPLY, asking},
    support::{Place, json, snapshot, stderr, stdout},
};

#[test]
fn doctor_calls_configured_providers() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY)]);
    let output = asking(&place, &mock, &["doctor", "--format", "json"]).output().unwrap();
    let report = json(&output);
    assert_eq!((&report["chosen"], &report["providers"][0]["status"]), (&"openai".into(), &"ok".into()));
}

#[test]
fn doctor_shows_what_the_provider_lists_about_its_models() {
    let mock = Mock::start([]);
    let place = Place::new();
    let doctor = |model: &str| {
        let mut command = place.cog(["doctor"]);
        command.env("ANTHROPIC_API_KEY", "k").env("ANTHROPIC_BASE_URL", mock.base_url(Wire::Anthropic));
        command.env("LLM_MODEL", model);
        command
    };
    snapshot!("doctor_with_model_facts", doctor("mock-old"));
    snapshot!("doctor_with_unlisted_model", doctor("mock-new"));
}

#[test]
fn doctor_reports_model_facts_as_json() {
    let mock = Mock::start([]);
    let place = Place::new();
    let mut command = place.cog(["doctor", "--format", "json"]);
    command.env("ANTHROPIC_API_KEY", "k").env("ANTHROPIC_BASE_URL", mock.base_url(Wire::Anthropic));
    let report = json(&command.env("LLM_MODEL", "mock-model").output().unwrap());
    let provider = &report["providers"][0];
    assert_eq!(provider["models"], serde_json::json!(["mock-model", "mock-old"]));
    assert_eq!(
        (&provider["model_listed"], &provider["model_facts"]["max_input_tokens"]),
        (&true.into(), &200_000.into())
    );
    assert_eq!(provider["retiring"][0]["retires_at"], "2027-02-01");
}

#[test]
fn running_ollama_is_used_if_no_provider_is_configured() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY)]);
    let detecting = |args: &[&'static str]| {
        let mut command = place.cog(args.iter().copied());
        command.env("COG_DETECT_OLLAMA", mock.url());
        command
    };
    let run = ["run", "code-reviewer", "--args", "x"];
    snapshot!("doctor_with_detected_ollama", detecting(&["doctor"]));
    let envelope = json(&detecting(&run).output().unwrap());
    assert_eq!(envelope["meta"]["model"], "ollama/mock-model");
    let call = mock.requests().pop().unwrap();
    assert_eq!((call.path.as_str(), &call.body["model"]), ("/api/chat", &"mock-model:latest".into()));
    let named = detecting(&run).env("LLM_MODEL", "other").output().unwrap();
    assert_eq!(
        (json(&named)["ok"].clone(), mock.requests().pop().unwrap().body["model"].clone()),
        (true.into(), "other".into())
    );

    let before = mock.requests().len();
    for (name, value) in [("COG_DETECT_OLLAMA", "off"), ("LLM_PROVIDER", "offline")] {
        let envelope = json(&detecting(&run).env(name, value).output().unwrap());
        assert!(envelope["meta"]["model"].as_str().unwrap().starts_with("offline/"), "{name}={value}");
    }
    let keyed = detecting(&run)
        .env("OPENAI_API_KEY", "k")
        .env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        .output()
        .unwrap();
    assert!(stderr(&keyed).contains("calling openai"), "{}", stderr(&keyed));
    assert_eq!(mock.requests().len(), before, "a key, another provider and `off` prevent the detection");
}

#[test]
fn other_program_on_the_port_of_ollama_is_not_used() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let other = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut client, _) = listener.accept().unwrap();
        let read = client.read(&mut [0; 4096]).unwrap();
        let body = r#"{"models": [{"name": "a"}]}"#;
        write!(
            client,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        read
    });
    let place = Place::new();
    let mut command = place.cog(["run", "code-reviewer", "--args", "x"]);
    let output = command.env("COG_DETECT_OLLAMA", url).output().unwrap();
    assert!(other.join().unwrap() > 0);
    assert_eq!(json(&output)["meta"]["model"], "offline/sample");
}

#[test]
fn project_file_cannot_set_where_ollama_is() {
    let place = Place::new();
    place.write("cog.toml", "detect_ollama = \"http://192.0.2.1\"\n");
    let output = place.cog(["list"]).output().unwrap();
    assert!(stderr(&output).contains("cannot set `detect_ollama`"), "{}", stderr(&output));
    let output = Place::new().cog(["list"]).env("COG_DETECT_OLLAMA", "maybe").output().unwrap();
    assert!(stderr(&output).contains("use `on`, `off` or a URL"), "{}", stderr(&output));
}

#[test]
fn doctor_without_a_provider() {
    snapshot!(Place::new().cog(["doctor"]));
}

#[test]
fn doctor_is_a_page_for_a_ticket() {
    let place = Place::new();
    place.write("cog.toml", "model = \"m\"\n").write("cognitive/modules/.keep", "");
    place.write(".config/cog/config.toml", "timeout = \"1m\"\n[providers.gemini]\nkey = \"canary\"\n");
    place.write("ca.pem", "-----BEGIN CERTIFICATE-----\n");
    let doctor = |args: &[&'static str]| {
        let mut command = place.cog(args.iter().copied());
        command.env("HTTPS_PROXY", "http://me:canary@127.0.0.1:1").env("SSL_CERT_FILE", "ca.pem");
        command.env("SSL_CERT_DIR", "nowhere").env("LANG", "C.UTF-8").env("TERM", "dumb");
        command.env("GEMINI_BASE_URL", "http://127.0.0.1:1/v1");
        command
    };
    let report = json(&doctor(&["doctor", "--format", "json"]).output().unwrap());
    assert!(!report.to_string().contains("canary"), "{report}");
    let installation = &report["installation"];
    assert_eq!(installation["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(installation["keys"][0]["name"], "GEMINI_API_KEY");
    assert_eq!(report["providers"][0]["base_url"], "http://127.0.0.1:1/v1");
    // In a wide terminal, lines do not break by the length of the directory's path.
    let mut wide = doctor(&["doctor"]);
    snapshot!(wide.env("NO_PROXY", "127.0.0.1").env("COLUMNS", "400"));
}

#[test]
fn doctor_knows_that_llamacpp_has_one_model() {
    let mock = Mock::start([]);
    let place = Place::new();
    let mut command = place.cog(["doctor", "--format", "json"]);
    let report = json(&command.env("LLAMACPP_BASE_URL", mock.base_url(Wire::OpenAi)).output().unwrap());
    let provider = &report["providers"][0];
    assert_eq!((&provider["status"], &provider["model_listed"]), (&"ok".into(), &true.into()), "{provider}");
}

#[test]
fn doctor_reports_unreachable_provider() {
    let place = Place::new();
    let output = place.cog(["doctor"]).env("OLLAMA_HOST", "127.0.0.1:1").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("error"), "{}", stdout(&output));
}
