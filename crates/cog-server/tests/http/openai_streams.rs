//! The streams of OpenAI's interfaces: what is sent, when, and how they end.

use std::time::Duration;

use cog_testkit::Reply;
use futures_util::StreamExt as _;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use crate::{
    openai::{ask, error_of, json_of},
    support::{ANSWER, Stage, begun},
};

/// Returns the name and the data of each event.
pub(crate) async fn events_of(request: RequestBuilder) -> Vec<(String, String)> {
    let response = request.send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    let text = response.text().await.unwrap();
    let line =
        |block: &str, name: &str| block.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
    let blocks = text.split("\n\n").filter(|block| block.contains("data: "));
    blocks.map(|block| (line(block, "event: ").unwrap_or_default(), line(block, "data: ").unwrap())).collect()
}

/// Returns the chunks of a stream, and whether `[DONE]` ends it.
async fn chunks_of(request: RequestBuilder) -> (Vec<Value>, bool) {
    let mut events = events_of(request).await;
    let is_done = events.pop_if(|(_, data)| data == "[DONE]").is_some();
    (events.iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect(), is_done)
}

fn content_of(chunks: &[Value]) -> String {
    chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/content")?.as_str()).collect()
}

fn streamed(mut body: Value) -> Value {
    body.as_object_mut().unwrap().insert("stream".to_owned(), true.into());
    body
}

/// An answer with these data.
pub(crate) fn with_data(data: &Value) -> Reply {
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
    Reply::text(json!({ "ok": true, "meta": meta, "data": data, "error": null }).to_string()).chunk_size(5)
}

/// The answer in parts, with a pause between them.
pub(crate) fn in_parts() -> Reply {
    Reply::text(ANSWER).chunk_size(5).pause(Duration::from_millis(5))
}

async fn read_until(response: Response, wanted: &str) {
    let (mut body, mut text) = (response.bytes_stream(), String::new());
    while !text.contains(wanted) {
        text += std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap();
    }
}

#[tokio::test]
async fn deltas_of_a_stream_add_up_to_the_content_of_the_sync_answer() {
    let stage = Stage::start([in_parts()]).await;
    let sync = json_of(stage.chat(&ask("why?"))).await;
    let (chunks, is_done) = chunks_of(stage.chat(&streamed(ask("why?")))).await;
    assert!(is_done);
    assert_eq!(content_of(&chunks), sync["choices"][0]["message"]["content"].as_str().unwrap());
    assert_eq!(
        chunks[0]["choices"][0]["delta"],
        json!({ "role": "assistant", "content": "", "refusal": null })
    );
    assert!(chunks.len() > 4, "{chunks:?}");
    let (last, others) = chunks.split_last().unwrap();
    assert_eq!(
        (&last["choices"][0]["finish_reason"], &last["choices"][0]["delta"]),
        (&json!("stop"), &json!({}))
    );
    assert_eq!(last["cognitive"]["meta"]["risk"], "low");
    for chunk in others {
        assert_eq!(
            (&chunk["object"], &chunk["model"]),
            (&json!("chat.completion.chunk"), &json!("module:either"))
        );
        assert_eq!((&chunk["id"], &chunk["created"]), (&last["id"], &last["created"]));
        assert!(chunk.get("usage").is_none() && chunk["choices"][0]["finish_reason"].is_null(), "{chunk}");
    }
}

#[tokio::test]
async fn stream_ends_with_the_tokens_if_they_are_requested() {
    let stage = Stage::answering().await;
    let mut body = streamed(ask("why?"));
    body["stream_options"] = json!({ "include_usage": true });
    let (chunks, is_done) = chunks_of(stage.chat(&body)).await;
    let (last, others) = chunks.split_last().unwrap();
    assert!(
        is_done && last["choices"] == json!([]) && last["usage"]["total_tokens"].as_u64().unwrap() > 0,
        "{last}"
    );
    assert!(others.iter().all(|chunk| chunk.get("usage") == Some(&Value::Null)), "{others:?}");
}

