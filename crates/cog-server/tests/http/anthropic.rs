//! `POST /v1/messages`.

use cog_testkit::Reply;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::{
    openai::{PNG, error_of, json_of},
    openai_streams::{events_of, in_parts},
    support::{ANSWER, Stage},
};

impl Stage {
    fn message(&self, body: &Value) -> RequestBuilder {
        let request = self.client.post(self.url("/v1/messages?beta=true"));
        request.header("content-type", "application/json").body(body.to_string())
    }
}

fn ask(content: impl Into<Value>) -> Value {
    json!({ "model": "module:either", "max_tokens": 64, "messages": [{ "role": "user", "content": content.into() }] })
}

#[tokio::test]
async fn data_are_the_text_of_the_message() {
    let stage = Stage::answering().await;
    let text = json!([{ "type": "text", "text": "why?", "cache_control": { "type": "ephemeral" } }]);
    for content in [json!("why?"), text, json!(r#"{"query": "why?"}"#)] {
        let response = stage.message(&ask(content)).send().await.unwrap();
        let id = response.headers()["request-id"].to_str().unwrap().to_owned();
        assert_eq!(response.headers()["x-request-id"], id.as_str());
        let message: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!(message["id"], format!("msg_{id}"));
        for (key, value) in [
            ("type", json!("message")),
            ("role", json!("assistant")),
            ("model", json!("module:either")),
            ("stop_reason", json!("end_turn")),
            ("stop_sequence", Value::Null),
        ] {
            assert_eq!(message[key], value, "{key}");
        }
        assert_eq!(message["content"][0]["type"], "text");
        let data: Value = serde_json::from_str(message["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(data["rationale"], "because");
        assert!(message["usage"]["output_tokens"].as_u64().unwrap() > 0, "{message}");
        assert_eq!(message["cognitive"]["meta"]["risk"], "low");
        assert_eq!(message["cognitive"].get("_warnings"), None, "{message}");
    }
}

#[tokio::test]
async fn images_become_the_media_of_the_input() {
    let stage = Stage::answering().await;
    let image =
        json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PNG } });
    let mut body = ask(json!([image, { "type": "text", "text": "what is it?" }]));
    body["model"] = "sees".into();
    json_of(stage.message(&body)).await;
    assert!(stage.mock.requests().last().unwrap().body.to_string().contains(PNG));
}

#[tokio::test]
async fn system_prompt_is_the_words_of_the_caller() {
    let stage = Stage::answering().await;
    for system in [json!("be kind"), json!([{ "type": "text", "text": "be kind" }])] {
        let mut body = ask("why?");
        body["system"] = system;
        body["temperature"] = 0.5.into();
        let message = json_of(stage.message(&body)).await;
        assert_eq!(message["cognitive"]["_warnings"].as_array().unwrap().len(), 2, "{message}");
        let sent = stage.mock.requests().last().unwrap().body.to_string();
        assert!(sent.contains(r"<caller_instructions>\nbe kind\n</caller_instructions>"), "{sent}");
    }
}

#[tokio::test]
async fn events_add_up_to_the_message() {
    let stage = Stage::start([in_parts()]).await;
    let mut body = ask("why?");
    let sync = json_of(stage.message(&body)).await;
    body["stream"] = true.into();
    let events = events_of(stage.message(&body)).await;
    let events: Vec<(String, Value)> =
        events.into_iter().map(|(name, data)| (name, serde_json::from_str(&data).unwrap())).collect();
    assert!(events.iter().all(|(name, data)| data["type"] == name.as_str()));
    let delta = "content_block_delta";
    let names: Vec<&str> =
        events.iter().map(|(name, _)| name.as_str()).filter(|name| *name != delta).collect();
    let expected =
        ["message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"];
    assert_eq!(names, expected);
    let deltas: Vec<&Value> = events.iter().filter(|(name, _)| name == delta).map(|(_, data)| data).collect();
    assert!(deltas.len() > 2 && deltas.iter().all(|data| data["delta"]["type"] == "text_delta"));
    let text: String = deltas.iter().map(|data| data["delta"]["text"].as_str().unwrap()).collect();
    assert_eq!(sync["content"][0]["text"], text);
    let start = &events[0].1["message"];
    assert_eq!((&start["content"], &start["stop_reason"]), (&json!([]), &Value::Null));
    let (_, end) = events.iter().find(|(name, _)| name == "message_delta").unwrap();
    assert_eq!((&end["delta"]["stop_reason"], &end["usage"]), (&json!("end_turn"), &sync["usage"]));
    assert_eq!(end["cognitive"]["meta"]["risk"], "low");
}

