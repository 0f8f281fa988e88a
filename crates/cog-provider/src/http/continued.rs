//! Replies that a vendor ends at its limit per request, and continues in further requests.

use cog_spec::{FinishReason, ModelEvent, Usage};
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use super::call::{Call, MAX_LEN, Setup, length};
use crate::{
    ModelStream, ProviderError, RetryHook, WireRequest,
    protocol::{Continuation, ReplyFormat},
};

/// The maximum number of requests that continue one reply.
const MAX_ROUNDS: u32 = 16;

/// Sends the request, and returns the stream at the first token. Further requests continue the reply.
pub(super) async fn start(
    setup: Setup,
    format: ReplyFormat,
    on_retry: Option<RetryHook>,
    continuation: Continuation,
) -> Result<ModelStream, ProviderError> {
    let started = Instant::now();
    let reply = Call::new(setup.clone(), started).start(format, on_retry.as_ref()).await?;
    let reply = ContinuedReply {
        setup,
        format,
        on_retry,
        continuation,
        started,
        reply,
        rounds: 0,
        length: 0,
        before: Usage::default(),
        last: Usage::default(),
    };
    Ok(Box::pin(stream::try_unfold(reply, ContinuedReply::next)))
}

/// A reply that may consist of several.
struct ContinuedReply {
    setup: Setup,
    format: ReplyFormat,
    on_retry: Option<RetryHook>,
    continuation: Continuation,
    started: Instant,
    /// The reply to the last request.
    reply: ModelStream,
    /// The number of requests that continued the first one.
    rounds: u32,
    /// The bytes of text so far.
    length: usize,
    /// The tokens of all replies before the last one.
    before: Usage,
    /// The tokens of the last reply.
    last: Usage,
}

impl ContinuedReply {
    async fn next(mut self) -> Result<Option<(ModelEvent, Self)>, ProviderError> {
        loop {
            let Some(event) = self.reply.next().await.transpose()? else { return Ok(None) };
            self.length += length(&event);
            if self.length > MAX_LEN {
                return Err(ProviderError::TooLarge { vendor: self.setup.vendor.title, limit: MAX_LEN });
            }
            let event = match event {
                ModelEvent::Finished(FinishReason::Continue(token)) if self.rounds < MAX_ROUNDS => {
                    self.resume(&token).await?;
                    continue;
                }
                ModelEvent::Finished(FinishReason::Continue(_)) => ModelEvent::Finished(FinishReason::Length),
                ModelEvent::Started { .. } if self.rounds > 0 => continue,
                // Usage is reported per request, and cumulatively within one: only its last report counts.
                ModelEvent::Usage(usage) => {
                    self.last = usage.clone();
                    ModelEvent::Usage(self.before.plus(&usage))
                }
                event => event,
            };
            return Ok(Some((event, self)));
        }
    }

    /// Requests the rest of the reply.
    async fn resume(&mut self, token: &str) -> Result<(), ProviderError> {
        let body = (self.continuation)(&self.setup.wire.body, token);
        let wire = WireRequest { body, ..self.setup.wire.clone() };
        let setup = Setup { wire, ..self.setup.clone() };
        // The time limit goes on from the first request.
        self.reply = Call::new(setup, self.started).start(self.format, self.on_retry.as_ref()).await?;
        self.before = self.before.plus(&std::mem::take(&mut self.last));
        self.rounds += 1;
        Ok(())
    }
}
