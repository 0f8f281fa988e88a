use std::{
    io::{Read, Write},
    net::TcpStream,
};

use super::*;

/// Sends a request and returns the complete response with its headers.
fn post(mock: &Mock, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(mock.address).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: mock\r\nx-a: b\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn replies_in_the_format_of_the_path_and_stores_the_request() {
    let mock = Mock::start([Reply::text("hello")]);
    let answer = post(&mock, "/v1/chat/completions", r#"{"stream": true}"#);
    assert!(answer.contains("content-type: text/event-stream"), "{answer}");
    assert!(answer.contains(r#""delta":{"content":"hello"}"#) && answer.contains("[DONE]"), "{answer}");
    let request = mock.requests().remove(0);
    assert_eq!((request.path.as_str(), request.header("x-a")), ("/v1/chat/completions", Some("b")));
    assert_eq!(request.body, serde_json::json!({ "stream": true }));
}

#[test]
fn replies_are_sent_in_order_and_the_last_one_repeats() {
    let mock = Mock::start([Reply::error(429, "slow down").header("retry-after", "3"), Reply::text("b")]);
    let first = post(&mock, "/v1/messages", "{}");
    assert!(first.starts_with("HTTP/1.1 429") && first.contains("retry-after: 3"), "{first}");
    assert!(first.contains(r#""type":"rate_limit_error""#), "{first}");
    for _ in 0..2 {
        assert!(post(&mock, "/v1/messages", "{}").contains(r#""text":"b""#));
    }
}

#[test]
fn reply_can_be_interrupted() {
    let mock = Mock::start([Reply::text("hello").interrupt_after(40)]);
    let answer = post(&mock, "/api/chat", "{}");
    assert!(answer.contains(r#"{"model":"mock-model""#) && !answer.contains("hello"), "{answer}");
    assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
}

#[test]
fn unknown_path_is_a_404() {
    assert!(post(&Mock::start([]), "/other", "{}").starts_with("HTTP/1.1 404"));
}
