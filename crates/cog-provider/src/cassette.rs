//! Cassettes: recorded requests and the raw bytes of their replies (docs/spec/golden-tests.md).
//!
//! A cassette is a directory. `NNNN.json` contains a request and the status and headers of its reply. `NNNN.ndjson`
//! contains the body as one `{"t_ms", "b64"}` object per chunk received.
//! A reply is found by the hash of the request body and the end of the request path, where Gemini names the model.
//! Equal requests get their replies in recorded order, and start over after the last one.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64_simd::STANDARD;
use bytes::Bytes;
use cog_json::{Node, ToJson, Value, Writer};
use cog_spec::Secret;
use futures_util::{StreamExt, stream};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep_until};

use crate::{
    ProviderError, WireRequest,
    protocol::ProtocolKind,
    transport::{BodyStream, REPLY_HEADERS, SendFuture, Transport, TransportError, WireReply},
};

// The provider and model of a cassette.

/// The provider and model that a cassette was recorded from. A replay uses the same provider and model, since both are
/// part of the requests that identify the replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The vendor's name, `openai`.
    pub provider: String,
    /// The name of the model.
    pub model: String,
}

impl Recording {
    /// Reads the provider and model of the cassette in a directory.
    ///
    /// # Errors
    /// Fails if the directory contains no recording, or if the recording does not name its provider and model.
    pub fn read(directory: &Path) -> Result<Self, ProviderError> {
        let numbers = numbers(directory).map_err(|error| cassette_error(directory, error))?;
        let first = numbers
            .first()
            .ok_or_else(|| cassette_error(directory, "the directory contains no recording"))?;
        let path = exchange_file(directory, *first);
        let text = read(&path).map_err(|error| cassette_error(&path, error))?;
        let exchange = Value::parse(&text).map_err(|error| cassette_error(&path, error))?;
        let provider = exchange.get_str("provider");
        let model = exchange.get_str("model");
        let recording = provider
            .zip(model)
            .map(|(provider, model)| Self { provider: provider.to_owned(), model: model.to_owned() });
        recording
            .ok_or_else(|| cassette_error(&path, "not a valid recording: `provider` or `model` is missing"))
    }
}

// Paths and files of a cassette.

/// The maximum size of a file that is read, in bytes.
const MAX_SIZE: u64 = 64 << 20;

/// Creates the directory if it does not exist.
fn create_directory(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)
}

/// Returns the numbers of the recordings in a directory, in order.
fn numbers(directory: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if path.extension().is_some_and(|extension| extension == "json") {
            numbers.extend(stem.and_then(|stem| stem.parse::<u32>().ok()));
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Returns the path of `NNNN.json`, which contains the request and the reply headers.
fn exchange_file(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("{number:04}.json"))
}

/// Returns the path of `NNNN.ndjson`, which contains the reply body.
fn chunks_file(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("{number:04}.ndjson"))
}

/// Creates a new file; never overwrites an existing one.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Reads a text file of at most `MAX_SIZE` bytes.
fn read(path: &Path) -> io::Result<String> {
    // A FIFO or a device would block, or never end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = String::new();
    let file = OpenOptions::new().read(true).open(path)?;
    let length = file.take(MAX_SIZE + 1).read_to_string(&mut text)?;
    if length as u64 > MAX_SIZE {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("the file has more than {MAX_SIZE} bytes"),
        ));
    }
    Ok(text)
}

/// Creates the error for a cassette that cannot be used.
fn cassette_error(path: &Path, message: impl ToString) -> ProviderError {
    ProviderError::Cassette { path: path.to_owned(), message: message.to_string() }
}

// A recorded request and the status and headers of its reply.

/// The contents of `NNNN.json`.
struct Exchange<'a> {
    recording: &'a Recording,
    request: &'a WireRequest,
    /// The keys to mask in the request.
    keys: &'a [Secret],
    status: u16,
    headers: &'a [(&'static str, String)],
}

