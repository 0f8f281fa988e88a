//! Arguments and results as they were written.
//!
//! `rmcp` holds both as `serde_json::Value`, which rounds numbers and drops duplicate keys. So they pass through it as text, in an
//! object with one member or as a string. The text enters a message after `rmcp` has written it, and leaves it before `rmcp` reads
//! it.

use std::{borrow::Cow, io, str, sync::Arc};

use cog_json::{Limits, Parser, ToJson as _, Tolerance, Value};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
        DuplexStream, duplex,
    },
    process::ChildStderr,
    task::JoinSet,
};

use crate::shared::Shared;

#[cfg(feature = "server")]
pub(crate) use self::served::{called_with, content, incoming_call, outgoing_result};

/// The member with the text of arguments, or of structured content.
const TEXT: &str = "$cog_text";
/// How an object with this member begins.
const START: &str = r#"{"$cog_text":"#;

/// What stands for the text in a message.
#[derive(Deserialize)]
struct Packed {
    #[serde(rename = "$cog_text")]
    text: String,
}

/// Replaces a part of a message, which must be a slice of it.
fn replace(message: &str, part: &str, text: &str) -> Option<String> {
    let start = part.as_ptr().addr().checked_sub(message.as_ptr().addr())?;
    Some([message.get(..start)?, text, message.get(start + part.len()..)?].concat())
}

// Calls of tools of servers.

/// Returns arguments as `rmcp` holds them. `with_members` adds their members, from which it makes the headers of a request.
pub(crate) fn arguments(arguments: &Value, with_members: bool) -> JsonObject {
    let text = if arguments.is_object() { arguments.to_json() } else { "{}".to_owned() };
    let members = match arguments.to_serde() {
        serde_json::Value::Object(members) if with_members => members,
        _ => JsonObject::new(),
    };
    let members = members.into_iter().filter(|(name, _)| name != TEXT);
    std::iter::once((TEXT.to_owned(), text.into())).chain(members).collect()
}

/// Returns a message to a server with its arguments as they were written.
pub(crate) fn outgoing_call(message: &str) -> Cow<'_, str> {
    expand_call(message).map_or(Cow::Borrowed(message), Cow::Owned)
}

fn expand_call(message: &str) -> Option<String> {
    // JSON has these bytes nowhere else, since a string contains no bare quotation mark.
    let (_, rest) = message.split_at(message.find(START)?);
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Packed>();
    let text = values.next()?.ok()?.text;
    let part = rest.get(..values.byte_offset())?;
    replace(message, part, &text)
}

/// A response, as far as its numbers matter.
#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallResult<'a> {
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
}

/// Returns the text of the structured content in the result of a call.
fn structured_in(message: &str) -> Option<&str> {
    let result = serde_json::from_str::<Response<'_>>(message).ok()?.result?;
    Some(serde_json::from_str::<CallResult<'_>>(result.get()).ok()?.structured?.get())
}

/// Returns a message of a server whose structured content is the string of its text.
pub(crate) fn incoming_result(message: &str) -> Cow<'_, str> {
    structured_in(message)
        .and_then(|text| replace(message, text, &text.to_json()))
        .map_or(Cow::Borrowed(message), Cow::Owned)
}

/// A message of a server, as far as it matters whether `rmcp` can read it.
#[derive(Deserialize)]
struct Incoming<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
}

/// Returns a message of a server as `rmcp` reads it. One that it could not read becomes an error for the call that waits for it,
/// and a batch its messages, one in a line.
pub(crate) fn incoming<'a>(message: &'a str, shared: &Shared) -> Cow<'a, str> {
    let text = message.trim();
    if text.starts_with('[')
        && let Ok(batch) = serde_json::from_str::<Vec<&RawValue>>(text)
    {
        let lines: Vec<_> = batch.into_iter().map(|one| incoming(one.get(), shared)).collect();
        return Cow::Owned(lines.join("\n") + "\n");
    }
    let reason = match serde_json::from_str::<Incoming<'_>>(text) {
        Ok(Incoming { method: Some(method), .. }) => {
            if method == "notifications/tools/list_changed" {
                shared.note_change();
            }
            return Cow::Borrowed(message);
        }
        Ok(Incoming { id: Some(_), jsonrpc: None, .. }) => "it has no member `jsonrpc`".to_owned(),
        // Only the text of a string can still be wrong: half of a surrogate pair.
        Ok(_) if !text.contains("\\u") => return incoming_result(message),
        Ok(_) => match serde_json::from_str::<serde_json::Value>(text) {
            Ok(_) => return incoming_result(message),
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    };
    unreadable(text, text, &reason).map_or(Cow::Borrowed(message), |error| Cow::Owned(error + "\n"))
}

