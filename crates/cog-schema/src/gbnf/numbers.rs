//! Numbers in a grammar.

use serde_json::{Map, Value};

use super::Piece;

/// The digits of the largest integer, as in the grammars of llama.cpp.
const MAX_DIGITS: u32 = 16;
/// The largest integer without a bound.
const LARGEST: i128 = 10_i128.pow(MAX_DIGITS) - 1;

/// Any number.
pub(super) const NUMBER: (&str, &str) =
    ("number", r#""-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})?"#);

pub(super) fn number() -> Piece {
    Piece::new(format!("({})", NUMBER.1), 37)
}

/// Returns the integers within the bounds of a schema; none if there are none.
pub(super) fn integer(members: &Map<String, Value>) -> Option<Piece> {
    let bound = |name: &str| {
        let number = members.get(name)?;
        number.as_i64().map(i128::from).or(number.as_u64().map(i128::from))
    };
    let low = bound("minimum").into_iter().chain(bound("exclusiveMinimum").map(|bound| bound + 1)).max();
    let high = bound("maximum").into_iter().chain(bound("exclusiveMaximum").map(|bound| bound - 1)).min();
    let lowest = -LARGEST.max(high.map_or(0, i128::abs));
    let highest = LARGEST.max(low.map_or(0, i128::abs));
    let low = low.unwrap_or(lowest);
    let high = high.unwrap_or(highest);
    let mut branches = Vec::new();
    if low < 0 {
        let negative = naturals((-high).max(1).unsigned_abs(), low.unsigned_abs());
        branches.extend(negative.into_iter().map(|digits| format!(r#""-" {digits}"#)));
    }
    if high >= 0 {
        branches.extend(naturals(low.max(0).unsigned_abs(), high.unsigned_abs()));
    }
    let chars = low.to_string().len().max(high.to_string().len()) as u64;
    (!branches.is_empty()).then(|| Piece::new(format!("({})", branches.join(" | ")), chars))
}

/// Returns the numbers from `low` to `high`, one branch for each number of digits.
fn naturals(low: u128, high: u128) -> Vec<String> {
    let shortest = low.to_string();
    let longest = high.to_string();
    if low > high {
        return Vec::new();
    }
    let lengths = shortest.len()..=longest.len();
    let branch = |length: usize| {
        let low =
            if length == shortest.len() { shortest.clone() } else { format!("1{}", "0".repeat(length - 1)) };
        let high = if length == longest.len() { longest.clone() } else { "9".repeat(length) };
        range(low.as_bytes(), high.as_bytes())
    };
    lengths.map(branch).collect()
}

/// Returns the numbers between two numbers with as many digits.
fn range(low: &[u8], high: &[u8]) -> String {
    let (Some((first, low_rest)), Some((last, high_rest))) = (low.split_first(), high.split_first()) else {
        return String::new();
    };
    let length = low_rest.len();
    if low_rest.is_empty() {
        return digit(*first, *last);
    }
    if first == last {
        return format!("{} {}", digit(*first, *first), range(low_rest, high_rest));
    }
    let mut branches = Vec::new();
    let mut from = *first;
    let mut to = *last;
    if low_rest.iter().any(|digit| *digit != b'0') {
        branches.push(format!("{} {}", digit(*first, *first), range(low_rest, &vec![b'9'; length])));
        from += 1;
    }
    let ends_early = high_rest.iter().any(|digit| *digit != b'9');
    if ends_early {
        to -= 1;
    }
    if from <= to {
        branches.push(format!("{} [0-9]{{{length}}}", digit(from, to)));
    }
    if ends_early {
        branches.push(format!("{} {}", digit(*last, *last), range(&vec![b'0'; length], high_rest)));
    }
    format!("({})", branches.join(" | "))
}

fn digit(from: u8, to: u8) -> String {
    match from == to {
        true => format!("\"{}\"", char::from(from)),
        false => format!("[{}-{}]", char::from(from), char::from(to)),
    }
}
