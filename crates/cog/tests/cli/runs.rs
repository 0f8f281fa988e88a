use std::time::Duration;

use cog_testkit::{Mock, Reply, Wire};

use crate::support::{Place, hears_hangup, json, snapshot, stderr, stdout, with_stdin};

pub(crate) const REPLY: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"verdict": "approve", "issues": [], "rationale": "Nothing stands out."}, "error": null}"#;

pub(crate) fn asking(place: &Place, mock: &Mock, args: &[&str]) -> std::process::Command {
    let mut command = place.cog(args.iter().copied());
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    command
}

#[test]
fn offline_answers_with_the_golden_answer() {
    let place = Place::new();
    let input = "def f(u): return db.query('select * from t where u=' + u)";
    snapshot!(place.cog(["run", "code-reviewer", "--args", input]));
}

#[test]
fn sample_answer_has_the_risk_of_its_rule() {
    // The risk of each is a rule about a list of its data.
    for module in ["code-reviewer", "code-simplifier", "security-reviewer"] {
        let output = Place::new().cog(["run", module, "--args", "another"]).output().unwrap();
        let envelope = json(&output);
        assert_eq!(envelope["meta"]["model"], "offline/sample");
        let text = stderr(&output);
        assert!(text.contains("warning[W4001]") && !text.contains("W3008"), "{text}");
    }
}

#[test]
fn json_in_args_has_a_note() {
    let noted = |text: &str| {
        let output = Place::new().cog(["run", "code-reviewer", "--args", text]).output().unwrap();
        stderr(&output).contains("--input-json reads it as one")
    };
    assert!(noted(r#"{"code": "x = 1", "language": "python"}"#));
    for code in ["x = 1", "{}", r#"{"code": "x", "other": 1}"#, "[1]"] {
        assert!(!noted(code), "{code}");
    }
}

#[test]
fn calls_provider() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY).usage(12, 34)]);
    snapshot!(asking(&place, &mock, &["run", "code-reviewer", "--args", "x = 1", "--model", "m"]));
    assert_eq!(mock.requests().len(), 1);
}

#[test]
fn flags_reach_the_request() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY)]);
    let flags = "run code-reviewer --args x --temperature 0.5 --max-tokens 99 --seed -7 --effort none \
                 --verbosity low --service-tier flex";
    let flags: Vec<&str> = flags.split_whitespace().collect();
    assert!(asking(&place, &mock, &flags).status().unwrap().success());
    let request = mock.requests()[0].body.clone();
    assert_eq!((&request["temperature"], &request["seed"]), (&0.5.into(), &(-7).into()));
    assert_eq!(request["max_completion_tokens"], 99);
    assert_eq!((&request["reasoning_effort"], &request["verbosity"]), (&"none".into(), &"low".into()));
    assert_eq!(request["service_tier"], "flex");
}

#[test]
fn effort_comes_from_flag_then_setting_then_manifest() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY)]);
    place.write(
        "m/module.yaml",
        "name: m\nversion: 1.0.0\ntier: decision\nresponsibility: Decides.\ngeneration: { effort: high }\n",
    );
    place.write("m/prompt.md", "Decide.");
    place.write("m/schema.json", r#"{"input": {}, "data": {"type": "object"}}"#);
    let effort = |flags: &[&str], setting: &str| {
        let mut command = asking(&place, &mock, &[&["run", "./m", "--input-json", "{}"], flags].concat());
        command.env("COG_EFFORT", setting).output().unwrap();
        mock.requests().last().unwrap().body["reasoning_effort"].clone()
    };
    assert_eq!(effort(&[], ""), "high");
    assert_eq!(effort(&[], "low"), "low");
    assert_eq!(effort(&["--effort", "max"], "low"), "max");
}

