//! Reads the bodies of requests within their limits, and bounds the memory of all of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
};
use bytes::{Bytes, BytesMut};
use cog_json::Value;
use cog_spec::{Code, ErrorBody};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::yield_now,
    time::{Instant, timeout, timeout_at},
};

use super::{Reason, Refusal, limits::Client};

/// The number of bytes of a body that are read before other tasks continue.
const MAX_AT_ONCE: usize = 1 << 20;

/// Reads the bodies of requests within their limits: the size of one, its time, and the memory of all.
#[derive(Debug)]
pub(crate) struct Bodies {
    max_bytes: usize,
    max_time: Duration,
    memory: BodyMemory,
}

impl Bodies {
    /// Limits each body to a size and a time, and all of them to `max_bytes_total`.
    pub(crate) fn new(max_bytes: usize, max_bytes_total: usize, max_time: Duration) -> Self {
        Self { max_bytes, max_time, memory: BodyMemory::new(max_bytes_total, max_bytes, max_time) }
    }

    /// Reads a body of a client. Its memory is in use until the lease is dropped.
    ///
    /// # Errors
    /// 413 E1005 for a larger body, before reading it where its length is known; 408 E1001 for one that does not arrive
    /// in time or is interrupted; 429 E4002 while other bodies take all the memory.
    pub(crate) async fn read(&self, client: &Client, mut body: Body) -> Result<(Bytes, BodyLease), Refusal> {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let read = match announced > self.max_bytes {
            true => Err(too_large(self.max_bytes)),
            false => self.collect(client, &mut body, announced).await,
        };
        // A slow client gets its response at once: waiting for the rest would be waiting for the same client again.
        if read.as_ref().is_err_and(|refusal| refusal.reason() != Reason::BodySlow) {
            discard(&mut body).await;
        }
        read
    }

    async fn collect(
        &self,
        client: &Client,
        body: &mut Body,
        announced: usize,
    ) -> Result<(Bytes, BodyLease), Refusal> {
        let mut lease = self.memory.take(client, announced).await?;
        let mut deadline = Instant::now() + self.max_time;
        let mut parts = Parts::default();
        let mut read_at_once = 0;
        while let Some(part) = self.next(body, deadline).await? {
            let read = parts.len() + part.len();
            if read > self.max_bytes {
                return Err(too_large(self.max_bytes));
            }
            // A chunked body has no length: it takes the share of the largest one, and returns the rest at its end.
            if read > MIN_BYTES && lease.is_none() {
                lease = self.memory.take(client, self.max_bytes).await?;
                deadline = Instant::now() + self.max_time;
            }
            read_at_once += part.len();
            parts.push(part, announced);
            // A client that sends faster than this reads would otherwise keep the event loop for the complete body.
            if read_at_once >= MAX_AT_ONCE {
                read_at_once = 0;
                yield_now().await;
            }
        }
        lease.shrink(parts.len());
        Ok((parts.finish(), lease))
    }

    /// Returns the next part of a body; none at its end.
    async fn next(&self, body: &mut Body, deadline: Instant) -> Result<Option<Bytes>, Refusal> {
        match timeout_at(deadline, body.frame()).await {
            // Trailers are ignored.
            Ok(Some(Ok(frame))) => Ok(Some(frame.into_data().unwrap_or_default())),
            Ok(Some(Err(_))) => Err(too_slow("the body was interrupted")),
            Ok(None) => Ok(None),
            Err(_) => Err(too_slow(&format!("the body did not arrive within {:?}", self.max_time))),
        }
    }
}

/// The parts of a body. A body in one part, as most are, is not copied; any other is copied once.
#[derive(Default)]
struct Parts {
    first: Bytes,
    joined: BytesMut,
}

