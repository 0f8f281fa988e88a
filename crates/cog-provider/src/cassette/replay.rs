use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use base64_simd::STANDARD;
use bytes::Bytes;
use cog_json::{Node, Value};
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, sleep_until};

use super::{
    exchange::{Key, Recorded},
    files::{self, cassette_error},
};
use crate::{
    ProviderError, WireRequest,
    protocol::ProtocolKind,
    transport::{BodyStream, SendFuture, Transport, TransportError, WireReply},
};

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
    all: Vec<(u32, Recorded)>,
    played: AtomicUsize,
}

impl Replies {
    fn next(&self) -> Option<&(u32, Recorded)> {
        let played = self.played.fetch_add(1, Ordering::Relaxed);
        self.all.get(played.checked_rem(self.all.len())?)
    }
}

impl Replayer {
    pub(crate) fn open(directory: PathBuf, pace: Pace) -> Result<Self, ProviderError> {
        let mut replies: HashMap<Key, Replies> = HashMap::new();
        for number in files::numbers(&directory).map_err(|error| cassette_error(&directory, error))? {
            let recorded = recorded(&directory, number)?;
            replies.entry(recorded.key.clone()).or_default().all.push((number, recorded));
        }
        Ok(Self { directory, pace, replies })
    }

    /// Returns the protocol of the recorded requests, if it is one that a setting chooses.
    pub(crate) fn protocol(&self) -> Option<ProtocolKind> {
        let protocol = |key: &Key| match key.endpoint.as_str() {
            "completions" => Some(ProtocolKind::OpenAiChat),
            "responses" => Some(ProtocolKind::OpenAiResponses),
            _ => None,
        };
        self.replies.keys().find_map(protocol)
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

fn recorded(directory: &Path, number: u32) -> Result<Recorded, ProviderError> {
    let path = files::exchange(directory, number);
    let text = files::read(&path).map_err(|error| cassette_error(&path, error))?;
    let value = Value::parse(&text).map_err(|error| cassette_error(&path, error))?;
    Recorded::read(value.node()).ok_or_else(|| {
        cassette_error(&path, "not a valid recording: `path`, `body`, `status` or `reply_headers` is missing")
    })
}

/// Reads the chunks of a reply, each with its arrival time.
fn chunks(directory: &Path, number: u32) -> Result<Vec<(Duration, Bytes)>, ProviderError> {
    let path = files::chunks(directory, number);
    let text = files::read(&path).map_err(|error| cassette_error(&path, error))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let read = |line: &str| chunk(Value::parse(line).ok()?.node());
    lines
        .map(|line| {
            read(line).ok_or_else(|| cassette_error(&path, "a line is not an object with `t_ms` and `b64`"))
        })
        .collect()
}

fn chunk(node: Node<'_>) -> Option<(Duration, Bytes)> {
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
