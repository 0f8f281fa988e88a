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

/// The body of a reply, piece by piece, broken off or left hanging as the reply says.
pub(super) fn body(pieces: Vec<String>, reply: Reply, shared: Arc<Shared>) -> Body {
    let packets = packets(pieces, &reply);
    let sending =
        Sending { packets, pause: reply.pause, cut: reply.cut.is_some(), hang: reply.hang, shared, sent: 0 };
    Body::from_stream(stream::unfold(sending, Sending::next))
}

/// The pieces as they leave: cut short, and cut anew where the reply sets the size of packets.
fn packets(pieces: Vec<String>, reply: &Reply) -> VecDeque<Bytes> {
    let pieces: Vec<Vec<u8>> = pieces.into_iter().map(String::into_bytes).collect();
    let pieces = match reply.network {
        Some(size) => pieces.concat().chunks(size).map(<[u8]>::to_vec).collect(),
        None => pieces,
    };
    let mut left = reply.cut.unwrap_or(usize::MAX);
    let mut packets = VecDeque::new();
    for mut piece in pieces {
        piece.truncate(left);
        left -= piece.len();
        if !piece.is_empty() {
            packets.push_back(Bytes::from(piece));
        }
    }
    packets
}

/// A body on its way.
struct Sending {
    packets: VecDeque<Bytes>,
    pause: Duration,
    cut: bool,
    hang: bool,
    shared: Arc<Shared>,
    sent: usize,
}

impl Sending {
    async fn next(mut self) -> Option<(Result<Bytes, Error>, Self)> {
        if let Some(packet) = self.packets.pop_front() {
            if self.sent > 0 {
                self.rest().await;
            }
            self.sent += 1;
            return Some((Ok(packet), self));
        }
        if self.hang {
            std::future::pending::<()>().await;
        }
        if std::mem::take(&mut self.cut) {
            // The packets before the break must have left before it.
            tokio::task::yield_now().await;
            return Some((Err(Error::from(ErrorKind::ConnectionAborted)), self));
        }
        None
    }
}

impl Sending {
    /// Lets the last packet leave; a timer of no time at all would still take a millisecond.
    async fn rest(&self) {
        if self.pause.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(self.pause).await;
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if self.hang || !self.packets.is_empty() {
            self.shared.broken_off.fetch_add(1, Ordering::SeqCst);
        }
    }
}
