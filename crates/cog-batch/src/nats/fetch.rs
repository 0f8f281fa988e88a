//! Fetches as many jobs as can run.

use std::{sync::Arc, time::Duration};

use async_nats::jetstream::{
    AckKind, Message,
    consumer::{PullConsumer, pull::Batch},
};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The time for which the server waits for jobs.
const EXPIRES: Duration = Duration::from_secs(5);

/// The error of a fetch, in the words of the client.
pub(super) type FetchError = String;

/// Waits until a job can run, and takes the places of as many as can, up to this number. None after a stop.
pub(super) async fn places(
    all: &Arc<Semaphore>,
    max: usize,
    stop: &CancellationToken,
) -> Option<Vec<OwnedSemaphorePermit>> {
    let first = tokio::select! {
        () = stop.cancelled() => return None,
        place = Arc::clone(all).acquire_owned() => place.ok()?,
    };
    let mut places = vec![first];
    while places.len() < max {
        let Ok(place) = Arc::clone(all).try_acquire_owned() else { break };
        places.push(place);
    }
    Some(places)
}

/// Fetches at most one job for each place, and starts each.
pub(super) async fn fetch(
    consumer: &PullConsumer,
    mut places: Vec<OwnedSemaphorePermit>,
    stop: &CancellationToken,
    mut start: impl FnMut(Message, OwnedSemaphorePermit),
) -> Result<(), FetchError> {
    let batch = consumer.batch().max_messages(places.len()).expires(EXPIRES).messages();
    let mut batch = batch.await.map_err(|error| error.to_string())?;
    while let Some(place) = places.pop() {
        let message = tokio::select! {
            () = stop.cancelled() => {
                give_back(&mut batch).await;
                return Ok(());
            }
            message = batch.next() => message,
        };
        match message {
            Some(Ok(message)) => start(message, place),
            Some(Err(error)) => return Err(error.to_string()),
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Returns the jobs that have arrived but are not started, so that other workers receive them at once.
async fn give_back(batch: &mut Batch) {
    while let Some(Some(Ok(message))) = batch.next().now_or_never() {
        if let Err(error) = message.ack_with(AckKind::Nak(None)).await {
            tracing::warn!(%error, "a job cannot be returned; it will be delivered again");
        }
    }
}
