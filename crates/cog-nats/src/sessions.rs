//! Sessions of several servers: a stream with one subject for each session.
//!
//! Each record expects the number of the record before it, so only one server at a time writes to a session. A server replies
//! to requests at a subject of its own; NATS says at once when no server listens there.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_nats::{
    Client, HeaderMap, Message, Subscriber,
    jetstream::{
        self, Context,
        consumer::pull,
        context::PublishErrorKind,
        stream::{self, DiscardPolicy, LastRawMessageErrorKind, StorageType, Stream},
    },
};
use bytes::Bytes;
use cog_run::sessions::{AppendError, LogReading, LogRecord, LogRequest, SharedLog};
use futures_util::{
    StreamExt as _,
    future::{self, BoxFuture},
    stream::{self as streams, BoxStream},
};

use crate::{Names, NatsError};

/// The header with the server that wrote a record.
const SERVER: &str = "Cog-Server";
/// The time for the reply of another server.
const REPLY_WITHIN: Duration = Duration::from_secs(2);
/// The requests of a server to another one.
const IS_RUNNING: &str = "is-running";
const CANCEL: &str = "cancel";

/// The sessions of the servers with the same names.
pub struct NatsSessions {
    shared: Shared,
    requests: Mutex<Option<Subscriber>>,
}

/// What the operations share.
#[derive(Clone)]
struct Shared {
    client: Client,
    context: Context,
    names: Names,
    /// This server.
    server: String,
    config: stream::Config,
}

impl NatsSessions {
    /// Opens the stream, and creates it if it is missing. A record is stored for `max_age`.
    ///
    /// # Errors
    /// [`NatsError::JetStream`].
    pub async fn open(
        client: Client,
        names: Names,
        replicas: usize,
        max_age: Duration,
    ) -> Result<Self, NatsError> {
        let config = stream::Config {
            name: names.sessions(),
            description: Some("Sessions of Cognitive Modules".to_owned()),
            subjects: vec![names.session_subject("*")],
            max_age,
            discard: DiscardPolicy::Old,
            storage: StorageType::File,
            num_replicas: replicas,
            ..stream::Config::default()
        };
        let context = jetstream::new(client.clone());
        let server = client.new_inbox().rsplit('.').next().unwrap_or_default().to_owned();
        let shared = Shared { client, context, names, server, config };
        shared.stream().await.map_err(|reason| NatsError::JetStream {
            operation: format!("create the stream {}", shared.config.name),
            reason,
        })?;
        let subject = shared.names.server_subject(&shared.server);
        let requests = shared.client.subscribe(subject).await;
        let requests = requests.map_err(|error| NatsError::jet_stream("listen for other servers", &error))?;
        Ok(Self { shared, requests: Mutex::new(Some(requests)) })
    }
}

fn unavailable(error: impl std::fmt::Display) -> AppendError {
    AppendError::Unavailable(error.to_string())
}

impl Shared {
    async fn stream(&self) -> Result<Stream, String> {
        self.context.get_or_create_stream(self.config.clone()).await.map_err(|error| error.to_string())
    }

    async fn append(self, id: String, after: u64, lines: Bytes) -> Result<u64, AppendError> {
        let mut headers = HeaderMap::new();
        headers.insert(SERVER, self.server.as_str());
        headers.insert(async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, after.to_string().as_str());
        let subject = self.names.session_subject(&id);
        let sent = match self.context.publish_with_headers(subject, headers, lines.clone()).await {
            Ok(sent) => sent.await,
            Err(error) => Err(error),
        };
        let error = match sent {
            Ok(stored) => return Ok(stored.sequence),
            Err(error) => error,
        };
        match error.kind() {
            PublishErrorKind::WrongLastSequence => self.stored_before(&id, &lines).await,
            PublishErrorKind::MaxPayloadExceeded => {
                Err(AppendError::Refused("an entry is over max_payload of the NATS server".to_owned()))
            }
            PublishErrorKind::StreamNotFound => {
                drop(self.stream().await);
                Err(unavailable(error))
            }
            _ => Err(unavailable(error)),
        }
    }

