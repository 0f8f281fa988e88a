//! The tokens of media: what their headers say, and the rules for images that the vendors publish (ruling R64).

use crate::{AudioPart, Detail};

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

// The tokens of an image, by the rules that the vendors publish (ruling R64).

/// The size of an image in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// How the models of a vendor count an image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ImageRule {
    /// OpenAI, guide "Images and vision": 85 tokens for low detail. Otherwise the image is fitted into 2048×2048, its short
    /// side is scaled down to 768, and each tile of 512×512 costs 170 tokens more.
    OpenAi,
    /// Anthropic, guide "Vision": a token for each patch of 28×28, after the image is fitted into a side and a number of
    /// patches.
    Claude { max_side: u32, max_tokens: u64 },
    /// Google, guide "Media resolution" for Gemini 3 and later: a fixed number of tokens for each resolution.
    Gemini3,
    /// Google, guide "Image understanding" for Gemini 2: 258 tokens for a small image, otherwise for each tile of up to
    /// 768×768.
    Gemini2,
    /// xAI, guide "Image understanding": 256 tokens for each tile of 448×448, and for one more; at most six tiles.
    Grok,
    /// A model without a published rule: the largest of all.
    Largest,
}

impl ImageRule {
    pub(crate) const CLAUDE: Self = Self::Claude { max_side: 2576, max_tokens: 4784 };
    pub(crate) const CLAUDE_BEFORE_4_7: Self = Self::Claude { max_side: 1568, max_tokens: 1568 };

    /// Every rule with a formula.
    const ALL: [Self; 6] =
        [Self::OpenAi, Self::CLAUDE, Self::CLAUDE_BEFORE_4_7, Self::Gemini3, Self::Gemini2, Self::Grok];

    /// Returns the tokens of an image of this size. A detail that is absent or `auto` counts as high.
    pub(crate) fn tokens(self, size: Size, detail: Option<Detail>) -> u64 {
        match self {
            Self::OpenAi if detail == Some(Detail::Low) => 85,
            Self::OpenAi => 85 + 170 * openai_tiles(size),
            Self::Claude { max_side, max_tokens } => claude_patches(size, max_side, max_tokens),
            Self::Gemini3 if detail == Some(Detail::Low) => 280,
            Self::Gemini3 => 1120,
            Self::Gemini2 => 258 * gemini_tiles(size),
            Self::Grok => 256 * (size.tiles(448).min(6) + 1),
            Self::Largest => Self::ALL.iter().map(|rule| rule.tokens(size, detail)).max().unwrap_or_default(),
        }
    }

    /// Returns the tokens of the image that costs the maximum.
    pub(crate) fn maximum(self, detail: Option<Detail>) -> u64 {
        match self {
            Self::OpenAi => self.tokens(Size { width: 2048, height: 768 }, detail),
            Self::Claude { max_tokens, .. } => max_tokens,
            Self::Gemini3 | Self::Grok => self.tokens(Size::square(3072), detail),
            Self::Gemini2 => self.tokens(Size { width: 3072, height: 384 }, detail),
            Self::Largest => Self::ALL.iter().map(|rule| rule.maximum(detail)).max().unwrap_or_default(),
        }
    }
}

fn openai_tiles(size: Size) -> u64 {
    let fitted = size.fit_long_side(2048);
    fitted.scaled_down(768.0 / f64::from(fitted.short_side())).tiles(512)
}

fn claude_patches(size: Size, max_side: u32, max_tokens: u64) -> u64 {
    const PATCH: u32 = 28;
    size.fit_long_side(max_side).tiles(PATCH).min(max_tokens)
}

/// Images are scaled down to 3072×3072. A tile is a crop of 256 to 768 pixels, two thirds of the short side.
fn gemini_tiles(size: Size) -> u64 {
    if size.width <= 384 && size.height <= 384 {
        return 1;
    }
    let fitted = size.fit_long_side(3072);
    fitted.tiles((fitted.short_side() * 2 / 3).clamp(256, 768))
}

impl Size {
    pub(crate) const PIXEL: Self = Self::square(1);

    const fn square(side: u32) -> Self {
        Self { width: side, height: side }
    }

