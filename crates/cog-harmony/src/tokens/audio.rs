//! The tokens of audio.

use crate::AudioPart;

/// The tokens of a second: Google counts 32, OpenAI 10.
const PER_SECOND: u64 = 32;
/// The minimum bytes of a second in a compressed format: 6 kbit/s.
const MIN_RATE: u64 = 750;
/// The bytes of the header of a WAV file up to its data.
const WAV_HEADER: usize = 44;

/// Returns the tokens of audio, and whether its length is known: that of a WAV file, or of raw PCM with 16 bits.
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