#[tokio::test]
async fn failed_stream_ends_with_its_error() {
    let stage = Stage::start([Reply::text(ANSWER).chunk_size(10).interrupt_after(2000)]).await;
    let mut body = ask("why?");
    body["stream"] = true.into();
    let (name, error) = events_of(stage.message(&body)).await.pop().unwrap();
    let error: Value = serde_json::from_str(&error).unwrap();
    assert_eq!((name.as_str(), &error["type"]), ("error", &json!("error")));
    assert_eq!(error["error"]["code"], "E2010");
}

#[tokio::test]
async fn what_changes_nothing_is_accepted() {
    let stage = Stage::answering().await;
    for change in [
        json!({ "tools": [], "tool_choice": { "type": "auto" }, "stop_sequences": [], "system": "" }),
        json!({ "thinking": { "type": "disabled" }, "service_tier": "auto", "metadata": { "user_id": "me" } }),
        json!({ "temperature": 1.0, "top_k": null, "output_config": { "effort": "low", "format": null } }),
    ] {
        let mut body = ask("why?");
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let message = json_of(stage.message(&body)).await;
        assert_eq!(message["cognitive"].get("_warnings"), None, "{message}");
    }
}

#[tokio::test]
async fn what_cannot_be_honoured_is_refused_by_name() {
    let stage = Stage::answering().await;
    let user = json!({ "role": "user", "content": "why?" });
    let format = |schema| json!({ "format": { "type": "json_schema", "schema": schema } });
    let requests = [
        (json!({ "tools": [{ "name": "f", "input_schema": {} }] }), "E1004", "tools"),
        (json!({ "tool_choice": { "type": "any" } }), "E1004", "tool_choice"),
        (json!({ "thinking": { "type": "enabled", "budget_tokens": 1024 } }), "E1004", "thinking"),
        (json!({ "stop_sequences": ["x"] }), "E1004", "stop_sequences"),
        (
            json!({ "output_config": format(json!({ "required": ["city"] })) }),
            "E1004",
            "output_config.format",
        ),
        (json!({ "system": [{ "type": "image" }] }), "E1002", "system[0].source"),
        (json!({ "messages": [user, { "role": "assistant", "content": "{" }] }), "E1001", "messages[1].role"),
        (
            json!({ "messages": [{ "role": "user", "content": [{ "type": "tool_result" }] }] }),
            "E1004",
            "messages[0].content[0].type",
        ),
        (json!({ "model": null }), "E1002", "model"),
    ];
    for (change, code, param) in requests {
        let mut body = ask("why?");
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let (status, error) = error_of(stage.message(&body)).await;
        assert_eq!(
            (status, &error["type"], &error["code"], &error["param"]),
            (400, &json!("invalid_request_error"), &json!(code), &json!(param)),
            "{change}: {error}"
        );
    }
    assert_eq!(stage.mock.request_count(), 0);
}

#[tokio::test]
async fn errors_have_the_form_of_anthropic() {
    let stage = Stage::with([], |settings| settings.max_body_bytes = 128).await;
    let mut unknown = ask("x");
    unknown["model"] = "claude".into();
    for (request, status, kind) in [
        (stage.message(&unknown), 404, "not_found_error"),
        (stage.message(&ask("x".repeat(200))), 413, "request_too_large"),
        (stage.message(&ask("x")).header("origin", "https://evil.example"), 403, "permission_error"),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status);
        let error: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!((&error["type"], &error["error"]["type"]), (&json!("error"), &json!(kind)));
        assert!(error["error"]["message"].is_string(), "{error}");
    }
}

#[tokio::test]
async fn tokens_are_counted_without_a_call_of_the_model() {
    let stage = Stage::answering().await;
    let count = async |body: Value| {
        let request = stage.client.post(stage.url("/v1/messages/count_tokens"));
        let response = request.header("content-type", "application/json").body(body.to_string()).send().await;
        let response = response.unwrap();
        assert!(response.headers().contains_key("request-id"));
        serde_json::from_str::<Value>(&response.text().await.unwrap()).unwrap()
    };
    let question =
        |text: &str| json!({ "model": "module:either", "messages": [{ "role": "user", "content": text }] });
    let short = count(question("why?")).await["input_tokens"].as_u64().unwrap();
    let long = count(question(&"why? ".repeat(100))).await["input_tokens"].as_u64().unwrap();
    assert!(short > 20 && long >= short + 99, "{short} {long}: the prompt and the schema count too");
    let error = count(json!({ "model": "module:none", "messages": [] })).await;
    assert_eq!(
        (&error["type"], &error["error"]["type"]),
        (&json!("error"), &json!("not_found_error")),
        "{error}"
    );
    assert!(stage.mock.requests().is_empty());
}
