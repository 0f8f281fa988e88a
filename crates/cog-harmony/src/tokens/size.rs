//! The dimensions of an image, from the header in its `data:` URL.

use crate::tokens::image::Size;

/// The lengths of the beginning of an image that are decoded, in characters of base64. Metadata may come before the dimensions.
const HEADS: [usize; 2] = [4 << 10, 1 << 20];

/// Returns the width and height of an image in a `data:` URL; none for any other URL, and for a header that is damaged.
pub(crate) fn image_size(url: &str) -> Option<Size> {
    let (kind, data) = url.split_at_checked(5)?;
    let (media_type, data) = data.split_once(',').filter(|_| kind.eq_ignore_ascii_case("data:"))?;
    if !media_type.to_ascii_lowercase().ends_with(";base64") {
        return None;
    }
    HEADS.iter().find_map(|length| size_of(data.get(..*length).unwrap_or(data)))
}

fn size_of(head: &str) -> Option<Size> {
    let groups = head.len() - head.len() % 4;
    let head = head.get(..groups)?.trim_end_matches('=');
    let bytes = base64_simd::STANDARD_NO_PAD.decode_to_vec(head).ok()?;
    let size = imagesize::blob_size(&bytes).ok()?;
    Some((u32::try_from(size.width).ok()?, u32::try_from(size.height).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(bytes: &[u8]) -> String {
        format!("data:image/png;base64,{}", base64_simd::STANDARD.encode_to_string(bytes))
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes().into_iter().chain(height.to_be_bytes()));
        bytes.extend(b"\x08\x02\0\0\0");
        bytes
    }

    fn jpeg(metadata: usize) -> Vec<u8> {
        let mut bytes = b"\xff\xd8".to_vec();
        for _ in 0..metadata {
            bytes.extend(b"\xff\xe1\xff\xff");
            bytes.extend(vec![0; 0xfffd]);
        }
        bytes.extend(b"\xff\xc0\x00\x11\x08\x01\xe0\x02\x80\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01");
        bytes
    }

    #[test]
    fn headers_have_the_dimensions() {
        assert_eq!(image_size(&url(&png(640, 480))), Some((640, 480)));
        assert_eq!(image_size(&url(b"GIF89a\x80\x02\xe0\x01\0\0\0")), Some((640, 480)));
        assert_eq!(image_size(&url(&jpeg(0))), Some((640, 480)));
        assert_eq!(image_size(&url(&jpeg(9))), Some((640, 480)), "after 590 KB of metadata");
        assert_eq!(image_size(url(&png(3, 4)).trim_end_matches('=')), Some((3, 4)), "without padding");
        assert_eq!(image_size(&format!("DATA{}", url(&png(3, 4)).trim_start_matches("data"))), Some((3, 4)));
    }

    #[test]
    fn other_urls_and_damaged_headers_have_none() {
        for url in [
            "https://example.com/a.png",
            "data:image/png,abc",
            "data:image/png;base64,",
            "data:image/png;base64,*",
            "data:",
            "dat",
            "数据:,",
            "",
            &url(b"Hello, this is not an image, but text"),
            &url(&png(640, 480)[..18]),
        ] {
            assert_eq!(image_size(url), None, "{url}");
        }
    }
}
