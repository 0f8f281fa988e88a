//! The door of OpenAI's clients.

use cog_server::SystemMessages;
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
async fn long_numbers_of_an_object_reach_the_module() {
    let stage = Stage::answering().await;
    json_of(stage.chat(&ask(r#"{"query": "why?", "id": 12345678901234567890123, "rate": 0.10}"#))).await;
    let prompt = stage.mock.requests().last().unwrap().body.to_string();
    assert!(prompt.contains("12345678901234567890123") && prompt.contains("0.10"), "{prompt}");
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
    let schema = |result: Value| json!({ "type": "object", "required": ["result"], "properties": { "result": result } });
    let format =
        |result| json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema(result) } });
    body["response_format"] = format(json!({ "type": "string" }));
    json_of(stage.chat(&body)).await;
    body["response_format"] = format(json!({ "type": "string", "maxLength": 3 }));
    let (status, error) = stage.chat_error(&body).await;
    assert_eq!((status, &error["code"], &error["type"]), (502, &json!("E3001"), &json!("server_error")));
    assert!(error["message"].as_str().unwrap().contains("data.result"), "{error}");
}

#[tokio::test]
async fn schema_that_no_answer_fits_is_refused_before_the_call() {
    let stage = Stage::answering().await;
    let string = json!({ "type": "string" });
    let schemas = [
        (
            json!({ "type": "object", "properties": { "result": { "type": "number" } } }),
            "result: found string",
        ),
        (
            json!({ "type": "object", "properties": { "city": string }, "required": ["city"] }),
            "city: required",
        ),
        (
            json!({ "type": "object", "properties": { "result": string }, "additionalProperties": false }),
            "rationale: not allowed",
        ),
    ];
    for (schema, reason) in schemas {
        let format = json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema } });
        let mut body = ask("why?");
        body["response_format"] = format;
        let (status, error) = stage.chat_error(&body).await;
        assert_eq!(
            (status, &error["code"], &error["param"]),
            (400, &json!("E1004"), &json!("response_format"))
        );
        assert!(error["message"].as_str().unwrap().contains(reason), "{error}");
        body["stream"] = true.into();
        assert_eq!(stage.chat_error(&body).await.0, 400);
    }
    assert_eq!(stage.mock.request_count(), 0);
}

/// Returns the messages of the warnings of a reply.
fn warnings(reply: &Value) -> Vec<&str> {
    let warnings = reply.pointer("/cognitive/_warnings").and_then(Value::as_array);
    let warnings = warnings.into_iter().flatten();
    warnings.filter(|it| it["code"] == "W4030").map(|it| it["message"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn system_messages_reach_the_model_as_the_words_of_the_caller() {
    let stage = Stage::answering().await;
    let messages = json!([{ "role": "system", "content": "be kind" }, { "role": "developer",
        "content": [{ "type": "text", "text": "be brief" }] }, { "role": "user", "content": "why?" }]);
    let chat = json!({ "model": "either", "messages": messages });
    let response = json!({ "model": "either", "input": messages, "instructions": "be quick" });
    for (request, words) in [
        (stage.chat(&chat), "<caller_instructions>\nbe kind\n\nbe brief\n</caller_instructions>"),
        (
            stage.response(&response),
            "<caller_instructions>\nbe quick\n\nbe kind\n\nbe brief\n</caller_instructions>",
        ),
    ] {
        let reply = json_of(request).await;
        assert!(matches!(warnings(&reply).as_slice(), [one] if one.contains("system messages")), "{reply}");
        let sent = stage.mock.requests().last().unwrap().body.to_string();
        let sent: Value = serde_json::from_str(&sent).unwrap();
        let [system, user] = ["0", "1"].map(|at| sent.pointer(&format!("/messages/{at}/content")).unwrap());
        assert!(!system.to_string().contains("be kind"), "{system}");
        assert!(user.as_str().unwrap().starts_with("{\"query\":\"why?\"}"), "{user}");
        assert!(user.as_str().unwrap().ends_with(words), "{user}");
    }
}

#[tokio::test]
async fn operator_chooses_the_place_of_system_messages() {
    let mut body = ask("why?");
    body["messages"] =
        json!([{ "role": "system", "content": "be kind" }, { "role": "user", "content": "{}" }]);
    let stage = Stage::with([cog_testkit::Reply::text(crate::support::ANSWER)], |settings| {
        settings.openai.system = SystemMessages::Field("query".to_owned());
    })
    .await;
    let reply = json_of(stage.chat(&body)).await;
    assert_eq!(warnings(&reply), [""; 0]);
    assert!(stage.mock.requests().last().unwrap().body.to_string().contains(r#"{\"query\":\"be kind\"}"#));
    for content in ["why?", r#"{"query": "why?"}"#] {
        body["messages"][1]["content"] = content.into();
        let (status, error) = stage.chat_error(&body).await;
        assert_eq!((status, &error["param"]), (400, &json!("messages[0].role")));
        assert!(error["message"].as_str().unwrap().contains("`input.query`"), "{error}");
    }
    for (place, reason) in [
        (SystemMessages::Field("tone".to_owned()), "`either` has no such field"),
        (SystemMessages::Refuse, "takes no other instructions"),
    ] {
        let stage = Stage::with([], |settings| settings.openai.system = place).await;
        let (status, error) = stage.chat_error(&body).await;
        assert_eq!((status, &error["code"]), (400, &json!("E1004")));
        assert!(error["message"].as_str().unwrap().contains(reason), "{error}");
        assert_eq!(stage.mock.request_count(), 0);
    }
}

#[tokio::test]
async fn sampling_parameters_have_no_effect_unless_the_operator_refuses_them() {
    let mut body = ask("why?");
    body["temperature"] = 0.1.into();
    body["max_tokens"] = 5.into();
    body["seed"] = 1.into();
    let stage = Stage::answering().await;
    let reply = json_of(stage.chat(&body)).await;
    assert!(warnings(&reply)[0].starts_with("`temperature`, `max_tokens`, `seed` had no effect"), "{reply}");
    let sent = stage.mock.requests().last().unwrap().body.to_string();
    assert!(!sent.contains("temperature") && !sent.contains("seed"), "{sent}");
    let strict = Stage::with([], |settings| settings.openai.is_lenient = false).await;
    let (status, error) = strict.chat_error(&body).await;
    assert_eq!((status, &error["code"], &error["param"]), (400, &json!("E1004"), &json!("temperature")));
}

#[tokio::test]
async fn what_cannot_be_honoured_is_refused_by_name() {
    let stage = Stage::answering().await;
    let user = json!({ "role": "user", "content": "why?" });
    let requests = [
        (json!({ "n": 2 }), "E1004", "n"),
        (json!({ "tools": [{ "type": "function", "function": { "name": "f" } }] }), "E1004", "tools"),
        (json!({ "stop": "x" }), "E1004", "stop"),
        (json!({ "made_up": 1 }), "E1004", "made_up"),
        (json!({ "response_format": { "type": "text", "made_up": 1 } }), "E1004", "response_format.made_up"),
        (json!({ "model": 7 }), "E1003", "model"),
        (json!({ "model": null }), "E1002", "model"),
        (json!({ "messages": [] }), "E1002", "messages"),
        (json!({ "messages": [user, { "role": "assistant", "content": "so" }] }), "E1001", "messages"),
        (json!({ "messages": [{ "role": "assistant", "content": "so" }] }), "E1001", "messages[0].role"),
        (json!({ "messages": [{ "role": "system", "content": "be kind" }] }), "E1002", "messages"),
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
