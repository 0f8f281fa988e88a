use std::time::Duration;

use axum::{body::Body, http::StatusCode};
use bytes::{Bytes, BytesMut};
use cog_json::Value;
use cog_spec::{Code, ErrorBody};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::{
    task::yield_now,
    time::{Instant, timeout, timeout_at},
};

use super::{
    body_memory::{BodyLease, BodyMemory, MIN_BYTES},
    budgets::Client,
    refusal::{Reason, Refusal},
};
use crate::ServerSettings;

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
    pub(crate) fn new(settings: &ServerSettings) -> Self {
        let &ServerSettings { max_body_bytes, max_body_bytes_total, body_timeout, .. } = settings;
        let memory = BodyMemory::new(max_body_bytes_total, max_body_bytes, body_timeout);
        Self { max_bytes: max_body_bytes, max_time: body_timeout, memory }
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

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, stream};

    use super::*;

    fn parts(parts: &[&'static str]) -> Body {
        Body::from_stream(stream::iter(parts.to_vec()).map(Ok::<_, std::io::Error>))
    }

    async fn read(body: Body, max_body_bytes: usize) -> Result<Bytes, Refusal> {
        let settings = ServerSettings { max_body_bytes, ..ServerSettings::default() };
        Bodies::new(&settings).read(&Client::Others, body).await.map(|(bytes, _)| bytes)
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
        let settings = ServerSettings { max_body_bytes_total: 1 << 20, ..ServerSettings::default() };
        let bodies = Bodies::new(&settings);
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
}
