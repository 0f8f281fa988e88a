//! The tokenizer and the image rule of each model: facts that the vendors publish.

use super::media::ImageRule;

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
mod tests {
    use super::*;

    #[test]
    fn names_have_the_facts_of_their_family() {
        for (name, tokenizer, images) in [
            ("gpt-4o-mini", Some("o200k_base"), OPENAI),
            ("openai/gpt-oss-120b", Some("o200k_base"), OPENAI),
            ("ft:gpt-3.5-turbo:acme", Some("cl100k_base"), OPENAI),
            ("gpt-6-luna", None, OPENAI),
            ("claude-sonnet-5-5", None, CLAUDE),
            ("claude-opus-4-1", None, CLAUDE_BEFORE_4_7),
            ("anthropic/claude-opus-4.7", None, CLAUDE),
            ("gemini-2.5-flash", None, GEMINI_2),
            ("gemini-3.8-flash", None, GEMINI),
            ("Qwen/Qwen3-32B", Some("qwen2"), UNKNOWN),
            ("Qwen/Qwen3.5-9B", None, UNKNOWN),
            ("meta-llama/Llama-3.3-70B", Some("llama3"), UNKNOWN),
            ("my-model", None, UNKNOWN),
            ("", None, UNKNOWN),
        ] {
            let facts = find(name);
            assert_eq!((facts.tokenizer, facts.images), (tokenizer, images), "{name}");
        }
    }
}