#[tokio::test]
async fn text_is_sent_before_the_model_ends_and_a_disconnect_cancels_the_call() {
    for is_response in [false, true] {
        let stage = Stage::hanging().await;
        let request = match is_response {
            false => stage.chat(&streamed(ask("why?"))),
            true => stage.response(&json!({ "model": "either", "input": "why?", "stream": true })),
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        let begin = if is_response { r#""delta":"{\"result\":\""# } else { r#""content":"{\"result\":\""# };
        read_until(response, begin).await;
        while stage.mock.interrupted() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn idle_stream_sends_keepalives() {
    let stage =
        Stage::with([begun()], |settings| settings.keepalive_interval = Duration::from_millis(20)).await;
    let response = stage.chat(&streamed(ask("why?"))).send().await.unwrap();
    read_until(response, "\n\n:\n\n").await;
}

#[tokio::test]
async fn error_in_the_middle_is_the_last_event() {
    let stage = Stage::start([Reply::text(ANSWER).chunk_size(10).interrupt_after(2000)]).await;
    let (chunks, is_done) = chunks_of(stage.chat(&streamed(ask("why?")))).await;
    let (last, others) = chunks.split_last().unwrap();
    assert!(!is_done && others[0]["choices"][0]["delta"]["role"] == "assistant");
    assert_eq!((&last["error"]["code"], &last["error"]["type"]), (&json!("E2010"), &json!("server_error")));
    assert!(others.iter().all(|chunk| chunk.get("error").is_none()));
}

#[tokio::test]
async fn repeated_values_of_a_second_attempt_are_sent_once() {
    let wrong = json!({ "result": "a text", "rationale": 5 });
    let right = json!({ "result": "a text", "rationale": "because" });
    let stage = Stage::start([with_data(&wrong), with_data(&right)]).await;
    let (chunks, is_done) = chunks_of(stage.chat(&streamed(ask("why?")))).await;
    assert_eq!((stage.mock.request_count(), is_done), (2, true));
    assert_eq!(serde_json::from_str::<Value>(&content_of(&chunks)).unwrap(), right);
}

#[tokio::test]
async fn corrected_value_that_was_sent_is_an_error() {
    let wrong = json!({ "result": "a text", "rationale": 5 });
    let other = json!({ "result": "another", "rationale": "because" });
    let stage = Stage::start([with_data(&wrong), with_data(&other)]).await;
    let (chunks, is_done) = chunks_of(stage.chat(&streamed(ask("why?")))).await;
    assert!(!is_done && content_of(&chunks).starts_with(r#"{"result":"a text"#), "{chunks:?}");
    let error = &chunks.last().unwrap()["error"];
    assert_eq!(error["code"], "E3001");
    assert!(error["message"].as_str().unwrap().contains("sent already"), "{error}");
    assert!(!content_of(&chunks).contains("rationale"), "{chunks:?}");
}

#[tokio::test]
async fn module_without_streams_sends_its_content_at_the_end() {
    let stage = Stage::start([
        with_data(&json!({ "result": "a", "rationale": 5 })),
        Reply::text(ANSWER).chunk_size(5),
    ])
    .await;
    let mut body = streamed(ask("why?"));
    body["model"] = "once".into();
    let (chunks, is_done) = chunks_of(stage.chat(&body)).await;
    assert_eq!((chunks.len(), is_done), (3, true), "{chunks:?}");
    assert!(content_of(&chunks).contains("because"));
}

#[tokio::test]
async fn schema_of_the_client_is_checked_at_the_end_of_a_stream() {
    let stage = Stage::answering().await;
    let mut body = streamed(ask("why?"));
    let schema =
        json!({ "type": "object", "properties": { "rationale": { "type": "string", "maxLength": 3 } } });
    body["response_format"] =
        json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema } });
    let (chunks, is_done) = chunks_of(stage.chat(&body)).await;
    assert!(!is_done && chunks.last().unwrap()["error"]["code"] == "E3001", "{chunks:?}");
}

#[tokio::test]
async fn errors_before_the_model_have_a_status() {
    let stage = Stage::answering().await;
    let (status, error) = error_of(stage.chat(&streamed(ask(r#"{"query": 7}"#)))).await;
    assert_eq!((status, &error["code"]), (400, &json!("E1003")));
    let broken = json!([{ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } }]);
    let mut body = streamed(ask(broken));
    body["model"] = "sees".into();
    let (status, error) = error_of(stage.chat(&body)).await;
    assert_eq!((status, &error["code"]), (415, &json!("E1010")), "{error}");
    assert_eq!(stage.mock.request_count(), 0);
}

#[tokio::test]
async fn streams_use_the_slots_of_their_client() {
    let stage = Stage::with([begun()], |settings| settings.max_streams_per_client = 1).await;
    let first = stage.chat(&streamed(ask("why?"))).send().await.unwrap();
    let (status, error) = error_of(stage.chat(&streamed(ask("why?")))).await;
    assert_eq!((status, &error["type"], &error["code"]), (429, &json!("rate_limit_error"), &json!("E4002")));
    drop(first);
    while stage.chat(&streamed(ask("why?"))).send().await.unwrap().status() != 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn shutdown_ends_a_stream_with_an_error() {
    let mut stage =
        Stage::with([begun()], |settings| settings.shutdown_timeout = Duration::from_millis(100)).await;
    let response = stage.chat(&streamed(ask("why?"))).send().await.unwrap();
    stage.stop.take().unwrap().send(()).unwrap();
    let text = response.text().await.unwrap();
    let last = text.trim_end().rsplit("\n\n").next().unwrap();
    let error: Value = serde_json::from_str(last.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(error.pointer("/error/code"), Some(&json!("E2010")));
    assert_eq!(error.pointer("/error/details/reason"), Some(&json!("shutdown")));
    (&mut stage.served).await.unwrap().unwrap();
}
