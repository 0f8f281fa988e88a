use std::io::Read as _;

use base64_simd::STANDARD;

use crate::{MediaError, Store, Stored};

/// How many base64 digits are decoded at once; a multiple of four, so that no group is split.
const BLOCK: usize = 64 * 1024;

/// Decodes a media file from base64 (SPEC 4.2.2, RFC 4648 section 4), block by block.
///
/// White space, line breaks, the URL alphabet and missing padding are refused: two decoders could read them
/// differently.
///
/// # Errors
/// [`MediaError::NotBase64`], and as [`Store::push`]. Text that is too long for the limit is not decoded.
pub fn decode_base64(text: &str, mut store: Store) -> Result<Stored, MediaError> {
    if text.is_empty() {
        return Err(MediaError::NotBase64 { what: "it is empty" });
    }
    if !text.len().is_multiple_of(4) {
        return Err(MediaError::NotBase64 { what: "the length is not a multiple of four" });
    }
    store.expect(decoded_length(text))?;
    let mut block = vec![0; BLOCK / 4 * 3];
    let mut left = text.len();
    for digits in text.as_bytes().chunks(BLOCK) {
        left -= digits.len();
        if left > 0 && digits.ends_with(b"=") {
            return Err(MediaError::NotBase64 { what: "padding in the middle" });
        }
        let bytes = STANDARD
            .decode(digits, base64_simd::Out::from_slice(&mut block))
            .map_err(|_| MediaError::NotBase64 { what: "invalid character or padding" })?;
        store.push(bytes)?;
    }
    Ok(store.finish())
}

/// Encodes bytes as base64, for `data:` URLs and request bodies.
///
/// # Errors
/// If the disk cannot be read.
pub fn encode_base64(stored: &Stored) -> Result<String, MediaError> {
    let capacity = stored.len().div_ceil(3) * 4;
    let mut text = String::with_capacity(usize::try_from(capacity).unwrap_or_default());
    let mut block = vec![0; BLOCK / 4 * 3];
    let mut reader = stored.reader();
    loop {
        let mut filled = 0;
        // Only the last block may be incomplete, because only it ends in padding.
        while let Some(rest) = block.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match reader.read(rest)? {
                0 => break,
                read => filled += read,
            }
        }
        match block.get(..filled) {
            Some(bytes) if !bytes.is_empty() => STANDARD.encode_append(bytes, &mut text),
            _ => return Ok(text),
        }
    }
}

/// Returns how many bytes padded base64 decodes to.
fn decoded_length(text: &str) -> u64 {
    let padding = text.bytes().rev().take(2).filter(|byte| *byte == b'=').count();
    (text.len() / 4 * 3 - padding) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str) -> Result<Vec<u8>, MediaError> {
        let mut bytes = Vec::new();
        decode_base64(text, Store::with_limit(1 << 24))?.reader().read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn decodes_base64_of_any_length() {
        for length in [1, 2, 3, BLOCK / 4 * 3 - 1, BLOCK / 4 * 3, BLOCK / 4 * 3 + 1, 200_000] {
            let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 256).unwrap()).collect();
            let text = STANDARD.encode_to_string(&bytes);
            assert!(decode(&text).unwrap() == bytes, "{length} bytes");
            let stored = decode_base64(&text, Store::with_limit(1 << 24)).unwrap();
            assert!(encode_base64(&stored).unwrap() == text, "{length} bytes");
        }
    }

    #[test]
    fn rejects_invalid_base64() {
        let middle = format!("{}=={}", "QUJD".repeat(BLOCK / 4 - 1) + "QQ", "QUJD");
        for bad in
            ["", "QQ", "QQ=", "Q===", "QU=J", "QQ==\n", "QQ==QUJD", "-_-_", "***=", "QR==", "ÄÄ", &middle]
        {
            assert!(matches!(decode(bad), Err(MediaError::NotBase64 { .. })), "{bad:.40}");
        }
    }

    #[test]
    fn limit_counts_decoded_bytes_and_is_checked_first() {
        let at_the_limit = STANDARD.encode_to_string([7; 10]);
        assert!(decode_base64(&at_the_limit, Store::with_limit(10)).is_ok());
        let past_it = STANDARD.encode_to_string([7; 11]);
        assert!(matches!(
            decode_base64(&past_it, Store::with_limit(10)),
            Err(MediaError::TooLarge { limit: 10 })
        ));
        let endless = "*".repeat(1 << 20);
        assert!(matches!(decode_base64(&endless, Store::with_limit(10)), Err(MediaError::TooLarge { .. })));
    }
}