    /// Returns the number of a record that was stored although its confirmation was lost.
    async fn stored_before(&self, id: &str, lines: &Bytes) -> Result<u64, AppendError> {
        match self.last(id).await? {
            None => Err(AppendError::Refused("the NATS server has lost the session".to_owned())),
            Some((number, server, last)) if server == self.server && last == *lines => Ok(number),
            Some(_) => Err(AppendError::Superseded),
        }
    }

    async fn last(&self, id: &str) -> Result<Option<(u64, String, Bytes)>, AppendError> {
        let stream = self.stream().await.map_err(AppendError::Unavailable)?;
        match stream.get_last_raw_message_by_subject(&self.names.session_subject(id)).await {
            Ok(last) => Ok(Some((last.sequence, server_of(Some(&last.headers)), last.payload))),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(unavailable(error)),
        }
    }

    async fn read(self, id: String) -> Result<LogReading, AppendError> {
        let Some((last, ..)) = self.last(&id).await? else {
            return Ok(LogReading { last: 0, records: Box::pin(streams::empty()) });
        };
        let stream = self.stream().await.map_err(AppendError::Unavailable)?;
        let config =
            pull::OrderedConfig { filter_subject: self.names.session_subject(&id), ..Default::default() };
        let consumer = stream.create_consumer(config).await.map_err(unavailable)?;
        let messages = consumer.messages().await.map_err(unavailable)?;
        let records = messages.filter_map(|message| {
            let record = message.map(|message| record(&message));
            future::ready(record.ok().flatten())
        });
        Ok(LogReading { last, records: Box::pin(records) })
    }

    /// Sends a request to another server. None where no server replies.
    async fn request(self, server: String, request: String) -> Option<Bytes> {
        let sent = self.client.request(self.names.server_subject(&server), request.into());
        Some(tokio::time::timeout(REPLY_WITHIN, sent).await.ok()?.ok()?.payload)
    }
}

impl SharedLog for NatsSessions {
    fn append(&self, id: &str, after: u64, lines: String) -> BoxFuture<'static, Result<u64, AppendError>> {
        Box::pin(self.shared.clone().append(id.to_owned(), after, lines.into()))
    }

    fn read(&self, id: &str) -> BoxFuture<'static, Result<LogReading, AppendError>> {
        Box::pin(self.shared.clone().read(id.to_owned()))
    }

    fn is_running(&self, server: &str, id: &str) -> BoxFuture<'static, bool> {
        let reply = self.shared.clone().request(server.to_owned(), format!("{IS_RUNNING} {id}"));
        Box::pin(async move { reply.await.is_some_and(|reply| reply == "true") })
    }

    fn cancel(&self, server: &str, id: &str) -> BoxFuture<'static, ()> {
        let reply = self.shared.clone().request(server.to_owned(), format!("{CANCEL} {id}"));
        Box::pin(async move { drop(reply.await) })
    }

    fn requests(&self) -> BoxStream<'static, LogRequest> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).take();
        let client = self.shared.client.clone();
        match requests {
            Some(requests) => {
                Box::pin(requests.filter_map(move |message| future::ready(read_request(&client, &message))))
            }
            None => Box::pin(streams::empty()),
        }
    }
}

fn record(message: &jetstream::Message) -> Option<LogRecord> {
    let number = message.info().ok()?.stream_sequence;
    let lines = String::from_utf8(message.payload.to_vec()).ok()?;
    Some(LogRecord { number, server: server_of(message.headers.as_ref()), lines })
}

fn server_of(headers: Option<&HeaderMap>) -> String {
    let server = headers.and_then(|headers| headers.get(SERVER));
    server.map(|server| server.as_str().to_owned()).unwrap_or_default()
}

/// Reads the request of another server.
fn read_request(client: &Client, message: &Message) -> Option<LogRequest> {
    let (kind, id) = std::str::from_utf8(&message.payload).ok()?.split_once(' ')?;
    let cancels = match kind {
        IS_RUNNING => false,
        CANCEL => true,
        _ => return None,
    };
    let client = client.clone();
    let subject = message.reply.clone()?;
    let reply = Box::new(move |is_running: bool| {
        let text = if is_running { "true" } else { "false" };
        // The reply is small, so it is queued at once.
        drop(future::FutureExt::now_or_never(client.publish(subject, text.into())));
    });
    Some(LogRequest { id: id.to_owned(), cancels, reply })
}