/// Returns an error as the reply to the request of a reply that cannot be read; none if the id of the request is not found.
/// The beginning and the end of the reply may contain it.
fn unreadable(start: &str, end: &str, reason: &str) -> Option<String> {
    if !start.starts_with('{') {
        return None; // a line of a log, which may quote a message
    }
    let id = id_at(start, start.find(ID)).or_else(|| id_at(end, end.rfind(ID)))?;
    let message = format!("the server sent a reply that cannot be read: {reason}").to_json();
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":{message}}}}}"#))
}

const ID: &str = "\"id\":";

fn id_at(text: &str, position: Option<usize>) -> Option<&str> {
    let rest = text.get(position? + ID.len()..)?.trim_start();
    let is_string = rest.starts_with('"');
    let end = match is_string {
        true => rest.get(1..)?.find('"')? + 2,
        false => rest.find(|letter: char| !letter.is_ascii_digit())?,
    };
    rest.get(..end).filter(|id| !id.is_empty())
}

/// Returns structured content from what `rmcp` holds. One with a key that occurs twice in an object stays a string: the model
/// sees all of it.
pub(crate) fn structured(content: serde_json::Value) -> Value {
    match content {
        serde_json::Value::String(text) => parse(&text).unwrap_or_else(|| string(text)),
        other => Value::from(other),
    }
}

/// Returns the result of a tool whose content is text: an object if the text is one, otherwise the text.
pub(crate) fn result(text: String) -> Value {
    parse(&text).filter(Value::is_object).unwrap_or_else(|| string(text))
}

fn string(text: String) -> Value {
    serde_json::Value::String(text).into()
}

/// Parses a string; none if it is not JSON, or an object has a key twice.
fn parse(text: &str) -> Option<Value> {
    let mut parser = Parser::strict(Limits::default());
    parser.push(text.as_bytes(), &mut |_| {}).and_then(|()| parser.finish(&mut |_| {})).ok()?;
    let has_duplicate = parser.deviations().iter().any(|found| found.rule == Tolerance::DuplicateKey);
    parser.into_value().filter(|_| !has_duplicate)
}

// Calls of modules by clients.

#[cfg(feature = "server")]
mod served {
    use super::*;

    /// A request, as far as its numbers matter.
    #[derive(Deserialize)]
    struct Request<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
        #[serde(borrow)]
        params: Option<&'a RawValue>,
    }

    #[derive(Deserialize)]
    struct CallParams<'a> {
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }

    /// Returns a message of a client in which the arguments of a call are the string of their text.
    pub(crate) fn incoming_call(message: &str) -> Cow<'_, str> {
        pack_call(message).map_or(Cow::Borrowed(message), Cow::Owned)
    }

    fn pack_call(message: &str) -> Option<String> {
        let request = serde_json::from_str::<Request<'_>>(message).ok()?;
        let params = request.params.filter(|_| request.method == "tools/call")?;
        let text = serde_json::from_str::<CallParams<'_>>(params.get()).ok()?.arguments?.get();
        // Other values than objects are errors of `rmcp`.
        let packed = text.starts_with('{').then(|| format!("{START}{}}}", text.to_json()))?;
        replace(message, text, &packed)
    }

    /// Returns the arguments of a call from what `rmcp` holds; none if they are nested too deeply. Of a key that occurs twice in
    /// an object, the last one counts.
    pub(crate) fn called_with(arguments: JsonObject) -> Option<Value> {
        let text = match arguments.get(TEXT) {
            Some(serde_json::Value::String(text)) if arguments.len() == 1 => text,
            _ => return Some(Value::from(serde_json::Value::Object(arguments))),
        };
        parse(text)
            .or_else(|| serde_json::from_str::<serde_json::Value>(text).ok().map(Value::from))
            .filter(Value::is_object)
    }

    /// Returns structured content as `rmcp` holds it.
    pub(crate) fn content(text: String) -> serde_json::Value {
        JsonObject::from_iter([(TEXT.to_owned(), text.into())]).into()
    }

    /// Returns a message to a client with its structured content as it was written.
    pub(crate) fn outgoing_result(message: &str) -> Cow<'_, str> {
        expand_result(message).map_or(Cow::Borrowed(message), Cow::Owned)
    }

    fn expand_result(message: &str) -> Option<String> {
        let part = structured_in(message).filter(|part| part.starts_with(START))?;
        let packed = serde_json::from_str::<Packed>(part).ok()?;
        replace(message, part, &packed.text)
    }
}

// The input and output of a program, with each message changed on its way.

/// The maximum size of a message of a server, in bytes.
const MAX_MESSAGE: u64 = 16 << 20;
/// The bytes of a message that wait for their reader.
pub(crate) const BUFFER: usize = 64 << 10;

