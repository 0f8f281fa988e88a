//! Jobs and sessions in NATS JetStream.
//!
//! A [`Worker`] takes jobs from a work queue, runs them and stores each result under the id of its job. A message is acknowledged
//! after its result is stored, so a job that a worker loses is delivered again. A job whose result is stored does not run again.
//!
//! [`NatsRows`] runs the rows of a batch as jobs.
//!
//! [`NatsSessions`] is the log through which several servers share their sessions.

mod connect;
mod handle;
mod job;
mod queue;
mod rows;
mod sessions;
mod worker;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_nats::jetstream::{
    AckKind, Message,
    consumer::{PullConsumer, pull::Batch},
};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

pub use self::{
    connect::{NatsOptions, connect},
    job::{Job, JobId, NatsError},
    queue::{Queue, QueueSettings, StoredResult},
    rows::NatsRows,
    sessions::NatsSessions,
    worker::{Stop, Worker, WorkerReport},
};

/// The maximum length of a name in bytes.
const MAX_NAME: usize = 32;

/// The names of streams and subjects. Programs with the same name share their jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names(String);

impl Names {
    /// Returns the names that begin with this one.
    ///
    /// # Errors
    /// [`NatsError::Name`] for a name with other characters than a-z, 0-9 and `-`.
    pub fn new(name: &str) -> Result<Self, NatsError> {
        let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_valid) {
            return Err(NatsError::Name { name: name.chars().take(64).collect() });
        }
        Ok(Self(name.to_owned()))
    }

    /// Returns the stream of the jobs.
    pub fn jobs(&self) -> String {
        format!("{}-jobs", self.0)
    }

    /// Returns the subject of jobs with this last part, such as the id of a batch.
    pub fn job_subject(&self, last: &str) -> String {
        format!("{}.jobs.{last}", self.0)
    }

    /// Returns the stream of the jobs that were moved aside.
    pub fn failed(&self) -> String {
        format!("{}-failed", self.0)
    }

    /// Returns the subject of the jobs that were moved aside.
    pub fn failed_subject(&self) -> String {
        format!("{}.failed", self.0)
    }

    /// Returns the key-value bucket of the results.
    pub fn results(&self) -> String {
        format!("{}-results", self.0)
    }

    /// Returns the stream of the sessions.
    pub fn sessions(&self) -> String {
        format!("{}-sessions", self.0)
    }

    /// Returns the subject of a session.
    fn session_subject(&self, id: &str) -> String {
        format!("{}.sessions.{id}", self.0)
    }

    /// Returns the subject of requests to a server.
    fn server_subject(&self, server: &str) -> String {
        format!("{}.servers.{server}", self.0)
    }

    /// Returns the subject below which the subjects for results are.
    pub fn replies(&self) -> String {
        format!("{}.replies", self.0)
    }

    /// Returns the subject for the result of the job with this id.
    fn reply_subject(&self, id: &str) -> String {
        format!("{}.replies.{id}", self.0)
    }

    /// Returns whether a job may name this subject for its result: one below `NAME.replies`, or an inbox.
    ///
    /// A worker may publish to more subjects than the author of a job, so a job cannot choose any subject.
    fn allows_reply(&self, subject: &str) -> bool {
        let rest = subject.strip_prefix("_INBOX.");
        let rest = rest.or_else(|| subject.strip_prefix(&self.0)?.strip_prefix(".replies."));
        rest.is_some_and(|rest| rest.len() <= 200 && rest.split('.').all(is_token))
    }
}

/// Whether a text is a part of a subject: graphic ASCII without wildcards.
fn is_token(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'>'))
}

// Fetches as many jobs as can run.

/// The time for which the server waits for jobs.
const EXPIRES: Duration = Duration::from_secs(5);

/// The error of a fetch, in the words of the client.
type FetchError = String;

/// Waits until a job can run, and takes the places of as many as can, up to this number. None after a stop.
async fn places(
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
async fn fetch(
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

// Jobs that the provider refused in sequence, because of this worker: its key is wrong, or its account is used up.
//
// Such a worker ends its jobs at once, so it would take those of all others.

/// The refusals in sequence after which the worker pauses, as many as end a batch in one process.
const MAX: u32 = 20;
/// The minimum and the maximum pause.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The refusals since a job was answered.
#[derive(Debug, Default)]
struct Refusals(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    count: u32,
    /// The pauses since then.
    pauses: u32,
}

impl Refusals {
    /// Records that the provider refused a job.
    fn refused(&self) {
        self.change(|state| state.count = state.count.saturating_add(1));
    }

    /// Records that the provider answered a job.
    fn answered(&self) {
        self.change(|state| *state = State::default());
    }

    /// Returns the time for which the worker takes no job, after which it takes one. The time doubles.
    fn pause(&self) -> Option<Duration> {
        self.change(|state| {
            let pause = PAUSE.0 * 2_u32.saturating_pow(state.pauses.min(6));
            (state.count >= MAX).then(|| {
                state.pauses += 1;
                pause.min(PAUSE.1)
            })
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_no_separators_or_wildcards() {
        for name in ["", "a.b", "A", "a b", "*", ">", "a\n", &"a".repeat(33)] {
            assert!(Names::new(name).is_err(), "{name}");
        }
        assert_eq!(Names::new("cog-2").unwrap().jobs(), "cog-2-jobs");
    }

    #[test]
    fn reply_is_an_inbox_or_below_the_subject_for_replies() {
        let names = Names::new("cog").unwrap();
        for subject in ["_INBOX.a.b", "cog.replies.team-1"] {
            assert!(names.allows_reply(subject), "{subject}");
        }
        for subject in [
            "$JS.API.STREAM.DELETE.x",
            "cog.jobs.x",
            "cog.replies.",
            "cog.replies.>",
            "_INBOX.*",
            "_INBOX.a b",
        ] {
            assert!(!names.allows_reply(subject), "{subject}");
        }
    }

    #[test]
    fn worker_that_is_refused_pauses_longer_and_longer_until_it_is_answered() {
        let refusals = Refusals::default();
        (1..MAX).for_each(|_| refusals.refused());
        assert_eq!(refusals.pause(), None);
        refusals.refused();
        let mut seconds = || refusals.pause().map(|pause| pause.as_secs());
        let pauses: Vec<_> = std::iter::repeat_with(&mut seconds).take(8).flatten().collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        refusals.answered();
        assert_eq!(refusals.pause(), None);
    }
}
