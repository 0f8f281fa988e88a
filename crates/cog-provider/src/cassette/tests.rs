use super::*;

fn request(url: &str, body: &str) -> WireRequest {
    let auth = Some(("authorization", "Bearer $OPENAI_API_KEY".to_owned()));
    WireRequest {
        method: "POST",
        url: url.to_owned(),
        headers: Vec::new(),
        auth,
        body: body.to_owned().into(),
    }
}

#[test]
fn exchange_reads_back_without_host_and_key() {
    let request = request("https://me:8080/v1/chat?alt=sse", r#"{"b":1.0,"a":[2]}"#);
    let recording = Recording { provider: "openai".to_owned(), model: "m".to_owned() };
    let headers = [("retry-after", "3".to_owned())];
    let exchange =
        Exchange { recording: &recording, request: &request, keys: &[], status: 429, headers: &headers };
    let text = exchange.to_json_pretty();
    assert!(
        text.contains(r#""path": "/v1/chat?alt=sse""#) && text.contains(r#""authorization": "***""#),
        "{text}"
    );
    assert!(!text.contains("me:8080") && !text.contains("OPENAI"), "{text}");
    let recorded = RecordedReply::read(Value::parse(&text).unwrap().node()).unwrap();
    assert_eq!(recorded.key, Key::new(&request.url, &request.body));
    assert_eq!((recorded.status, recorded.headers), (429, vec![("retry-after", "3".to_owned())]));
}

#[test]
fn key_in_a_request_is_masked_and_the_request_is_found() {
    let keys = [Secret::new("sk-canary-1"), Secret::new("other\"canary")];
    let body = r#"{"a":"my sk-canary-1","b":"other\"canary","c":"{\"d\":\"other\\\"canary\"}"}"#;
    let request = request("https://host/v1/chat", body);
    let recording = Recording { provider: "openai".to_owned(), model: "m".to_owned() };
    let exchange =
        Exchange { recording: &recording, request: &request, keys: &keys, status: 200, headers: &[] };
    let text = exchange.to_json_pretty();
    assert!(!text.contains("canary"), "{text}");
    let recorded = RecordedReply::read(Value::parse(&text).unwrap().node()).unwrap();
    assert_eq!(recorded.key, Key::new(&request.url, &request.body));
}

#[test]
fn url_without_path_has_the_root_path() {
    assert_eq!(path_of("http://host"), "/");
}

#[test]
fn requests_are_equal_by_body_and_last_path_segment() {
    let key = Key::new("http://host/v1/chat/completions", b"");
    assert_eq!(key.endpoint, "completions");
    assert_eq!(key.hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(key, Key::new("/proxy/openai/chat/completions", b""));
    assert_ne!(key, Key::new("/v1/chat/completions", b"{}"));
    assert_ne!(Key::new("/models/a:stream", b""), Key::new("/models/b:stream", b""));
}
