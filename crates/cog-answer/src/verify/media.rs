use cog_json::Node;
use cog_schema::Violation;

use super::fields::{self, Field, absent, due, is_count, is_object, is_text, is_word, may, mistyped};

const URL: [Field; 2] = [
    due("url", "a URL that starts with `http://` or `https://`", is_url),
    may("media_type", TYPES, is_media_type),
];

const BASE64: [Field; 2] =
    [due("media_type", TYPES, is_media_type), due("data", "base64, padded, without white space", is_base64)];

const FILE: [Field; 2] = [due("path", "a path", is_word), may("media_type", TYPES, is_media_type)];

const UPLOAD: [Field; 1] = [due("upload_id", "an id such as `upl_…`", is_word)];

/// What may stand beside any source, and beside a generated medium (SPEC 4.3).
const COMMON: [Field; 6] = [
    may("width", "an integer of pixels", is_count),
    may("height", "an integer of pixels", is_count),
    may("duration_ms", "an integer of milliseconds", is_count),
    may("expires_at", "a time such as `2026-02-04T12:00:00Z`", is_time),
    may("generation_params", "an object", is_object),
    may("checksum", "an object", is_object),
];

const CHECKSUM: [Field; 2] = [
    due("algorithm", "`sha256`, `md5` or `crc32`", |node| {
        node.as_str().is_some_and(|name| ["sha256", "md5", "crc32"].contains(&name))
    }),
    due("value", "a string", is_text),
];

const TYPES: &str = "a type such as `image/png`, of an image, audio, video or PDF";

/// Checks the shape of a medium, a source or a generated one (SPEC 4.2, 4.3). Its bytes are not looked at.
pub(super) fn check(medium: Node<'_>, found: &mut Vec<Violation>) {
    let kind = medium.get("type");
    let fields: &[Field] = match kind.and_then(Node::as_str) {
        Some("url") => &URL,
        Some("base64") => &BASE64,
        Some("file") => &FILE,
        Some("upload_ref") => &UPLOAD,
        _ => &[],
    };
    match kind {
        _ if !medium.is_object() => return found.push(mistyped(medium, "", "an object")),
        None => found.push(absent("type", "type")),
        Some(kind) if fields.is_empty() => {
            found.push(mistyped(kind, "type", "`url`, `base64`, `file` or `upload_ref`"));
        }
        Some(_) => {}
    }
    fields::check(medium, "", fields, found);
    fields::check(medium, "", &COMMON, found);
    if let Some(checksum) = medium.get("checksum").filter(|checksum| checksum.is_object()) {
        fields::check(checksum, "checksum", &CHECKSUM, found);
    }
}

fn is_url(node: Node<'_>) -> bool {
    let rest =
        node.as_str().and_then(|url| url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")));
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !host.is_empty() && !rest.contains(|char: char| char.is_whitespace() || char.is_control())
    })
}

/// `^(image|audio|video)/[a-z0-9.+-]+$` of SPEC 2.3, and PDF.
fn is_media_type(node: Node<'_>) -> bool {
    let Some(text) = node.as_str() else { return false };
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'+' | b'-'))
    };
    let of_medium = text
        .split_once('/')
        .is_some_and(|(kind, name)| ["image", "audio", "video"].contains(&kind) && is_name(name));
    of_medium || text == "application/pdf"
}

/// The standard alphabet, padded to whole groups of four, not empty.
fn is_base64(node: Node<'_>) -> bool {
    let Some(text) = node.as_str() else { return false };
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !text.is_empty() && text.len() % 4 == 0 && digits.bytes().all(is_digit)
}

/// RFC 3339, as far as its form goes.
fn is_time(node: Node<'_>) -> bool {
    let Some((date, rest)) = node.as_str().and_then(|text| text.split_once(['T', 't'])) else { return false };
    let is_like = |text: &str, pattern: &str| {
        text.len() == pattern.len()
            && text.bytes().zip(pattern.bytes()).all(|(byte, like)| match like {
                b'0' => byte.is_ascii_digit(),
                like => byte == like,
            })
    };
    let Some((time, zone)) = rest.split_at_checked(8) else { return false };
    let zone = match zone.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|digit: char| digit.is_ascii_digit()),
        None => zone,
    };
    let is_zone = matches!(zone, "Z" | "z") || is_like(zone, "+00:00") || is_like(zone, "-00:00");
    is_like(date, "0000-00-00") && is_like(time, "00:00:00") && is_zone
}
