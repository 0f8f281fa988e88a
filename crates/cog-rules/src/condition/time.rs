//! Dates and durations of ISO 8601, in nanoseconds. A date without an offset is one of UTC.

use std::fmt;

const SECOND: i128 = 1_000_000_000;
const MINUTE: i128 = 60 * SECOND;
const HOUR: i128 = 60 * MINUTE;
pub(crate) const DAY: i128 = 24 * HOUR;

/// Reads a date, such as `2026-01-31`, `2026-01-31T09:30Z` or `2026-01-31T09:30:00.5+02:00`.
pub(crate) fn date(text: &str) -> Option<i128> {
    let (day, rest) = text.split_at_checked(10)?;
    let year = digits(day.get(..4)?)?;
    let month = digits(day.get(5..7)?)?;
    let day = digits(day.get(8..)?)?;
    if text.get(4..5) != Some("-") || text.get(7..8) != Some("-") {
        return None;
    }
    let days = days(year, month, day)?;
    if rest.is_empty() {
        return Some(days * DAY);
    }
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, offset) = rest.split_at_checked(at)?;
    Some(days * DAY + clock_time(clock)? - offset_of(offset)?)
}

/// Reads a number of two or four digits.
fn digits(text: &str) -> Option<i128> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Returns the days since 1970-01-01; none if there is no such day.
fn days(year: i128, month: i128, day: i128) -> Option<i128> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // The year begins in March, so that the leap day is its last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day - 1 - 719_468)
}

/// Reads `09:30`, `09:30:15` or `09:30:15.5`.
fn clock_time(text: &str) -> Option<i128> {
    let mut parts = text.split(':');
    let hour = digits(parts.next().filter(|part| part.len() == 2)?)?;
    let minute = digits(parts.next().filter(|part| part.len() == 2)?)?;
    let seconds = parts.next().map_or(Some(0), |part| {
        let whole = part.split_once(['.', ',']).map_or(part, |(whole, _)| whole);
        decimal(part, SECOND).filter(|_| whole.len() == 2)
    })?;
    let is_valid = hour < 24 && minute < 60 && seconds < 61 * SECOND && parts.next().is_none();
    is_valid.then_some(hour * HOUR + minute * MINUTE + seconds)
}

/// Reads `Z`, `+02:00`, `-0530` or nothing.
fn offset_of(text: &str) -> Option<i128> {
    if matches!(text, "" | "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) = text.split_at_checked(1)?;
    let rest = rest.replace(':', "");
    let hour = digits(rest.get(..2)?)?;
    let minute = digits(rest.get(2..).filter(|rest| rest.len() == 2)?)?;
    let offset = (hour < 24 && minute < 60).then_some(hour * HOUR + minute * MINUTE)?;
    Some(if sign == "-" { -offset } else { offset })
}

/// Reads a number with an optional fraction, as a multiple of a unit.
fn decimal(text: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    if whole.is_empty() || whole.len() > 12 || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    Some(digits(whole)? * unit + digits(fraction)? * unit / scale)
}

/// Why text is not a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DurationError {
    /// It has another form.
    Form,
    /// It has years or months, whose lengths differ.
    Calendar,
}

/// Reads a duration of weeks, days, hours, minutes and seconds, such as `P30D`, `PT1H30M` or `-P1W`.
pub(crate) fn duration(text: &str) -> Result<i128, DurationError> {
    let (is_negative, body) = match text.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, text),
    };
    let body = body.strip_prefix('P').ok_or(DurationError::Form)?;
    let (days, clock) = body.split_once('T').unwrap_or((body, ""));
    if body.is_empty() || body.ends_with('T') {
        return Err(DurationError::Form);
    }
    if days.contains(['Y', 'M']) {
        return Err(DurationError::Calendar);
    }
    let sum = parts(days, &[('W', 7 * DAY), ('D', DAY)])
        .zip(parts(clock, &[('H', HOUR), ('M', MINUTE), ('S', SECOND)]))
        .map(|(days, clock)| days + clock)
        .ok_or(DurationError::Form)?;
    Ok(if is_negative { -sum } else { sum })
}

