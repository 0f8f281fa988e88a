//! Settings as text: numbers, sizes, durations such as `30s`, `500ms`, `2m` and `1.5`, and names.

use std::{str::FromStr, time::Duration};

use cog_provider::protocol::ProtocolKind;
use serde::Deserialize;

/// The maximum size.
const MAX_SIZE: usize = 1 << 40;

/// Parses a whole number.
pub(super) fn count<T: FromStr>(text: &str) -> Result<T, String> {
    // `1_000_000`, as TOML writes it.
    text.replace('_', "").parse().map_err(|_| format!("`{text}` is not a whole number"))
}

/// Parses a size: bytes, or with KiB, MiB, GiB.
pub(super) fn bytes(text: &str) -> Result<usize, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let shift = match unit.to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ if number.is_empty() => {
            return Err(format!("`{text}` is not a valid size: use a form such as 30MiB"));
        }
        _ => return Err(format!("`{unit}` is not a unit of size: use KiB, MiB or GiB")),
    };
    let number: usize = count(number.trim())
        .map_err(|_| format!("`{text}` is not a valid size: use a form such as 30MiB"))?;
    number
        .checked_mul(1 << shift)
        .filter(|size| (1..=MAX_SIZE).contains(size))
        .ok_or_else(|| format!("`{text}` is out of range: use 1 byte to 1024GiB"))
}

/// Formats a size so that [`bytes`] parses it.
pub(super) fn show_bytes(size: usize) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| size > 0 && size.is_multiple_of(1 << shift));
    unit.map_or_else(|| size.to_string(), |(shift, unit)| format!("{}{unit}", size >> shift))
}

/// Parses an amount of money.
pub(super) fn cost(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(cost) if cost.is_finite() && cost >= 0.0 => Ok(cost),
        _ => Err(format!("`{text}` is not an amount: use a number such as 0.5")),
    }
}

/// Parses `true` or `false`, and the usual other words for them.
pub(super) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(format!("`{text}` is neither `true` nor `false`")),
    }
}

/// Takes a string as it is.
pub(super) fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Parses comma-separated names.
pub(super) fn names(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Reads the name of a protocol.
pub(super) fn protocol(text: &str) -> Result<ProtocolKind, String> {
    let kind = ProtocolKind::from_setting(text);
    kind.ok_or_else(|| format!("`{text}` is not a protocol: use chat or responses"))
}

/// The maximum duration, one day.
const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

/// Parses a duration; a number without a unit is in seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ if number.is_empty() => return Err(invalid_duration(text)),
        _ => return Err(format!("`{unit}` is not a unit of time: use ms, s, m or h")),
    };
    let seconds = number.trim().parse::<f64>().map_err(|_| invalid_duration(text))?;
    let length = Duration::try_from_secs_f64(seconds * factor).map_err(|_| invalid_duration(text))?;
    match length {
        Duration::ZERO => Err("a duration must be more than zero".to_owned()),
        length if length > MAX_DURATION => Err(format!("`{text}` is longer than one day")),
        length => Ok(length),
    }
}

fn invalid_duration(text: &str) -> String {
    format!("`{text}` is not a valid duration: use a form such as 30s")
}

/// Formats a duration so that [`duration`] parses it.
pub fn show_duration(length: Duration) -> String {
    match length.subsec_millis() {
        0 => format!("{}s", length.as_secs()),
        _ if length.as_secs() == 0 => format!("{}ms", length.as_millis()),
        _ => format!("{:.1}s", length.as_secs_f64()),
    }
}

/// A duration, written `30s`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Span(pub(super) Duration);

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        duration(&text).map(Span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_trip() {
        for (text, size) in [("100", 100), ("64KiB", 64 << 10), ("30 MiB", 30 << 20), ("1g", 1 << 30)] {
            assert_eq!(bytes(text), Ok(size), "{text}");
            assert_eq!(bytes(&show_bytes(size)), Ok(size), "{text}");
        }
        for text in ["", "-1", "0", "1.5MiB", "3 parsecs", "99999999999999999999", "9999999GiB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parses_units() {
        let millis = |text| duration(text).map(|length| length.as_millis());
        assert_eq!(millis("30"), Ok(30_000));
        assert_eq!(millis("1.5 s"), Ok(1_500));
        assert_eq!(millis("500ms"), Ok(500));
        assert_eq!(millis("2m"), Ok(120_000));
    }

    #[test]
    fn rejects_unknown_units_with_a_suggestion() {
        assert_eq!(duration("30 parsecs").unwrap_err(), "`parsecs` is not a unit of time: use ms, s, m or h");
        for text in ["", "-1s", "s", "0", "25h", "inf", "NaN", "1e999s"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(duration("soon").unwrap_err(), "`soon` is not a valid duration: use a form such as 30s");
    }

    #[test]
    fn durations_round_trip() {
        for text in ["30s", "500ms", "1.5s"] {
            assert_eq!(show_duration(duration(text).unwrap()), text);
        }
    }
}