impl Parts {
    fn push(&mut self, part: Bytes, announced: usize) {
        if self.len() == 0 {
            self.first = part;
            return;
        }
        if self.joined.is_empty() {
            self.joined.reserve(announced);
            self.joined.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.joined.extend_from_slice(&part);
    }

    fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    fn finish(self) -> Bytes {
        if self.joined.is_empty() { self.first } else { self.joined.freeze() }
    }
}

/// Discards the rest of a body, up to a limit. A client that is still sending when the connection closes would not receive
/// the response.
pub(crate) async fn discard(body: &mut Body) {
    const MAX: usize = 4 << 20;
    const MAX_LEN: Duration = Duration::from_secs(1);
    let reading = async {
        let mut discarded = 0;
        while discarded < MAX
            && let Some(Ok(frame)) = body.frame().await
        {
            discarded += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    // A client that sends more than that may miss the response.
    let _ = timeout(MAX_LEN, reading).await;
}

fn too_large(max_bytes: usize) -> Refusal {
    let error = ErrorBody::new(Code::InputTooLarge, format!("the body exceeds {max_bytes} bytes"))
        .suggest("Send a smaller input; the operator can raise --max-body-bytes.")
        .with_details(Value::from(serde_json::json!({ "limit": "max_body_bytes", "max": max_bytes })));
    Refusal::new(Reason::BodySize, StatusCode::PAYLOAD_TOO_LARGE, error).close()
}

fn too_slow(message: &str) -> Refusal {
    let error = ErrorBody::new(Code::InvalidInput, message)
        .suggest("Send the complete body before waiting for the response.");
    Refusal::new(Reason::BodySlow, StatusCode::REQUEST_TIMEOUT, error).close()
}

// The memory that the bodies of requests take.

/// The size up to which a body takes no share, so that most requests never wait.
pub(super) const MIN_BYTES: usize = 64 << 10;
/// The unit of a share, in bytes.
const UNIT: usize = 1 << 10;
/// How many clients the memory is for: each has at most this part of it, and enough for one body.
const CLIENTS: usize = 2;

/// The memory that large bodies take together, from when they are read until their runs have ended.
#[derive(Debug)]
pub(super) struct BodyMemory {
    all: Arc<Semaphore>,
    /// What each client may take. Clients without a large body are not in the table.
    clients: Mutex<HashMap<Client, Weak<Semaphore>>>,
    max_bytes: usize,
    per_client: usize,
    max_wait: Duration,
}

/// The share of one body; free again when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct BodyLease(Option<Share>);

#[derive(Debug)]
struct Share {
    own: OwnedSemaphorePermit,
    all: OwnedSemaphorePermit,
}

impl BodyMemory {
    pub(super) fn new(max_bytes: usize, max_body_bytes: usize, max_wait: Duration) -> Self {
        let per_client = units((max_bytes / CLIENTS).max(max_body_bytes).min(max_bytes)).max(1);
        let all = Arc::new(Semaphore::new(units(max_bytes).max(1)));
        Self { all, clients: Mutex::default(), max_bytes, per_client, max_wait }
    }

    /// Waits for the share of a body of this size. A body over the limits takes all that its client may have.
    ///
    /// # Errors
    /// 429 E4002 if other bodies do not end in time.
    pub(super) async fn take(&self, client: &Client, bytes: usize) -> Result<BodyLease, Refusal> {
        if bytes <= MIN_BYTES {
            return Ok(BodyLease::default());
        }
        let share = u32::try_from(units(bytes).min(self.per_client)).unwrap_or(u32::MAX);
        // First the client's own, so that its waiting bodies keep nothing from others. No semaphore is ever closed.
        let taking = async {
            let own = self.of_client(client).acquire_many_owned(share).await.ok()?;
            let all = Arc::clone(&self.all).acquire_many_owned(share).await.ok()?;
            Some(Share { own, all })
        };
        timeout(self.max_wait, taking).await.map(BodyLease).map_err(|_| self.full())
    }

    fn of_client(&self, client: &Client) -> Arc<Semaphore> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|_, own| own.strong_count() > 0);
        if let Some(own) = clients.get(client).and_then(Weak::upgrade) {
            return own;
        }
        let own = Arc::new(Semaphore::new(self.per_client));
        clients.insert(client.clone(), Arc::downgrade(&own));
        own
    }

    fn full(&self) -> Refusal {
        let message =
            format!("too many large requests: the limit for their bodies is {} bytes", self.max_bytes);
        let error = ErrorBody::new(Code::RateLimited, message)
            .suggest("Retry later; the operator can raise --max-body-bytes-total.")
            .with_details(Value::from(
                serde_json::json!({ "limit": "max_body_bytes_total", "max": self.max_bytes }),
            ));
        Refusal::new(Reason::AllBodies, StatusCode::TOO_MANY_REQUESTS, error)
            .retry_after(Duration::from_secs(1))
            .close()
    }
}

impl BodyLease {
    /// Whether the body has no share so far.
    pub(super) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Returns what a body of this size does not need.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let needed = if bytes <= MIN_BYTES { 0 } else { units(bytes) };
        if let Some(Share { own, all }) = &mut self.0 {
            let excess = all.num_permits().saturating_sub(needed);
            drop((own.split(excess), all.split(excess)));
        }
    }

