//! A server in a thread that returns the same streamed answer to every request and stores nothing.

#![expect(clippy::unwrap_used, reason = "a benchmark stops when it cannot run")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

/// Starts a server that returns this answer to every request, and returns its URL.
pub(crate) fn serve(answer: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let reply = Arc::new(reply(answer));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream.set_nodelay(true).unwrap();
            let reply = Arc::clone(&reply);
            thread::spawn(move || give(stream, &reply));
        }
    });
    address
}

fn give(mut stream: TcpStream, reply: &str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(length) = content_length(&mut reader) {
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).unwrap();
        stream.write_all(reply.as_bytes()).unwrap();
    }
}

/// Reads the headers of a request; none when the client has disconnected.
fn content_length(reader: &mut BufReader<TcpStream>) -> Option<u64> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            return Some(length);
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
}

/// Returns the complete HTTP reply, with the answer in chunks of 64 characters.
fn reply(answer: &str) -> String {
    let piece = |text: &[char]| {
        let text: String = text.iter().collect();
        let chunk = serde_json::json!({ "id": "1", "object": "chat.completion.chunk", "model": "m",
            "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }] });
        format!("data: {chunk}\n\n")
    };
    let mut body: String = answer.chars().collect::<Vec<_>>().chunks(64).map(piece).collect();
    body += "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    body += "data: {\"id\":\"1\",\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":20,\"total_tokens\":30}}\n\n";
    body += "data: [DONE]\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length:";
    format!("{head} {}\r\n\r\n{body}", body.len())
}
