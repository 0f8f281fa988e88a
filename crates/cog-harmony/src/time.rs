//! Dates and times in a text (RFC 3339), without a clock.

/// Returns whether a text is a date, or a date with a time.
pub(crate) fn is_date(text: &str) -> bool {
    date(text).is_some_and(|rest| rest.is_empty()) || is_date_time(text)
}

/// Returns whether a text is a date with a time and an offset: `2024-03-20T10:00:00Z`.
pub(crate) fn is_date_time(text: &str) -> bool {
    let time = date(text).and_then(|rest| rest.strip_prefix(['T', 't', ' ']));
    time.and_then(time_of_day).is_some_and(|rest| matches!(rest, "Z" | "z") || is_offset(rest))
}

/// Reads a date. Returns the rest.
fn date(text: &str) -> Option<&str> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    ((1..=12).contains(&month) && (1..=days).contains(&day)).then_some(rest)
}

/// Reads hours, minutes and seconds. Returns the rest.
fn time_of_day(text: &str) -> Option<&str> {
    let (hour, rest) = digits(text, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => {
            let rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            (rest.len() < fraction.len()).then_some(rest)?
        }
        None => rest,
    };
    (hour < 24 && minute < 60 && second <= 60).then_some(rest)
}

fn is_offset(text: &str) -> bool {
    let offset = || {
        let (hour, rest) = digits(text.strip_prefix(['+', '-'])?, 2)?;
        let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
        Some(hour < 24 && minute < 60 && rest.is_empty())
    };
    offset() == Some(true)
}

/// Reads a number of exactly this many digits.
fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(count)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok().map(|number| (number, rest)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_dates_and_times() {
        for text in [
            "2024-03-20",
            "2024-02-29",
            "2000-02-29",
            "2024-05-31",
            "2024-04-30",
            "2024-03-20T10:00:00Z",
            "2024-03-20T10:00:00.5+08:00",
            "2024-03-20T23:59:60-23:59",
        ] {
            assert!(is_date(text), "{text}");
        }
        assert!(is_date_time("2024-03-20t10:00:60z"));
    }

    #[test]
    fn rejects_other_text() {
        for text in [
            "",
            "2024",
            "2024-3-20",
            "2023-02-29",
            "1900-02-29",
            "2024-04-31",
            "2024-13-01",
            "2024-03-20T",
            "2024-03-20T10:00",
            "2024-03-20T10:00:00",
            "2024-03-20T24:00:00Z",
            "2024-03-20T10:60:00Z",
            "2024-03-20T10:00:61Z",
            "2024-03-20T10:00:00+24:00",
            "2024-03-20T10:00:00+08:60",
            "2024-03-20T10:00:00+08:00x",
            "2024-03-20T10:00:00.Z",
            "2024-03-20T10:00:00+0800",
            "été4-03-20",
        ] {
            assert!(!is_date(text), "{text}");
        }
        assert!(!is_date_time("2024-03-20"));
    }
}
