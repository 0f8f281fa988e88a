//! Calls that a server halted, and about which a person decides after the server was restarted with other settings.

use std::io::Read as _;

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use super::Serving;
use crate::support::Place;

const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"result": "fine", "rationale": "Nothing was unclear."}, "error": null}"#;

const SCHEMA: &str = r#"{
    "input": {"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}},
    "data": {"type": "object", "required": ["result", "rationale"],
        "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"#;

/// Returns a place with a module that may call another one.
fn place() -> Place {
    let place = Place::new();
    for (name, more) in
        [("helper", ""), ("m", "policies: { tools_allowed: true }\ntools: { allowed: [helper] }\n")]
    {
        let manifest = format!(
            "name: {name}\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n{more}"
        );
        let directory = format!("cognitive/modules/{name}");
        place.write(&format!("{directory}/module.yaml"), manifest);
        place.write(&format!("{directory}/prompt.md"), "Answer this: $ARGUMENTS\n");
        place.write(&format!("{directory}/schema.json"), SCHEMA);
    }
    place
}

/// Starts a server for one request, and stops it. Returns the envelope and the log.
fn ask(place: &Place, mock: &Mock, confirm: &str, body: &Value) -> (Value, String) {
    let mut command = place.cog(["serve", "--port", "0", "--trust"]);
    command.env("LLM_PROVIDER", "openai").env("OPENAI_API_KEY", "none");
    command.env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi)).env("COG_TOOLS_CONFIRM", confirm);
    let mut serving = Serving::start(command);
    let mut reply = String::new();
    let head = "POST /v1/modules/m/execute HTTP/1.0";
    serving.send(head, &body.to_string()).read_to_string(&mut reply).unwrap();
    serving.signal("TERM");
    let mut log = String::new();
    serving.messages.read_to_string(&mut log).unwrap();
    assert_eq!(serving.ended(), Some(0));
    let envelope = reply.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (serde_json::from_str(envelope).unwrap_or_else(|_| panic!("{reply}")), log)
}

fn halted(envelope: &Value) -> &Value {
    assert_eq!(envelope["error"]["code"], "E4007", "{envelope}");
    &envelope["error"]["details"]["halted"]
}

#[test]
fn decision_after_a_restart_is_about_one_call() {
    let calls = || {
        Reply::tool_calls([("helper", r#"{"query": "the first"}"#), ("helper", r#"{"query": "the second"}"#)])
    };
    for is_confirmed in [true, false] {
        let (place, helped) = (place(), Reply::text(ANSWER));
        let mock = Mock::start([calls(), helped.clone(), helped.clone(), helped]);
        let (first, _) = ask(&place, &mock, "helper", &json!({ "input": { "query": "why?" } }));
        assert_eq!(halted(&first)["arguments"]["query"], "the first");
        let decide = |envelope: &Value, is_confirmed: bool| {
            let id = &halted(envelope)["id"];
            let decision = match is_confirmed {
                true => json!({ "_continue": { "id": id, "confirm": "YES" } }),
                false => json!({ "_continue": { "id": id, "deny": true } }),
            };
            ask(&place, &mock, "other", &decision)
        };
        let (second, log) = decide(&first, is_confirmed);
        assert_eq!(halted(&second)["arguments"]["query"], "the second");
        assert_eq!(mock.requests().len(), 1 + usize::from(is_confirmed), "no other call was executed");
        let (name, status) = if is_confirmed { ("confirmed", "success") } else { ("denied", "E4007") };
        let lines: Vec<&str> = log.lines().filter(|line| line.contains("tool called")).collect();
        for part in
            [format!("decision=\"{name}\""), format!("status=\"{status}\""), "tool=\"helper\"".to_owned()]
        {
            assert!(lines.iter().any(|line| line.contains(&part)), "{part}: {log}");
        }
        assert!(!log.contains("the first"), "{log}");

        let (last, _) = decide(&second, !is_confirmed);
        assert_eq!(last["data"]["result"], "fine", "{last}");
        let requests = mock.requests();
        assert_eq!(requests.len(), 3, "the call that was denied was not executed");
        let executed = requests[1].body["messages"].to_string();
        assert!(executed.contains(if is_confirmed { "the first" } else { "the second" }), "{executed}");
        assert!(requests[2].body.to_string().contains("the user denied this call"));
    }
}
