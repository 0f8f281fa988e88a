//! The token of a request.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderValue, header};

/// The prefix of the subprotocol that contains a token.
const SUBPROTOCOL: &str = "cog.token.";

/// The token of `Authorization: Bearer`, or of a WebSocket's subprotocol.
///
/// A token in the URL is ignored: URLs end up in logs, histories and `Referer`.
pub(super) fn token(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    match headers.get(header::AUTHORIZATION) {
        Some(value) => bearer(value).map(Cow::Borrowed),
        None => headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().find_map(subprotocol),
    }
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn subprotocol(value: &HeaderValue) -> Option<Cow<'_, str>> {
    let offered = value.to_str().ok()?.split(',');
    offered.map(str::trim).find_map(|name| name.strip_prefix(SUBPROTOCOL)).and_then(unescaped)
}

/// Decodes `encodeURIComponent`: a subprotocol can contain neither `/` nor `=`.
fn unescaped(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut parts = text.split('%');
    let mut plain = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let byte = u8::from_str_radix(digits, 16).ok().filter(u8::is_ascii)?;
        plain.push(char::from(byte));
        plain.push_str(rest);
    }
    Some(Cow::Owned(plain))
}
