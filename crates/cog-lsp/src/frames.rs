//! The messages of the protocol as bytes: a header with `Content-Length`, and JSON.
//!
//! The library stops reading at the first message that it cannot parse. So each message is checked before it gets there; what it
//! could not parse is answered here.

use std::{io, pin::pin};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::mpsc::{Receiver, Sender},
};
use tower_lsp_server::jsonrpc::{Request, Response};

/// The maximum size of a message, in bytes: a document of 1 MB is far smaller, with all its escapes.
const MAX_BODY: u64 = 32 << 20;
/// The maximum size of a line of a header; a longer one is read in parts.
const MAX_LINE: u64 = 8 << 10;
const LENGTH: &[u8] = b"content-length:";

/// The codes of JSON-RPC.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;

/// Passes on each message that can be parsed, and answers the others, until the input ends or nobody reads the messages.
pub(crate) async fn pass_in(
    input: impl AsyncRead + Unpin,
    mut server: impl AsyncWrite + Unpin,
    refusals: Sender<Vec<u8>>,
) {
    let mut frames = Frames::new(input);
    while let Ok(Some(frame)) = frames.next().await {
        let sent = match frame.and_then(checked) {
            Ok(body) => write(&mut server, &body).await.is_ok(),
            Err(refusal) => refusals.send(refusal.to_json()).await.is_ok(),
        };
        if !sent {
            return;
        }
    }
}

/// Writes the messages of the server and the answers to messages that did not reach it, until the server ends.
pub(crate) async fn pass_out(
    server: impl AsyncRead + Unpin,
    mut refusals: Receiver<Vec<u8>>,
    mut output: impl AsyncWrite + Unpin,
) {
    let mut frames = Frames::new(server);
    loop {
        let frame = {
            // Kept while refusals are written: it may have read a part of a message.
            let mut next = pin!(frames.next());
            loop {
                tokio::select! {
                    biased;
                    Some(refusal) = refusals.recv() => {
                        if write(&mut output, &refusal).await.is_err() {
                            return;
                        }
                    }
                    frame = &mut next => break frame,
                }
            }
        };
        let Ok(Some(Ok(body))) = frame else { return };
        if write(&mut output, &body).await.is_err() {
            return;
        }
    }
}

async fn write(output: &mut (impl AsyncWrite + Unpin), body: &[u8]) -> io::Result<()> {
    output.write_all(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes()).await?;
    output.write_all(body).await?;
    output.flush().await
}

/// Why a message does not reach the server.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: i32,
    message: String,
    /// The request that is answered; null if it cannot be read.
    id: Value,
}

impl Refusal {
    fn parse(message: impl Into<String>) -> Self {
        Self { code: PARSE_ERROR, message: message.into(), id: Value::Null }
    }

    fn to_json(&self) -> Vec<u8> {
        let Self { code, message, id } = self;
        let error = json!({ "jsonrpc": "2.0", "error": { "code": code, "message": message }, "id": id });
        error.to_string().into_bytes()
    }
}

/// Returns a body that the library can parse.
fn checked(body: Vec<u8>) -> Result<Vec<u8>, Refusal> {
    let is_request = serde_json::from_slice::<Request>(&body).is_ok();
    if std::str::from_utf8(&body).is_ok() && (is_request || serde_json::from_slice::<Response>(&body).is_ok())
    {
        return Ok(body);
    }
    let members = match serde_json::from_slice(&body) {
        Ok(Value::Object(members)) => members,
        Ok(_) => return Err(Refusal::parse("the message is not an object of JSON-RPC")),
        Err(error) => return Err(Refusal::parse(format!("the message is not JSON: {error}"))),
    };
    let id = members.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    let message = "the message is neither a request nor a response of JSON-RPC 2.0".to_owned();
    Err(Refusal { code: INVALID_REQUEST, message, id: id.unwrap_or_default() })
}

/// The bodies of a stream of messages. After something else, it continues with the next header that has a length.
struct Frames<R> {
    input: BufReader<R>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    fn new(input: R) -> Self {
        Self { input: BufReader::new(input) }
    }

    /// Returns the next body, or why there is none; nothing at the end of the input.
    async fn next(&mut self) -> io::Result<Option<Result<Vec<u8>, Refusal>>> {
        let mut length = None;
        let mut is_garbled = false; // whether something precedes the empty line
        loop {
            let Some(line) = self.line().await? else { return Ok(None) };
            let line = line.trim_ascii();
            match (line.is_empty(), length) {
                (true, Some(length)) => return self.body(length).await,
                (true, None) if is_garbled => {
                    return Ok(Some(Err(Refusal::parse("the header has no valid Content-Length"))));
                }
                (true, None) => {}
                (false, _) => {
                    length = length_in(line).or(length);
                    is_garbled = true;
                }
            }
        }
    }

