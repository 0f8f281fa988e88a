//! The door of OpenAI's clients.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::support::Stage;

impl Stage {
    pub(crate) fn chat(&self, body: &Value) -> RequestBuilder {
        self.openai("chat/completions", body)
    }

    pub(crate) fn response(&self, body: &Value) -> RequestBuilder {
        self.openai("responses", body)
    }

    fn openai(&self, route: &str, body: &Value) -> RequestBuilder {
        let request = self.client.post(self.url(&format!("/v1/{route}")));
        request.header("content-type", "application/json").body(body.to_string())
    }

    async fn chat_error(&self, body: &Value) -> (u16, Value) {
        error_of(self.chat(body)).await
    }
}

/// Returns the status and the error of a request that fails.
pub(crate) async fn error_of(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let mut body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    (status, body.get_mut("error").unwrap().take())
}

pub(crate) fn ask(content: impl Into<Value>) -> Value {
    json!({ "model": "module:either", "messages": [{ "role": "user", "content": content.into() }] })
}

pub(crate) async fn json_of(request: RequestBuilder) -> Value {
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    serde_json::from_str(&response.text().await.unwrap()).unwrap()
}

#[tokio::test]
async fn modules_are_models() {
    let stage = Stage::answering().await;
    let list = json_of(stage.client.get(stage.url("/v1/models"))).await;
    let ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"module:either") && ids.is_sorted(), "{ids:?}");
    for id in ["module:either", "either"] {
        let model = json_of(stage.client.get(stage.url(&format!("/v1/models/{id}")))).await;
        assert_eq!(model["id"], "module:either");
    }
    let response = stage.get("/v1/models/gpt-4").await;
    assert_eq!(response.status(), 404);
    let error: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(error["error"]["code"], "E4006");
}

#[tokio::test]
async fn text_becomes_the_input_and_data_the_content() {
    let stage = Stage::answering().await;
    let parts = json!([{ "type": "text", "text": "why?" }]);
    for content in [json!("why?"), json!(r#" {"query": "why?"}"#), parts] {
        let completion = json_of(stage.chat(&ask(content))).await;
        assert_eq!(completion["object"], "chat.completion");
        assert_eq!(completion["model"], "module:either");
        let choice = &completion["choices"][0];
        assert_eq!(
            (&choice["finish_reason"], &choice["message"]["role"]),
            (&json!("stop"), &json!("assistant"))
        );
        let data: Value = serde_json::from_str(choice["message"]["content"].as_str().unwrap()).unwrap();
        assert_eq!(data["rationale"], "because");
        assert_eq!(completion["cognitive"]["meta"]["risk"], "low");
        let id = completion["id"].as_str().unwrap();
        assert!(id.len() > "chatcmpl-".len() && id.starts_with("chatcmpl-"), "{id}");
        let prompt = stage.mock.requests().last().unwrap().body.to_string();
        assert!(prompt.contains("why?"), "{prompt}");
        let usage = &completion["usage"];
        let sum = usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap();
        assert!(sum > 0 && usage["total_tokens"] == sum, "{usage}");
    }
}

#[tokio::test]
async fn images_become_the_media_of_the_input() {
    let stage = Stage::answering().await;
    let image =
        json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{PNG}") } });
    let mut body = ask(json!([{ "type": "text", "text": "what is it?" }, image]));
    let (status, error) = stage.chat_error(&body).await;
    assert_eq!((status, &error["param"]), (400, &json!("messages[0].content")));
    assert!(error["message"].as_str().unwrap().starts_with("`either` accepts no files"), "{error}");
    body["model"] = "sees".into();
    json_of(stage.chat(&body)).await;
    assert!(stage.mock.requests().last().unwrap().body.to_string().contains(PNG));
}

/// One pixel.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

#[tokio::test]
async fn schema_of_the_client_is_checked_too() {
    let stage = Stage::answering().await;
    let mut body = ask("why?");
    let schema = |kind| json!({ "type": "object", "required": ["result"], "properties": { "result": { "type": kind } } });
    let format =
        |kind| json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema(kind) } });
    body["response_format"] = format("string");
    json_of(stage.chat(&body)).await;
    body["response_format"] = format("number");
    let (status, error) = stage.chat_error(&body).await;
    assert_eq!((status, &error["code"], &error["type"]), (502, &json!("E3001"), &json!("server_error")));
    assert!(error["message"].as_str().unwrap().contains("data.result"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_honoured_is_refused_by_name() {
    let stage = Stage::answering().await;
    let user = json!({ "role": "user", "content": "why?" });
    let requests = [
        (json!({ "n": 2 }), "E1004", "n"),
        (json!({ "tools": [{ "type": "function", "function": { "name": "f" } }] }), "E1004", "tools"),
        (json!({ "max_tokens": 5 }), "E1004", "max_tokens"),
        (json!({ "made_up": 1 }), "E1004", "made_up"),
        (json!({ "stream_options": { "include_usage": true } }), "E1004", "stream_options"),
        (json!({ "response_format": { "type": "text", "made_up": 1 } }), "E1004", "response_format.made_up"),
        (json!({ "model": 7 }), "E1003", "model"),
        (json!({ "model": null }), "E1002", "model"),
        (json!({ "messages": [] }), "E1002", "messages"),
        (json!({ "messages": [user, { "role": "assistant", "content": "so" }] }), "E1001", "messages"),
        (json!({ "messages": [{ "role": "assistant", "content": "so" }] }), "E1001", "messages[0].role"),
        (
            json!({ "messages": [{ "role": "system", "content": "be kind" }, user] }),
            "E1004",
            "messages[0].role",
        ),
        (json!({ "messages": [{ "role": "tool", "content": "x" }, user] }), "E1004", "messages[0].role"),
        (json!({ "messages": [user, user] }), "E1001", "messages"),
        (json!({ "messages": [{ "role": "user", "content": "{\"query\": 7}" }] }), "E1003", "input.query"),
    ];
    for (change, code, param) in requests {
        let mut body = ask("why?");
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let (status, error) = stage.chat_error(&body).await;
        assert_eq!((status, &error["code"]), (400, &json!(code)), "{change}: {error}");
        assert!(error["param"].as_str().unwrap().starts_with(param), "{change}: {error}");
        assert_eq!(error["type"], "invalid_request_error");
    }
    assert_eq!(stage.mock.request_count(), 0);
    let mut unknown = ask("why?");
    unknown["model"] = "gpt-4".into();
    let (status, error) = stage.chat_error(&unknown).await;
    assert_eq!((status, &error["code"]), (404, &json!("E4006")));
}

#[tokio::test]
async fn refusals_have_the_form_of_openai() {
    let stage = Stage::with([], |settings| settings.max_body_bytes = 64).await;
    let response = stage.chat(&ask("x".repeat(100))).send().await.unwrap();
    assert_eq!(response.status(), 413);
    let error: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(error["error"]["type"], "invalid_request_error");
    let foreign = stage.chat(&ask("why?")).header("origin", "https://evil.example").send().await.unwrap();
    assert_eq!(foreign.status(), 403);
    let error: Value = serde_json::from_str(&foreign.text().await.unwrap()).unwrap();
    assert_eq!(error["error"]["type"], "permission_error");
}
