use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64_simd::STANDARD;
use bytes::Bytes;
use cog_json::{ToJson, Value, Writer};
use cog_spec::Secret;
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, sleep_until};

use super::{Exchange, Key, Masks, RecordedReply, Recording, cassette_error};
use crate::{
    ProviderError, WireRequest, cassette,
    protocol::ProtocolKind,
    transport::{BodyStream, SendFuture, Transport, TransportError, WireReply},
};

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
        cassette::create_directory(&directory).map_err(|error| cassette_error(&directory, error))?;
        let numbers = cassette::numbers(&directory).map_err(|error| cassette_error(&directory, error))?;
        let next = AtomicU32::new(numbers.last().map_or(1, |last| last + 1));
        Ok(Self { directory, recording, keys, next, fault, inner })
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
        let path = cassette::exchange(&self.directory, number);
        let mut file = cassette::create(&path)?;
        let written = file.write_all(text.as_bytes());
        let body = written.and_then(|()| cassette::create(&cassette::chunks(&self.directory, number)));
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
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let exchange = cassette::exchange(&self.directory, number);
            let file = match self.write_exchange(number, request, &reply) {
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
        for number in cassette::numbers(&directory).map_err(|error| cassette_error(&directory, error))? {
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
    let path = cassette::exchange(directory, number);
    let text = cassette::read(&path).map_err(|error| cassette_error(&path, error))?;
    let value = Value::parse(&text).map_err(|error| cassette_error(&path, error))?;
    RecordedReply::read(value.node()).ok_or_else(|| {
        cassette_error(&path, "not a valid recording: `path`, `body`, `status` or `reply_headers` is missing")
    })
}

/// Reads the chunks of a reply, each with its arrival time.
fn chunks(directory: &Path, number: u32) -> Result<Vec<(Duration, Bytes)>, ProviderError> {
    let path = cassette::chunks(directory, number);
    let text = cassette::read(&path).map_err(|error| cassette_error(&path, error))?;
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
