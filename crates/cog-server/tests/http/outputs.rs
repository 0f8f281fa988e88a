//! Generated media: their URLs in every transport, their owner, and the limits of their storage.

use cog_json::Value;
use cog_server::Tokens;
use cog_testkit::Reply;

use crate::{
    sockets,
    support::{BODY, Stage, code, envelope, events, failure, lines},
};

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const TO_BASE64: &str = r#"{"input": {"query": "why?"}, "_options": {"media_output": "base64"}}"#;

fn drawn() -> Reply {
    Reply::text(format!(
        r#"{{"ok": true, "meta": {{"confidence": 0.9, "risk": "low", "explain": "e"}}, "data": {{
            "image": {{"type": "base64", "media_type": "image/png", "data": "{PNG}"}}, "rationale": "r"}}}}"#
    ))
}

async fn drawing() -> Stage {
    Stage::start([drawn()]).await
}

/// Returns a member of the image in an envelope or a final chunk.
fn image<'a>(answer: &'a Value, member: &str) -> Option<&'a str> {
    let data = answer.get("data").or_else(|| answer.get("final")?.get("data"));
    data.unwrap_or_else(|| panic!("no data: {answer}")).get("image")?.get(member)?.as_str()
}

/// Checks that the image of the answer has a URL of the server and can be fetched.
async fn is_at_the_server(stage: &Stage, answer: &Value) {
    let url = image(answer, "url").unwrap_or_else(|| panic!("no address: {answer}"));
    assert!(url.starts_with(&stage.url("/v1/media/med_")), "{url}");
    assert_eq!((image(answer, "type"), image(answer, "data")), (Some("url"), None));
    assert!(image(answer, "expires_at").unwrap().ends_with('Z'));
    let media = stage.client.get(url).send().await.unwrap();
    assert_eq!((media.status().as_u16(), &media.headers()["content-type"]), (200, &image_type()));
    assert!(media.bytes().await.unwrap().starts_with(b"\x89PNG"));
}

fn image_type() -> reqwest::header::HeaderValue {
    reqwest::header::HeaderValue::from_static("image/png")
}

#[tokio::test]
async fn generated_media_have_a_url_in_every_transport() {
    let stage = drawing().await;
    let accepting = async |kind: &'static str| {
        stage.execute("draws", BODY).header("accept", kind).send().await.unwrap().text().await.unwrap()
    };
    is_at_the_server(&stage, &Value::parse(&accepting("application/json").await).unwrap()).await;
    is_at_the_server(&stage, lines(&accepting("application/x-ndjson").await).last().unwrap()).await;
    is_at_the_server(&stage, &events(&accepting("text/event-stream").await).last().unwrap().data).await;
    let mut socket = sockets::open(&stage, "draws").await;
    is_at_the_server(&stage, sockets::frames(&mut socket, BODY).await.last().unwrap()).await;
    let older = stage.client.post(stage.url("/run")).header("content-type", "application/json");
    let older = older.body(r#"{"module": "draws", "input": {"query": "why?"}}"#).send().await.unwrap();
    is_at_the_server(&stage, &envelope(older).await).await;
}

#[tokio::test]
async fn detached_run_stores_generated_media() {
    let stage = drawing().await;
    let body = r#"{"input": {"query": "why?"}, "_options": {"detach": true}}"#;
    let accepted = envelope(stage.execute("draws", body).send().await.unwrap()).await;
    let place = accepted.get("events_url").unwrap().as_str().unwrap().to_owned();
    let received = events(&stage.get(&place).await.text().await.unwrap());
    is_at_the_server(&stage, &received.last().unwrap().data).await;
}

#[tokio::test]
async fn base64_output_is_inside_the_answer() {
    let stage = drawing().await;
    let answer = envelope(stage.execute("draws", TO_BASE64).send().await.unwrap()).await;
    assert_eq!((image(&answer, "type"), image(&answer, "data")), (Some("base64"), Some(PNG)));
    assert_eq!(image(&answer, "url"), None);
}

#[tokio::test]
async fn media_over_the_limit_are_returned_as_base64_with_a_warning() {
    let stage = Stage::with([drawn()], |settings| settings.uploads.max_files_per_client = 0).await;
    let answer = envelope(stage.execute("draws", BODY).send().await.unwrap()).await;
    assert_eq!((image(&answer, "type"), image(&answer, "data")), (Some("base64"), Some(PNG)));
    let warnings = answer.get("_warnings").unwrap().to_string();
    assert!(warnings.contains("upload limit reached: too many files of this client"), "{warnings}");
}

#[tokio::test]
async fn generated_media_belong_to_the_caller_under_the_public_url() {
    let (mine, yours) = ("0123456789abcdef-mine", "0123456789abcdef-yours");
    let stage = Stage::with([drawn()], |settings| {
        settings.access.tokens = Some(Tokens::parse(&format!("me:{mine}\nyou:{yours}")).unwrap());
        settings.public_url = Some("https://cog.example/models".to_owned());
    });
    let stage = stage.await;
    let answer = stage.execute("draws", BODY).bearer_auth(mine).send().await.unwrap();
    let answer = envelope(answer).await;
    let path = image(&answer, "url").unwrap().strip_prefix("https://cog.example/models").unwrap();
    let request = |token: &str| stage.client.get(stage.url(path)).bearer_auth(token);
    assert_eq!(request(mine).send().await.unwrap().status(), 200);
    assert_eq!(failure(request(yours)).await, (404, "E1019".to_owned()));
    assert_eq!(failure(stage.client.get(stage.url(path))).await, (401, "E4007".to_owned()));
}

#[tokio::test]
async fn media_output_is_url_or_base64() {
    let stage = drawing().await;
    let body = r#"{"input": {"query": "why?"}, "_options": {"media_output": "file"}}"#;
    let response = stage.execute("draws", body).send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(code(&envelope(response).await), "E1004");
}
