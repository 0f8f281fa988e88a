//! Lengths of time as people write them: `30s`, `500ms`, `2m`, `1.5`.

use std::time::Duration;

/// The longest that can be asked for: a day.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads a length of time; a bare number is seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time: write ms, s, m or h")),
    };
    let seconds =
        number.trim().parse::<f64>().map_err(|_| format!("`{text}` is no length of time: write 30s"))?;
    let length = Duration::try_from_secs_f64(seconds * factor)
        .map_err(|_| format!("`{text}` is no length of time"))?;
    match length {
        Duration::ZERO => Err("a length of time must be more than nothing".to_owned()),
        length if length > LONGEST => Err(format!("`{text}` is more than a day")),
        length => Ok(length),
    }
}

/// Writes a length of time as [`parse`] reads it.
pub(crate) fn show(length: Duration) -> String {
    match length.subsec_millis() {
        0 => format!("{}s", length.as_secs()),
        _ if length.as_secs() == 0 => format!("{}ms", length.as_millis()),
        _ => format!("{:.1}s", length.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read() {
        let millis = |text| parse(text).map(|length| length.as_millis());
        assert_eq!(millis("30"), Ok(30_000));
        assert_eq!(millis("1.5 s"), Ok(1_500));
        assert_eq!(millis("500ms"), Ok(500));
        assert_eq!(millis("2m"), Ok(120_000));
    }

    #[test]
    fn nonsense_is_refused_with_what_to_write() {
        assert_eq!(parse("30 parsecs").unwrap_err(), "`parsecs` is no unit of time: write ms, s, m or h");
        for text in ["", "-1s", "s", "0", "25h", "inf", "NaN", "1e999s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for text in ["30s", "500ms", "1.5s"] {
            assert_eq!(show(parse(text).unwrap()), text);
        }
    }
}