/// Returns what `rmcp` reads from a program and writes to it. The messages pass in tasks, which end with the connection.
pub(crate) fn verbatim(
    output: impl AsyncRead + Send + Unpin + 'static,
    input: impl AsyncWrite + Send + Unpin + 'static,
    shared: Arc<Shared>,
    tasks: &mut JoinSet<()>,
) -> (DuplexStream, DuplexStream) {
    let (read, from_program) = duplex(BUFFER);
    let (write, to_program) = duplex(BUFFER);
    tasks.spawn(async move {
        let answer = |start: &str, end: &str| {
            let reason = format!("it has more than {} MiB", MAX_MESSAGE >> 20);
            unreadable(start, end, &reason)
        };
        let _ = pass(output, from_program, MAX_MESSAGE, |line| incoming(line, &shared), answer).await;
    });
    tasks.spawn(async move {
        let _ = pass(to_program, input, MAX_MESSAGE, outgoing_call, |_, _| None).await;
    });
    (read, write)
}

/// The bytes at both ends of a message that is too long in which its id is looked for.
const END: usize = 1024;

/// Passes lines on until one of both sides is closed. A line over `limit` bytes is dropped; `answer` returns what replaces it,
/// from its beginning and its end.
pub(crate) async fn pass(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    limit: u64,
    change: impl Fn(&str) -> Cow<'_, str>,
    answer: impl Fn(&str, &str) -> Option<String>,
) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut is_dropping = false;
    let mut start = String::new();
    loop {
        let mut line = Vec::new();
        if (&mut from).take(limit).read_until(b'\n', &mut line).await? == 0 {
            return to.shutdown().await;
        }
        let is_end = line.ends_with(b"\n");
        let is_too_long = !is_end && line.len() as u64 == limit;
        if is_too_long && !is_dropping {
            tracing::error!(limit, "a message of MCP is too long; it is dropped");
            start = String::from_utf8_lossy(line.get(..END).unwrap_or(&line)).into_owned();
        }
        if is_dropping && is_end {
            let end = line.get(line.len().saturating_sub(END)..).unwrap_or_default();
            if let Some(reply) = answer(&start, &String::from_utf8_lossy(end)) {
                to.write_all(format!("{reply}\n").as_bytes()).await?;
                to.flush().await?;
            }
        }
        if !is_dropping && !is_too_long {
            match str::from_utf8(&line) {
                Ok(text) => to.write_all(change(text).as_bytes()).await?,
                Err(_) => to.write_all(&line).await?,
            }
            to.flush().await?;
        }
        is_dropping = (is_dropping || is_too_long) && !is_end;
    }
}