/// Reads numbers with units, each at most once and in this order.
fn parts(text: &str, units: &[(char, i128)]) -> Option<i128> {
    let mut sum = 0;
    let mut rest = text;
    for (unit, length) in units {
        if let Some((number, after)) = rest.split_once(*unit) {
            sum += decimal(number, *length)?;
            rest = after;
        }
    }
    rest.is_empty().then_some(sum)
}

/// A date for a message: `2026-01-31`, or with its time.
pub(crate) struct ShownDate(pub(crate) i128);

impl fmt::Display for ShownDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = self.0.div_euclid(DAY) + 719_468;
        let era = days.div_euclid(146_097);
        let of_era = days.rem_euclid(146_097);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year + era * 400 + i128::from(month <= 2);
        write!(f, "{year:04}-{month:02}-{day:02}")?;
        let clock = self.0.rem_euclid(DAY);
        if clock == 0 {
            return Ok(());
        }
        write!(f, "T{:02}:{:02}:{:02}Z", clock / HOUR, clock % HOUR / MINUTE, clock % MINUTE / SECOND)
    }
}

/// A duration for a message: `P3DT4H`.
pub(crate) struct ShownDuration(pub(crate) i128);

impl fmt::Display for ShownDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.0.abs();
        f.write_str(if self.0 < 0 { "-P" } else { "P" })?;
        let clock = length % DAY;
        if length >= DAY || clock == 0 {
            write!(f, "{}D", length / DAY)?;
        }
        if clock == 0 {
            return Ok(());
        }
        f.write_str("T")?;
        for (unit, part) in
            [('H', clock / HOUR), ('M', clock % HOUR / MINUTE), ('S', clock % MINUTE / SECOND)]
        {
            if part > 0 {
                write!(f, "{part}{unit}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_to_the_second_and_the_offset() {
        assert_eq!(date("1970-01-01"), Some(0));
        assert_eq!(date("1970-01-02T00:00Z"), Some(DAY));
        assert_eq!(date("1970-01-01T02:00:00+02:00"), Some(0));
        assert_eq!(date("1969-12-31T23:59:59.5-00:00"), Some(-SECOND / 2));
        // 1,700,000,000 seconds after the epoch.
        assert_eq!(date("2023-11-14T22:13:20Z"), Some(1_700_000_000 * SECOND));
        assert_eq!(date("2024-02-29").map(|at| at / DAY), Some(19_782));
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            "",
            "2023-02-29",
            "2026-13-01",
            "2026-1-1",
            "01.02.2026",
            "2026-01-01T",
            "2026-01-01T24:00",
            "2026-01-01T10",
            "2026-01-01T10:00:00+2",
            "2026-01-01x",
            "20260101",
            "２０２６-01-01",
        ] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    #[test]
    fn durations_have_fixed_lengths() {
        assert_eq!(duration("P30D"), Ok(30 * DAY));
        assert_eq!(duration("P1W"), Ok(7 * DAY));
        assert_eq!(duration("PT1H30M"), Ok(90 * MINUTE));
        assert_eq!(duration("-P1DT0.5S"), Ok(-DAY - SECOND / 2));
        assert_eq!(duration("P1M"), Err(DurationError::Calendar));
        assert_eq!(duration("P1Y2D"), Err(DurationError::Calendar));
        for text in ["", "P", "PT", "30D", "P1D2", "PT1M1H", "P1H", "P-1D", "P1DT"] {
            assert_eq!(duration(text), Err(DurationError::Form), "{text}");
        }
    }

    #[test]
    fn messages_show_iso_8601() {
        for text in ["2024-02-29", "1969-12-31", "2000-01-01T09:30:05Z", "0001-01-01"] {
            assert_eq!(ShownDate(date(text).unwrap()).to_string(), text);
        }
        for text in ["P3DT4H", "-PT1M", "P0D", "PT90S"] {
            let shown = if text == "PT90S" { "PT1M30S" } else { text };
            assert_eq!(ShownDuration(duration(text).unwrap()).to_string(), shown);
        }
    }
}