impl ToJson for Exchange<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("provider", &self.recording.provider);
            w.field("model", &self.recording.model);
            w.field("method", self.request.method);
            w.field("path", path_of(&self.request.url));
            w.key("headers");
            let auth = self.request.auth.as_ref().map(|(name, _)| (*name, "***".to_owned()));
            pairs(w, self.request.headers.iter().chain(&auth));
            let sent = String::from_utf8_lossy(&self.request.body);
            let body = self.keys.iter().fold(sent.clone().into_owned(), |body, key| key.redact(&body));
            match Value::parse(&body) {
                Ok(body) => w.field("body", &body),
                Err(_) => w.field("body", &body),
            };
            // A masked body has another hash than the request that a replay looks for.
            if body != sent {
                w.field("hash", &Key::new(&self.request.url, &self.request.body).hash);
            }
            w.field("status", &self.status);
            w.key("reply_headers");
            pairs(w, self.headers.iter());
        });
    }
}

fn pairs<'a>(w: &mut Writer<'_>, pairs: impl Iterator<Item = &'a (&'static str, String)>) {
    w.object(|w| {
        for (name, value) in pairs {
            w.field(name, value);
        }
    });
}

/// Returns the path and query of a URL. The scheme and host are not stored.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').and_then(|start| rest.get(start..)).unwrap_or("/")
}

/// The request key, status and headers of a recorded reply.
struct RecordedReply {
    key: Key,
    status: u16,
    headers: Vec<(&'static str, String)>,
}

impl RecordedReply {
    fn read(node: Node<'_>) -> Option<Self> {
        let body = node.get("body")?;
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        let mut key = Key::new(node.get("path")?.as_str()?, body.as_bytes());
        key.hash = node.get_str("hash").map_or(key.hash, str::to_owned);
        let headers = node.get("reply_headers")?;
        Some(Self {
            key,
            status: u16::try_from(node.get("status")?.as_u64()?).ok()?,
            headers: REPLY_HEADERS
                .into_iter()
                .filter_map(|name| Some((name, headers.get(name)?.as_str()?.to_owned())))
                .collect(),
        })
    }
}

/// The key under which equal requests are grouped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    /// The end of the path. The rest of the path belongs to the base URL, which may differ.
    endpoint: String,
    /// The SHA-256 of the body, in hexadecimal.
    hash: String,
}

impl Key {
    fn new(path: &str, body: &[u8]) -> Self {
        let endpoint = path.rsplit('/').next().unwrap_or_default().to_owned();
        let hash = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { endpoint, hash }
    }
}

// Masks the operator's keys where a server repeats them.

/// The minimum length of a key that is masked. Shorter keys are placeholders such as `none`, for servers that need no
/// key.
const MIN_LENGTH: usize = 8;

/// Masks several keys.
struct Masks(Vec<Mask>);

impl Masks {
    fn new(keys: &[Secret]) -> Self {
        Self(keys.iter().map(Mask::new).collect())
    }

    /// Adds a chunk and returns the bytes that can be stored now.
    fn mask(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.0.iter_mut().fold(chunk.to_vec(), |bytes, mask| mask.mask(&bytes))
    }

    /// Returns the bytes that were retained. What one mask retained, the next ones have not seen.
    fn take_rest(&mut self) -> Vec<u8> {
        self.0.iter_mut().fold(Vec::new(), |rest, mask| {
            let mut bytes = mask.mask(&rest);
            bytes.append(&mut mask.take_rest());
            bytes
        })
    }

