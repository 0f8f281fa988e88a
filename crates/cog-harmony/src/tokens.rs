//! Counts the tokens of messages for a model (appendix A.9, ruling R64).

mod image;
mod models;
#[cfg_attr(not(feature = "tokenizers"), path = "tokens/bytes.rs")]
mod tokenizer;

use cog_json::{Node, ToJson as _};

use self::{image::Size, models::ModelFacts};
use crate::{
    AudioPart, Conversation, FilePart, ImagePart, Message, Part, Reasoning, ToolCall, ToolDefinition,
};

/// The tokens that frame a message: its start, its role, and its end.
const MESSAGE: u64 = 4;
/// The tokens that frame a name.
const NAME: u64 = 1;
/// The tokens that frame a tool call.
const CALL: u64 = 8;
/// The tokens with which the reply of the model begins.
const REPLY: u64 = 3;
/// The characters of base64 that count as one token of a file.
const FILE_CHARS: u64 = 4;

/// Counts the tokens of messages for one model. It reads at most the headers of images and audio, and does no I/O.
///
/// The table in `tokens/models.rs` has the tokenizer and the image rule of each model. For a model whose tokenizer is not
/// published, text is counted with every tokenizer that is built in, and the largest count applies. Without the
/// feature `tokenizers`, each byte counts as a token.
#[derive(Debug, Clone)]
pub struct TokenCounter {
    facts: &'static ModelFacts,
    bound: Bound,
}

/// Which way a count goes that cannot be exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Never too low.
    Upper,
    /// Never too high.
    Lower,
}

/// Why a count is not exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Estimate {
    /// The dimensions of an image are unknown, so it counts at the maximum.
    ImageSize,
    /// The length of an audio part is unknown, so it counts at the maximum for its bytes.
    AudioLength,
    /// Files count by their bytes, and those elsewhere as an image of the maximum.
    File,
    /// Reasoning and parts in a provider's own form count by their JSON.
    Native,
}

impl Estimate {
    /// Returns the reason as text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ImageSize => "unknown image dimensions, counted at the maximum",
            Self::AudioLength => "unknown audio length, counted at the maximum for its bytes",
            Self::File => "a file, counted by its bytes",
            Self::Native => "data in a provider's form, counted by their JSON",
        }
    }
}

/// The tokens of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartTokens {
    /// The number of tokens.
    pub tokens: u64,
    /// Why the number is not exact.
    pub estimate: Option<Estimate>,
}

/// The tokens of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageTokens {
    /// All tokens of the message, with those that frame it.
    pub total: u64,
    /// The number of images.
    pub images: usize,
    /// The tokens of the images.
    pub image_tokens: u64,
    /// Why the number is not exact, each reason once.
    pub estimates: Vec<Estimate>,
}

impl TokenCounter {
    /// Returns a counter for this model, whose counts are never too low if they are not exact. The name may begin with that
    /// of a vendor: `openai/gpt-4o`. An empty name is an unknown model.
    pub fn new(model: &str) -> Self {
        Self { facts: models::find(model), bound: Bound::Upper }
    }

    /// Returns a counter whose counts are never too high if they are not exact: the smallest count of the built-in tokenizers,
    /// and nothing for media of unknown size. Without the feature `tokenizers`, text counts nothing.
    pub fn at_least(model: &str) -> Self {
        Self { facts: models::find(model), bound: Bound::Lower }
    }

