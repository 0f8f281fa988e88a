//! Sets of ordered values as intervals.

use std::{
    cmp::Ordering,
    ops::{Bound, RangeBounds as _},
};

/// The maximum number of intervals of a result; one with more is replaced by a larger set.
pub(super) const MAX_INTERVALS: usize = 128;

/// A set of values: disjoint intervals in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranges<T>(Vec<Interval<T>>);

/// The lower and the upper end of an interval.
pub(crate) type Interval<T> = (Bound<T>, Bound<T>);

impl<T: Ord + Clone> Ranges<T> {
    /// Returns the set without values.
    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Returns the set of all values.
    pub(crate) fn all() -> Self {
        Self(vec![(Bound::Unbounded, Bound::Unbounded)])
    }

    /// Returns the set of all values between two ends.
    pub(crate) fn between(lower: Bound<T>, upper: Bound<T>) -> Self {
        Self(Vec::from_iter(Some((lower, upper)).filter(is_possible)))
    }

    /// Returns the set of these values.
    pub(crate) fn points(mut values: Vec<T>) -> Self {
        values.sort();
        values.dedup();
        let point = |value: T| (Bound::Included(value.clone()), Bound::Included(value));
        Self(values.into_iter().map(point).collect())
    }

    pub(crate) fn intervals(&self) -> &[Interval<T>] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps the intervals of which this is true.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Interval<T>) -> bool) {
        self.0.retain(keep);
    }

    /// Returns the values that are in both sets, and possibly others of this set.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut common = Vec::new();
        while let (Some((left_lower, left_upper)), Some((right_lower, right_upper))) =
            (left.peek(), right.peek())
        {
            if common.len() == MAX_INTERVALS {
                return self.clone();
            }
            let lower = if lower_order(left_lower, right_lower).is_lt() { right_lower } else { left_lower };
            let is_left_first = upper_order(left_upper, right_upper).is_lt();
            let upper = if is_left_first { left_upper } else { right_upper };
            common.extend(Some((lower.clone(), upper.clone())).filter(is_possible));
            if is_left_first {
                left.next()
            } else {
                right.next()
            };
        }
        Self(common)
    }

    /// Returns the values that are in one of the sets, and possibly others.
    pub(crate) fn or(self, other: Self) -> Self {
        let mut intervals = self.0;
        intervals.extend(other.0);
        // Of two sorted lists, the time is linear.
        intervals.sort_by(|left, right| lower_order(&left.0, &right.0));
        let mut joined: Vec<Interval<T>> = Vec::new();
        for (lower, upper) in intervals {
            match joined.last_mut() {
                Some((_, last)) if is_adjacent(last, &lower) => {
                    if upper_order(last, &upper).is_lt() {
                        *last = upper;
                    }
                }
                _ => joined.push((lower, upper)),
            }
        }
        if joined.len() > MAX_INTERVALS { Self::all() } else { Self(joined) }
    }

    /// Returns the values that are not in the set.
    pub(crate) fn complement(&self) -> Self {
        let (mut gaps, mut start) = (Vec::new(), Some(Bound::Unbounded));
        for (lower, upper) in &self.0 {
            gaps.extend(start.take().zip(opposite(lower)).filter(is_possible));
            start = opposite(upper);
        }
        gaps.extend(start.map(|start| (start, Bound::Unbounded)));
        Self(gaps)
    }
}

/// Returns whether no value is between the upper end of an interval and the lower end of the next one.
fn is_adjacent<T: Ord>(upper: &Bound<T>, lower: &Bound<T>) -> bool {
    match (upper, lower) {
        (Bound::Excluded(upper), Bound::Excluded(lower)) => lower < upper,
        (
            Bound::Included(upper) | Bound::Excluded(upper),
            Bound::Included(lower) | Bound::Excluded(lower),
        ) => lower <= upper,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
    }
}

