//! How the models of each vendor use tools: facts from the vendors' documentation and clients.
//!
//! The first entry that matches a model applies. An entry without names is the last one of a vendor.

use cog_spec::Dialect;

use super::{RequestLimits, ToolSettings, ToolSupport};

const PLAIN: ToolSettings = ToolSettings::PLAIN;

/// The limit of OpenAI's Chat Completions, which other vendors copied with the protocol.
const AT_MOST_128: RequestLimits = RequestLimits { tools: 128, ..RequestLimits::NONE };

/// Models of OpenAI that do not reason.
const GPT: ToolSettings = ToolSettings {
    dialect: Dialect::OpenAiStrict,
    strict: true,
    with_schema: true,
    limits_calls: true,
    result_media: true,
    limits: AT_MOST_128,
    ..PLAIN
};
const GPT_5: ToolSettings = ToolSettings { encrypted_reasoning: true, ..GPT };

/// From GPT-5.6 on, Chat Completions accepts tools only without reasoning.
pub(super) const OPENAI: &[ToolSettings] = &[
    ToolSettings { names: &["gpt-image", "chatgpt-image", "dall-e"], ..ToolSettings::NONE },
    ToolSettings { names: &["gpt-3", "gpt-4", "chatgpt", "gpt-audio", "gpt-oss"], ..GPT },
    ToolSettings { names: &["o1", "o3", "o4"], limits_calls: false, ..GPT_5 },
    ToolSettings { names: &["gpt-5.1", "gpt-5.2", "gpt-5.3", "gpt-5.4", "gpt-5.5"], ..GPT_5 },
    ToolSettings { names: &["gpt-5."], over_chat: ToolSupport::WithoutReasoning, ..GPT_5 },
    ToolSettings { names: &["gpt-5"], ..GPT_5 },
    ToolSettings { names: &["gpt-6-astra", "gpt-6.1-sol"], over_chat: ToolSupport::Rejected, ..GPT_5 },
    ToolSettings { names: &["gpt-"], over_chat: ToolSupport::WithoutReasoning, ..GPT_5 },
    GPT,
];

const CLAUDE: ToolSettings = ToolSettings {
    dialect: Dialect::Anthropic,
    strict: true,
    with_schema: true,
    limits_calls: true,
    result_media: true,
    plain_arguments: true,
    limits: RequestLimits { strict: 20, optional: 24, unions: 16, ..RequestLimits::NONE },
    ..PLAIN
};

/// From Claude 5 on, the models reason unless a request disables it, and a reasoning model cannot be forced to call a
/// tool.
pub(super) const ANTHROPIC: &[ToolSettings] = &[
    ToolSettings {
        names: &["claude-3", "claude-haiku-4", "claude-sonnet-4", "claude-opus-4", "claude-mythos-preview"],
        ..CLAUDE
    },
    ToolSettings { forced: ToolSupport::WithoutReasoning, ..CLAUDE },
];

const GEMINI_3: ToolSettings = ToolSettings {
    dialect: Dialect::Gemini,
    with_schema: true,
    result_media: true,
    placeholder: Some("skip_thought_signature_validator"),
    letter_first: true,
    ..PLAIN
};

/// Until Gemini 2.5, a request has either tools or a schema.
pub(super) const GEMINI: &[ToolSettings] = &[
    ToolSettings {
        names: &["gemini-2.5-flash-image", "gemini-3-pro-image", "gemini-3.1-flash-image"],
        ..ToolSettings::NONE
    },
    ToolSettings { names: &["gemini-1", "gemini-2"], dialect: Dialect::Gemini, letter_first: true, ..PLAIN },
    GEMINI_3,
];

/// The server ignores `tool_choice`, and tools if there is a schema.
pub(super) const OLLAMA: &[ToolSettings] = &[ToolSettings {
    dialect: Dialect::LlamaCpp,
    forced: ToolSupport::Rejected,
    reasoning: &["thinking"],
    ..PLAIN
}];

pub(super) const DEEPSEEK: &[ToolSettings] = &[ToolSettings {
    forced: ToolSupport::WithoutReasoning,
    reasoning: &["reasoning_content"],
    limits: AT_MOST_128,
    ..PLAIN
}];

pub(super) const MOONSHOT: &[ToolSettings] =
    &[ToolSettings { forced: ToolSupport::Rejected, reasoning: &["reasoning_content"], ..PLAIN }];

pub(super) const QWEN: &[ToolSettings] =
    &[ToolSettings { forced: ToolSupport::WithoutReasoning, limits_calls: true, ..PLAIN }];

pub(super) const MINIMAX: &[ToolSettings] = &[ToolSettings { reasoning: &["reasoning_details"], ..PLAIN }];

/// The hosts of a model differ; `require_parameters` chooses one that accepts all members of a request.
pub(super) const OPENROUTER: &[ToolSettings] = &[ToolSettings {
    dialect: Dialect::OpenAiStrict,
    strict: true,
    with_schema: true,
    reasoning: &["reasoning_details"],
    ..PLAIN
}];

/// Structured outputs cannot be combined with tools.
pub(super) const GROQ: &[ToolSettings] = &[ToolSettings { limits_calls: true, limits: AT_MOST_128, ..PLAIN }];

/// A JSON response cannot be combined with tools.
pub(super) const MISTRAL: &[ToolSettings] = &[ToolSettings { limits_calls: true, ..PLAIN }];

pub(super) const XAI: &[ToolSettings] = &[
    ToolSettings { names: &["grok-2-image", "grok-imagine"], ..ToolSettings::NONE },
    ToolSettings { with_schema: true, limits_calls: true, encrypted_reasoning: true, ..PLAIN },
];

/// A schema restricts the complete reply, so that a model with one cannot call tools.
pub(super) const LOCAL: &[ToolSettings] = &[ToolSettings { limits_calls: true, ..PLAIN }];

pub(super) const LLAMACPP: &[ToolSettings] =
    &[ToolSettings { dialect: Dialect::LlamaCpp, limits_calls: true, ..PLAIN }];

/// A server that nothing is known about.
pub(super) const UNKNOWN_SERVER: &[ToolSettings] = &[PLAIN];
