//! A vendor that speaks OpenAI's wire form, as quick as can be. What it answers is chosen by the name of the model:
//!
//! - `whole`: the answer in one write.
//! - `paced-N-MS`: N deltas with so many milliseconds between them. Each delta begins with the time at which it left.
//! - `events`: an answer of 2 KB in 134 deltas of sixteen characters, each an HTTP chunk, all of them in one write.
//! - `body`: the same deltas in one body of known length, in one write.
//! - `flood-N`: N deltas of sixteen bytes, each a write.
//! - `idle`: one delta, then nothing until the client goes.
//! - `broken`: the status 500.
//! - `tool`: a call of the tool `load`, and the whole answer to its result.

use std::{
    io::{Error, Result},
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::http::find;

/// The answer of the model `whole`, as the envelope's data.
pub(crate) const DATA: &str =
    r#"{"rationale":"Two words were found, and both are short.","text":"nothing to add"}"#;
/// How many events the answer of the models `events` and `body` has; behind them come the reason, the usage and the mark
/// of the end.
pub(crate) const EVENTS: usize = 134;
/// How many characters each of them has.
const EVENT: usize = 16;
/// How many bytes the time at the beginning of a delta takes: microseconds since the start.
pub(crate) const STAMP: usize = 15;

const META: &str = r#"{"confidence":0.93,"risk":"low","explain":"Short and clear."}"#;
const END: &str = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"load\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
    data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"load\",\"choices\":[],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":30,\"total_tokens\":50}}\n\n\
    data: [DONE]\n\n";

/// The mock, in a thread of its own; it lives as long as the process.
#[derive(Clone)]
pub(crate) struct Mock {
    pub(crate) address: SocketAddr,
    calls: Arc<AtomicU64>,
    started: Instant,
}

impl Mock {
    /// Starts it; `pin` is called in its thread.
    pub(crate) fn start(pin: impl FnOnce() + Send + 'static) -> Result<Self> {
        let (send, receive) = std::sync::mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::spawn(move || {
            pin();
            runtime.block_on(async {
                // Tokio's listener takes a crowd that comes at once; the standard library's keeps most of it waiting.
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
                let address = listener.local_addr()?;
                let mock = Self { address, calls: Arc::default(), started: Instant::now() };
                send.send(mock.clone()).map_err(Error::other)?;
                mock.serve(listener).await
            })
        });
        receive.recv().map_err(Error::other)
    }

    /// The number of requests so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Microseconds since it was started.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    async fn serve(self, listener: TcpListener) -> Result<()> {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            connections.spawn(self.clone().converse(stream));
            while connections.try_join_next().is_some() {}
        }
    }

    /// Answers one request after another.
    async fn converse(self, mut stream: TcpStream) -> Result<()> {
        let mut buffer = Vec::with_capacity(4096);
        let (whole, events, body) = (whole(), in_chunks(), in_one_body());
        loop {
            let request = request(&mut stream, &mut buffer).await?;
            let Some(request) = request else { return Ok(()) };
            self.calls.fetch_add(1, Ordering::SeqCst);
            match Script::of(&request) {
                Script::Whole => stream.write_all(&whole).await?,
                Script::Events => stream.write_all(&events).await?,
                Script::Body => stream.write_all(&body).await?,
                Script::Broken => stream.write_all(BROKEN).await?,
                Script::Tool if find(&request, br#""role":"tool""#).is_some() => {
                    stream.write_all(&whole).await?;
                }
                Script::Tool => stream.write_all(&tool_call()).await?,
                script => self.write_script(&mut stream, script).await?,
            }
        }
    }

    async fn write_script(&self, stream: &mut TcpStream, script: Script) -> Result<()> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await?;
        let opening = format!(r#"{{"ok":true,"meta":{META},"data":{{"rationale":"Paced.","text":""#);
        send(stream, &delta(&opening)).await?;
        match script {
            Script::Idle => return wait_for_the_end(stream).await,
            Script::Flood { deltas } => {
                let piece = delta("sixteen bytes ok");
                for _ in 0..deltas {
                    send(stream, &piece).await?;
                }
            }
            Script::Paced { deltas, pause } => {
                let mut ticks = tokio::time::interval(pause);
                for _ in 0..deltas {
                    ticks.tick().await;
                    send(stream, &delta(&format!("{:0width$}|", self.now(), width = STAMP))).await?;
                }
            }
            Script::Whole | Script::Events | Script::Body | Script::Broken | Script::Tool => {}
        }
        send(stream, &delta(r#""},"error":null}"#)).await?;
        send(stream, END).await?;
        stream.write_all(b"0\r\n\r\n").await
    }
}

/// What a request asks for.
enum Script {
    Whole,
    Events,
    Body,
    Paced { deltas: u64, pause: Duration },
    Flood { deltas: u64 },
    Idle,
    Broken,
    Tool,
}

impl Script {
    fn of(request: &[u8]) -> Self {
        const KEY: &[u8] = br#""model":""#;
        let name = find(request, KEY).and_then(|at| request.get(at + KEY.len()..)).unwrap_or_default();
        let name = name.split(|byte| *byte == b'"').next().map(String::from_utf8_lossy).unwrap_or_default();
        let mut parts = name.split('-');
        let kind = parts.next().unwrap_or_default().to_owned();
        let mut number = || parts.next().and_then(|number| number.parse().ok()).unwrap_or(1);
        match kind.as_str() {
            "paced" => Self::Paced { deltas: number(), pause: Duration::from_millis(number()) },
            "flood" => Self::Flood { deltas: number() },
            "idle" => Self::Idle,
            "events" => Self::Events,
            "body" => Self::Body,
            "broken" => Self::Broken,
            "tool" => Self::Tool,
            _ => Self::Whole,
        }
    }
}

/// The body of the next request; none once the client has gone.
async fn request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Option<Vec<u8>>> {
    loop {
        if let Some(end) = find(buffer, b"\r\n\r\n") {
            let length = length(buffer.get(..end).unwrap_or_default());
            if buffer.len() >= end + 4 + length {
                let body = buffer.get(end + 4..end + 4 + length).unwrap_or_default().to_vec();
                buffer.drain(..end + 4 + length);
                return Ok(Some(body));
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

fn length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

async fn wait_for_the_end(stream: &mut TcpStream) -> Result<()> {
    let mut ignored = [0; 16];
    stream.read(&mut ignored).await.map(drop)
}

/// One chunk of the body in one write.
async fn send(stream: &mut TcpStream, text: &str) -> Result<()> {
    stream.write_all(chunk(text).as_bytes()).await
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn whole() -> Vec<u8> {
    let text = format!(r#"{{"ok":true,"meta":{META},"data":{DATA},"error":null}}"#);
    of_known_length(&format!("{}{END}", delta(&text)))
}

const BROKEN: &[u8] = b"HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n";

fn tool_call() -> Vec<u8> {
    const CALL: &str = r#"data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"load","choices":[{"index":0,"delta":{"tool_calls":[
        {"index":0,"id":"call_1","type":"function","function":{"name":"load","arguments":"{\"text\":\"two words\"}"}}]},"finish_reason":null}]}"#;
    let end = END.replace(r#""finish_reason":"stop""#, r#""finish_reason":"tool_calls""#);
    of_known_length(&format!("{}\n\n{end}", CALL.replace('\n', "")))
}

fn of_known_length(body: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length:";
    format!("{head} {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The data of the answer of the models `events` and `body`.
pub(crate) fn data_of_events() -> String {
    const SENTENCE: &str = "It is short, and says what there is to say. ";
    let around = format!(r#"{{"ok":true,"meta":{META},"data":{},"error":null}}"#, data(""));
    let text: String = SENTENCE.chars().cycle().take(EVENTS * EVENT - around.len()).collect();
    data(&text)
}

fn data(text: &str) -> String {
    format!(r#"{{"rationale":"{text}","text":"nothing to add"}}"#)
}

/// The events of that answer.
fn events() -> impl Iterator<Item = String> {
    let text = format!(r#"{{"ok":true,"meta":{META},"data":{},"error":null}}"#, data_of_events());
    let letters: Vec<char> = text.chars().collect();
    let events: Vec<String> =
        letters.chunks(EVENT).map(|piece| delta(&piece.iter().collect::<String>())).collect();
    assert_eq!(events.len(), EVENTS, "as the name of the scenario says");
    events.into_iter()
}

fn in_chunks() -> Vec<u8> {
    let body: String = events().chain([END.to_owned()]).map(|event| chunk(&event)).collect();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    format!("{head}{body}0\r\n\r\n").into_bytes()
}

fn in_one_body() -> Vec<u8> {
    of_known_length(&events().chain([END.to_owned()]).collect::<String>())
}

/// One event with this text.
fn delta(text: &str) -> String {
    let text = text.replace('"', "\\\"");
    format!(
        "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"load\",\
         \"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
    )
}
