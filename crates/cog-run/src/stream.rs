//! The chunks of a run, and their fold.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use cog_answer::EnvelopeBuilder;
use cog_spec::{Chunk, Envelope};
use futures_core::Stream;

use crate::observe::RunObserver;

/// The chunks of one run, in order: a meta chunk first, `final` or an error last (SPEC 3.2).
///
/// Dropping it cancels the call to the provider.
pub struct ChunkStream {
    session_id: String,
    /// The run; none once it is over.
    run: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    outlet: Outlet,
    /// What the run gave and nobody has taken yet.
    ready: VecDeque<Chunk>,
    observer: Option<RunObserver>,
}

/// Where a run puts its chunks. All that it gives before it waits is taken at once.
#[derive(Clone, Default)]
pub(crate) struct Outlet(Arc<Mutex<VecDeque<Chunk>>>);

impl ChunkStream {
    /// The chunks that a run puts into this outlet.
    pub(crate) fn new(
        session_id: String,
        outlet: Outlet,
        run: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let mut ready = VecDeque::new();
        outlet.move_to(&mut ready); // what is there already comes first, whatever becomes of the run
        Self { session_id, run: Some(Box::pin(run)), outlet, ready, observer: None }
    }

    /// The same, with its end reported.
    pub(crate) fn observed(self, observer: RunObserver) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// The session, which every end of the stream names.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Waits for the next chunk; none after the last.
    pub async fn next(&mut self) -> Option<Chunk> {
        futures_util::StreamExt::next(self).await
    }

    /// The envelope of the run: its chunks, folded (ruling R40).
    pub async fn fold(mut self) -> Envelope {
        let mut envelope = EnvelopeBuilder::new();
        while let Some(chunk) = self.next().await {
            envelope.push(chunk);
        }
        envelope.finish()
    }

    /// Waits for chunks, and adds all that are there; false after the last.
    pub(crate) async fn next_batch(&mut self, batch: &mut Vec<Chunk>) -> bool {
        let Some(first) = self.next().await else { return false };
        batch.push(first);
        while let Some(chunk) = self.take() {
            batch.push(chunk);
        }
        true
    }

    /// The next chunk that is there.
    fn take(&mut self) -> Option<Chunk> {
        let chunk = self.ready.pop_front()?;
        if let Some(observer) = &mut self.observer {
            observer.look(&chunk);
        }
        Some(chunk)
    }
}

impl Stream for ChunkStream {
    type Item = Chunk;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let stream = &mut *self;
        loop {
            if let Some(chunk) = stream.take() {
                return Poll::Ready(Some(chunk));
            }
            let Some(run) = &mut stream.run else { return Poll::Ready(None) };
            let is_over = run.as_mut().poll(context).is_ready();
            stream.outlet.move_to(&mut stream.ready);
            if is_over {
                stream.run = None;
            } else if stream.ready.is_empty() {
                return Poll::Pending;
            }
        }
    }
}

impl Outlet {
    pub(crate) fn push(&self, chunk: Chunk) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(chunk);
    }

    /// Swaps memory with `ready`, which is empty.
    fn move_to(&self, ready: &mut VecDeque<Chunk>) {
        std::mem::swap(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), ready);
    }
}

impl Extend<Chunk> for Outlet {
    fn extend<T: IntoIterator<Item = Chunk>>(&mut self, chunks: T) {
        let mut chunks = chunks.into_iter();
        if let Some(first) = chunks.next() {
            let mut ready = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            ready.push_back(first);
            ready.extend(chunks);
        }
    }
}
