//! `POST /v1/responses`.

use cog_testkit::Reply;
use serde_json::{Value, json};

use crate::{
    openai::{PNG, error_of, json_of},
    openai_streams::{events_of, in_parts},
    support::{ANSWER, Stage},
};

fn ask(input: impl Into<Value>) -> Value {
    json!({ "model": "module:either", "input": input.into() })
}

fn text_of(response: &Value) -> &str {
    response.pointer("/output/0/content/0/text").unwrap().as_str().unwrap()
}

#[tokio::test]
async fn input_is_a_text_or_a_list_of_items() {
    let stage = Stage::answering().await;
    let parts = json!([{ "type": "input_text", "text": "why?" }]);
    let inputs = [
        json!("why?"),
        json!(r#"{"query": "why?"}"#),
        json!([{ "role": "user", "content": "why?" }]),
        json!([{ "type": "message", "role": "user", "content": parts }]),
    ];
    for input in inputs {
        let response = json_of(stage.response(&ask(input))).await;
        assert_eq!((&response["object"], &response["status"]), (&json!("response"), &json!("completed")));
        assert_eq!((&response["model"], &response["store"]), (&json!("module:either"), &json!(false)));
        assert!(response["id"].as_str().unwrap().starts_with("resp_"));
        let item = &response["output"][0];
        assert_eq!((&item["type"], &item["role"]), (&json!("message"), &json!("assistant")));
        assert_eq!(
            (&item["status"], &item["content"][0]["type"]),
            (&json!("completed"), &json!("output_text"))
        );
        let data: Value = serde_json::from_str(text_of(&response)).unwrap();
        assert_eq!(data["rationale"], "because");
        let usage = &response["usage"];
        let sum = usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
        assert!(sum > 0 && usage["total_tokens"] == sum, "{usage}");
        assert_eq!(response["cognitive"]["meta"]["risk"], "low");
        assert!(stage.mock.requests().last().unwrap().body.to_string().contains("why?"));
    }
}

#[tokio::test]
async fn images_become_the_media_of_the_input() {
    let stage = Stage::answering().await;
    let image = json!({ "type": "input_image", "image_url": format!("data:image/png;base64,{PNG}") });
    let mut body = ask(json!([{ "role": "user", "content": [image] }]));
    body["model"] = "sees".into();
    json_of(stage.response(&body)).await;
    assert!(stage.mock.requests().last().unwrap().body.to_string().contains(PNG));
}

#[tokio::test]
async fn schema_of_the_client_is_checked_too() {
    let stage = Stage::answering().await;
    let mut body = ask("why?");
    let format = |longest| {
        let schema = json!({ "type": "object", "properties": { "result": { "type": "string", "maxLength": longest } } });
        json!({ "format": { "type": "json_schema", "name": "n", "strict": true, "schema": schema } })
    };
    body["text"] = format(1000);
    json_of(stage.response(&body)).await;
    body["text"] = format(3);
    let (status, error) = error_of(stage.response(&body)).await;
    assert_eq!((status, &error["code"]), (502, &json!("E3001")));
    assert!(error["message"].as_str().unwrap().contains("`text.format`: data.result"), "{error}");
}

#[tokio::test]
async fn events_are_numbered_and_add_up_to_the_response() {
    let stage = Stage::start([in_parts()]).await;
    let mut body = ask("why?");
    let sync = json_of(stage.response(&body)).await;
    body["stream"] = true.into();
    let events = events_of(stage.response(&body)).await;
    let events: Vec<(String, Value)> =
        events.into_iter().map(|(name, data)| (name, serde_json::from_str(&data).unwrap())).collect();
    for (number, (name, data)) in events.iter().enumerate() {
        assert_eq!((&data["type"], &data["sequence_number"]), (&json!(name), &json!(number)));
    }
    let delta = "response.output_text.delta";
    let names: Vec<&str> =
        events.iter().map(|(name, _)| name.as_str()).filter(|name| *name != delta).collect();
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(names, expected);
    let deltas: Vec<&Value> = events.iter().filter(|(name, _)| name == delta).map(|(_, data)| data).collect();
    let text: String = deltas.iter().map(|data| data["delta"].as_str().unwrap()).collect();
    let completed = &events.last().unwrap().1["response"];
    assert!(deltas.len() > 2 && text == text_of(completed) && text == text_of(&sync), "{text}");
    let item = completed["output"][0]["id"].as_str().unwrap();
    assert!(deltas.iter().all(|data| data["item_id"] == item && data["content_index"] == 0));
    assert_eq!(completed["usage"], sync["usage"]);
    assert_eq!(events[0].1["response"]["id"], completed["id"]);
    assert_eq!(
        (&events[0].1["response"]["status"], &events[0].1["response"]["output"]),
        (&json!("in_progress"), &json!([]))
    );
}

#[tokio::test]
async fn failed_stream_ends_with_its_error() {
    let stage = Stage::start([Reply::text(ANSWER).chunk_size(10).interrupt_after(2000)]).await;
    let mut body = ask("why?");
    body["stream"] = true.into();
    let mut events = events_of(stage.response(&body)).await;
    let (name, failed) = events.pop().unwrap();
    let failed: Value = serde_json::from_str(&failed).unwrap();
    assert_eq!((name.as_str(), &failed["response"]["status"]), ("response.failed", &json!("failed")));
    assert_eq!(failed["response"]["error"]["code"], "E2010");
    let (name, error) = events.pop().unwrap();
    let error: Value = serde_json::from_str(&error).unwrap();
    assert_eq!(
        (name.as_str(), &error["code"], &error["error"]["code"]),
        ("error", &json!("E2010"), &json!("E2010"))
    );
    assert_eq!(error["message"], failed["response"]["error"]["message"]);
    assert!(events.iter().all(|(name, _)| name != "response.completed"));
}

#[tokio::test]
async fn what_cannot_be_honoured_is_refused_by_name() {
    let stage = Stage::answering().await;
    let user = json!({ "role": "user", "content": "why?" });
    let requests = [
        (json!({ "instructions": 7 }), "E1003", "instructions"),
        (json!({ "previous_response_id": "resp_1" }), "E1004", "previous_response_id"),
        (json!({ "conversation": "conv_1" }), "E1004", "conversation"),
        (json!({ "store": true }), "E1004", "store"),
        (json!({ "background": true }), "E1004", "background"),
        (json!({ "tools": [{ "type": "web_search" }] }), "E1004", "tools"),
        (json!({ "truncation": "auto" }), "E1004", "truncation"),
        (json!({ "n": 2 }), "E1004", "n"),
        (json!({ "made_up": 1 }), "E1004", "made_up"),
        (json!({ "include": ["message.output_text.logprobs"] }), "E1004", "include"),
        (json!({ "reasoning": { "summary": "auto" } }), "E1004", "reasoning.summary"),
        (json!({ "text": { "format": { "type": "grammar" } } }), "E1004", "text.format.type"),
        (json!({ "stream": "yes" }), "E1003", "stream"),
        (json!({ "input": null }), "E1002", "input"),
        (json!({ "input": [] }), "E1002", "input"),
        (json!({ "input": [user, { "role": "assistant", "content": "so" }] }), "E1001", "input[1].role"),
        (json!({ "input": [{ "role": "system", "content": "be kind" }] }), "E1002", "input"),
        (
            json!({ "input": [{ "type": "function_call_output", "call_id": "1", "output": "x" }, user] }),
            "E1004",
            "input[0].type",
        ),
        (json!({ "input": [{ "type": "item_reference", "id": "msg_1" }, user] }), "E1004", "input[0].type"),
        (json!({ "input": [user, user] }), "E1001", "input"),
        (json!({ "input": "{\"query\": 7}" }), "E1003", "input.query"),
        (
            json!({ "input": [{ "role": "user", "content": [{ "type": "input_video" }] }] }),
            "E1004",
            "input[0].content[0].type",
        ),
    ];
    for (change, code, param) in requests {
        let mut body = ask("why?");
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let (status, error) = error_of(stage.response(&body)).await;
        assert_eq!(
            (status, &error["code"], &error["param"]),
            (400, &json!(code), &json!(param)),
            "{change}: {error}"
        );
        assert_eq!(error["type"], "invalid_request_error");
    }
    assert_eq!(stage.mock.request_count(), 0);
}
