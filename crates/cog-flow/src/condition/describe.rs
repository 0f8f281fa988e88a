//! Describes sets of values in messages.

use std::{fmt, ops::Bound};

use super::{
    ranges::Interval,
    values::{Decimal, Values},
};

/// The maximum number of strings that a message lists.
const MAX_LISTED: usize = 12;
/// The maximum number of characters of each.
const MAX_CHARS: usize = 40;

impl fmt::Display for Values {
    /// `'low' or 'high'`, `a number from 0 to 1 or null`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = self.strings();
        words.extend(self.numbers.intervals().iter().map(numbers));
        words.extend(self.names().map(str::to_owned));
        f.write_str(&words.join(" or "))
    }
}

impl Values {
    fn strings(&self) -> Vec<String> {
        let point = |interval: &Interval<String>| match interval {
            (Bound::Included(lower), Bound::Included(upper)) if lower == upper => Some(quoted(lower)),
            _ => None,
        };
        let intervals = self.strings.intervals();
        let listed: Option<Vec<String>> = intervals.iter().map(point).collect();
        match listed.filter(|listed| listed.len() <= MAX_LISTED) {
            Some(listed) => listed,
            None => vec!["a string".to_owned()],
        }
    }
}

/// Returns a string of a schema as a message shows it.
fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
    format!("'{shown}'")
}

/// Returns the numbers of an interval: `1`, `a number from 0 to 1`.
fn numbers(interval: &Interval<Decimal>) -> String {
    let (lower, upper) = (end(&interval.0), end(&interval.1));
    match (lower, upper) {
        (None, None) => "a number".to_owned(),
        (Some(lower), None) => format!("a number from {lower}"),
        (None, Some(upper)) => format!("a number up to {upper}"),
        (Some(lower), Some(upper)) if lower == upper => lower,
        (Some(lower), Some(upper)) => format!("a number from {lower} to {upper}"),
    }
}

fn end(bound: &Bound<Decimal>) -> Option<String> {
    match bound {
        Bound::Included(value) => Some(value.to_string()),
        Bound::Excluded(value) => Some(format!("{value} (excluded)")),
        Bound::Unbounded => None,
    }
}