#[test]
fn render_prefix_shows_the_part_that_is_the_same_for_every_input() {
    let place = Place::new();
    let prefix = |module: &str, provider: &str, input: &str| {
        let args = ["render", module, "--input-json", input, "--prefix", "--provider", provider];
        json(&place.cog(args).output().unwrap())
    };
    let first = prefix("code-reviewer", "openai", r#"{"code": "a"}"#);
    assert_eq!(first, prefix("code-reviewer", "openai", r#"{"code": "b"}"#));
    assert_eq!((&first["mark"], &first["minimum_tokens"]), (&"prompt_cache_breakpoint".into(), &1024.into()));
    assert_eq!(first["is_complete_system_message"], true);
    let bytes = first["schema"].to_string().len() + first["text"].as_str().unwrap().len();
    assert_eq!(first["bytes"], bytes);
    assert_eq!(first["reaches_minimum"], first["estimated_tokens"].as_u64().unwrap() >= 1024);
    assert_eq!(prefix("code-reviewer", "anthropic", r#"{"code": "a"}"#)["mark"], "cache_control");
    assert_eq!(prefix("code-reviewer", "llamacpp", r#"{"code": "a"}"#)["minimum_tokens"], 1);

    place.write("m/module.yaml", "name: m\nversion: 1.0.0\ntier: decision\nresponsibility: Decides.\n");
    place.write("m/prompt.md", "Decide about $ARGUMENTS.");
    place.write("m/schema.json", r#"{"input": {}, "data": {"type": "object"}}"#);
    let partial = prefix("./m", "openai", "{}");
    assert_eq!((&partial["text"], &partial["mark"]), (&"Decide about ".into(), &().into()));
}

#[test]
fn field_that_a_gateway_rejects_is_left_out_once() {
    let place = Place::new();
    let reject = || Reply::error(400, "Unrecognized request argument supplied: stream_options");
    let mock = Mock::start([reject(), Reply::text(REPLY)]);
    let answer = json(&asking(&place, &mock, &["run", "code-reviewer", "--args", "x"]).output().unwrap());
    assert_eq!((&answer["ok"], &answer["_warnings"][0]["code"]), (&true.into(), &"W4016".into()));
    let message = answer["_warnings"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("the request was sent again without `stream_options`: "), "{message}");
    let sent: Vec<bool> = mock.requests().iter().map(|it| it.body.get("stream_options").is_some()).collect();
    assert_eq!(sent, [true, false]);

    let mock = Mock::start([reject()]);
    let answer = json(&asking(&place, &mock, &["run", "code-reviewer", "--args", "x"]).output().unwrap());
    assert_eq!((&answer["error"]["code"], mock.requests().len()), (&"E4001".into(), 2));
}

#[test]
fn limit_of_tokens_is_renamed_and_then_left_out() {
    let place = Place::new();
    place.write(
        "m/module.yaml",
        "name: m\nversion: 1.0.0\ntier: decision\nresponsibility: Decides.\ngeneration: {max_tokens: 700}\n",
    );
    place.write("m/prompt.md", "Decide.");
    place.write("m/schema.json", r#"{"input": {}, "data": {"type": "object"}}"#);
    let reject = |name: &str| {
        Reply::error(400, format!("Unsupported parameter: '{name}'")).when(format!("\"{name}\":"))
    };
    let answer = Reply::text(
        r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "data": {"rationale": "r"}}"#,
    );
    let names = ["max_completion_tokens", "max_tokens"];
    for rejected in [&names[..1], &names[..]] {
        let mock = Mock::start(rejected.iter().map(|name| reject(name)).chain([answer.clone()]));
        let args = ["run", "./m", "--input-json", "{}"];
        let answer = json(&asking(&place, &mock, &args).output().unwrap());
        assert_eq!(answer["ok"], true, "{answer}");
        let warnings = answer["_warnings"].as_array().unwrap();
        assert!(
            warnings.len() == rejected.len() && warnings.iter().all(|it| it["code"] == "W4016"),
            "{answer}"
        );
        let bodies: Vec<_> = mock.requests().into_iter().map(|request| request.body).collect();
        let sent: Vec<_> =
            bodies.iter().map(|body| names.map(|name| body.get(name) == Some(&700.into()))).collect();
        assert_eq!(sent, [[true, false], [false, true], [false, false]][..=rejected.len()]);
    }
}

#[test]
fn system_text_moves_for_a_model_without_a_system_role() {
    let place = Place::new();
    let reject = Reply::error(400, "System role not supported").when("\"role\":\"system\"");
    let mock = Mock::start([reject, Reply::text(REPLY)]);
    let answer = json(&asking(&place, &mock, &["run", "code-reviewer", "--args", "x"]).output().unwrap());
    assert_eq!((&answer["ok"], &answer["_warnings"][0]["code"]), (&true.into(), &"W4016".into()));
    let bodies: Vec<_> = mock.requests().into_iter().map(|request| request.body).collect();
    let system = bodies[0]["messages"][0]["content"].as_str().unwrap();
    assert_eq!(bodies[1]["messages"].as_array().unwrap().len(), 1);
    assert!(bodies[1]["messages"][0]["content"].as_str().unwrap().starts_with(system));
}

#[test]
fn preferred_setting_that_a_gateway_rejects_is_left_out_and_a_chosen_one_is_not() {
    let place = Place::new();
    let reject = || Reply::error(400, "Unsupported parameter: 'verbosity' is not supported with this model.");
    let mock = Mock::start([reject(), Reply::text(REPLY)]);
    let mut command = asking(&place, &mock, &["run", "code-reviewer", "--args", "x"]);
    let answer = json(&command.env("COG_VERBOSITY", "low").output().unwrap());
    assert_eq!((&answer["ok"], &answer["_warnings"][0]["code"]), (&true.into(), &"W4016".into()));
    assert_eq!(mock.requests()[1].body.get("verbosity"), None);

    let mock = Mock::start([reject(), Reply::text(REPLY)]);
    let args = ["run", "code-reviewer", "--args", "x", "--verbosity", "low"];
    let answer = json(&asking(&place, &mock, &args).output().unwrap());
    assert_eq!((&answer["error"]["code"], mock.requests().len()), (&"E4001".into(), 1));
}

#[test]
fn rejected_schema_is_sent_in_weaker_forms() {
    let place = Place::new();
    let reject = || Reply::error(400, "failed to parse grammar");
    let mock = Mock::start([reject(), reject(), Reply::text(REPLY)]);
    for stream in [&[][..], &["--stream"]] {
        let args = [&["run", "code-reviewer", "--args", "x"], stream].concat();
        asking(&place, &mock, &args).output().unwrap();
    }
    let forms: Vec<_> = mock.requests().iter().map(|it| it.body["response_format"]["type"].clone()).collect();
    assert_eq!(forms[..3], [serde_json::json!("json_schema"), "json_object".into(), ().into()]);
    let mock = Mock::start([reject()]);
    let answer = json(&asking(&place, &mock, &["run", "code-reviewer", "--args", "x"]).output().unwrap());
    assert_eq!((&answer["error"]["code"], mock.requests().len()), (&"E4001".into(), 3));
    assert_eq!(answer["_warnings"].as_array().unwrap().len(), 2);
}

#[test]
fn unsupported_effort_is_an_error_before_the_call() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY)]);
    snapshot!(asking(&place, &mock, &["run", "code-reviewer", "--args", "x", "--effort", "minimal"]));
    snapshot!(asking(&place, &mock, &["run", "code-reviewer", "--args", "x", "--effort", "extreme"]));
    snapshot!(asking(&place, &mock, &["run", "code-reviewer", "--args", "x", "--temperature", "0"]));
    assert_eq!(mock.requests().len(), 0);
}

#[test]
fn strict_rejects_repaired_answer() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(format!("Here it is:\n```json\n{REPLY}\n```"))]);
    let output =
        asking(&place, &mock, &["run", "code-reviewer", "--args", "x", "--strict"]).output().unwrap();
    assert_eq!((output.status.code(), &json(&output)["error"]["code"]), (Some(1), &"E3001".into()));
}

#[test]
fn rejected_key_is_not_printed() {
    let place = Place::new();
    let mock = Mock::start([Reply::error(401, "Incorrect API key provided: sk-canary")]);
    snapshot!(asking(&place, &mock, &["run", "code-reviewer", "--args", "x"]));
}

#[test]
fn input_can_be_a_file_stdin_or_json() {
    let place = Place::new();
    place.write("in.json", r#"{"code": "x"}"#);
    let by_file = json(&place.cog(["run", "code-reviewer", "in.json"]).output().unwrap());
    let by_json =
        json(&place.cog(["run", "code-reviewer", "--input-json", r#"{"code": "x"}"#]).output().unwrap());
    let by_stdin = json(&with_stdin(place.cog(["run", "code-reviewer", "-"]), r#"{"code": "x"}"#));
    assert_eq!(by_file["data"], by_json["data"]);
    assert_eq!(by_file["data"], by_stdin["data"]);
}

#[test]
fn input_that_is_not_json() {
    let place = Place::new();
    place.write("in.json", "{\n  \"code\": x\n}\n");
    snapshot!(place.cog(["run", "code-reviewer", "in.json"]));
}

#[test]
fn input_against_schema() {
    snapshot!(Place::new().cog(["run", "code-reviewer", "--input-json", r#"{"focus": "all"}"#]));
}

#[test]
fn missing_input_gets_an_example() {
    snapshot!(Place::new().cog(["run", "task-prioritizer"]));
}

#[test]
fn suggested_examples_work() {
    let place = Place::new();
    place.copy_module("format-v22", "a directory/format-v22");
    for module in ["code-reviewer", "task-prioritizer", "image-generator", "./a directory/format-v22"] {
        let refused = json(&place.cog(["run", module]).output().unwrap());
        let suggestion = refused["error"]["suggestion"].as_str().unwrap();
        let (_, tried) = suggestion.split_once("for example `cog ").unwrap();
        let tried = tried.strip_suffix("`.").unwrap();
        let line = format!("'{}' {tried}", env!("CARGO_BIN_EXE_cog"));
        let mut shell = std::process::Command::new("sh");
        let output = shell
            .args(["-c", &line])
            .current_dir(place.path())
            .env_clear()
            .env("COG_DETECT_OLLAMA", "off")
            .output()
            .unwrap();
        assert_eq!(json(&output)["ok"], true, "{line}: {}", stderr(&output));
    }
}

#[test]
fn input_in_place_of_file_name() {
    let place = Place::new();
    for (input, flag) in [
        (r#"{"code": "x"}"#, "--input-json"),
        ("x = 1", "--args"),
        ("x = 1\n".repeat(5000).as_str(), "--args"),
    ] {
        let refused = json(&place.cog(["run", "code-reviewer", input]).output().unwrap());
        let suggestion = refused["error"]["suggestion"].as_str().unwrap();
        assert!(suggestion.ends_with(&format!("{flag}.")), "{suggestion}");
        assert!(refused["error"]["message"].as_str().unwrap().len() < 250);
    }
}

#[test]
fn missing_input_file() {
    snapshot!(Place::new().cog(["run", "code-reviewer", "nowhere.json"]));
}

#[test]
fn invalid_module() {
    let place = Place::new();
    place.copy_module("format-v22", "m").write("m/schema.json", "{\"data\": {\"type\": \"objekt\"}}\n");
    snapshot!(place.cog(["run", "./m", "--args", "x"]));
}

#[test]
fn pretty_output_to_a_file() {
    let place = Place::new();
    let output =
        place.cog(["run", "code-reviewer", "--args", "x", "--pretty", "-o", "out.json"]).output().unwrap();
    assert_eq!(stdout(&output), "");
    assert!(place.read("out.json").starts_with("{\n  \"ok\": true,"));
}

#[test]
fn output_file_in_missing_directory() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY)]);
    let args = ["run", "code-reviewer", "--args", "x", "--model", "m", "-o", "new/answer.json"];
    snapshot!(asking(&place, &mock, &args));
    assert_eq!(mock.requests().len(), 0, "nobody is paid for an answer that has no place");
    assert!(!place.path().join("new").exists());
    for args in [["render", "code-reviewer", "--args", "x"], ["test", "code-reviewer", "--case", "1"]] {
        let output = place.cog(args.into_iter().chain(["-o", "new/x"])).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(stderr(&output).contains("directory new not found"), "{}", stderr(&output));
    }
}

#[test]
fn hyphen_as_output_file_is_stdout() {
    let place = Place::new();
    let output = place.cog(["run", "code-reviewer", "--args", "x", "-o", "-"]).output().unwrap();
    assert_eq!(json(&output)["ok"], true);
    assert!(!place.path().join("-").exists());
}

#[test]
fn test_replays_recording_without_key() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY)]);
    let run = ["run", "code-reviewer", "--args", "x = 1"];
    let recorded =
        asking(&place, &mock, &[&run[..], &["--model", "m", "--record", "tape"]].concat()).output().unwrap();
    drop(mock);
    let replayed = place.cog([&run[..], &["--replay", "tape"]].concat()).output().unwrap();
    assert_eq!(json(&recorded)["data"], json(&replayed)["data"], "{}", stderr(&replayed));
    let other = place.cog(["run", "code-reviewer", "--args", "other", "--replay", "tape"]).output().unwrap();
    assert_eq!(json(&other)["error"]["code"], "E4001");
}

/// As on a full disk: the answer is paid for, and the recording is incomplete.
#[cfg(target_os = "linux")]
#[test]
fn answer_that_cannot_be_recorded_is_printed() {
    let place = Place::new();
    // The path of the directory has 4,088 bytes, and no path may have more than 4,095.
    let tape = format!("tape{}/{}", format!("/{}", "a".repeat(200)).repeat(20), "a".repeat(63));
    let mock = Mock::start([Reply::text(REPLY)]);
    let run = ["run", "code-reviewer", "--args", "x = 1", "--model", "m", "--record", &tape];
    let output = asking(&place, &mock, &run).output().unwrap();
    assert_eq!((output.status.code(), &json(&output)["ok"]), (Some(1), &true.into()), "{}", stderr(&output));
    assert!(stderr(&output).contains("error[E4001]: cannot use the cassette tape/"), "{}", stderr(&output));
    assert!(stderr(&output).contains("/0001.json: "), "{}", stderr(&output));
}

#[test]
fn rejects_record_when_offline() {
    let output =
        Place::new().cog(["run", "code-reviewer", "--args", "x", "--record", "tape"]).output().unwrap();
    assert_eq!((output.status.code(), &json(&output)["error"]["code"]), (Some(1), &"E4001".into()));
}

#[test]
fn unknown_provider_in_environment() {
    snapshot!(Place::new().cog(["run", "code-reviewer", "--args", "x"]).env("LLM_PROVIDER", "opneai"));
}

#[test]
fn falls_back_to_next_provider() {
    let place = Place::new();
    let down = Mock::start([Reply::error(503, "overloaded")]);
    let up = Mock::start([Reply::text(REPLY)]);
    let mut command =
        place.cog(["run", "code-reviewer", "--args", "x", "--provider", "openai,anthropic", "--model", "m"]);
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", down.base_url(Wire::OpenAi));
    command.env("ANTHROPIC_API_KEY", "sk-canary").env("ANTHROPIC_BASE_URL", up.base_url(Wire::Anthropic));
    let output = command.env("COG_RETRIES", "1").output().unwrap();
    let envelope = json(&output);
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert_eq!(envelope["meta"]["fallbacks"][0]["provider"], "openai");
    assert_eq!(envelope["meta"]["fallbacks"][0]["code"], "E4001");
    assert_eq!((down.requests().len(), up.requests().len()), (2, 1));
    assert_ne!(up.requests()[0].body["model"], "m", "the flag speaks of the first alone");
}

#[test]
fn rejects_record_of_several_providers() {
    let run = ["run", "code-reviewer", "--args", "x", "--provider", "openai,anthropic", "--record", "tape"];
    let output = Place::new().cog(run).output().unwrap();
    assert_eq!((output.status.code(), &json(&output)["error"]["code"]), (Some(1), &"E4001".into()));
}

#[test]
fn render_prints_the_request_without_key() {
    let place = Place::new();
    let mut command = place.cog(["render", "code-reviewer", "--args", "x = 1", "--provider", "anthropic"]);
    let output = command.env("ANTHROPIC_API_KEY", "sk-canary").output().unwrap();
    let rendered = json(&output);
    assert_eq!(rendered["request"]["headers"]["x-api-key"], "$ANTHROPIC_API_KEY");
    assert_eq!(rendered["messages"][0]["role"], "system");
    assert!(!stdout(&output).contains("canary"));
}

#[test]
fn render_warns_of_preferences_that_are_not_sent() {
    let place = Place::new();
    assert!(place.cog(["new", "m", "--in", "."]).output().unwrap().status.success());
    let manifest = place.read("m/module.yaml") + "generation:\n  temperature: 0\n";
    place.write("m/module.yaml", manifest);
    let mut command = place.cog(["render", "./m", "--args", "x", "--provider", "anthropic"]);
    let output = command.env("ANTHROPIC_API_KEY", "k").output().unwrap();
    assert_eq!(json(&output)["warnings"][0]["code"], "W4015");
    assert!(stderr(&output).contains("`temperature` was not sent"), "{}", stderr(&output));
}

#[test]
fn render_lists_what_the_grammar_of_the_engine_does_not_enforce() {
    let place = Place::new();
    place.copy_module("format-v22", "m");
    let mut schema: serde_json::Value = serde_json::from_str(&place.read("m/schema.json")).unwrap();
    schema["data"]["properties"]["tags"] = serde_json::json!({ "type": "array", "uniqueItems": true });
    place.write("m/schema.json", schema.to_string());
    let lost = |provider: &str| {
        let input = r#"{"config": {}, "request": "x"}"#;
        let args = ["render", "./m", "--input-json", input, "--provider", provider, "--model", "m"];
        let rendered = json(&place.cog(args).output().unwrap());
        let lost = rendered["lost"].as_array().unwrap();
        lost.iter().find(|loss| loss["keyword"] == "uniqueItems").cloned()
    };
    let ignored = lost("llamacpp").unwrap();
    assert_eq!(ignored["kind"], "enforced_locally");
    assert_eq!(ignored["pointer"], "/data/properties/tags");
    assert_eq!(lost("ollama").as_ref(), Some(&ignored));
    assert_eq!(lost("vllm"), None, "not measured");
}

#[test]
fn log_as_json() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY)]);
    let args = ["run", "code-reviewer", "--args", "x", "--log-format", "json"];
    let output = asking(&place, &mock, &args).output().unwrap();
    let text = stderr(&output);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["message"] == "calling the provider"), "{text}");
    let field = |message: &str, name: &str| {
        let line = lines.iter().find(|line| line["message"] == message).unwrap_or_else(|| panic!("{text}"));
        line[name].clone()
    };
    assert_eq!(field("reply finished", "reason"), "stop");
    assert!(field("token usage", "output_tokens").is_u64(), "{text}");
    assert!(!text.contains("sk-canary"));
}

