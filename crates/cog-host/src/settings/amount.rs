//! Parsers of numbers, sizes and names in settings.

use std::str::FromStr;

/// The maximum size.
const MAX_SIZE: usize = 1 << 40;

/// Parses a whole number.
pub(super) fn count<T: FromStr>(text: &str) -> Result<T, String> {
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

/// Parses comma-separated names.
pub(super) fn names(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
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
}
