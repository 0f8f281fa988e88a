//! What the headers of media say: the dimensions of an image, and the length of audio.

use super::image::Size;
use crate::AudioPart;

/// The lengths of the beginning of an image that are decoded, in characters of base64.
// Nearly all images have their dimensions in the first kilobytes. In a JPEG, a preview and color profiles may come before.
const HEADS: [usize; 2] = [4 << 10, 1 << 20];

/// The tokens of a second: Google counts 32, OpenAI 10.
const PER_SECOND: u64 = 32;

/// The minimum bytes of a second in a compressed format: 6 kbit/s.
const MIN_RATE: u64 = 750;

/// The bytes of the header of a WAV file up to its data.
const WAV_HEADER: usize = 44;

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
    // A head may end inside a group of four characters, which cannot be decoded.
    let groups = head.len() - head.len() % 4;
    let head = head.get(..groups)?.trim_end_matches('=');
    let bytes = base64_simd::STANDARD_NO_PAD.decode_to_vec(head).ok()?;
    let size = imagesize::blob_size(&bytes).ok()?;
    Some(Size { width: u32::try_from(size.width).ok()?, height: u32::try_from(size.height).ok()? })
}

/// Returns the tokens of audio, and whether its length is known, as for a WAV file or raw PCM with 16 bits.
pub(crate) fn audio_tokens(part: &AudioPart) -> (u64, bool) {
    let bytes = part.data.trim_end_matches('=').len() as u64 * 3 / 4;
    let rate = match (part.format.as_str(), part.sample_rate) {
        ("wav", _) => wav_rate(&part.data),
        ("pcm" | "pcm16", Some(rate)) => rate.checked_mul(2),
        _ => None,
    };
    let known = rate.filter(|rate| *rate > 0);
    ((bytes * PER_SECOND).div_ceil(known.unwrap_or(MIN_RATE)), known.is_some())
}

/// Returns the bytes of a second, from the header of a WAV file.
fn wav_rate(data: &str) -> Option<u64> {
    let head = data.get(..WAV_HEADER.div_ceil(3) * 4)?;
    let bytes = base64_simd::STANDARD.decode_to_vec(head).ok()?;
    let is_wav = bytes.starts_with(b"RIFF") && bytes.get(8..16) == Some(b"WAVEfmt ");
    let rate: [u8; 4] = bytes.get(28..32).filter(|_| is_wav)?.try_into().ok()?;
    Some(u64::from(u32::from_le_bytes(rate)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;

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
        assert_eq!(image_size(&url(&png(640, 480))), Some(Size { width: 640, height: 480 }));
        assert_eq!(image_size(&url(b"GIF89a\x80\x02\xe0\x01\0\0\0")), Some(Size { width: 640, height: 480 }));
        assert_eq!(image_size(&url(&jpeg(0))), Some(Size { width: 640, height: 480 }));
        assert_eq!(
            image_size(&url(&jpeg(9))),
            Some(Size { width: 640, height: 480 }),
            "after 590 KB of metadata"
        );
        assert_eq!(
            image_size(url(&png(3, 4)).trim_end_matches('=')),
            Some(Size { width: 3, height: 4 }),
            "without padding"
        );
        assert_eq!(
            image_size(&format!("DATA{}", url(&png(3, 4)).trim_start_matches("data"))),
            Some(Size { width: 3, height: 4 })
        );
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

    /// A WAV file with 16 bits in mono.
    fn wav(rate: u32, seconds: usize) -> String {
        let mut bytes = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        bytes.extend(rate.to_le_bytes().into_iter().chain((rate * 2).to_le_bytes()));
        bytes.extend(b"\x02\0\x10\0data\0\0\0\0");
        bytes.extend(vec![0; rate as usize * 2 * seconds]);
        base64_simd::STANDARD.encode_to_string(bytes)
    }

    fn audio(data: String, format: &str, sample_rate: Option<u64>) -> AudioPart {
        let Part::Audio(audio) = Part::media("audio/wav", data) else { panic!("not audio") };
        AudioPart { format: format.to_owned(), sample_rate, ..audio }
    }

    #[test]
    fn wav_and_pcm_have_a_known_length() {
        assert_eq!(audio_tokens(&audio(wav(8000, 10), "wav", None)), (321, true));
        let raw = base64_simd::STANDARD.encode_to_string(vec![0; 48_000]);
        assert_eq!(audio_tokens(&audio(raw, "pcm16", Some(24_000))), (32, true));
    }

    #[test]
    fn other_audio_counts_at_the_maximum() {
        let head = |head: &[u8; 16]| base64_simd::STANDARD.encode_to_string([&head[..], &[1; 734]].concat());
        for (data, format, rate) in [
            (head(b"RIFF\0\0\0\0AVI LIST"), "wav", None),
            (head(b"RIFX\0\0\0\0WAVEfmt "), "wav", None),
            ("AAAA".repeat(250), "mp3", None),
            ("AAAA".repeat(250), "wav", None),
            ("AAAA".repeat(250), "pcm", Some(0)),
        ] {
            assert_eq!(audio_tokens(&audio(data, format, rate)), (32, false), "{format}");
        }
    }
}