    /// Masks a complete text.
    fn text(mut self, text: &str) -> String {
        let mut bytes = self.mask(text.as_bytes());
        bytes.append(&mut self.take_rest());
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Replaces each byte of a key with `*`, also where the key spans several chunks.
struct Mask {
    key: Vec<u8>,
    /// The last bytes received, which may be the beginning of the key.
    retained: Vec<u8>,
}

impl Mask {
    fn new(key: &Secret) -> Self {
        let key = Some(key.expose()).filter(|key| key.len() >= MIN_LENGTH).unwrap_or_default();
        Self { key: key.as_bytes().to_vec(), retained: Vec::new() }
    }

    /// Adds a chunk and returns the bytes that can be stored now.
    fn mask(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut bytes = self.take_rest();
        bytes.extend_from_slice(chunk);
        if self.key.is_empty() {
            return bytes;
        }
        let mut from = 0;
        while let Some(found) = bytes.get(from..).and_then(|rest| find(rest, &self.key)) {
            let end = from + found + self.key.len();
            if let Some(found_key) = bytes.get_mut(from + found..end) {
                found_key.fill(b'*');
            }
            from = end;
        }
        let partial = (1..self.key.len())
            .rev()
            .find(|length| bytes.ends_with(self.key.get(..*length).unwrap_or_default()));
        self.retained = bytes.split_off(bytes.len() - partial.unwrap_or(0));
        bytes
    }

    /// Returns the bytes that were retained.
    fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.retained)
    }
}

fn find(bytes: &[u8], key: &[u8]) -> Option<usize> {
    bytes.windows(key.len()).position(|window| window == key)
}

/// The reason that a cassette lacks a reply, if it does: the disk may be full. The reply is passed on nevertheless, because it is
/// paid for, so whoever records asks at the end. Clones share the reason.
#[derive(Debug, Clone, Default)]
pub struct RecordingFailure(Arc<OnceLock<ProviderError>>);

impl RecordingFailure {
    /// Returns the first reason.
    pub fn error(&self) -> Option<&ProviderError> {
        self.0.get()
    }

    fn set(&self, file: &Path, error: &io::Error) {
        let _ = self.0.set(cassette_error(file, error));
    }
}

/// A transport that records all traffic of another transport, except the operator's keys.
pub(crate) struct Recorder {
    directory: PathBuf,
    recording: Recording,
    keys: Vec<Secret>,
    next: AtomicU32,
    fault: RecordingFailure,
    inner: Arc<dyn Transport>,
}

impl Recorder {
    /// Creates a recorder that appends to the recordings already in the directory.
    pub(crate) fn new(
        directory: PathBuf,
        recording: Recording,
        keys: Vec<Secret>,
        fault: RecordingFailure,
        inner: Arc<dyn Transport>,
    ) -> Result<Self, ProviderError> {
        create_directory(&directory).map_err(|error| cassette_error(&directory, error))?;
        let numbers = numbers(&directory).map_err(|error| cassette_error(&directory, error))?;
        let next = AtomicU32::new(numbers.last().map_or(1, |last| last + 1));
        Ok(Self { directory, recording, keys, next, fault, inner })
    }

    /// Writes a request and the head of its reply under the next number that no other recorder of the directory has taken.
    fn write_next(&self, request: &WireRequest, reply: &WireReply) -> (u32, io::Result<File>) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            match self.write_exchange(number, request, reply) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                written => return (number, written),
            }
        }
    }

    /// Writes a request and the head of its reply, and returns the file for the body.
    fn write_exchange(&self, number: u32, request: &WireRequest, reply: &WireReply) -> io::Result<File> {
        let headers = reply.headers.iter().map(|(name, value)| (*name, self.mask().text(value)));
        let headers: Vec<_> = headers.collect();
        let exchange = Exchange {
            recording: &self.recording,
            request,
            keys: &self.keys,
            status: reply.status,
            headers: &headers,
        };
        let mut text = exchange.to_json_pretty();
        text.push('\n');
        let path = exchange_file(&self.directory, number);
        let mut file = create(&path)?;
        let written = file.write_all(text.as_bytes());
        let body = written.and_then(|()| create(&chunks_file(&self.directory, number)));
        if body.is_err() {
            // A part of it would make the cassette unusable.
            let _ = fs::remove_file(path);
        }
        body
    }
}

impl Transport for Recorder {
    fn send<'a>(&'a self, request: &'a WireRequest) -> SendFuture<'a> {
        Box::pin(async move {
            let started = Instant::now();
            let reply = self.inner.send(request).await?;
            // Numbered once there is a reply: a request without one would have no file with chunks.
            let (number, written) = self.write_next(request, &reply);
            let exchange = exchange_file(&self.directory, number);
            let file = match written {
                Ok(file) => Some(file),
                Err(error) => {
                    self.fault.set(&exchange, &error);
                    None
                }
            };
            let fault = self.fault.clone();
            let writer = ChunkWriter { file, exchange, fault, mask: self.mask(), started };
            Ok(WireReply { body: writer.copy(reply.body), ..reply })
        })
    }
}