    /// Adds the share of another body of the same client.
    pub(crate) fn merge(&mut self, other: Self) {
        match (&mut self.0, other.0) {
            (Some(share), Some(other)) => {
                share.own.merge(other.own);
                share.all.merge(other.all);
            }
            (none @ None, other) => *none = other,
            (Some(_), None) => {}
        }
    }
}

fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT).min(Semaphore::MAX_PERMITS)
}

// Refuses compressed bodies: a small one could fill the memory once it is decompressed.

/// Checks that a body is not compressed: neither its content (415) nor its transfer (501).
///
/// Each header may be repeated, and each value may be a list.
///
/// # Errors
/// E1001 with the encoding.
pub(super) fn check(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut content = encodings(headers, header::CONTENT_ENCODING);
    if let Some(other) = content.find(|name| !name.eq_ignore_ascii_case(b"identity")) {
        return Err(refusal(&header::CONTENT_ENCODING, other, StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    // hyper accepts a transfer whose last encoding is chunked, and decodes only that one.
    let mut transfer = encodings(headers, header::TRANSFER_ENCODING);
    match transfer.find(|name| !name.eq_ignore_ascii_case(b"chunked")) {
        Some(other) => Err(refusal(&header::TRANSFER_ENCODING, other, StatusCode::NOT_IMPLEMENTED)),
        None => Ok(()),
    }
}

fn encodings(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &[u8]> {
    let lists = headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
    lists
        .flat_map(|list| list.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|name| !name.is_empty())
}

fn refusal(header: &HeaderName, found: &[u8], status: StatusCode) -> Refusal {
    let found: String = String::from_utf8_lossy(found).chars().take(60).collect();
    let message = format!("unsupported {header}: {}", found.escape_debug());
    let error = ErrorBody::new(Code::InvalidInput, message).suggest("Send the body without compression.");
    // The rest of the body would be read as the next request.
    Refusal::new(Reason::Encoding, status, error).close()
}

#[cfg(test)]
mod body_memory_tests {
    use futures_util::FutureExt as _;

    use super::*;

    const MAX_WAIT: Duration = Duration::from_secs(30);
    const MIB: usize = 1 << 20;

    fn client(name: &str) -> Client {
        Client::Token(name.into())
    }

    fn memory() -> BodyMemory {
        BodyMemory::new(4 * MIB, 2 * MIB, MAX_WAIT)
    }

    #[tokio::test]
    async fn large_bodies_wait_and_small_ones_do_not() {
        let (memory, [ann, bob, carl]) = (memory(), ["ann", "bob", "carl"].map(client));
        let first = memory.take(&ann, 2 * MIB).await.unwrap();
        let _second = memory.take(&bob, 2 * MIB).await.unwrap();
        let mut third = Box::pin(memory.take(&carl, MIB));
        assert!((&mut third).now_or_never().is_none());
        assert!(memory.take(&carl, MIN_BYTES).await.unwrap().is_none());
        drop(first);
        assert!((&mut third).now_or_never().is_some());
    }

    #[tokio::test]
    async fn one_client_does_not_hold_up_others() {
        let memory = memory();
        let ann = client("ann");
        let _first = memory.take(&ann, 100 * MIB).await.unwrap();
        let mut more: Vec<_> = (0..10).map(|_| Box::pin(memory.take(&ann, 2 * MIB))).collect();
        assert!(more.iter_mut().all(|next| next.now_or_never().is_none()));
        assert!(memory.take(&client("bob"), 2 * MIB).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn body_that_waits_too_long_returns_429() {
        let memory = memory();
        let ann = client("ann");
        let first = memory.take(&ann, 2 * MIB).await.unwrap();
        let refusal = memory.take(&ann, MIB).await.unwrap_err();
        assert_eq!((refusal.status().as_u16(), refusal.reason()), (429, Reason::AllBodies));
        drop(first);
        drop(memory.take(&client("bob"), MIB).await.unwrap());
        assert_eq!(memory.clients.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn share_shrinks_to_the_size_of_the_body() {
        let memory = memory();
        let ann = client("ann");
        let mut lease = memory.take(&ann, 2 * MIB).await.unwrap();
        lease.shrink(MIB);
        assert_eq!(memory.all.available_permits(), 3 * MIB / UNIT);
        lease.merge(memory.take(&ann, MIB).await.unwrap());
        assert_eq!(memory.all.available_permits(), 2 * MIB / UNIT);
        lease.shrink(MIN_BYTES);
        assert_eq!(memory.all.available_permits(), 4 * MIB / UNIT);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, stream};

    use super::*;

    fn parts(parts: &[&'static str]) -> Body {
        Body::from_stream(stream::iter(parts.to_vec()).map(Ok::<_, std::io::Error>))
    }

    async fn read(body: Body, max_body_bytes: usize) -> Result<Bytes, Refusal> {
        let bodies = Bodies::new(max_body_bytes, 64 << 20, Duration::from_secs(30));
        bodies.read(&Client::Others, body).await.map(|(bytes, _)| bytes)
    }

    #[tokio::test]
    async fn body_over_limit_returns_413() {
        for body in [Body::from("12345678"), parts(&["1234", "56", "78"]), parts(&["12345678", ""])] {
            assert_eq!(read(body, 8).await.unwrap(), "12345678");
        }
        for body in [Body::from("123456789"), parts(&["1234", "56", "789"]), parts(&["123456789"])] {
            let refusal = read(body, 8).await.unwrap_err();
            assert_eq!((refusal.status().as_u16(), refusal.error().code.as_str()), (413, "E1005"));
        }
        assert_eq!(read(Body::empty(), 0).await.unwrap(), "");
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_body_times_out() {
        let begun = stream::iter([Ok::<_, std::io::Error>("{")]).chain(stream::pending());
        let refusal = read(Body::from_stream(begun), 8).await.unwrap_err();
        assert_eq!(refusal.status(), 408);
    }

    #[tokio::test]
    async fn interrupted_body_is_refused() {
        let broken = stream::iter([Ok("{"), Err(std::io::Error::other("reset"))]);
        let refusal = read(Body::from_stream(broken), 8).await.unwrap_err();
        assert_eq!(refusal.reason(), Reason::BodySlow);
    }

    #[tokio::test(start_paused = true)]
    async fn memory_of_all_bodies_is_limited() {
        let bodies = Bodies::new(30 << 20, 1 << 20, Duration::from_secs(30));
        let large = || vec![b'x'; 600 << 10];
        let streamed = Body::from_stream(stream::iter([Ok::<_, std::io::Error>(large())]));
        for body in [Body::from(large()), streamed] {
            let (bytes, lease) = bodies.read(&Client::Others, body).await.unwrap();
            assert_eq!(bytes.len(), 600 << 10);
            let refusal = bodies.read(&Client::Others, Body::from(large())).await.unwrap_err();
            assert_eq!((refusal.status().as_u16(), refusal.reason()), (429, Reason::AllBodies));
            assert_eq!(bodies.read(&Client::Others, Body::from("{}")).await.unwrap().0, "{}");
            drop(lease);
            bodies.read(&Client::Others, Body::from(large())).await.unwrap();
        }
    }

    fn status(pairs: &[(HeaderName, &'static str)]) -> Option<u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, HeaderValue::from_static(value));
        }
        check(&headers).err().map(|refusal| refusal.status().as_u16())
    }

    #[test]
    fn every_encoding_of_every_line_is_checked() {
        let content = header::CONTENT_ENCODING;
        let transfer = header::TRANSFER_ENCODING;
        for (pairs, expected) in [
            (vec![], None),
            (vec![(content.clone(), "identity"), (transfer.clone(), "Chunked")], None),
            (vec![(content.clone(), "gzip")], Some(415)),
            (vec![(content.clone(), "identity"), (content.clone(), "br")], Some(415)),
            (vec![(content.clone(), "identity, zstd")], Some(415)),
            (vec![(transfer.clone(), "gzip, chunked")], Some(501)),
            (vec![(transfer.clone(), "gzip"), (transfer.clone(), "chunked")], Some(501)),
        ] {
            assert_eq!(status(&pairs), expected, "{pairs:?}");
        }
    }
}