    /// Returns the next line with its end; a part of one that is too long.
    async fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        (&mut self.input).take(MAX_LINE).read_until(b'\n', &mut line).await?;
        Ok(Some(line).filter(|line| !line.is_empty()))
    }

    async fn body(&mut self, length: u64) -> io::Result<Option<Result<Vec<u8>, Refusal>>> {
        let mut rest = (&mut self.input).take(length);
        if length > MAX_BODY {
            let skipped = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
            let refusal = Refusal::parse(format!("the message is larger than {MAX_BODY} bytes"));
            return Ok(Some(Err(refusal)).filter(|_| skipped == length));
        }
        let mut body = Vec::new();
        let read = rest.read_to_end(&mut body).await?;
        Ok(Some(Ok(body)).filter(|_| read as u64 == length))
    }
}

/// Returns the length that a line of a header sets.
fn length_in(line: &[u8]) -> Option<u64> {
    // The rest of a message whose length was too small precedes the next header on its line.
    let at = line.windows(LENGTH.len()).rposition(|window| window.eq_ignore_ascii_case(LENGTH))?;
    let number = line.get(at + LENGTH.len()..)?.trim_ascii();
    std::str::from_utf8(number).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &[u8]) -> Vec<Result<String, i32>> {
        let mut frames = Frames::new(input);
        let mut found = Vec::new();
        while let Some(frame) = frames.next().await.unwrap() {
            let frame = frame.and_then(checked);
            found.push(frame.map(|body| String::from_utf8(body).unwrap()).map_err(|refusal| refusal.code));
        }
        found
    }

    const GOOD: &str = r#"{"jsonrpc":"2.0","method":"a"}"#;

    fn framed(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn message_after_a_broken_one_is_read() {
        let good = framed(GOOD);
        let broken: [(&str, i32); 8] = [
            (&framed("{\"id\": "), PARSE_ERROR),
            (&framed(""), PARSE_ERROR),
            (&framed("[1]"), PARSE_ERROR),
            (&framed(r#"{"jsonrpc": "1.0", "id": 3, "method": "a"}"#), INVALID_REQUEST),
            ("Content-Length: many\r\n\r\n", PARSE_ERROR),
            ("Content-Type: application/json\r\n\r\n", PARSE_ERROR),
            ("hello\r\n\r\n", PARSE_ERROR),
            // The length is too small: the rest of the message is skipped.
            ("Content-Length: 9\r\n\r\n{\"jsonrpc\": \"2.0\"}", PARSE_ERROR),
        ];
        for (broken, code) in broken {
            let found = all(format!("{good}{broken}{good}").as_bytes()).await;
            assert_eq!(found, [Ok(GOOD.to_owned()), Err(code), Ok(GOOD.to_owned())], "{broken}");
        }
        let not_utf8 = [good.as_bytes(), b"Content-Length: 3\r\n\r\n\"\xff\"", good.as_bytes()].concat();
        assert_eq!(all(&not_utf8).await.len(), 3);
    }

    #[tokio::test]
    async fn header_is_read_as_editors_write_it() {
        let length = GOOD.len();
        let typed = format!(
            "content-length: {length}\r\nContent-Type: application/vscode-jsonrpc\r\n\r\n{GOOD}\r\n\r\n"
        );
        assert_eq!(all(typed.as_bytes()).await, [Ok(GOOD.to_owned())]);
        let reversed = format!("Content-Type: a; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{GOOD}");
        assert_eq!(all(reversed.as_bytes()).await, [Ok(GOOD.to_owned())]);
    }

    #[tokio::test]
    async fn message_that_is_too_large_is_skipped_without_keeping_it() {
        let length = MAX_BODY + 1;
        let large = tokio::io::repeat(b'x').take(length);
        let head = format!("Content-Length: {length}\r\n\r\n");
        let input = head.as_bytes().chain(large).chain(GOOD_FRAME.as_bytes());
        let mut frames = Frames::new(input);
        assert!(frames.next().await.unwrap().unwrap().is_err());
        assert_eq!(frames.next().await.unwrap().unwrap().unwrap(), b"{}");
    }

    const GOOD_FRAME: &str = "Content-Length: 2\r\n\r\n{}";

    #[tokio::test]
    async fn input_that_ends_within_a_message_ends() {
        for cut in
            ["Content-Length: 5\r\n\r\n{", "Content-Length: 5\r\n", "Content-Length: 99999999999\r\n\r\n{"]
        {
            assert!(all(cut.as_bytes()).await.is_empty(), "{cut}");
        }
    }
}
