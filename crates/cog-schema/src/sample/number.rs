//! Numbers within limits.

use fastrand::Rng;
use serde_json::{Map, Value};

/// How far from a single limit a sample goes.
const REACH: f64 = 100.0;

/// An integer within the limits, a multiple where one is asked for.
pub(super) fn integer(rng: &mut Rng, members: &Map<String, Value>) -> Option<Value> {
    let (low, high) = range(members, |_| 1.0);
    let (low, high) = (low.ceil(), high.floor());
    if low > high || low.abs() > 9e15 || high.abs() > 9e15 {
        return None;
    }
    let value = rng.i64(low as i64..=high as i64);
    match limit(members, "multipleOf") {
        Some(step) if step >= 1.0 => {
            multiple(value as f64, step, low, high).map(|value| Value::from(value as i64))
        }
        _ => Some(Value::from(value)),
    }
}

/// A number within the limits, with two decimals where there is room for them.
pub(super) fn number(rng: &mut Rng, members: &Map<String, Value>) -> Option<Value> {
    let (low, high) = range(members, |limit| 1e-9 * limit.abs().max(1.0));
    if low > high {
        return None;
    }
    let value = low + rng.f64() * (high - low);
    let value = match limit(members, "multipleOf") {
        Some(step) => multiple(value, step, low, high)?,
        None => ((value * 100.0).round() / 100.0).clamp(low, high),
    };
    Some(Value::from(value))
}

/// The limits; an open one is moved in by a `step`, an absent one is near the other.
fn range(members: &Map<String, Value>, step: impl Fn(f64) -> f64) -> (f64, f64) {
    let above = limit(members, "exclusiveMinimum").map(|limit| limit + step(limit));
    let below = limit(members, "exclusiveMaximum").map(|limit| limit - step(limit));
    let low = [limit(members, "minimum"), above].into_iter().flatten().reduce(f64::max);
    let high = [limit(members, "maximum"), below].into_iter().flatten().reduce(f64::min);
    match (low, high) {
        (Some(low), Some(high)) => (low, high),
        (Some(low), None) => (low, low + REACH),
        (None, Some(high)) => (high - REACH, high),
        (None, None) => (0.0, REACH),
    }
}

fn multiple(value: f64, step: f64, low: f64, high: f64) -> Option<f64> {
    let down = (value / step).floor() * step;
    [down, down + step].into_iter().find(|value| (low..=high).contains(value))
}

fn limit(members: &Map<String, Value>, keyword: &str) -> Option<f64> {
    members.get(keyword).and_then(Value::as_f64)
}
