//! Refuses compressed bodies: a small one could fill the memory once it is decompressed.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use cog_spec::{Code, ErrorBody};

use super::{Reason, Refusal};

/// Checks that a body is not compressed: neither its content (415) nor its transfer (501).
///
/// Each header may be repeated, and each value may be a list.
///
/// # Errors
/// E1001 with the encoding.
pub(super) fn check(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut content = encodings(headers, header::CONTENT_ENCODING);
    if let Some(other) = content.find(|name| !name.eq_ignore_ascii_case(b"identity")) {
        return Err(refusal(&header::CONTENT_ENCODING, other, StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    // hyper accepts a transfer whose last encoding is chunked, and decodes only that one.
    let mut transfer = encodings(headers, header::TRANSFER_ENCODING);
    match transfer.find(|name| !name.eq_ignore_ascii_case(b"chunked")) {
        Some(other) => Err(refusal(&header::TRANSFER_ENCODING, other, StatusCode::NOT_IMPLEMENTED)),
        None => Ok(()),
    }
}

fn encodings(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &[u8]> {
    let lists = headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
    lists
        .flat_map(|list| list.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|name| !name.is_empty())
}

fn refusal(header: &HeaderName, found: &[u8], status: StatusCode) -> Refusal {
    let found: String = String::from_utf8_lossy(found).chars().take(60).collect();
    let message = format!("unsupported {header}: {}", found.escape_debug());
    let error = ErrorBody::new(Code::InvalidInput, message).suggest("Send the body without compression.");
    // The rest of the body would be read as the next request.
    Refusal::new(Reason::Encoding, status, error).close()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(pairs: &[(HeaderName, &'static str)]) -> Option<u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, HeaderValue::from_static(value));
        }
        check(&headers).err().map(|refusal| refusal.status().as_u16())
    }

    #[test]
    fn every_encoding_of_every_line_is_checked() {
        let content = header::CONTENT_ENCODING;
        let transfer = header::TRANSFER_ENCODING;
        for (pairs, expected) in [
            (vec![], None),
            (vec![(content.clone(), "identity"), (transfer.clone(), "Chunked")], None),
            (vec![(content.clone(), "gzip")], Some(415)),
            (vec![(content.clone(), "identity"), (content.clone(), "br")], Some(415)),
            (vec![(content.clone(), "identity, zstd")], Some(415)),
            (vec![(transfer.clone(), "gzip, chunked")], Some(501)),
            (vec![(transfer.clone(), "gzip"), (transfer.clone(), "chunked")], Some(501)),
        ] {
            assert_eq!(status(&pairs), expected, "{pairs:?}");
        }
    }
}
