//! The ends of runs.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use cog_json::{Node, Value};
use cog_module::Module;
use cog_spec::{Chunk, Envelope, Usage};
use futures_core::Stream;
use futures_util::StreamExt as _;

use super::{Ended, Observer, RunOutcome};
use crate::ChunkStream;

/// A run whose end is told: its last chunk, or that it was refused before the provider was asked.
pub(crate) fn observed(
    run: Result<ChunkStream, Box<Envelope>>,
    module: &Arc<Module>,
    observer: &Arc<dyn Observer>,
) -> Result<ChunkStream, Box<Envelope>> {
    match run {
        Ok(chunks) => Ok(watched(chunks, Arc::clone(module), Arc::clone(observer))),
        Err(refused) => {
            if let Some(error) = refused.error() {
                let module = &module.manifest.name;
                let outcome = RunOutcome::Failed(&error.code);
                observer.ended(&Ended {
                    module,
                    outcome,
                    usage: None,
                    attempts: 0,
                    repairs: 0,
                    fallbacks: &[],
                });
            }
            Err(refused)
        }
    }
}

fn watched(chunks: ChunkStream, module: Arc<Module>, observer: Arc<dyn Observer>) -> ChunkStream {
    let session_id = chunks.session_id().to_owned();
    ChunkStream::new(session_id, Watched { chunks, module, observer, meta: None, has_ended: false })
}

struct Watched {
    chunks: ChunkStream,
    module: Arc<Module>,
    observer: Arc<dyn Observer>,
    /// The last that was told of the meta before the end (ruling R42): of a failure there is no other.
    meta: Option<Value>,
    has_ended: bool,
}

impl Watched {
    fn look(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Snapshot { field: Some(field), data, .. } if field == "meta" => {
                self.meta = Some(data.clone());
            }
            Chunk::Final { meta, usage, .. } => self.tell(Ended {
                module: "",
                outcome: RunOutcome::Answered,
                usage: usage.or(meta.runtime.usage),
                attempts: meta.runtime.attempts.unwrap_or(1),
                repairs: meta.runtime.repairs.len(),
                fallbacks: &meta.runtime.fallbacks,
            }),
            Chunk::Error { error, .. } => self.tell_unanswered(RunOutcome::Failed(&error.code)),
            _ => {}
        }
    }

    fn tell_unanswered(&mut self, outcome: RunOutcome<'_>) {
        let meta = self.meta.take();
        let meta = meta.as_ref().map(Value::node);
        let usage = meta.and_then(|meta| meta.get("usage")).and_then(usage);
        let attempts = meta.and_then(|meta| meta.get("attempts")?.as_u64());
        let attempts = attempts.and_then(|attempts| u32::try_from(attempts).ok()).unwrap_or(1);
        let repairs = meta.and_then(|meta| Some(meta.get("repairs")?.len())).unwrap_or(0);
        self.tell(Ended { module: "", outcome, usage, attempts, repairs, fallbacks: &[] });
    }

    fn tell(&mut self, run: Ended<'_>) {
        self.has_ended = true;
        self.observer.ended(&Ended { module: &self.module.manifest.name, ..run });
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.has_ended {
            self.tell_unanswered(RunOutcome::Dropped);
        }
    }
}

impl Stream for Watched {
    type Item = Chunk;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let polled = self.chunks.poll_next_unpin(context);
        if let Poll::Ready(Some(chunk)) = &polled {
            self.look(chunk);
        }
        polled
    }
}

fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(|count| count.as_u64());
    Some(Usage {
        input_tokens: count("input_tokens")?,
        output_tokens: count("output_tokens")?,
        cached_input_tokens: count("cached_input_tokens"),
        reasoning_tokens: count("reasoning_tokens"),
    })
}
