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

use super::{Key, Pace, Recorded, files, unusable};
use crate::{
    ProviderError, WireRequest,
    transport::{Pieces, Sending, Transport, TransportError, WireReply},
};

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
        for number in files::numbers(&directory).map_err(|error| unusable(&directory, error))? {
            let recorded = recorded(&directory, number)?;
            replies.entry(recorded.key.clone()).or_default().all.push((number, recorded));
        }
        Ok(Self { directory, pace, replies })
    }

    fn find(&self, request: &WireRequest) -> Result<WireReply, ProviderError> {
        let key = Key::new(&request.url, &request.body);
        let Some((number, recorded)) = self.replies.get(&key).and_then(Replies::next) else {
            let hash = key.hash.chars().take(12).collect();
            return Err(ProviderError::NoRecording { directory: self.directory.clone(), hash });
        };
        let pieces = pieces(&self.directory, *number)?;
        Ok(WireReply {
            status: recorded.status,
            headers: recorded.headers.clone(),
            pieces: play(pieces, self.pace),
        })
    }
}

impl Transport for Replayer {
    fn send<'a>(&'a self, request: &'a WireRequest) -> Sending<'a> {
        Box::pin(
            async move { self.find(request).map_err(|error| TransportError::Recording(Box::new(error))) },
        )
    }
}

fn recorded(directory: &Path, number: u32) -> Result<Recorded, ProviderError> {
    let path = files::head(directory, number);
    let text = files::read(&path).map_err(|error| unusable(&path, error))?;
    let value = Value::parse(&text).map_err(|error| unusable(&path, error))?;
    Recorded::read(value.node())
        .ok_or_else(|| unusable(&path, "no recording: path, body, status or reply_headers are missing"))
}

/// Reads the chunks of a reply, each with its arrival time.
fn pieces(directory: &Path, number: u32) -> Result<Vec<(Duration, Bytes)>, ProviderError> {
    let path = files::pieces(directory, number);
    let text = files::read(&path).map_err(|error| unusable(&path, error))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let read = |line: &str| piece(Value::parse(line).ok()?.node());
    lines.map(|line| read(line).ok_or_else(|| unusable(&path, "a line is not {t_ms, b64}"))).collect()
}

fn piece(node: Node<'_>) -> Option<(Duration, Bytes)> {
    let time = Duration::from_millis(node.get("t_ms")?.as_u64()?);
    Some((time, STANDARD.decode_to_vec(node.get("b64")?.as_str()?).ok()?.into()))
}

fn play(pieces: Vec<(Duration, Bytes)>, pace: Pace) -> Pieces {
    let started = Instant::now();
    stream::iter(pieces)
        .then(move |(time, piece)| async move {
            if pace == Pace::AsRecorded {
                sleep_until(started + time).await;
            }
            Ok(piece)
        })
        .boxed()
}