impl Recorder {
    fn mask(&self) -> Masks {
        Masks::new(&self.keys)
    }
}

/// Stores the chunks of one reply as they arrive, so that an interrupted reply is stored up to that point.
struct ChunkWriter {
    /// None once the recording of this reply has failed.
    file: Option<File>,
    /// The file with the request.
    exchange: PathBuf,
    fault: RecordingFailure,
    mask: Masks,
    started: Instant,
}

impl ChunkWriter {
    /// Writes each chunk of a body before it is passed on.
    fn copy(mut self, body: BodyStream) -> BodyStream {
        body.map(move |chunk| {
            let chunk = chunk?;
            let masked = self.mask.mask(&chunk);
            self.write(&masked);
            Ok(chunk)
        })
        .boxed()
    }

    fn write(&mut self, chunk: &[u8]) {
        let Some(file) = self.file.as_mut().filter(|_| !chunk.is_empty()) else { return };
        let mut line = String::new();
        let t_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Writer::compact(&mut line).object(|w| {
            w.field("t_ms", &t_ms);
            w.field("b64", &STANDARD.encode_to_string(chunk));
        });
        line.push('\n');
        if let Err(error) = file.write_all(line.as_bytes()) {
            self.file = None;
            let chunks = self.exchange.with_extension("ndjson");
            self.fault.set(&chunks, &error);
            // A reply that seems complete must not be replayed.
            let _ = fs::remove_file(chunks);
            let _ = fs::remove_file(&self.exchange);
        }
    }
}

/// Writes the retained bytes. They could be the beginning of a key, so they are written only once the reply is over.
impl Drop for ChunkWriter {
    fn drop(&mut self) {
        let rest = self.mask.take_rest();
        self.write(&rest);
    }
}

/// The speed at which a recording is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pace {
    /// Without pauses.
    #[default]
    Immediate,
    /// With the recorded pauses.
    AsRecorded,
}

/// A transport that replies from a cassette.
pub(crate) struct Replayer {
    directory: PathBuf,
    pace: Pace,
    replies: HashMap<Key, Replies>,
}

/// The replies to equal requests, in recorded order.
#[derive(Default)]
struct Replies {
    all: Vec<(u32, RecordedReply)>,
    played: AtomicUsize,
}

impl Replies {
    fn next(&self) -> Option<&(u32, RecordedReply)> {
        // From the first one again after the last: a test that runs twice gets the same replies.
        let played = self.played.fetch_add(1, Ordering::Relaxed);
        self.all.get(played.checked_rem(self.all.len())?)
    }
}

impl Replayer {
    pub(crate) fn open(directory: PathBuf, pace: Pace) -> Result<Self, ProviderError> {
        let mut replies: HashMap<Key, Replies> = HashMap::new();
        for number in numbers(&directory).map_err(|error| cassette_error(&directory, error))? {
            let recorded = recorded(&directory, number)?;
            replies.entry(recorded.key.clone()).or_default().all.push((number, recorded));
        }
        Ok(Self { directory, pace, replies })
    }

    /// Returns the protocol of the recorded requests, if it is one that a setting chooses.
    pub(crate) fn protocol(&self) -> Option<ProtocolKind> {
        let mut kinds = ProtocolKind::ALL.iter().copied();
        kinds.find(|kind| {
            let suffix = kind.protocol().recording_suffix();
            suffix.is_some_and(|suffix| self.replies.keys().any(|key| key.endpoint == suffix))
        })
    }

    /// Returns whether a request was recorded.
    pub(crate) fn has(&self, request: &WireRequest) -> bool {
        self.replies.contains_key(&Key::new(&request.url, &request.body))
    }