#[test]
fn key_repeated_by_model_is_masked_in_log_only() {
    let place = Place::new();
    let answer = REPLY.replace("Nothing stands out.", "Your key is sk-canary.");
    let refusal = r#"{"ok": false, "meta": {"confidence": 0.5, "risk": "low", "explain": "No."},
        "error": {"code": "E2006", "message": "Is sk-canary a key?"}}"#;
    let logs: [&[&str]; 4] = [&[], &["-v"], &["-vv"], &["-vv", "--log-format", "json"]];
    for reply in [&answer, refusal] {
        for log in logs {
            let mock = Mock::start([Reply::text(reply)]);
            let args = [&["run", "code-reviewer", "--args", "x"], log].concat();
            let output = asking(&place, &mock, &args).output().unwrap();
            assert!(stdout(&output).contains("sk-canary"), "{}", stdout(&output));
            let messages = stderr(&output);
            assert!(
                !messages.contains("canary")
                    && messages.contains("***") != (reply == answer && !log.contains(&"-vv")),
                "{messages}"
            );
        }
    }
}

#[test]
fn error_of_the_model_names_it_in_a_pipe() {
    let refusal = r#"{"ok": false, "meta": {"confidence": 0.5, "risk": "low", "explain": "No."},
        "error": {"code": "E2006", "message": "Which file?"}}"#;
    let (place, mock) = (Place::new(), Mock::start([Reply::text(refusal)]));
    let output = asking(&place, &mock, &["run", "code-reviewer", "--args", "x"]).output().unwrap();
    let messages = stderr(&output);
    assert!(messages.contains("error[E2006]: the model reported: Which file?"), "{messages}");
}

