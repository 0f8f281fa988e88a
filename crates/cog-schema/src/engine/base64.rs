//! Whether a text is base64, without decoding it: an answer may hold megabytes of it.

/// Whether a text is base64 of the standard alphabet, padded, without white space (RFC 4648, section 4).
pub(super) fn is_base64(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = bytes.strip_suffix(b"==").or_else(|| bytes.strip_suffix(b"=")).unwrap_or(bytes);
    bytes.len().is_multiple_of(4) && digits.iter().all(is_digit)
}

fn is_digit(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

#[cfg(test)]
mod tests {
    use super::is_base64;

    #[test]
    fn alphabet_and_padding_decide() {
        for good in ["", "QQ==", "QUI=", "QUJD", "+/+/"] {
            assert!(is_base64(good), "{good}");
        }
        for bad in ["Q", "QQ=", "QQ===", "Q===", "QU JD", "QUJ-", "=QUJ", "QQ==QUJD"] {
            assert!(!is_base64(bad), "{bad}");
        }
    }
}
