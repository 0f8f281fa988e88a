//! MCP servers over HTTP that answer with errors of HTTP, and lists that are too long.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Output,
};

use serde_json::{Value, json};

use crate::support::{Place, stderr};

/// An answer: the status with its reason, the content type, and the body.
type Answer = (&'static str, &'static str, String);

const JSON: &str = "application/json";

/// Answers each request with what the function returns for its message, until the test ends. Returns the URL.
fn serve(answer: fn(&Value) -> Answer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            respond(&stream.unwrap(), answer);
        }
    });
    url
}

fn respond(stream: &TcpStream, answer: fn(&Value) -> Answer) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let message = serde_json::from_slice(&body).unwrap_or_default();
    let (status, kind, body) = answer(&message);
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
    let _ = (&*stream).write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes());
}

fn result(message: &Value, result: Value) -> Answer {
    ("200 OK", JSON, json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string())
}

/// A server whose tools answer with errors of HTTP.
fn failing(message: &Value) -> Answer {
    let tools = ["bad_request", "not_found", "broken", "busy", "page", "empty", "denied"];
    let listed = |name| json!({ "name": name, "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true } });
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => result(
            message,
            json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "failing", "version": "1" } }),
        ),
        "tools/list" => result(message, json!({ "tools": tools.map(listed) })),
        "tools/call" => match message["params"]["name"].as_str().unwrap() {
            "bad_request" => {
                let error = json!({ "code": -32602, "message": "no such page" });
                let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                ("400 Bad Request", JSON, reply.to_string())
            }
            "not_found" => ("404 Not Found", "text/plain", "gone".to_owned()),
            "broken" => ("500 Internal Server Error", "text/html", "<h1>Oops</h1>".to_owned()),
            "busy" => ("503 Service Unavailable", JSON, r#"{"error": "busy"}"#.to_owned()),
            "denied" => ("403 Forbidden", "text/plain", "not for you".to_owned()),
            "page" => ("200 OK", "text/html", "<h1>Sign in</h1>".to_owned()),
            _ => ("200 OK", JSON, String::new()),
        },
        _ if message.get("id").is_none() => ("202 Accepted", JSON, String::new()),
        _ => {
            let error = json!({ "code": -32601, "message": "unknown method" });
            ("200 OK", JSON, json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string())
        }
    }
}

fn place(url: &str) -> Place {
    let place = Place::new();
    place.write(".config/cog/config.toml", format!("[mcp.web]\nurl = \"{url}\"\n"));
    place
}

fn call(place: &Place, tool: &str) -> Value {
    let output = place.cog(["mcp", "call", "web", tool]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{tool}: {text} {}", stderr(&output)))
}

#[test]
fn error_of_http_is_an_error_of_its_call_with_the_status() {
    let place = place(&serve(failing));
    for (tool, expected) in [
        ("bad_request", "no such page"),
        ("not_found", "404"),
        ("broken", "HTTP 500"),
        ("busy", "HTTP 503"),
        ("denied", "403"),
        ("page", "text/html"),
        ("empty", "EOF"),
    ] {
        let error = call(&place, tool);
        assert_eq!(
            (&error["status"], &error["error_type"]),
            (&json!("error"), &json!("McpError")),
            "{tool}: {error}"
        );
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(expected) && !message.contains("closed the connection"),
            "{tool}: {message}"
        );
    }
}

fn tools(answer: fn(&Value) -> Answer) -> Output {
    place(&serve(answer)).cog(["mcp", "tools", "web"]).output().unwrap()
}

#[test]
fn server_that_answers_with_an_error_of_http_only_says_which() {
    for (answer, expected) in [
        (
            (|_| ("500 Internal Server Error", "text/html", "<h1>Oops</h1>".to_owned()))
                as fn(&Value) -> Answer,
            "500",
        ),
        (|_| ("404 Not Found", "text/plain", "gone".to_owned()), "404"),
        (|_| ("401 Unauthorized", "text/plain", "who?".to_owned()), "401"),
        (|_| ("200 OK", "text/html", "<h1>Sign in</h1>".to_owned()), "text/html"),
    ] {
        let output = tools(answer);
        let messages = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{messages}");
        assert!(messages.contains(expected) && !messages.contains("both failed"), "{messages}");
    }
}

#[test]
fn two_servers_with_equal_names_are_refused() {
    let place = Place::new();
    place.write(".config/cog/config.toml", "[mcp.a]\ncommand = \"true\"\n[mcp.a]\ncommand = \"false\"\n");
    let output = place.cog(["mcp", "tools"]).output().unwrap();
    assert!(stderr(&output).contains("duplicate key"), "{}", stderr(&output));
}
