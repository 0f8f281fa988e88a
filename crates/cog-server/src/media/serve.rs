use std::{
    io::{Read, Seek as _, SeekFrom},
    time::Duration,
};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use cog_media::{Media, MediaError};
use futures_util::{Stream, stream};
use tokio::{task::spawn_blocking, time::Instant};

use super::{MediaStore, UploadError};
use crate::error::ApiError;

/// The number of bytes of one read.
const BLOCK: usize = 64 << 10;
/// Prevents the file from running scripts and loading resources.
const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox; frame-ancestors 'none'");

/// Returns a stored file as a response with the type of its content. Browsers save it, and only the cache of the owner may
/// store it. `Range` selects a part (RFC 9110 section 14). The content of an id never changes, so the id is the entity
/// tag.
///
/// # Errors
/// E1019 for an unknown file, E1018 for an expired one.
pub(crate) fn serve(
    store: &MediaStore,
    (id, owner): (&str, &str),
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, UploadError> {
    let (media, until) = store.media(id, owner)?;
    let length = media.bytes().len();
    let tag = format!("\"{id}\"");
    if is_cached(headers, &tag) {
        return Ok(not_modified(&tag));
    }
    let mut response = match Range::new(method, headers, length, &tag) {
        Range::Complete => bytes(&media, 0, length)?,
        Range::Part { first, last } => {
            let mut response = bytes(&media, first, last + 1 - first)?;
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            with_content_range(response, &format!("bytes {first}-{last}/{length}"))
        }
        Range::PastEnd => {
            let error = ApiError::from(UploadError::OutOfRange { length });
            return Ok(with_content_range(error.into_response(), &format!("bytes */{length}")));
        }
    };
    mark(response.headers_mut(), id, &media, until.saturating_duration_since(Instant::now()));
    response.headers_mut().insert(header::ETAG, value(&tag));
    Ok(response)
}

/// Returns whether the client has the file with this tag (RFC 9110 section 13.1.2).
fn is_cached(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

fn not_modified(tag: &str) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    response.headers_mut().insert(header::ETAG, value(tag));
    response
}

/// Returns `count` bytes of a file, from `first` on.
fn bytes(media: &Media, first: u64, count: u64) -> Result<Response, UploadError> {
    let mut reader = media.bytes().reader();
    reader.seek(SeekFrom::Start(first)).map_err(MediaError::from)?;
    let mut response = Response::new(Body::from_stream(blocks(reader.take(count))));
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(count));
    Ok(response)
}

/// Adds `Content-Range` to a response.
fn with_content_range(mut response: Response, range: &str) -> Response {
    response.headers_mut().insert(header::CONTENT_RANGE, value(range));
    response
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

fn mark(headers: &mut HeaderMap, id: &str, media: &Media, left: Duration) {
    let extension = extension(media.media_type());
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media.media_type()));
    headers.insert(header::CONTENT_DISPOSITION, value(&format!("attachment; filename=\"{id}.{extension}\"")));
    headers.insert(header::CACHE_CONTROL, value(&format!("private, max-age={}", left.as_secs())));
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
}

/// The file extension of a media type.
fn extension(media_type: &str) -> &str {
    match media_type {
        "image/jpeg" => "jpg",
        "audio/mpeg" => "mp3",
        "video/quicktime" => "mov",
        // The other types are named as their extension.
        other => other.rsplit('/').next().unwrap_or("bin"),
    }
}

fn blocks(reader: impl Read + Send + 'static) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    stream::try_unfold(reader, |mut reader| async move {
        let read = spawn_blocking(move || {
            let mut block = vec![0; BLOCK];
            let read = reader.read(&mut block)?;
            block.truncate(read);
            Ok::<_, std::io::Error>((Bytes::from(block), reader))
        });
        let (block, reader) = read.await.map_err(std::io::Error::other)??;
        Ok((!block.is_empty()).then_some((block, reader)))
    })
}

/// The part of a media file that a request selects (RFC 9110 section 14.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Range {
    /// The complete file: no range, or one that is not supported, such as several parts.
    Complete,
    /// The bytes from `first` to `last`, inclusive.
    Part { first: u64, last: u64 },
    /// A range that begins past the end of the file.
    PastEnd,
}

impl Range {
    /// Returns the range of a request for a file of this length and entity tag. `If-Range` with another tag, or with a date,
    /// selects the complete file.
    pub(super) fn new(method: &Method, headers: &HeaderMap, length: u64, tag: &str) -> Self {
        let is_current = text(headers, header::IF_RANGE).is_none_or(|known| known == tag);
        match text(headers, header::RANGE).filter(|_| method == Method::GET && is_current) {
            Some(range) => Self::read(range, length).unwrap_or(Self::Complete),
            None => Self::Complete,
        }
    }

    fn read(text: &str, length: u64) -> Option<Self> {
        let (unit, range) = text.split_once('=')?;
        let (first, last) = range.trim().split_once('-').filter(|_| unit.eq_ignore_ascii_case("bytes"))?;
        let (first, last) = match (first, last) {
            ("", count) => (length.saturating_sub(number(count)?), u64::MAX),
            (first, "") => (number(first)?, u64::MAX),
            (first, last) => (number(first)?, number(last)?),
        };
        match length.checked_sub(1) {
            _ if last < first => None,
            Some(end) if first <= end => Some(Self::Part { first, last: last.min(end) }),
            _ => Some(Self::PastEnd),
        }
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default().trim())
}

/// Parses digits only; a number that is too large counts as the end of the file.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range_of(headers: &[(&'static str, &'static str)]) -> Range {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Range::new(&Method::GET, &headers.collect(), 10, "\"tag\"")
    }

    #[test]
    fn parses_every_form_of_one_range() {
        for (text, first, last) in [
            ("bytes=0-0", 0, 0),
            ("bytes=2-5", 2, 5),
            ("bytes=2-99", 2, 9),
            ("bytes=9-", 9, 9),
            ("bytes=-3", 7, 9),
            ("bytes=-99", 0, 9),
            ("Bytes= 0-99999999999999999999", 0, 9),
        ] {
            assert_eq!(range_of(&[("range", text)]), Range::Part { first, last }, "{text}");
        }
    }

    #[test]
    fn range_past_the_end_fails_and_unsupported_range_is_ignored() {
        for text in ["bytes=10-", "bytes=10-12", "bytes=-0", "bytes=99999999999999999999-"] {
            assert_eq!(range_of(&[("range", text)]), Range::PastEnd, "{text}");
        }
        for text in
            ["", "bytes", "bytes=", "bytes=-", "bytes=5-2", "bytes=0-1,3-4", "bytes=+1-2", "items=0-1"]
        {
            assert_eq!(range_of(&[("range", text)]), Range::Complete, "{text}");
        }
    }

    #[test]
    fn if_range_requires_the_same_etag() {
        let with = |tag| range_of(&[("range", "bytes=0-1"), ("if-range", tag)]);
        assert_eq!(with("\"tag\""), Range::Part { first: 0, last: 1 });
        for other in ["\"other\"", "W/\"tag\"", "Wed, 04 Feb 2026 12:00:00 GMT"] {
            assert_eq!(with(other), Range::Complete, "{other}");
        }
        let headers = HeaderMap::from_iter([(header::RANGE, "bytes=0-1".parse().unwrap())]);
        assert_eq!(Range::new(&Method::HEAD, &headers, 10, "\"tag\""), Range::Complete);
    }
}
