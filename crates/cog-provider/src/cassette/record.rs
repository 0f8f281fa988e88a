use std::{
    fs::File,
    io::Write,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use base64_simd::STANDARD;
use cog_json::{ToJson, Writer};
use cog_spec::Secret;
use futures_util::StreamExt;
use tokio::time::Instant;

use super::{Head, Recording, files, mask::Mask, unusable};
use crate::{
    ProviderError, WireRequest,
    transport::{Pieces, Sending, Transport, TransportError, WireReply},
};

/// A transport that records all traffic of another transport, except the key.
pub(crate) struct Recorder {
    directory: PathBuf,
    recording: Recording,
    key: Option<Secret>,
    next: AtomicU32,
    inner: Arc<dyn Transport>,
}

impl Recorder {
    /// Creates a recorder that appends to the recordings already in the directory.
    pub(crate) fn new(
        directory: PathBuf,
        recording: Recording,
        key: Option<Secret>,
        inner: Arc<dyn Transport>,
    ) -> Result<Self, ProviderError> {
        files::make_directory(&directory).map_err(|error| unusable(&directory, error))?;
        let numbers = files::numbers(&directory).map_err(|error| unusable(&directory, error))?;
        let next = AtomicU32::new(numbers.last().map_or(1, |last| last + 1));
        Ok(Self { directory, recording, key, next, inner })
    }

    fn keep_head(&self, number: u32, request: &WireRequest, reply: &WireReply) -> std::io::Result<File> {
        let Self { recording, .. } = self;
        let clean = |(name, value): &(_, String)| (*name, self.mask().text(value));
        let headers: Vec<_> = reply.headers.iter().map(clean).collect();
        let head = Head { recording, request, status: reply.status, headers: &headers };
        let mut text = head.to_json_pretty();
        text.push('\n');
        files::create(&files::head(&self.directory, number))?.write_all(text.as_bytes())?;
        files::create(&files::pieces(&self.directory, number))
    }
}

impl Transport for Recorder {
    fn send<'a>(&'a self, request: &'a WireRequest) -> Sending<'a> {
        Box::pin(async move {
            let started = Instant::now();
            let reply = self.inner.send(request).await?;
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let file = self.keep_head(number, request, &reply).map_err(|error| self.failed(error))?;
            let keeper = Keeper { file, directory: self.directory.clone(), mask: self.mask(), started };
            Ok(WireReply { pieces: keeper.through(reply.pieces), ..reply })
        })
    }
}

impl Recorder {
    fn mask(&self) -> Mask {
        Mask::new(self.key.as_ref())
    }

    fn failed(&self, error: std::io::Error) -> TransportError {
        TransportError::Recording(Box::new(unusable(&self.directory, error)))
    }
}

/// Stores the chunks of one reply as they arrive, so that an interrupted reply is stored up to that point.
struct Keeper {
    file: File,
    directory: PathBuf,
    mask: Mask,
    started: Instant,
}

impl Keeper {
    fn through(mut self, pieces: Pieces) -> Pieces {
        pieces
            .map(move |piece| {
                let piece = piece?;
                let known = self.mask.pass(&piece);
                let kept = self.keep(&known);
                kept.map_err(|error| TransportError::Recording(Box::new(unusable(&self.directory, error))))?;
                Ok(piece)
            })
            .boxed()
    }

    fn keep(&mut self, piece: &[u8]) -> std::io::Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let mut line = String::new();
        let t_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Writer::compact(&mut line).object(|w| {
            w.field("t_ms", &t_ms);
            w.field("b64", &STANDARD.encode_to_string(piece));
        });
        line.push('\n');
        self.file.write_all(line.as_bytes())
    }
}

/// Writes the held bytes. They could be the beginning of a key, so they are written only once the reply is over.
impl Drop for Keeper {
    fn drop(&mut self) {
        let rest = self.mask.rest();
        let _ = self.keep(&rest);
    }
}
