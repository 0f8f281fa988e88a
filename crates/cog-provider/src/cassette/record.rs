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

use super::{
    Recording,
    exchange::Exchange,
    files::{self, cassette_error},
    mask::Mask,
};
use crate::{
    ProviderError, WireRequest,
    transport::{BodyStream, SendFuture, Transport, TransportError, WireReply},
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
        files::create_directory(&directory).map_err(|error| cassette_error(&directory, error))?;
        let numbers = files::numbers(&directory).map_err(|error| cassette_error(&directory, error))?;
        let next = AtomicU32::new(numbers.last().map_or(1, |last| last + 1));
        Ok(Self { directory, recording, key, next, inner })
    }

    fn write_exchange(&self, number: u32, request: &WireRequest, reply: &WireReply) -> std::io::Result<File> {
        let Self { recording, .. } = self;
        let clean = |(name, value): &(_, String)| (*name, self.mask().text(value));
        let headers: Vec<_> = reply.headers.iter().map(clean).collect();
        let exchange = Exchange { recording, request, status: reply.status, headers: &headers };
        let mut text = exchange.to_json_pretty();
        text.push('\n');
        files::create(&files::exchange(&self.directory, number))?.write_all(text.as_bytes())?;
        files::create(&files::chunks(&self.directory, number))
    }
}

impl Transport for Recorder {
    fn send<'a>(&'a self, request: &'a WireRequest) -> SendFuture<'a> {
        Box::pin(async move {
            let started = Instant::now();
            let reply = self.inner.send(request).await?;
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let file = self.write_exchange(number, request, &reply).map_err(|error| self.failed(error))?;
            let writer = ChunkWriter { file, directory: self.directory.clone(), mask: self.mask(), started };
            Ok(WireReply { body: writer.copy(reply.body), ..reply })
        })
    }
}

impl Recorder {
    fn mask(&self) -> Mask {
        Mask::new(self.key.as_ref())
    }

    fn failed(&self, error: std::io::Error) -> TransportError {
        TransportError::Recording(Box::new(cassette_error(&self.directory, error)))
    }
}

/// Stores the chunks of one reply as they arrive, so that an interrupted reply is stored up to that point.
struct ChunkWriter {
    file: File,
    directory: PathBuf,
    mask: Mask,
    started: Instant,
}

impl ChunkWriter {
    /// Writes each chunk of a body before it is passed on.
    fn copy(mut self, body: BodyStream) -> BodyStream {
        body.map(move |chunk| {
            let chunk = chunk?;
            let masked = self.mask.mask(&chunk);
            let written = self.write(&masked);
            written.map_err(|error| {
                TransportError::Recording(Box::new(cassette_error(&self.directory, error)))
            })?;
            Ok(chunk)
        })
        .boxed()
    }

    fn write(&mut self, chunk: &[u8]) -> std::io::Result<()> {
        if chunk.is_empty() {
            return Ok(());
        }
        let mut line = String::new();
        let t_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Writer::compact(&mut line).object(|w| {
            w.field("t_ms", &t_ms);
            w.field("b64", &STANDARD.encode_to_string(chunk));
        });
        line.push('\n');
        self.file.write_all(line.as_bytes())
    }
}

/// Writes the retained bytes. They could be the beginning of a key, so they are written only once the reply is over.
impl Drop for ChunkWriter {
    fn drop(&mut self) {
        let rest = self.mask.take_rest();
        let _ = self.write(&rest);
    }
}
