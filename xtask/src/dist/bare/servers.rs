//! A name server, a provider that gives one answer, and a client, as small as the check of the program needs them.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

use crate::project::Outcome;

/// The reply of the provider.
const REPLY: &str =
    r#"{"choices": [{"message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}]}"#;

/// What the servers note, shared with their threads. These end with the program.
type Notes = Arc<Mutex<Vec<String>>>;

/// A name server that knows every host: each is this machine.
pub(super) struct Names(Notes);

impl Names {
    pub(super) fn start(address: (&str, u16)) -> Outcome<Self> {
        let socket = UdpSocket::bind(address).map_err(|error| format!("{address:?}: {error}"))?;
        let notes = Notes::default();
        let requested = Arc::clone(&notes);
        thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut question) {
                if let Some((name, answer)) = question.get(..length).and_then(answer) {
                    note(&requested, name);
                    let _ = socket.send_to(&answer, client);
                }
            }
        });
        Ok(Self(notes))
    }

    /// The hosts that were requested, each once.
    pub(super) fn requested(&self) -> Vec<String> {
        let mut requested = notes(&self.0);
        requested.sort();
        requested.dedup();
        requested
    }
}

/// The name in a question of DNS, and the answer: 127.0.0.1 for IPv4, nothing for the rest.
fn answer(question: &[u8]) -> Option<(String, Vec<u8>)> {
    const HEADER: usize = 12;
    let id = question.get(..2)?;
    let body = question.get(HEADER..)?;
    let end = body.iter().position(|byte| *byte == 0)?;
    let record = body.get(..end + 5)?;
    let is_ipv4 = record.get(end + 1..end + 3)? == [0, 1];
    let mut answer = id.to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_ipv4), 0, 0, 0, 0]);
    answer.extend(record);
    if is_ipv4 {
        answer.extend([0xc0, HEADER as u8, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    }
    Some((name(body.get(..end)?)?, answer))
}

/// The labels of a name, joined by dots.
fn name(mut labels: &[u8]) -> Option<String> {
    let mut name = Vec::new();
    while let Some((length, rest)) = labels.split_first() {
        let (label, rest) = rest.split_at_checked(usize::from(*length))?;
        name.push(String::from_utf8_lossy(label));
        labels = rest;
    }
    Some(name.join("."))
}

/// A provider on a free port that gives the same answer to each request.
pub(super) struct Provider {
    pub(super) port: u16,
    calls: Notes,
}

impl Provider {
    pub(super) fn start() -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let calls = Notes::default();
        let notes = Arc::clone(&calls);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if let Some(request) = reply(stream) {
                    note(&notes, request);
                }
            }
        });
        Ok(Self { port, calls })
    }

    pub(super) fn calls(&self) -> usize {
        notes(&self.calls).len()
    }
}

/// Reads a request, and gives the golden answer of the module.
fn reply(mut stream: TcpStream) -> Option<String> {
    let request = request(&mut stream)?;
    let test = include_str!("../../../../modules/code-reviewer/tests/case5.expected.json");
    let test: Value = serde_json::from_str(test).ok()?;
    let answer = test.get("$example")?.to_string();
    let body = REPLY.replace("ANSWER", &Value::from(answer).to_string());
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    write!(stream, "{head}Connection: close\r\n\r\n{body}").ok()?;
    Some(request)
}

/// A request with its body.
fn request(stream: &mut TcpStream) -> Option<String> {
    let (mut request, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let length = stream.read(&mut part).ok().filter(|length| *length > 0)?;
        request.extend(part.get(..length)?);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_lowercase();
        let expected = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= expected.unwrap_or(0) {
            return Some(text.into_owned());
        }
    }
}

/// What a server answers to a request.
pub(super) fn get(address: &str, path: &str) -> Outcome<String> {
    let received = TcpStream::connect(address).and_then(|mut stream| {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    received.map_err(|error| format!("{address}: {error}"))
}

fn note(notes: &Notes, what: String) {
    notes.lock().unwrap_or_else(PoisonError::into_inner).push(what);
}

fn notes(notes: &Notes) -> Vec<String> {
    notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use std::net::ToSocketAddrs as _;

    use super::*;

    #[test]
    fn questions_for_ipv4_are_answered_and_others_are_empty() {
        let question = |kind| {
            [b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x05model\x07example\0\0".as_slice(), &[kind, 0, 1]].concat()
        };
        let (name, ipv4) = answer(&question(1)).unwrap();
        assert_eq!(name, "model.example");
        assert_eq!(ipv4.get(..8).unwrap(), b"\x12\x34\x81\x80\0\x01\0\x01");
        assert!(ipv4.ends_with(&[0, 4, 127, 0, 0, 1]));
        assert_eq!(answer(&question(28)).unwrap().1.get(6..8).unwrap(), [0, 0]);
        assert_eq!(answer(&question(1)[..20]), None);
    }

    #[test]
    fn a_provider_reads_a_request_of_two_parts_and_answers() {
        let provider = Provider::start().unwrap();
        let address = ("127.0.0.1", provider.port).to_socket_addrs().unwrap().next().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nab").unwrap();
        stream.flush().unwrap();
        write!(stream, "cd").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("verdict"), "{answer}");
    }
}
