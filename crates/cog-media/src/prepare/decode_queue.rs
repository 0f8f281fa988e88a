//! Bounds the images that are decoded concurrently in this process, and lets owners take queue.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::Media;

/// How many megapixels of large images are decoded concurrently: one image of the maximum size.
const LARGE: u32 = 64;
/// How many megapixels of small images are decoded concurrently. They do not wait for large ones.
const SMALL: u32 = 32;
/// The maximum megapixels of a small image: most photographs have fewer.
const MAX_SMALL: u32 = 16;

static LARGE_IMAGES: DecodeQueue = DecodeQueue::new(LARGE);
static SMALL_IMAGES: DecodeQueue = DecodeQueue::new(SMALL);

/// Waits for the turn of an image.
pub(super) async fn wait(media: &Media, owner: Option<&str>) -> Permit {
    let facts = media.info();
    let pixels = u64::from(facts.width.unwrap_or(0)) * u64::from(facts.height.unwrap_or(0));
    let megapixels = u32::try_from(pixels >> 20).unwrap_or(LARGE).clamp(1, LARGE);
    let queue = if megapixels <= MAX_SMALL { &SMALL_IMAGES } else { &LARGE_IMAGES };
    queue.wait(owner.unwrap_or_default(), megapixels).await
}

/// A number of megapixels, which the owners of images take in queue.
struct DecodeQueue(Mutex<Queue>);

struct Queue {
    free: u32,
    /// The owners in the order of their queue, each with its images in order.
    owners: VecDeque<(String, VecDeque<QueuedImage>)>,
}

struct QueuedImage {
    megapixels: u32,
    sender: oneshot::Sender<Permit>,
}

/// The megapixels of an image. Dropping it lets the next images begin.
pub(super) struct Permit {
    queue: &'static DecodeQueue,
    megapixels: u32,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.queue.lock().free += self.megapixels;
        self.queue.admit();
    }
}

impl DecodeQueue {
    const fn new(megapixels: u32) -> Self {
        Self(Mutex::new(Queue { free: megapixels, owners: VecDeque::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait(&'static self, owner: &str, megapixels: u32) -> Permit {
        let (sender, receiver) = oneshot::channel();
        self.lock().push(owner, QueuedImage { megapixels, sender });
        self.admit();
        // The sender is stored until it sends.
        receiver.await.unwrap_or(Permit { queue: self, megapixels: 0 })
    }

    /// Lets images begin while there is room for the next one.
    fn admit(&'static self) {
        loop {
            let Some(QueuedImage { megapixels, sender }) = self.lock().next() else { return };
            // The permit of an image that is not waiting any more is dropped, which frees its megapixels.
            drop(sender.send(Permit { queue: self, megapixels }));
        }
    }
}

impl Queue {
    fn push(&mut self, owner: &str, waiting: QueuedImage) {
        match self.owners.iter_mut().find(|(known, _)| known == owner) {
            Some((_, images)) => images.push_back(waiting),
            None => self.owners.push_back((owner.to_owned(), VecDeque::from([waiting]))),
        }
    }

    /// Takes the next image of the first owner, whose next turn is after all others.
    fn next(&mut self) -> Option<QueuedImage> {
        self.owners.iter_mut().for_each(|(_, images)| images.retain(|image| !image.sender.is_closed()));
        self.owners.retain(|(_, images)| !images.is_empty());
        let (_, images) = self.owners.front_mut()?;
        let next = images.pop_front_if(|next| next.megapixels <= self.free)?;
        let (owner, images) = self.owners.pop_front()?;
        if !images.is_empty() {
            self.owners.push_back((owner, images));
        }
        self.free -= next.megapixels;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn owners_take_turns() {
        static TURNS: DecodeQueue = DecodeQueue::new(10);
        let first = TURNS.wait("ann", 10).await;
        let mut anns: Vec<_> = (0..3).map(|_| Box::pin(TURNS.wait("ann", 10))).collect();
        assert!(anns.iter_mut().all(|next| next.now_or_never().is_none()));
        let mut bob = Box::pin(TURNS.wait("bob", 1));
        assert!((&mut bob).now_or_never().is_none());
        drop(first);
        let second = (&mut anns[0]).now_or_never().expect("the first in order");
        drop(second);
        let bobs = (&mut bob).now_or_never().expect("his turn is before the other images of ann");
        assert!((&mut anns[1]).now_or_never().is_none(), "there is no room next to it");
        drop(bobs);
        assert!((&mut anns[1]).now_or_never().is_some());
    }

    #[tokio::test]
    async fn image_that_is_not_needed_any_more_gives_up_its_turn() {
        static TURNS: DecodeQueue = DecodeQueue::new(10);
        let first = TURNS.wait("ann", 10).await;
        let mut dropped = Box::pin(TURNS.wait("ann", 10));
        assert!((&mut dropped).now_or_never().is_none());
        let mut next = Box::pin(TURNS.wait("bob", 10));
        assert!((&mut next).now_or_never().is_none());
        drop(dropped);
        drop(first);
        assert!((&mut next).now_or_never().is_some());
        assert_eq!(TURNS.lock().free, 10);
    }

    #[tokio::test]
    async fn images_within_the_limit_do_not_wait() {
        static TURNS: DecodeQueue = DecodeQueue::new(10);
        let permits = [TURNS.wait("ann", 4).await, TURNS.wait("ann", 4).await, TURNS.wait("bob", 2).await];
        assert!(TURNS.wait("bob", 1).now_or_never().is_none());
        drop(permits);
        assert_eq!(TURNS.lock().free, 10);
    }
}