    /// Returns the name of the tokenizer: `o200k_base`, `the tokenizer of 8 that counts most`.
    pub fn tokenizer(&self) -> &'static str {
        tokenizer::name(self.facts.tokenizer, self.bound)
    }

    /// Returns whether text is counted with the model's own tokenizer.
    pub fn is_exact(&self) -> bool {
        tokenizer::is_exact(self.facts.tokenizer)
    }

    /// Returns the tokens of text.
    pub fn text(&self, text: &str) -> u64 {
        tokenizer::count(self.facts.tokenizer, text, self.bound)
    }

    /// Returns the tokens with which the reply begins.
    pub fn reply(&self) -> u64 {
        REPLY
    }

    /// Returns the tokens of all messages, and of the start of the reply.
    pub fn conversation(&self, conversation: &Conversation) -> u64 {
        self.reply() + conversation.messages().iter().map(|message| self.message(message).total).sum::<u64>()
    }

    /// Returns the tokens of a message.
    pub fn message(&self, message: &Message) -> MessageTokens {
        let mut counted = MessageTokens { total: MESSAGE, ..MessageTokens::default() };
        for part in &message.content {
            let tokens = self.part(part);
            if matches!(part, Part::Image(_)) {
                counted.images += 1;
                counted.image_tokens += tokens.tokens;
            }
            counted.add(tokens);
        }
        counted.total += message.name.as_ref().map_or(0, |name| NAME + self.text(name));
        counted.total += message.tool_calls.iter().map(|call| self.call(call)).sum::<u64>();
        if let Some(reasoning) = &message.reasoning {
            counted.add(self.reasoning(reasoning));
        }
        counted
    }

    /// Returns the tokens of a part.
    pub fn part(&self, part: &Part) -> PartTokens {
        match part {
            Part::Text(part) => PartTokens { tokens: self.text(&part.text), estimate: None },
            Part::Refusal(part) => PartTokens { tokens: self.text(&part.refusal), estimate: None },
            Part::Image(part) => self.image(part),
            Part::Audio(part) => self.audio(part),
            Part::File(part) => self.known_or(None, || file_tokens(part), Estimate::File),
            Part::FileReference(_) => self.known_or(None, || self.facts.images.maximum(None), Estimate::File),
            Part::Native(part) => self.known_or(None, || self.text(&part.item.to_json()), Estimate::Native),
        }
    }

    /// Returns the tokens of the definition of a tool. Providers show it to the model in forms of their own. A lower bound
    /// has only what each of them contains: names and descriptions.
    pub fn definition(&self, tool: &ToolDefinition) -> u64 {
        let schema = match self.bound {
            Bound::Upper => self.text(&tool.parameters.to_json()),
            Bound::Lower => self.described(tool.parameters.node()),
        };
        self.text(&tool.name) + self.text(&tool.description) + schema
    }

    /// Returns the tokens of the names and descriptions in a schema.
    fn described(&self, schema: Node<'_>) -> u64 {
        let members = schema.members().map(|(key, value)| match (key, value.as_str()) {
            ("description", Some(text)) => self.text(text),
            ("properties", None) => {
                value.members().map(|(name, schema)| self.text(name) + self.described(schema)).sum()
            }
            _ => self.described(value),
        });
        members.sum::<u64>() + schema.elements().map(|schema| self.described(schema)).sum::<u64>()
    }

    fn image(&self, part: &ImagePart) -> PartTokens {
        let rule = self.facts.images;
        let detail = part.detail;
        let maximum = rule.maximum(detail);
        // Some rules have one number for every size.
        let any_size = Some(maximum).filter(|maximum| rule.tokens((1, 1), detail) == *maximum);
        let known = any_size.or_else(|| image_size(&part.url).map(|size| rule.tokens(size, detail)));
        self.known_or(known, || maximum, Estimate::ImageSize)
    }

    fn audio(&self, part: &AudioPart) -> PartTokens {
        let (tokens, is_known) = audio_tokens(part);
        self.known_or(is_known.then_some(tokens), || tokens, Estimate::AudioLength)
    }

    fn reasoning(&self, reasoning: &Reasoning) -> PartTokens {
        self.known_or(None, || self.text(&reasoning.items.to_json()), Estimate::Native)
    }

    fn call(&self, call: &ToolCall) -> u64 {
        CALL + self.text(&call.name) + self.text(&call.arguments)
    }

    /// Returns a known number, otherwise the maximum or nothing.
    fn known_or(&self, known: Option<u64>, maximum: impl FnOnce() -> u64, estimate: Estimate) -> PartTokens {
        match (known, self.bound) {
            (Some(tokens), _) => PartTokens { tokens, estimate: None },
            (None, Bound::Upper) => PartTokens { tokens: maximum(), estimate: Some(estimate) },
            (None, Bound::Lower) => PartTokens { tokens: 0, estimate: Some(estimate) },
        }
    }
}

impl MessageTokens {
    fn add(&mut self, part: PartTokens) {
        self.total += part.tokens;
        self.estimates.extend(part.estimate.filter(|estimate| !self.estimates.contains(estimate)));
    }
}

fn file_tokens(part: &FilePart) -> u64 {
    (part.data.len() as u64).div_ceil(FILE_CHARS)
}

// The dimensions of an image, from the header in its `data:` URL.

/// The lengths of the beginning of an image that are decoded, in characters of base64.
// Nearly all images have their dimensions in the first kilobytes. In a JPEG, a preview and color profiles may come before.
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
    // A head may end inside a group of four characters, which cannot be decoded.
    let groups = head.len() - head.len() % 4;
    let head = head.get(..groups)?.trim_end_matches('=');
    let bytes = base64_simd::STANDARD_NO_PAD.decode_to_vec(head).ok()?;
    let size = imagesize::blob_size(&bytes).ok()?;
    Some((u32::try_from(size.width).ok()?, u32::try_from(size.height).ok()?))
}

#[cfg(test)]
mod size_tests {
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

// The tokens of audio.

/// The tokens of a second: Google counts 32, OpenAI 10.
const PER_SECOND: u64 = 32;
/// The minimum bytes of a second in a compressed format: 6 kbit/s.
const MIN_RATE: u64 = 750;
/// The bytes of the header of a WAV file up to its data.
const WAV_HEADER: usize = 44;

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
mod tests;

#[cfg(test)]
mod audio_tests {
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