/// Logs what a server writes, in parts of a bounded size, until it closes the stream.
pub(crate) async fn log_stderr(server: String, stderr: ChildStderr, shared: &Shared) {
    let mut stderr = BufReader::new(stderr);
    let mut part = [0_u8; 4096];
    while let Ok(length @ 1..) = stderr.read(&mut part).await {
        let text = String::from_utf8_lossy(part.get(..length).unwrap_or_default());
        for line in text.lines() {
            tracing::debug!(server, "{line}");
            shared.note_line(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolRequestParams, ServerJsonRpcMessage};
    use serde_json::json;

    use super::*;

    const NUMBERS: &str = r#"{"id":12345678901234567890123,"d":3.14159265358979323846,"a":[100.00,{"x":-0.0}],"t":"{\"$cog_text\":\"1\"}"}"#;

    #[test]
    fn arguments_reach_the_server_as_they_were_written() {
        let mut params = CallToolRequestParams::new(r#"{"$cog_text":"x"}"#);
        for with_members in [false, true] {
            params.arguments = Some(arguments(&Value::parse(NUMBERS).unwrap(), with_members));
            assert_eq!(params.arguments.as_ref().unwrap().contains_key("t"), with_members);
            let message =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
            let sent = outgoing_call(&message).into_owned();
            assert!(sent.contains(&format!(r#""arguments":{NUMBERS}"#)), "{sent}");
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&sent).unwrap()["params"]["name"],
                params.name.as_ref()
            );
        }
        for message in [r#"{"method":"a"}"#, r#"{"$cog_text":7}"#, r#"{"$cog_text":"1""#, ""] {
            assert_eq!(outgoing_call(message), message);
        }
    }

    #[test]
    fn structured_content_arrives_as_it_was_written() {
        for text in [NUMBERS, "12345678901234567890123", r#""a""#, "[1.0, 1e5]", r#"{"a": 1, "a": 2}"#] {
            let result = format!(r#"{{"content":[],"structuredContent": {text} ,"isError":false}}"#);
            let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            let read: ServerJsonRpcMessage = serde_json::from_str(&incoming_result(&message)).unwrap();
            let read = serde_json::to_value(read).unwrap();
            let content = structured(read["result"]["structuredContent"].clone());
            let expected =
                if text.contains("a\": 2") { string(text.to_owned()) } else { Value::parse(text).unwrap() };
            assert_eq!(content.to_json(), expected.to_json());
        }
        let others = [
            r#"{"result":{"content":[]}}"#,
            r#"{"method":"structuredContent"}"#,
            "{",
            "",
            r#"{"result":null}"#,
        ];
        for message in others {
            assert_eq!(incoming_result(message), message);
        }
    }

    #[test]
    fn text_with_an_object_is_that_object() {
        assert_eq!(result(NUMBERS.to_owned()).to_json(), NUMBERS);
        for text in ["[1.0]", "1.0", "no JSON", r#"{"a": 1, "a": 2}"#] {
            assert_eq!(result(text.to_owned()), string(text.to_owned()));
        }
    }

    #[cfg(feature = "server")]
    #[test]
    fn arguments_of_a_client_arrive_as_they_were_written() {
        let call = |arguments: &str| {
            format!(r#"{{"id":1,"method":"tools\/call","params":{{"name":"m","arguments": {arguments} }}}}"#)
        };
        for (text, expected) in [(NUMBERS, NUMBERS), (r#"{"a":1,"a":2}"#, r#"{"a":2}"#), ("{}", "{}")] {
            let message = incoming_call(&call(text)).into_owned();
            let message: serde_json::Value = serde_json::from_str(&message).unwrap();
            let held = message["params"]["arguments"].as_object().unwrap().clone();
            assert_eq!(called_with(held).unwrap().to_json(), expected);
        }
        for message in
            [&call("[1]"), &call(NUMBERS).replace("call", "list"), r#"{"method":"tools/call"}"#, "{"]
        {
            assert_eq!(incoming_call(message), message);
        }
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        assert_eq!(
            called_with([(TEXT.to_owned(), json!(format!(r#"{{"a":{deep}}}"#)))].into_iter().collect()),
            None
        );
    }

    #[cfg(feature = "server")]
    #[test]
    fn content_reaches_the_client_as_it_was_written() {
        let message =
            json!({ "id": 1, "result": { "content": [], "structuredContent": content(NUMBERS.to_owned()) } });
        let sent = outgoing_result(&message.to_string()).into_owned();
        assert!(sent.contains(&format!(r#""structuredContent":{NUMBERS}"#)), "{sent}");
        let of_schema =
            json!({ "id": 1, "result": { "tools": [{ "default": content("x".to_owned()) }] } }).to_string();
        assert_eq!(outgoing_result(&of_schema), of_schema, "only in the result of a call");
    }

    #[tokio::test]
    async fn line_that_is_too_long_is_dropped() {
        let long = "x".repeat(usize::try_from(MAX_MESSAGE).unwrap() + 10);
        let text = format!("first\n{long}\nsecond\nthe end");
        let mut passed = Vec::new();
        let answer =
            |start: &str, end: &str| Some(format!("{} {}", &start[..2], &end[end.len() - 3..end.len() - 1]));
        pass(text.as_bytes(), &mut passed, MAX_MESSAGE, |line| Cow::Borrowed(line), answer).await.unwrap();
        assert_eq!(String::from_utf8(passed).unwrap(), "first\nxx xx\nsecond\nthe end");
    }

    #[test]
    fn reply_that_cannot_be_read_is_an_error_for_its_call() {
        let shared = Shared::default();
        let code = |message: &str| {
            let read: serde_json::Value = serde_json::from_str(&incoming(message, &shared)).unwrap();
            (read["id"].clone(), read["error"]["code"].clone())
        };
        let internal = json!(-32603);
        for (message, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"\ud800"}]}}"#, json!(7)),
            (r#"{"id": "a", "result":{"content":[]}}"#, json!("a")),
            (r#"{"result":{"content":[{"text":"x}]},"jsonrpc":"2.0","id":12}"#, json!(12)),
            (r#"{"jsonrpc":"2.0","id":3,"result":{"content":[NaN]}}"#, json!(3)),
        ] {
            assert_eq!(code(message), (id, internal.clone()), "{message}");
        }
        let fine = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"\u00e4"}]}}"#;
        for message in
            [fine, "DEBUG ready", "{not json}", r#"{"jsonrpc":"2.0","method":"x"}"#, "\"x\"", "[1,2]x"]
        {
            assert_eq!(incoming(message, &shared), message);
        }
        assert_eq!(incoming(&format!("[{fine},{fine}]"), &shared), format!("{fine}\n{fine}\n"));
        assert_eq!(
            unreadable(r#"{"result":{"content":[{"text":"xx"#, r#"xx"}]},"id":5}"#, "long").unwrap(),
            r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"the server sent a reply that cannot be read: long"}}"#
        );
    }
}
