//! Uploads over HTTP: complete, in parts, interrupted, invalid, and downloaded.

use std::time::Duration;

use cog_json::Value;
use cog_testkit::Reply;
use futures_util::{StreamExt as _, stream};
use reqwest::Response;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::{
    sessions,
    support::{ANSWER, Stage, begun, code, envelope, failure, lines},
};

const PIXEL: &[u8] =
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

async fn created(stage: &Stage, declared: &str) -> Value {
    let url = stage.url("/v1/media/upload-url");
    let request = stage.client.post(url).header("content-type", "application/json").body(declared.to_owned());
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 201);
    envelope(response).await
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(|it| it.as_str()).unwrap_or_else(|| panic!("no {key}"))
}

/// Creates an upload and returns its URL and id.
async fn place(stage: &Stage) -> (String, String) {
    let ticket = created(stage, "{}").await;
    (stage.url(text(&ticket, "upload_url")), text(&ticket, "upload_id").to_owned())
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers()[name].to_str().unwrap()
}

async fn part(stage: &Stage, url: &str, range: &str, bytes: &[u8]) -> Response {
    let request = stage.client.put(url).header("content-range", range).body(bytes.to_vec());
    request.send().await.unwrap()
}

#[tokio::test]
async fn upload_is_validated_and_can_be_downloaded() {
    let stage = Stage::answering().await;
    let ticket = created(&stage, r#"{"media_type": "image/gif", "size_bytes": 35}"#).await;
    assert_eq!((text(&ticket, "method"), ticket.get("max_size_bytes").unwrap().as_u64()), ("PUT", Some(35)));
    let url = stage.url(text(&ticket, "upload_url"));
    let response = stage.client.put(url).body(PIXEL).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["range"]),
        (200, &"bytes=0-34".parse().unwrap())
    );
    let received = envelope(response).await;
    assert_eq!((text(&received, "media_type"), text(&received, "sha256").len()), ("image/gif", 64));
    let response = stage.get(&format!("/v1/media/{}", text(&ticket, "upload_id"))).await;
    let header = |name: &str| header(&response, name);
    assert_eq!((header("content-type"), header("content-length")), ("image/gif", "35"));
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert!(header("content-disposition").starts_with("attachment; filename=\"upl_"));
    assert!(header("content-security-policy").contains("sandbox"));
    assert!(header("cache-control").starts_with("private, max-age="));
    assert_eq!(response.bytes().await.unwrap(), PIXEL);
}

#[tokio::test]
async fn media_support_range_and_head() {
    let stage = Stage::answering().await;
    let (url, id) = place(&stage).await;
    assert_eq!(stage.client.put(url).body(PIXEL).send().await.unwrap().status(), 200);
    let url = stage.url(&format!("/v1/media/{id}"));
    let request = |range: &'static str| stage.client.get(&url).header("range", range);
    for (range, received, bytes) in [
        ("bytes=0-5", "bytes 0-5/35", &PIXEL[..6]),
        ("bytes=30-", "bytes 30-34/35", &PIXEL[30..]),
        ("bytes=-1", "bytes 34-34/35", &PIXEL[34..]),
    ] {
        let response = request(range).send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), header(&response, "content-range")),
            (206, received),
            "{range}"
        );
        assert_eq!(header(&response, "content-length"), bytes.len().to_string());
        assert_eq!(response.bytes().await.unwrap(), bytes);
    }
    let complete = request("bytes=0-1").header("if-range", "\"another\"").send().await.unwrap();
    assert_eq!((complete.status().as_u16(), complete.content_length()), (200, Some(35)));
    let tag = complete.headers()["etag"].clone();
    assert_eq!(request("bytes=0-1").header("if-range", tag).send().await.unwrap().status(), 206);
    let past = request("bytes=35-").send().await.unwrap();
    assert_eq!((past.status().as_u16(), header(&past, "content-range")), (416, "bytes */35"));
    let head = stage.client.head(&url).header("range", "bytes=0-1").send().await.unwrap();
    assert_eq!((head.status().as_u16(), header(&head, "content-length")), (200, "35"));
    assert_eq!((header(&head, "content-type"), header(&head, "accept-ranges")), ("image/gif", "bytes"));
    assert_eq!(head.bytes().await.unwrap().len(), 0);
}

