//! Parsers of numbers, sizes and addresses in settings.

use std::{
    net::{IpAddr, Ipv4Addr},
    str::FromStr,
};

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

/// Parses the base URL of a server and removes a trailing slash.
pub(super) fn url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_plain =
        |rest: &str| rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#@\\\"<>".contains(&byte));
    match rest.filter(|rest| !rest.is_empty() && !rest.starts_with('/') && is_plain(rest)) {
        Some(_) => Ok(text.trim_end_matches('/').to_owned()),
        None => Err(format!("`{text}` is not a valid base URL: use a form such as https://cog.example")),
    }
}

/// Parses an IP address, or `localhost`.
pub(super) fn ip_address(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        _ => text
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse()
            .map_err(|_| format!("`{text}` is not an IP address: use 127.0.0.1, ::1 or 0.0.0.0")),
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
    fn base_url_is_an_origin_with_an_optional_path() {
        for (text, read) in [
            ("https://cog.example", "https://cog.example"),
            ("http://[::1]:8000/", "http://[::1]:8000"),
            ("https://example.org/cog/", "https://example.org/cog"),
        ] {
            assert_eq!(url(text).as_deref(), Ok(read));
        }
        for text in [
            "",
            "cog.example",
            "https://",
            "https:///x",
            "ftp://x",
            "https://x?a",
            "https://a@b",
            "https://a b",
        ] {
            assert!(url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parses_ip_addresses() {
        assert!(ip_address("localhost").unwrap().is_loopback());
        assert!(ip_address("[::1]").unwrap().is_loopback());
        assert!(ip_address("example.org").is_err());
    }
}
