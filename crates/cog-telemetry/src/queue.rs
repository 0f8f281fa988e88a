//! The spans that wait for their export.

use std::collections::VecDeque;

/// The maximum bytes that wait.
const MAX_BYTES: usize = 32 << 20;

/// A bounded queue of spans.
#[derive(Debug)]
pub(crate) struct Queue {
    spans: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The maximum number of spans.
    limit: usize,
}

impl Queue {
    pub(crate) fn new(limit: usize) -> Self {
        Self { spans: VecDeque::new(), bytes: 0, limit }
    }

    /// Adds a span. Returns the number of spans that wait; none if it does not fit.
    pub(crate) fn push(&mut self, span: Vec<u8>) -> Option<usize> {
        if self.spans.len() >= self.limit || self.bytes + span.len() > MAX_BYTES {
            return None;
        }
        self.bytes += span.len();
        self.spans.push_back(span);
        Some(self.spans.len())
    }

    /// Takes the oldest spans, at most `count`.
    pub(crate) fn take(&mut self, count: usize) -> Vec<Vec<u8>> {
        let taken: Vec<_> = self.spans.drain(..count.min(self.spans.len())).collect();
        self.bytes -= taken.iter().map(Vec::len).sum::<usize>();
        taken
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_is_bounded_by_spans_and_bytes() {
        let mut queue = Queue::new(3);
        for _ in 0..3 {
            assert!(queue.push(vec![0; 10]).is_some());
        }
        assert_eq!((queue.push(vec![0]), queue.len()), (None, 3));
        assert_eq!((queue.take(2).len(), queue.take(9).len(), queue.take(9).len()), (2, 1, 0));
        assert!(queue.push(vec![0; MAX_BYTES]).is_some() && queue.push(vec![0]).is_none());
        queue.take(1);
        assert!(queue.push(vec![0]).is_some());
    }
}