#[tokio::test]
async fn parts_must_be_in_order_and_progress_can_be_queried() {
    let stage = Stage::answering().await;
    let (url, _) = place(&stage).await;
    assert_eq!(part(&stage, &url, "bytes 0-9/35", &PIXEL[..10]).await.status(), 202);
    let response = part(&stage, &url, "bytes 12-34/35", &PIXEL[12..]).await;
    assert_eq!(response.status(), 416);
    let received = envelope(response).await;
    assert_eq!(received.pointer("/error/details/received_bytes").unwrap().as_u64(), Some(10));
    let request = part(&stage, &url, "bytes */35", &[]).await;
    assert_eq!(
        (request.status().as_u16(), &request.headers()["range"]),
        (202, &"bytes=0-9".parse().unwrap())
    );
    assert_eq!(part(&stage, &url, "bytes 10-34/35", &PIXEL[10..]).await.status(), 200);
    assert_eq!(part(&stage, &url, "bytes */35", &[]).await.status(), 200);
    assert_eq!(part(&stage, &url, "bytes 0-34/35", PIXEL).await.status(), 409);
}

#[tokio::test]
async fn received_bytes_are_retained_after_an_interruption() {
    let stage = Stage::answering().await;
    let (url, _) = place(&stage).await;
    let path = url.strip_prefix(&format!("http://{}", stage.address)).unwrap();
    let head = format!("PUT {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: 35\r\n\r\n", stage.address);
    let mut connection = TcpStream::connect(&stage.address).await.unwrap();
    connection.write_all(&[head.as_bytes(), &PIXEL[..20]].concat()).await.unwrap();
    drop(connection);
    let mut received = None;
    while received != Some(20) {
        let request = part(&stage, &url, "bytes */*", &[]).await;
        received = envelope(request).await.get("received_bytes").unwrap().as_u64();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(part(&stage, &url, "bytes 20-34/35", &PIXEL[20..]).await.status(), 200);
}

#[tokio::test]
async fn invalid_uploads_have_code_and_status() {
    let stage = Stage::answering().await;
    let unknown = stage.url("/v1/media/uploads/upl_0");
    let put = |url: &str, bytes: &'static [u8]| stage.client.put(url).body(bytes);
    assert_eq!(failure(put(&unknown, PIXEL)).await, (404, "E1019".to_owned()));
    assert_eq!(failure(stage.client.get(stage.url("/v1/media/med_0"))).await, (404, "E1019".to_owned()));
    let (url, id) = place(&stage).await;
    let get = stage.client.get(stage.url(&format!("/v1/media/{id}")));
    assert_eq!(failure(get).await, (404, "E1019".to_owned()), "it has no bytes yet");
    assert_eq!(failure(put(&url, b"<script>alert(1)</script>")).await, (415, "E1010".to_owned()));
    assert_eq!(failure(put(&url, b"")).await, (415, "E1010".to_owned()));
    assert_eq!(failure(put(&url, &PIXEL[..9])).await, (422, "E1013".to_owned()));
    for range in ["bytes 9-0/35", "0-9", "bytes 0-9"] {
        let request = put(&url, PIXEL).header("content-range", range);
        assert_eq!(failure(request).await, (400, "E1001".to_owned()), "{range}");
    }
    let request = put(&url, PIXEL).header("content-range", "bytes 0-9/35");
    assert_eq!(failure(request).await, (400, "E1001".to_owned()), "more than the range says");
    for size in ["99999999999", "73786976294838206464"] {
        let body = format!(r#"{{"media_type": "image/png", "size_bytes": {size}}}"#);
        let request = stage.client.post(stage.url("/v1/media/upload-url"));
        let request = request.header("content-type", "application/json").body(body);
        assert_eq!(failure(request).await, (413, "E1011".to_owned()), "{size}");
    }
    let small = created(&stage, r#"{"size_bytes": 34}"#).await;
    let small = stage.url(text(&small, "upload_url"));
    assert_eq!(failure(put(&small, PIXEL)).await, (413, "E1011".to_owned()));
    let streamed = stream::iter([PIXEL, PIXEL]).map(Ok::<_, std::io::Error>);
    let request = stage.client.put(&small).body(reqwest::Body::wrap_stream(streamed));
    assert_eq!(failure(request).await, (413, "E1011".to_owned()));
    let sum = format!(r#"{{"checksum": {{"algorithm": "sha256", "value": "{}"}}}}"#, "0".repeat(64));
    let held = created(&stage, &sum).await;
    let held = stage.url(text(&held, "upload_url"));
    assert_eq!(failure(put(&held, PIXEL)).await, (422, "E1020".to_owned()));
}

#[tokio::test]
async fn expired_upload_is_gone() {
    let stage = Stage::with([], |settings| settings.uploads.ttl = Duration::ZERO).await;
    let (url, _) = place(&stage).await;
    assert_eq!(failure(stage.client.put(url).body(PIXEL)).await, (410, "E1018".to_owned()));
}

#[tokio::test]
async fn uploads_per_client_are_limited() {
    let stage = Stage::with([], |settings| settings.uploads.max_files_per_client = 1).await;
    place(&stage).await;
    let url = stage.url("/v1/media/upload-url");
    let request = stage.client.post(url).header("content-type", "application/json").body("{}");
    assert_eq!(failure(request).await, (429, "E4002".to_owned()));
}

/// Builds a form of these parts. Parts with a content type are files.
fn form(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (head, bytes) in parts {
        body.extend_from_slice(
            format!("--b\r\nContent-Disposition: form-data; name={head}\r\n\r\n").as_bytes(),
        );
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--b--\r\n");
    body
}

fn post_form(stage: &Stage, parts: &[(&str, &[u8])]) -> reqwest::RequestBuilder {
    let url = stage.url("/v1/modules/sees/execute");
    let request = stage.client.post(url).header("content-type", "multipart/form-data; boundary=b");
    request.body(form(parts))
}

const INPUT: (&str, &[u8]) = ("input", br#"{"query": "why?"}"#);
const FILE: (&str, &[u8]) = ("\"photo\"; filename=\"a.gif\"", PIXEL);

#[tokio::test]
async fn form_runs_a_module_and_its_files_are_removed() {
    let stage = Stage::with([Reply::text(ANSWER)], |settings| {
        settings.uploads.max_files = 1;
    });
    let stage = stage.await;
    for accept in ["application/json", "application/x-ndjson"] {
        for _ in 0..3 {
            let request = post_form(&stage, &[INPUT, FILE]).header("accept", accept);
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 200, "{accept}");
            response.bytes().await.unwrap();
        }
    }
    let sent = stage.mock.requests()[0].body.to_string();
    assert!(sent.contains("data:image/gif") && sent.contains("why?"), "{sent}");
}

#[tokio::test]
async fn files_of_a_form_have_a_total_limit() {
    let more = ("\"pages[]\"; filename=\"b.gif\"", PIXEL);
    let parts = [INPUT, FILE, more, more];
    for (form_bytes, status) in [(3 * PIXEL.len(), 200), (3 * PIXEL.len() - 1, 413)] {
        let replies = [Reply::text(ANSWER)];
        let stage = Stage::with(replies, |settings| settings.uploads.max_form_bytes = form_bytes).await;
        let response = post_form(&stage, &parts).send().await.unwrap();
        assert_eq!(response.status(), status, "{form_bytes}");
        let answer = envelope(response).await;
        if status == 413 {
            assert_eq!(code(&answer), "E1011");
            let reason = answer.pointer("/error/details/reason").unwrap().as_str().map(str::to_owned);
            assert_eq!(reason.as_deref(), Some("total_size"));
            assert!(stage.mock.requests().is_empty());
        }
    }
    let stage = Stage::with([], |settings| settings.uploads.max_form_bytes = 2 * PIXEL.len() - 1).await;
    let endless = stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 1 << 16]));
    let head = form(&[INPUT, FILE])[..].strip_suffix(b"--b--\r\n").unwrap().to_vec();
    let head =
        [&head[..], b"--b\r\nContent-Disposition: form-data; name=second; filename=c\r\n\r\n"].concat();
    let body = reqwest::Body::wrap_stream(stream::iter([Ok(head)]).chain(endless));
    let (status, code) = failure(post_form(&stage, &[]).body(body)).await;
    assert_eq!((status, code.as_str()), (413, "E1011"), "the limit applies before the body is complete");
}

#[tokio::test]
async fn media_errors_of_a_stream_have_a_status() {
    let stage = Stage::answering().await;
    let unknown = format!("upl_{}", "0".repeat(32));
    for (source, status) in [
        (r#"{"type": "base64", "media_type": "image/png", "data": "not base64"}"#.to_owned(), 422),
        (
            format!(
                r#"{{"type": "base64", "media_type": "image/png", "data": "{}"}}"#,
                "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw=="
            ),
            422,
        ),
        (r#"{"type": "url", "url": "http://127.0.0.1/a.png"}"#.to_owned(), 403),
        (r#"{"type": "file", "path": "/etc/passwd"}"#.to_owned(), 403),
        (format!(r#"{{"type": "upload_ref", "upload_id": "{unknown}"}}"#), 404),
    ] {
        let body = format!(r#"{{"input": {{"photo": {source}}}}}"#);
        let sync = failure(stage.execute("sees", &body)).await;
        assert_eq!(sync.0, status, "{source}");
        for accept in ["text/event-stream", "application/x-ndjson"] {
            assert_eq!(
                failure(stage.execute("sees", &body).header("accept", accept)).await,
                sync,
                "{source}"
            );
        }
    }
    assert!(stage.mock.requests().is_empty());
    assert_eq!(stage.get("/metrics").await.text().await.unwrap().matches("cog_streams_open 0").count(), 1);
}

/// Starts a run with a file, disconnects during the answer, and returns the session.
async fn interrupted(stage: &Stage) -> String {
    let url = stage.url("/v1/modules/sees/execute");
    let request = stage.client.post(url).header("content-type", "multipart/form-data; boundary=b");
    let request = request.header("accept", "application/x-ndjson").body(form(&[INPUT, FILE]));
    let mut response = request.send().await.unwrap();
    let id = header(&response, "x-session-id").to_owned();
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains("\"delta\"") {
        received.extend_from_slice(&response.chunk().await.unwrap().unwrap());
    }
    drop(response);
    sessions::state(stage, &id, "interrupted").await;
    id
}

async fn resumed(stage: &Stage, id: &str) -> Value {
    let events = stage.client.get(stage.url(&format!("/v1/sessions/{id}/events")));
    let events = events.header("accept", "application/x-ndjson").header("last-event-id", format!("{id}:1"));
    lines(&events.send().await.unwrap().text().await.unwrap()).pop().unwrap()
}

#[tokio::test]
async fn resumed_run_uses_its_files_again() {
    let stage = Stage::start([begun(), Reply::text(ANSWER)]).await;
    let id = interrupted(&stage).await;
    let end = resumed(&stage, &id).await;
    assert!(end.get("final").is_some(), "{end}");
    let sent: Vec<_> = stage.mock.requests().iter().map(|request| request.body.to_string()).collect();
    assert_eq!((sent.len(), &sent[0]), (2, &sent[1]));
    assert!(sent[1].contains("data:image/"), "{}", sent[1]);
}

#[tokio::test]
async fn resumed_run_has_its_files_after_their_removal() {
    let set = |settings: &mut cog_server::ServerSettings| settings.uploads.max_files_per_client = 1;
    let stage = Stage::with([begun(), Reply::text(ANSWER)], set).await;
    let id = interrupted(&stage).await;
    // Another upload of the client removes the file.
    place(&stage).await;
    let end = resumed(&stage, &id).await;
    assert!(end.get("final").is_some(), "{end}");
    let sent: Vec<_> = stage.mock.requests().iter().map(|request| request.body.to_string()).collect();
    assert_eq!((sent.len(), &sent[0]), (2, &sent[1]));
}

#[tokio::test]
async fn file_without_a_media_field_is_refused() {
    let stage = Stage::answering().await;
    for name in ["photos", "Photo", "query2", "photos[]"] {
        let head = format!("\"{name}\"; filename=\"a.gif\"");
        let response = post_form(&stage, &[INPUT, (&head, PIXEL)]).send().await.unwrap();
        assert_eq!(response.status(), 400, "{name}");
        let answer = envelope(response).await;
        assert_eq!(code(&answer), "E1001");
        let message = format!("the input of `sees` has no media field `{name}`");
        assert_eq!(answer.pointer("/error/message").unwrap().as_str(), Some(message.as_str()));
        let suggestion = "Name the file after one of its media fields: `photo`, `pages`.";
        assert_eq!(answer.pointer("/error/suggestion").unwrap().as_str(), Some(suggestion));
    }
    assert!(stage.mock.requests().is_empty());
}

#[tokio::test]
async fn content_type_of_a_file_is_a_hint() {
    let stage = Stage::answering().await;
    for (hint, warns) in [("image/png", true), ("image/gif", false), ("application/octet-stream", false)] {
        let head = format!("\"photo\"; filename=\"a\"\r\nContent-Type: {hint}");
        let answer = envelope(post_form(&stage, &[INPUT, (&head, PIXEL)]).send().await.unwrap()).await;
        let warning = answer.pointer("/_warnings/0/message").and_then(|it| it.as_str().map(str::to_owned));
        let expected = "input.photo: the upload declared image/png, but the content is image/gif";
        assert_eq!(warning.as_deref(), warns.then_some(expected), "{hint}");
    }
}

#[tokio::test]
async fn media_can_be_deleted_and_revalidated() {
    let stage = Stage::answering().await;
    let (url, id) = place(&stage).await;
    assert_eq!(stage.client.put(url).body(PIXEL).send().await.unwrap().status(), 200);
    let url = stage.url(&format!("/v1/media/{id}"));
    for (tags, status) in
        [(format!("\"{id}\""), 304), (format!("\"x\", W/\"{id}\""), 304), ("\"x\"".to_owned(), 200)]
    {
        let response = stage.client.get(&url).header("if-none-match", &tags).send().await.unwrap();
        assert_eq!((response.status().as_u16(), header(&response, "etag")), (status, &*format!("\"{id}\"")));
    }
    assert_eq!(stage.client.delete(&url).send().await.unwrap().status(), 204);
    assert_eq!(failure(stage.client.delete(&url)).await, (404, "E1019".to_owned()));
    assert_eq!(failure(stage.client.get(&url)).await, (404, "E1019".to_owned()));
}

#[tokio::test]
async fn invalid_form_is_refused() {
    let stage = Stage::answering().await;
    let taken = ("\"query\"; filename=\"a.gif\"", PIXEL);
    for parts in
        [&[][..], &[("input", b"{" as &[u8])], &[INPUT, INPUT], &[INPUT, taken], &[INPUT, FILE, FILE]]
    {
        let (status, code) = failure(post_form(&stage, parts)).await;
        assert!(status == 400 && code.starts_with("E100"), "{status} {code} {parts:?}");
    }
    let damaged = ("\"photo\"; filename=\"a.gif\"", &PIXEL[..9]);
    assert_eq!(failure(post_form(&stage, &[INPUT, damaged])).await, (422, "E1013".to_owned()));
    let cut = post_form(&stage, &[]).body("--b\r\nContent-Disp");
    assert_eq!(failure(cut).await, (400, "E1001".to_owned()));
    assert!(stage.mock.requests().is_empty());
}
