use std::{
    collections::VecDeque,
    io::{Error, ErrorKind},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::body::{Body, Bytes};
use futures_util::stream;

use super::Shared;
use crate::Reply;

/// Creates the body of a reply, which may be interrupted or stay open.
pub(super) fn body(chunks: Vec<String>, reply: Reply, shared: Arc<Shared>) -> Body {
    let packets = packets(chunks, &reply);
    let interrupts = reply.interrupt_after.is_some();
    let sending = Sending { packets, pause: reply.pause, interrupts, hangs: reply.hangs, shared, sent: 0 };
    Body::from_stream(stream::unfold(sending, Sending::next))
}

/// Returns the packets of a body: truncated, and split again if the reply sets their size.
fn packets(chunks: Vec<String>, reply: &Reply) -> VecDeque<Bytes> {
    let chunks: Vec<Vec<u8>> = chunks.into_iter().map(String::into_bytes).collect();
    let chunks = match reply.packet_size {
        Some(size) => chunks.concat().chunks(size).map(<[u8]>::to_vec).collect(),
        None => chunks,
    };
    let mut left = reply.interrupt_after.unwrap_or(usize::MAX);
    let mut packets = VecDeque::new();
    for mut chunk in chunks {
        chunk.truncate(left);
        left -= chunk.len();
        if !chunk.is_empty() {
            packets.push_back(Bytes::from(chunk));
        }
    }
    packets
}

/// A body that is being sent.
struct Sending {
    packets: VecDeque<Bytes>,
    pause: Duration,
    interrupts: bool,
    hangs: bool,
    shared: Arc<Shared>,
    sent: usize,
}

impl Sending {
    async fn next(mut self) -> Option<(Result<Bytes, Error>, Self)> {
        if let Some(packet) = self.packets.pop_front() {
            if self.sent > 0 {
                self.wait().await;
            }
            self.sent += 1;
            return Some((Ok(packet), self));
        }
        if self.hangs {
            std::future::pending::<()>().await;
        }
        if std::mem::take(&mut self.interrupts) {
            // The packets before the interruption must be sent first.
            tokio::task::yield_now().await;
            return Some((Err(Error::from(ErrorKind::ConnectionAborted)), self));
        }
        None
    }
}

impl Sending {
    /// Lets the last packet be sent. A timer of zero length would still take a millisecond.
    async fn wait(&self) {
        if self.pause.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(self.pause).await;
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if self.hangs || !self.packets.is_empty() {
            self.shared.interrupted.fetch_add(1, Ordering::SeqCst);
        }
    }
}