    fn find(&self, request: &WireRequest) -> Result<WireReply, ProviderError> {
        let key = Key::new(&request.url, &request.body);
        let Some((number, recorded)) = self.replies.get(&key).and_then(Replies::next) else {
            let hash = key.hash.chars().take(12).collect();
            return Err(ProviderError::NoRecording { directory: self.directory.clone(), hash });
        };
        let chunks = chunks(&self.directory, *number)?;
        Ok(WireReply {
            status: recorded.status,
            headers: recorded.headers.clone(),
            body: play(chunks, self.pace),
        })
    }
}

impl Transport for Replayer {
    fn send<'a>(&'a self, request: &'a WireRequest) -> SendFuture<'a> {
        Box::pin(
            async move { self.find(request).map_err(|error| TransportError::Recording(Box::new(error))) },
        )
    }
}

fn recorded(directory: &Path, number: u32) -> Result<RecordedReply, ProviderError> {
    let path = exchange_file(directory, number);
    let text = read(&path).map_err(|error| cassette_error(&path, error))?;
    let value = Value::parse(&text).map_err(|error| cassette_error(&path, error))?;
    RecordedReply::read(value.node()).ok_or_else(|| {
        cassette_error(&path, "not a valid recording: `path`, `body`, `status` or `reply_headers` is missing")
    })
}

/// Reads the chunks of a reply, each with its arrival time.
fn chunks(directory: &Path, number: u32) -> Result<Vec<(Duration, Bytes)>, ProviderError> {
    let path = chunks_file(directory, number);
    let text = read(&path).map_err(|error| cassette_error(&path, error))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            chunk(line).ok_or_else(|| cassette_error(&path, "a line is not an object with `t_ms` and `b64`"))
        })
        .collect()
}

fn chunk(line: &str) -> Option<(Duration, Bytes)> {
    let value = Value::parse(line).ok()?;
    let node = value.node();
    let time = Duration::from_millis(node.get("t_ms")?.as_u64()?);
    Some((time, STANDARD.decode_to_vec(node.get("b64")?.as_str()?).ok()?.into()))
}

fn play(chunks: Vec<(Duration, Bytes)>, pace: Pace) -> BodyStream {
    let started = Instant::now();
    stream::iter(chunks)
        .then(move |(time, chunk)| async move {
            if pace == Pace::AsRecorded {
                sleep_until(started + time).await;
            }
            Ok(chunk)
        })
        .boxed()
}

#[cfg(test)]
mod mask_tests {
    use super::*;

    const TEXT: &str = r#"{"a": "sk-sk-canary", "b": "sk-can", "c": "sk-canary"}"#;

    #[test]
    fn masks_key_however_the_text_is_split() {
        let key = Secret::new("sk-canary");
        for at in 0..=TEXT.len() {
            let (first, second) = TEXT.as_bytes().split_at(at);
            let mut mask = Mask::new(&key);
            let masked = [mask.mask(first), mask.mask(second), mask.take_rest()].concat();
            assert_eq!(String::from_utf8(masked).unwrap(), TEXT.replace("sk-canary", "*********"), "{at}");
        }
        assert_eq!(Masks::new(&[key]).text("?key=sk-canary sk-"), "?key=********* sk-");
    }

    #[test]
    fn masks_several_keys_however_the_text_is_split() {
        let keys = [Secret::new("sk-canary"), Secret::new("canary-2")];
        let text = "sk-canary canary-2 sk-canary-2 canary-";
        let expected = "********* ******** *********-2 canary-";
        for at in 0..=text.len() {
            let (first, second) = text.as_bytes().split_at(at);
            let mut masks = Masks::new(&keys);
            let masked = [masks.mask(first), masks.mask(second), masks.take_rest()].concat();
            assert_eq!(String::from_utf8(masked).unwrap(), expected, "{at}");
        }
    }

    #[test]
    fn short_key_is_not_masked() {
        for keys in [&[][..], &[Secret::new("none")]] {
            assert_eq!(Masks::new(keys).text("none of these"), "none of these");
        }
    }
}

#[cfg(test)]
mod tests;