/// Returns the end of the neighbouring interval; none where there is no neighbour.
fn opposite<T: Clone>(end: &Bound<T>) -> Option<Bound<T>> {
    match end {
        Bound::Included(value) => Some(Bound::Excluded(value.clone())),
        Bound::Excluded(value) => Some(Bound::Included(value.clone())),
        Bound::Unbounded => None,
    }
}

/// Returns whether an interval can contain values. An open interval between two different values counts as one that can.
fn is_possible<T: Ord>((lower, upper): &Interval<T>) -> bool {
    match (lower, upper) {
        (Bound::Included(lower), Bound::Included(upper)) => lower <= upper,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => lower < upper,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
    }
}

/// Compares two lower ends.
fn lower_order<T: Ord>(left: &Bound<T>, right: &Bound<T>) -> Ordering {
    order(left, right, Ordering::Less, Ordering::Less)
}

/// Compares two upper ends.
fn upper_order<T: Ord>(left: &Bound<T>, right: &Bound<T>) -> Ordering {
    order(left, right, Ordering::Greater, Ordering::Greater)
}

/// Compares two ends, where an unbounded end, and an included one beside an excluded one, have these orders.
fn order<T: Ord>(left: &Bound<T>, right: &Bound<T>, unbounded: Ordering, included: Ordering) -> Ordering {
    match (left, right) {
        (Bound::Unbounded, Bound::Unbounded) => Ordering::Equal,
        (Bound::Unbounded, _) => unbounded,
        (_, Bound::Unbounded) => unbounded.reverse(),
        (Bound::Included(left), Bound::Excluded(right)) => left.cmp(right).then(included),
        (Bound::Excluded(left), Bound::Included(right)) => left.cmp(right).then(included.reverse()),
        (Bound::Included(left), Bound::Included(right)) | (Bound::Excluded(left), Bound::Excluded(right)) => {
            left.cmp(right)
        }
    }
}

/// Returns whether an interval contains a value.
pub(crate) fn contains<T: Ord>(interval: &Interval<T>, value: &T) -> bool {
    (interval.0.as_ref(), interval.1.as_ref()).contains(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns sets with ends from 0 to 9, of which the odd numbers are values.
    fn sets() -> impl Strategy<Value = Ranges<u8>> {
        let end = || {
            prop_oneof![
                Just(Bound::Unbounded),
                (0_u8..10).prop_map(Bound::Included),
                (0_u8..10).prop_map(Bound::Excluded)
            ]
        };
        let interval = (end(), end()).prop_map(|(lower, upper)| Ranges::between(lower, upper));
        let points = prop::collection::vec(0_u8..10, 0..4).prop_map(Ranges::points);
        prop::collection::vec(prop_oneof![interval, points], 0..4)
            .prop_map(|sets| sets.into_iter().fold(Ranges::none(), Ranges::or))
    }

    fn has(set: &Ranges<u8>, value: u8) -> bool {
        set.intervals().iter().any(|interval| contains(interval, &value))
    }

    proptest! {
        #[test]
        fn operations_are_those_of_sets(left in sets(), right in sets()) {
            for value in 0..12 {
                let (in_left, in_right) = (has(&left, value), has(&right, value));
                prop_assert_eq!(has(&left.and(&right), value), in_left && in_right);
                prop_assert_eq!(has(&left.clone().or(right.clone()), value), in_left || in_right);
                prop_assert_eq!(has(&left.complement(), value), !in_left);
            }
            prop_assert_eq!(left.complement().complement(), left.clone());
            prop_assert!(left.and(&left.complement()).is_empty());
        }
    }

    #[test]
    fn set_of_too_many_intervals_becomes_larger() {
        let points = Ranges::points((0..1_000).collect::<Vec<u32>>());
        assert_eq!(points.and(&Ranges::points((0..1_000).step_by(2).collect())), points);
        assert_eq!(points.clone().or(Ranges::points(vec![1_001])), Ranges::all());
        assert_eq!(points.and(&Ranges::points(vec![7, 8])), Ranges::points(vec![7, 8]));
    }
}