    /// Returns the number of tiles with this side that cover the image.
    fn tiles(self, side: u32) -> u64 {
        u64::from(self.width.div_ceil(side).max(1)) * u64::from(self.height.div_ceil(side).max(1))
    }

    fn short_side(self) -> u32 {
        self.width.min(self.height).max(1)
    }

    /// Scales the size down until no side is longer.
    fn fit_long_side(self, max_side: u32) -> Self {
        self.scaled_down(f64::from(max_side) / f64::from(self.width.max(self.height).max(1)))
    }

    /// Scales the size by a factor; it is never scaled up.
    fn scaled_down(self, factor: f64) -> Self {
        if factor >= 1.0 {
            return self;
        }
        Self { width: scaled(self.width, factor), height: scaled(self.height, factor) }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "smaller than the side of an image"
)]
fn scaled(side: u32, factor: f64) -> u32 {
    (f64::from(side) * factor).round().max(1.0) as u32
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

#[cfg(test)]
mod image_tests {
    use super::*;

    fn pixels(width: u32, height: u32) -> Size {
        Size { width, height }
    }

    #[test]
    fn low_detail_is_85_tokens_and_high_detail_counts_tiles() {
        let openai = ImageRule::OpenAi;
        for (size, tokens) in [
            (pixels(512, 512), 255),
            (pixels(1024, 1024), 765),
            (pixels(2048, 4096), 1105),
            (pixels(4096, 2048), 1105),
            (pixels(1, 1), 255),
            (pixels(u32::MAX, 1), 85 + 170 * 4),
        ] {
            assert_eq!(openai.tokens(size, Some(Detail::Low)), 85);
            for detail in [Some(Detail::High), Some(Detail::Auto), None] {
                assert_eq!(openai.tokens(size, detail), tokens, "{size:?}");
            }
        }
        assert!(openai.maximum(None) > 1000);
    }

    #[test]
    fn claude_counts_patches_up_to_a_maximum() {
        for (size, before, now) in [
            (pixels(200, 200), 64, 64),
            (pixels(1000, 1000), 1296, 1296),
            (pixels(1092, 1092), 1521, 1521),
            (pixels(2000, 1500), 1568, 3888),
            (pixels(8000, 8000), 1568, 4784),
            (pixels(3136, 28), 56, 92),
        ] {
            assert_eq!(ImageRule::CLAUDE_BEFORE_4_7.tokens(size, None), before, "{size:?}");
            assert_eq!(ImageRule::CLAUDE.tokens(size, None), now, "{size:?}");
        }
    }

    #[test]
    fn gemini_counts_tiles_or_has_a_fixed_number() {
        for (size, tiles) in
            [(pixels(384, 384), 1), (pixels(960, 540), 6), (pixels(3072, 3072), 16), (pixels(8192, 8192), 16)]
        {
            assert_eq!(ImageRule::Gemini2.tokens(size, None), 258 * tiles, "{size:?}");
        }
        assert_eq!(ImageRule::Gemini3.tokens(pixels(8192, 8192), Some(Detail::Low)), 280);
        assert_eq!(ImageRule::Gemini3.tokens(pixels(10, 10), None), 1120);
    }

    #[test]
    fn grok_has_at_most_six_tiles_and_one_more() {
        assert_eq!(ImageRule::Grok.tokens(pixels(448, 448), None), 512);
        assert_eq!(ImageRule::Grok.tokens(pixels(4000, 4000), None), 1792);
    }

    #[test]
    fn no_image_costs_more_than_the_maximum() {
        let sides = [1, 27, 384, 385, 512, 767, 769, 1025, 1568, 2049, 3072, 5000, 8192, u32::MAX];
        for rule in ImageRule::ALL.into_iter().chain([ImageRule::Largest]) {
            for (width, height) in sides.iter().flat_map(|width| sides.map(|height| (*width, height))) {
                for detail in [None, Some(Detail::Low), Some(Detail::High)] {
                    let tokens = rule.tokens(pixels(width, height), detail);
                    assert!(tokens <= rule.maximum(detail), "{rule:?} {width}x{height} {detail:?}: {tokens}");
                }
            }
        }
    }
}
