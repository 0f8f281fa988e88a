//! The spans that wait for their export.

use std::collections::VecDeque;

/// The maximum bytes that wait.
const MAX_BYTES: usize = 32 << 20;

/// Spans that are exported together, as fields of a message in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The number of spans.
    pub(crate) spans: usize,
    pub(crate) bytes: Vec<u8>,
}

/// A bounded queue of spans, in batches of which only the last is not full.
#[derive(Debug)]
pub(crate) struct Queue {
    batches: VecDeque<Batch>,
    spans: usize,
    bytes: usize,
    /// The maximum number of spans.
    limit: usize,
    /// The number of spans in a full batch.
    batch: usize,
}

impl Queue {
    pub(crate) fn new(limit: usize, batch: usize) -> Self {
        Self { batches: VecDeque::new(), spans: 0, bytes: 0, limit, batch }
    }

    /// Adds a span. Returns whether a batch is now full; none if the span does not fit.
    pub(crate) fn push(&mut self, span: &[u8]) -> Option<bool> {
        if self.spans >= self.limit || self.bytes + span.len() > MAX_BYTES {
            return None;
        }
        self.spans += 1;
        self.bytes += span.len();
        if self.batches.back().is_none_or(|last| last.spans >= self.batch) {
            self.batches.push_back(Batch::default());
        }
        let last = self.batches.back_mut()?;
        last.spans += 1;
        last.bytes.extend_from_slice(span);
        Some(last.spans >= self.batch)
    }

    /// Takes the oldest batch: one that is full, or any if the spans are due.
    pub(crate) fn take(&mut self, is_due: bool) -> Option<Batch> {
        let taken = self.batches.pop_front_if(|first| is_due || first.spans >= self.batch)?;
        self.spans -= taken.spans;
        self.bytes -= taken.bytes.len();
        Some(taken)
    }

    /// Removes every span. Returns their number.
    pub(crate) fn clear(&mut self) -> usize {
        self.batches.clear();
        self.bytes = 0;
        std::mem::take(&mut self.spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_is_bounded_by_spans_and_bytes() {
        let mut queue = Queue::new(3, 2);
        let full: Vec<_> = (0..4).map(|_| queue.push(&[0; 10])).collect();
        assert_eq!(full, [Some(false), Some(true), Some(false), None]);
        assert_eq!(queue.take(false).map(|batch| (batch.spans, batch.bytes.len())), Some((2, 20)));
        assert_eq!(
            (queue.take(false), queue.take(true).map(|batch| batch.spans), queue.take(true)),
            (None, Some(1), None)
        );
        assert!(queue.push(&vec![0; MAX_BYTES]).is_some() && queue.push(&[0]).is_none());
        assert_eq!((queue.clear(), queue.push(&[0])), (1, Some(false)));
    }
}
