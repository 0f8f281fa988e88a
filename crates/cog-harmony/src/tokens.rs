//! Counts the tokens of messages for a model (appendix A.9, ruling R64).

mod media;
#[cfg_attr(not(feature = "tokenizers"), path = "tokens/bytes.rs")]
mod tokenizer;

use cog_json::{Node, ToJson as _};

use self::media::{ImageRule, audio_tokens};
use crate::{
    AudioPart, Conversation, FilePart, ImagePart, Message, Part, Reasoning, ToolCall, ToolDefinition,
};

pub(crate) use self::media::{Size, image_size};

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
/// A table has the tokenizer and the image rule of each model. For a model whose tokenizer is not
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
        Self { facts: find(model), bound: Bound::Upper }
    }

    /// Returns a counter whose counts are never too high if they are not exact: the smallest count of the built-in tokenizers,
    /// and nothing for media of unknown size. Without the feature `tokenizers`, text counts nothing.
    pub fn at_least(model: &str) -> Self {
        Self { facts: find(model), bound: Bound::Lower }
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
        let any_size = Some(maximum).filter(|maximum| rule.tokens(Size::PIXEL, detail) == *maximum);
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

// The tokenizer and the image rule of each model: facts that the vendors publish.

/// What is known about the models whose names start with one of `names`.
#[derive(Debug)]
pub(crate) struct ModelFacts {
    /// Starts of names in lower case; empty for all other models.
    names: &'static [&'static str],
    /// The tokenizer; none if it is not published.
    pub(crate) tokenizer: Option<&'static str>,
    pub(crate) images: ImageRule,
}

const fn model(
    names: &'static [&'static str],
    tokenizer: Option<&'static str>,
    images: ImageRule,
) -> ModelFacts {
    ModelFacts { names, tokenizer, images }
}

const OPENAI: ImageRule = ImageRule::OpenAi;
const CLAUDE: ImageRule = ImageRule::CLAUDE;
const CLAUDE_BEFORE_4_7: ImageRule = ImageRule::CLAUDE_BEFORE_4_7;
const GEMINI: ImageRule = ImageRule::Gemini3;
const GEMINI_2: ImageRule = ImageRule::Gemini2;
const UNKNOWN: ImageRule = ImageRule::Largest;

/// The first entry that matches applies. Models of a family without a published tokenizer come before its others.
const MODELS: &[ModelFacts] = &[
    model(&["gpt-oss", "gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "chatgpt"], Some("o200k_base"), OPENAI),
    model(&["o1", "o3", "o4"], Some("o200k_base"), OPENAI),
    model(&["gpt-4", "gpt-3.5", "gpt-35"], Some("cl100k_base"), OPENAI),
    model(&["gpt-"], None, OPENAI),
    model(&["claude-3", "claude-sonnet-4", "claude-haiku-4"], None, CLAUDE_BEFORE_4_7),
    model(&["claude-opus-4-7", "claude-opus-4-8", "claude-opus-4.7", "claude-opus-4.8"], None, CLAUDE),
    model(&["claude-opus-4"], None, CLAUDE_BEFORE_4_7),
    model(&["claude"], None, CLAUDE),
    model(&["gemini-1", "gemini-2"], None, GEMINI_2),
    model(&["gemini"], None, GEMINI),
    model(&["grok"], None, ImageRule::Grok),
    model(&["deepseek"], Some("deepseek_v3"), UNKNOWN),
    model(&["kimi-k2", "kimi-k3"], Some("kimi_k2"), UNKNOWN),
    model(&["qwen3.", "qwen-"], None, UNKNOWN),
    model(&["qwen2", "qwen3"], Some("qwen2"), UNKNOWN),
    model(&["llama-3", "llama3", "meta-llama-3"], Some("llama3"), UNKNOWN),
    model(&["mistral-nemo", "mistral-small", "mistral-medium"], Some("mistral_v3"), UNKNOWN),
    model(&["ministral", "magistral", "devstral", "pixtral-12b"], Some("mistral_v3"), UNKNOWN),
    model(&["minimax-m2"], Some("minimax_m2"), UNKNOWN),
];

const OTHER: ModelFacts = model(&[], None, UNKNOWN);

/// Returns what is known about a model. The name may have a vendor before it, or be the name of a fine-tuned model:
/// `openai/gpt-4o`, `ft:gpt-4o:acme`.
pub(crate) fn find(name: &str) -> &'static ModelFacts {
    let name = name.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let name = name.strip_prefix("ft:").unwrap_or(&name);
    let mut models = MODELS.iter();
    models.find(|facts| facts.names.iter().any(|start| name.starts_with(start))).unwrap_or(&OTHER)
}

/// Returns the tokenizers of the table.
#[cfg(all(test, feature = "tokenizers"))]
pub(crate) fn tokenizers() -> Vec<&'static str> {
    MODELS.iter().filter_map(|facts| facts.tokenizer).collect()
}

#[cfg(test)]
mod tests;
