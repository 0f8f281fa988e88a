//! The chunks of a run, and their fold.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use cog_answer::ChunkDirectory;
use cog_spec::{Chunk, Envelope};
use futures_core::Stream;
use futures_util::StreamExt as _;

/// The chunks of one run, in order: a meta chunk first, `final` or an error last (SPEC 3.2).
///
/// Dropping it cancels the call to the provider.
pub struct ChunkStream {
    session_id: String,
    chunks: Pin<Box<dyn Stream<Item = Chunk> + Send>>,
}

impl ChunkStream {
    pub(crate) fn new(session_id: String, chunks: impl Stream<Item = Chunk> + Send + 'static) -> Self {
        Self { session_id, chunks: Box::pin(chunks) }
    }

    /// The session, which every end of the stream names.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// The envelope of the run: its chunks, folded (ruling R40).
    pub async fn fold(mut self) -> Envelope {
        let mut directory = ChunkDirectory::new();
        while let Some(chunk) = self.next().await {
            directory.push(chunk);
        }
        directory.finish()
    }
}

impl Stream for ChunkStream {
    type Item = Chunk;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Chunk>> {
        self.chunks.as_mut().poll_next(context)
    }
}
