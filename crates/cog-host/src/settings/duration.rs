//! Durations in settings: `30s`, `500ms`, `2m`, `1.5`.

use std::time::Duration;

use serde::Deserialize;

/// The maximum duration, one day.
const MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Parses a duration; a number without a unit is in seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ if number.is_empty() => return Err(invalid(text)),
        _ => return Err(format!("`{unit}` is not a unit of time: use ms, s, m or h")),
    };
    let seconds = number.trim().parse::<f64>().map_err(|_| invalid(text))?;
    let length = Duration::try_from_secs_f64(seconds * factor).map_err(|_| invalid(text))?;
    match length {
        Duration::ZERO => Err("a duration must be more than zero".to_owned()),
        length if length > MAX => Err(format!("`{text}` is longer than one day")),
        length => Ok(length),
    }
}

fn invalid(text: &str) -> String {
    format!("`{text}` is not a valid duration: use a form such as 30s")
}

/// Formats a duration so that [`parse`] parses it.
pub fn show(length: Duration) -> String {
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
        parse(&text).map(Span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_units() {
        let millis = |text| parse(text).map(|length| length.as_millis());
        assert_eq!(millis("30"), Ok(30_000));
        assert_eq!(millis("1.5 s"), Ok(1_500));
        assert_eq!(millis("500ms"), Ok(500));
        assert_eq!(millis("2m"), Ok(120_000));
    }

    #[test]
    fn rejects_unknown_units_with_a_suggestion() {
        assert_eq!(parse("30 parsecs").unwrap_err(), "`parsecs` is not a unit of time: use ms, s, m or h");
        for text in ["", "-1s", "s", "0", "25h", "inf", "NaN", "1e999s"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("soon").unwrap_err(), "`soon` is not a valid duration: use a form such as 30s");
    }

    #[test]
    fn durations_round_trip() {
        for text in ["30s", "500ms", "1.5s"] {
            assert_eq!(show(parse(text).unwrap()), text);
        }
    }
}
