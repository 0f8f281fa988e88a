//! The chunks of a run, and the envelope they fold to.

use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use cog_answer::EnvelopeBuilder;
use cog_json::{ToJson as _, Value};
use cog_spec::{Chunk, Envelope};
use futures_core::Stream;
use serde_json::Map;
use tokio::task::yield_now;

use crate::{ClientRules, events::OpenRun};

/// The chunks of one run in order: first a meta chunk, last `final` or an error (SPEC 3.2).
///
/// Dropping the stream cancels the call to the provider.
pub struct ChunkStream {
    /// The future of the run; none once it has finished.
    run: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    queue: ChunkQueue,
    /// Chunks of the run that were not read yet.
    ready: VecDeque<Chunk>,
    /// What reports the end of the run to its listeners.
    open: Option<Box<OpenRun>>,
    /// The rules by which errors are shown.
    client: ClientRules,
}

/// The queue into which a run writes its chunks. All chunks written before the run waits are read at once. A run that writes
/// many waits for the reader, see [`ChunkQueue::make_room`].
#[derive(Clone, Default)]
pub(crate) struct ChunkQueue(Arc<Mutex<QueueState>>);

#[derive(Default)]
struct QueueState {
    chunks: VecDeque<Chunk>,
    /// The media of the input are ready, and the provider is called.
    is_prepared: bool,
}

impl ChunkStream {
    /// Returns the stream of the chunks that a run writes into this queue.
    pub(crate) fn new(queue: ChunkQueue, run: impl Future<Output = ()> + Send + 'static) -> Self {
        let mut ready = VecDeque::new();
        queue.move_to(&mut ready); // chunks written before the run starts come first
        let client = ClientRules::default();
        Self { run: Some(Box::pin(run)), queue, ready, open: None, client }
    }

    /// Sets what reports the end of the run.
    pub(crate) fn observed(self, open: Option<Box<OpenRun>>) -> Self {
        Self { open, ..self }
    }

    /// Sets the rules by which errors are shown.
    pub(crate) fn shown_to(self, client: ClientRules) -> Self {
        Self { client, ..self }
    }

    /// Waits for the next chunk. Returns none after the last.
    pub async fn next(&mut self) -> Option<Chunk> {
        futures_util::StreamExt::next(self).await
    }

    /// Folds the chunks into the envelope of the run (ruling R40).
    pub async fn fold(self) -> Envelope {
        self.fold_with(|_| {}).await
    }

    /// Folds the chunks into the envelope of the run, and shows each one as it arrives.
    pub async fn fold_with(mut self, mut show: impl FnMut(&Chunk)) -> Envelope {
        let mut envelope = EnvelopeBuilder::new();
        while let Some(chunk) = self.next().await {
            show(&chunk);
            envelope.push(chunk);
        }
        envelope.finish()
    }

    /// Waits until the media of the input are ready. The chunks so far stay in the stream. A server waits before it begins its
    /// response, so that these errors have a status.
    ///
    /// # Errors
    /// The envelope of a run that fails before the provider is called (ruling R54).
    pub async fn prepared(mut self) -> Result<Self, Box<Envelope>> {
        poll_fn(|context| self.poll_prepared(context)).await;
        if self.queue.lock().is_prepared { Ok(self) } else { Err(Box::new(self.fold().await)) }
    }

    /// Returns whether the provider is called.
    pub(crate) fn is_prepared(&self) -> bool {
        self.queue.lock().is_prepared
    }

    /// Polls the run without taking its chunks: they stay for the reader, who begins after the response has a status.
    fn poll_prepared(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let is_over = match &mut self.run {
            Some(run) if !self.queue.lock().is_prepared => run.as_mut().poll(context).is_ready(),
            _ => return Poll::Ready(()),
        };
        self.ready.append(&mut self.queue.lock().chunks);
        if is_over {
            self.run = None;
        }
        if is_over || self.queue.lock().is_prepared { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits for chunks, and adds all available ones to the batch. Returns false after the last.
    pub(crate) async fn next_batch(&mut self, batch: &mut Vec<Chunk>) -> bool {
        let Some(first) = self.next().await else { return false };
        batch.push(first);
        while let Some(chunk) = self.take() {
            batch.push(chunk);
        }
        true
    }

    /// Returns the next available chunk.
    fn take(&mut self) -> Option<Chunk> {
        let mut chunk = self.ready.pop_front()?;
        if let Some(open) = &mut self.open {
            open.observe(&chunk);
        }
        // After the listeners, which belong to the operator, and before every reader and the log of the session.
        match &mut chunk {
            Chunk::Error { error, .. } => **error = self.client.shown((**error).clone()),
            Chunk::Snapshot { field: Some(field), data, .. } if field.as_str() == "meta" => {
                self.hide_explain(data);
            }
            _ => {}
        }
        Some(chunk)
    }

    /// Takes the words that only the operator may see out of the meta of a failure, which is sent immediately before its error and
    /// explains it in the same words.
    fn hide_explain(&self, meta: &mut Value) {
        let Some(request_id) = &self.client.request_id else { return };
        let Some(Chunk::Error { error, .. }) = self.ready.front() else { return };
        if !error.is_for_operator() {
            return;
        }
        let message = (**error).clone().for_client(request_id).message;
        let shown: Result<Map<String, serde_json::Value>, _> = serde_json::from_str(&meta.to_json());
        if let Ok(mut shown) = shown {
            shown.insert("explain".to_owned(), message.into());
            *meta = Value::from(serde_json::Value::Object(shown));
        }
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
            stream.queue.move_to(&mut stream.ready);
            if is_over {
                stream.run = None;
            } else if stream.ready.is_empty() {
                return Poll::Pending;
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.ready.len(), None)
    }
}

impl ChunkQueue {
    /// Lets the reader take the chunks if there are many.
    pub(crate) async fn make_room(&self) {
        const MAX_WAITING: usize = 1_024;
        let is_full = self.lock().chunks.len() >= MAX_WAITING;
        if is_full {
            // The reader polls the run: it takes the chunks when the run returns to it once.
            yield_now().await;
        }
    }

    pub(crate) fn push(&self, chunk: Chunk) {
        self.lock().chunks.push_back(chunk);
    }

    /// Records that the provider is called.
    pub(crate) fn set_prepared(&self) {
        self.lock().is_prepared = true;
    }

    /// Swaps buffers with `ready`, which is empty.
    fn move_to(&self, ready: &mut VecDeque<Chunk>) {
        std::mem::swap(&mut self.lock().chunks, ready);
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Extend<Chunk> for ChunkQueue {
    fn extend<T: IntoIterator<Item = Chunk>>(&mut self, chunks: T) {
        let mut chunks = chunks.into_iter();
        if let Some(first) = chunks.next() {
            let mut queue = self.lock();
            queue.chunks.push_back(first);
            queue.chunks.extend(chunks);
        }
    }
}