#[test]
fn error_in_json_log() {
    let output = Place::new().cog(["info", "nothing", "--log-format", "json"]).output().unwrap();
    let line: serde_json::Value = serde_json::from_str(&stderr(&output)).unwrap();
    assert_eq!((&line["level"], &line["code"]), (&"ERROR".into(), &"E4006".into()));
}

#[cfg(unix)]
#[test]
fn signal_cancels_the_call_and_prints_envelope() {
    // A terminal sends HUP when it is closed.
    for signal in ["-INT", "-TERM"].into_iter().chain(hears_hangup().then_some("-HUP")) {
        let place = Place::new();
        let mock = Mock::start([Reply::text(REPLY).delay(Duration::from_secs(600))]);
        let mut command = asking(&place, &mock, &["run", "code-reviewer", "--args", "x"]);
        let piped = std::process::Stdio::piped;
        let child = command.stdout(piped()).stderr(piped()).spawn().unwrap();
        while mock.requests().is_empty() {
            std::thread::yield_now();
        }
        let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        let error = &json(&output)["error"];
        assert_eq!((&error["code"], &error["details"]["reason"]), (&"E2010".into(), &"cancelled".into()));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn run_under_nohup_outlives_its_terminal() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY).delay(Duration::from_millis(300))]);
    let mut command = std::process::Command::new("nohup");
    command
        .args([env!("CARGO_BIN_EXE_cog"), "run", "code-reviewer", "--args", "x"])
        .current_dir(place.path());
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", place.path()).env("OPENAI_API_KEY", "none");
    command.env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    let piped = std::process::Stdio::piped;
    let child = command.stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
    while mock.requests().is_empty() {
        std::thread::yield_now();
    }
    // `nohup` replaces itself with the program.
    let sent = std::process::Command::new("kill").args(["-HUP", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(json(&output)["data"]["verdict"], "approve");
}

#[test]
fn misspelt_name_of_a_directory_is_corrected() {
    let place = Place::new();
    assert!(place.cog(["new", "triage", "--in", "."]).output().unwrap().status.success());
    // Closer than a built-in module, and found by its path too.
    assert!(place.cog(["new", "text-writing", "--in", "."]).output().unwrap().status.success());
    assert!(place.cog(["new", "sorter"]).output().unwrap().status.success());
    for (asked, meant) in [
        ("traige", "triage"),
        ("text-wriitng", "text-writing"),
        ("./traige", "./triage"),
        ("./traige/", "./triage"),
        ("sortre", "sorter"),
        ("cognitive/modules/sortre", "cognitive/modules/sorter"),
        ("./cognitve/module/sorter", "./cognitive/modules/sorter"),
    ] {
        let output = place.cog(["run", asked, "--args", "x"]).output().unwrap();
        assert!(stderr(&output).contains(&format!("help: Did you mean `{meant}`?")), "{}", stderr(&output));
    }
    for far in ["text-classifier", "./tickets", "cognitive/sorter", "./other/modules/sorter"] {
        let output = place.cog(["run", far, "--args", "x"]).output().unwrap();
        let text = stderr(&output);
        assert!(text.contains("help: ") && !text.contains("Did you mean"), "{text}");
    }
}

#[test]
fn file_with_rows_is_for_a_batch() {
    let place = Place::new();
    for (file, text) in [
        ("in.jsonl", "{\"code\": \"a\"}\n{\"code\": \"b\"}\n"),
        ("in.csv", "code\na\n"),
        ("in.parquet", "PAR1\0"),
    ] {
        place.write(file, text);
        let output = place.cog(["run", "code-reviewer", file]).output().unwrap();
        assert!(stderr(&output).contains("`cog batch MODULE FILE -o OUT`"), "{file}: {}", stderr(&output));
    }
}

#[test]
fn text_comes_from_stdin_or_a_file() {
    let place = Place::new();
    place.write("code.py", "eval(input())");
    let expected = json(&place.cog(["run", "code-reviewer", "--args", "eval(input())"]).output().unwrap());
    let same = |output: &std::process::Output| {
        assert_eq!(json(output)["data"], expected["data"], "{}", stdout(output));
    };
    same(&place.cog(["run", "code-reviewer", "--args", "@code.py"]).output().unwrap());
    same(&with_stdin(place.cog(["run", "code-reviewer", "--args", "-"]), "eval(input())"));
    same(&with_stdin(place.cog(["run", "code-reviewer"]), "eval(input())"));
    same(&with_stdin(place.cog(["run", "code-reviewer"]), r#"{"code": "eval(input())"}"#));
    let literal = place.cog(["render", "code-reviewer", "--args", "@@code.py"]).output().unwrap();
    assert!(
        stdout(&literal).contains("@code.py") && !stdout(&literal).contains("@@"),
        "{}",
        stdout(&literal)
    );
    let empty = with_stdin(place.cog(["run", "code-reviewer"]), "");
    assert_eq!(json(&empty)["error"]["code"], "E1002");
    snapshot!("missing_file_of_args", place.cog(["run", "code-reviewer", "--args", "@nothing.py"]));
}
