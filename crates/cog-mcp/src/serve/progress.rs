//! The chunks of a run as progress notifications.

use std::sync::atomic::{AtomicU32, Ordering};

use cog_run::Chunk;
use rmcp::{
    Peer, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
};
use tokio::sync::mpsc;

/// The number of notifications that wait for a slow client. Further ones are dropped, so that no run waits.
const MAX_WAITING: usize = 64;

/// The progress of a call, for a client that asks for it.
pub(super) struct Progress {
    token: ProgressToken,
    peer: Peer<RoleServer>,
    /// The number of notifications so far. It grows over all runs of the call.
    sent: AtomicU32,
}

/// Describes the chunks of one run.
pub(super) struct Describer {
    messages: mpsc::Sender<String>,
    /// The field whose text arrives.
    field: String,
}

impl Progress {
    pub(super) fn new(token: ProgressToken, peer: Peer<RoleServer>) -> Self {
        Self { token, peer, sent: AtomicU32::new(0) }
    }

    /// Returns the describer of a run, and the future that sends its notifications until the describer is dropped.
    pub(super) fn start(&self) -> (Describer, impl Future<Output = ()> + '_) {
        let (messages, waiting) = mpsc::channel(MAX_WAITING);
        (Describer { messages, field: String::new() }, self.send(waiting))
    }

    async fn send(&self, mut waiting: mpsc::Receiver<String>) {
        while let Some(message) = waiting.recv().await {
            let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
            let progress = ProgressNotificationParam::new(self.token.clone(), f64::from(number));
            // A client that is gone is noticed by its transport.
            drop(self.peer.notify_progress(progress.with_message(message)).await);
        }
    }
}

impl Describer {
    /// Sends what a chunk says, if it is new.
    pub(super) fn show(&mut self, chunk: &Chunk) {
        let message = match chunk {
            Chunk::Meta { .. } => Some("the run has started".to_owned()),
            Chunk::Progress(progress) => progress.description(),
            Chunk::Delta { field, .. } if *field != self.field => {
                self.field.clone_from(field);
                Some(format!("writing {field}"))
            }
            Chunk::Snapshot { field: Some(field), .. } => Some(format!("{field} is complete")),
            _ => None,
        };
        if let Some(message) = message {
            drop(self.messages.try_send(message));
        }
    }
}
