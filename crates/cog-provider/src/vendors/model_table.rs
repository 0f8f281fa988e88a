//! The settings that the models of each vendor support: facts from the vendors' documentation and clients.
//!
//! The first entry that matches a model applies. An entry without names is the last one of a vendor.

use cog_spec::{
    Effort::{self, High, Low, Max, Medium, Minimal, None as Off, XHigh},
    ServiceTier::{self, Auto, Flex, Priority, Standard},
};

use super::{CacheMark, ModelSettings, PromptCache, Temperature};

type Tiers = &'static [(ServiceTier, &'static str)];

const PLAIN: ModelSettings = ModelSettings::PLAIN;
const EVERY_EFFORT: &[Effort] = Effort::ALL;

/// Finds equal beginnings itself.
const fn automatic(min_tokens: u64) -> Option<PromptCache> {
    cache(CacheMark::Automatic, min_tokens)
}

const fn cache(mark: CacheMark, min_tokens: u64) -> Option<PromptCache> {
    Some(PromptCache { mark, min_tokens: Some(min_tokens) })
}

const OPENAI_TIERS: Tiers = &[(Auto, "auto"), (Standard, "default"), (Flex, "flex"), (Priority, "priority")];

/// A server that nothing is known about: it receives every setting.
const UNKNOWN: ModelSettings =
    ModelSettings { efforts: EVERY_EFFORT, verbosity: true, service_tiers: OPENAI_TIERS, ..PLAIN };
/// Other names at OpenAI and Azure: fine-tuned models and deployments.
const OTHER_GPT: ModelSettings = ModelSettings { cache: cache(CacheMark::Key, 1024), ..UNKNOWN };
/// Reasoning models of OpenAI before GPT-5.
const GPT_O: ModelSettings = ModelSettings {
    temperature: Temperature::Rejected,
    efforts: &[Low, Medium, High],
    verbosity: false,
    ..OTHER_GPT
};
const GPT_5: ModelSettings =
    ModelSettings { efforts: &[Minimal, Low, Medium, High], verbosity: true, ..GPT_O };
const GPT_5_1: ModelSettings =
    ModelSettings { temperature: Temperature::WithoutReasoning, efforts: &[Off, Low, Medium, High], ..GPT_5 };
const GPT_5_2: ModelSettings = ModelSettings { efforts: &[Off, Low, Medium, High, XHigh], ..GPT_5_1 };
const GPT_6: ModelSettings = ModelSettings {
    efforts: &[Off, Low, Medium, High, XHigh, Max],
    cache: cache(CacheMark::Breakpoint, 1024),
    ..GPT_5_1
};
/// Models of OpenAI that always reason.
const GPT_6_REASONING: ModelSettings =
    ModelSettings { temperature: Temperature::Rejected, efforts: &[Low, Medium, High, XHigh, Max], ..GPT_6 };

pub(super) const OPENAI: &[ModelSettings] = &[
    ModelSettings {
        names: &["gpt-3", "gpt-4", "chatgpt", "gpt-audio", "gpt-image", "dall-e"],
        efforts: &[],
        verbosity: false,
        ..OTHER_GPT
    },
    ModelSettings { names: &["o1", "o3", "o4"], ..GPT_O },
    ModelSettings { names: &["gpt-5-pro"], efforts: &[High], ..GPT_5 },
    ModelSettings { names: &["gpt-5.1"], ..GPT_5_1 },
    ModelSettings { names: &["gpt-5.2", "gpt-5.3", "gpt-5.4", "gpt-5.5"], ..GPT_5_2 },
    ModelSettings { names: &["gpt-5."], ..GPT_6 },
    ModelSettings { names: &["gpt-5"], ..GPT_5 },
    ModelSettings { names: &["gpt-6-astra", "gpt-6.1-sol"], ..GPT_6_REASONING },
    ModelSettings { names: &["gpt-oss"], efforts: &[Low, Medium, High], ..PLAIN },
    ModelSettings { names: &["gpt-"], ..GPT_6 },
    OTHER_GPT,
];

pub(super) const UNKNOWN_SERVER: &[ModelSettings] = &[UNKNOWN];

const CLAUDE: ModelSettings = ModelSettings {
    temperature: Temperature::Rejected,
    efforts: &[Low, Medium, High, XHigh, Max],
    effort_members: &[(Off, r#"{"thinking":{"type":"disabled"}}"#)],
    service_tiers: &[(Auto, "auto"), (Standard, "standard_only")],
    cache: Some(PromptCache { mark: CacheMark::Control, min_tokens: None }),
    ..PLAIN
};

const fn control(min_tokens: u64) -> Option<PromptCache> {
    cache(CacheMark::Control, min_tokens)
}

/// Version 2026-10-21 of the API has no sampling parameters.
pub(super) const ANTHROPIC: &[ModelSettings] = &[
    ModelSettings { names: &["claude-haiku-4"], efforts: &[], cache: control(4096), ..CLAUDE },
    ModelSettings {
        names: &["claude-sonnet-4-5", "claude-sonnet-4-2", "claude-opus-4-1", "claude-opus-4-2"],
        efforts: &[],
        cache: control(1024),
        ..CLAUDE
    },
    ModelSettings { names: &["claude-3"], efforts: &[], ..CLAUDE },
    ModelSettings {
        names: &["claude-opus-4-5"],
        efforts: &[Low, Medium, High],
        cache: control(4096),
        ..CLAUDE
    },
    ModelSettings {
        names: &["claude-opus-4-6"],
        efforts: &[Low, Medium, High, Max],
        cache: control(4096),
        ..CLAUDE
    },
    ModelSettings {
        names: &["claude-sonnet-4-6"],
        efforts: &[Low, Medium, High, Max],
        cache: control(1024),
        ..CLAUDE
    },
    ModelSettings {
        names: &["claude-mythos-preview"],
        efforts: &[Low, Medium, High, Max],
        effort_members: &[],
        ..CLAUDE
    },
    ModelSettings {
        names: &["claude-fable", "claude-mythos"],
        effort_members: &[],
        cache: control(512),
        ..CLAUDE
    },
    ModelSettings { names: &["claude-opus-4-7"], cache: control(2048), ..CLAUDE },
    ModelSettings { names: &["claude-opus-4-8", "claude-sonnet-5"], cache: control(1024), ..CLAUDE },
    ModelSettings { names: &["claude-opus-5"], cache: control(512), ..CLAUDE },
    CLAUDE,
];

const GEMINI_TIERS: Tiers = &[(Standard, "standard"), (Flex, "flex"), (Priority, "priority")];
const GEMINI_3: ModelSettings = ModelSettings {
    efforts: &[Low, Medium, High],
    service_tiers: GEMINI_TIERS,
    cache: automatic(4096),
    ..PLAIN
};
/// Models with a budget of tokens instead of a level.
const GEMINI_2_5: ModelSettings = ModelSettings {
    efforts: &[],
    effort_members: &[
        (Off, r#"{"thinkingBudget":0}"#),
        (Low, r#"{"thinkingBudget":1024}"#),
        (Medium, r#"{"thinkingBudget":8192}"#),
        (High, r#"{"thinkingBudget":24576}"#),
    ],
    ..GEMINI_3
};

pub(super) const GEMINI: &[ModelSettings] = &[
    ModelSettings { names: &["gemini-1", "gemini-2.0"], efforts: &[], ..GEMINI_3 },
    ModelSettings { names: &["gemini-2.5-flash-image"], efforts: &[], ..GEMINI_3 },
    ModelSettings { names: &["gemini-2.5-flash"], ..GEMINI_2_5 },
    ModelSettings {
        names: &["gemini-2.5"],
        effort_members: &[
            (Low, r#"{"thinkingBudget":1024}"#),
            (Medium, r#"{"thinkingBudget":8192}"#),
            (High, r#"{"thinkingBudget":24576}"#),
        ],
        ..GEMINI_2_5
    },
    ModelSettings { names: &["gemini-3-pro"], efforts: &[Low, High], ..GEMINI_3 },
    ModelSettings {
        names: &["gemini-3-flash", "gemini-3.1-flash", "gemini-3.5-flash", "gemini-3.6-flash"],
        efforts: &[Minimal, Low, Medium, High],
        ..GEMINI_3
    },
    ModelSettings { names: &["gemini-4"], efforts: &[Low, Medium, High, XHigh], ..GEMINI_3 },
    GEMINI_3,
];

/// Only gpt-oss has levels; it cannot stop reasoning.
pub(super) const OLLAMA: &[ModelSettings] = &[
    ModelSettings {
        names: &["gpt-oss"],
        effort_members: &[
            (Low, r#"{"think":"low"}"#),
            (Medium, r#"{"think":"medium"}"#),
            (High, r#"{"think":"high"}"#),
        ],
        ..PLAIN
    },
    ModelSettings { effort_members: &[(Off, r#"{"think":false}"#), (High, r#"{"think":true}"#)], ..PLAIN },
];

pub(super) const DEEPSEEK: &[ModelSettings] = &[ModelSettings {
    efforts: &[Low, High, Max],
    effort_members: &[(Off, r#"{"thinking":{"type":"disabled"}}"#)],
    ..PLAIN
}];

/// From Kimi K2.5 on, the models accept no other temperature than their own. Only K2 can stop reasoning.
pub(super) const MOONSHOT: &[ModelSettings] = &[
    ModelSettings { names: &["moonshot-v1"], ..PLAIN },
    ModelSettings {
        names: &["kimi-k2"],
        temperature: Temperature::Rejected,
        effort_members: &[
            (Off, r#"{"thinking":{"type":"disabled"}}"#),
            (High, r#"{"thinking":{"type":"enabled"}}"#),
        ],
        ..PLAIN
    },
    ModelSettings { temperature: Temperature::Rejected, efforts: &[Low, High, Max], ..PLAIN },
];

pub(super) const QWEN: &[ModelSettings] = &[
    ModelSettings {
        names: &["qwen-plus", "qwen-flash", "qwen-turbo", "qwen3"],
        effort_members: &[(Off, r#"{"enable_thinking":false}"#), (High, r#"{"enable_thinking":true}"#)],
        ..PLAIN
    },
    PLAIN,
];

/// With `require_parameters`, OpenRouter finds no host for a model that does not accept a temperature.
pub(super) const OPENROUTER: &[ModelSettings] = &[
    ModelSettings {
        names: &["gpt-5", "gpt-6", "o1", "o3", "o4", "claude-"],
        temperature: Temperature::Rejected,
        efforts: &[Off, Minimal, Low, Medium, High, XHigh],
        verbosity: true,
        ..PLAIN
    },
    ModelSettings { efforts: &[Off, Minimal, Low, Medium, High, XHigh], ..PLAIN },
];

const GROQ_PLAIN: ModelSettings = ModelSettings {
    service_tiers: &[(Auto, "auto"), (Standard, "on_demand"), (Flex, "flex"), (Priority, "performance")],
    ..PLAIN
};

pub(super) const GROQ: &[ModelSettings] = &[
    ModelSettings { names: &["gpt-oss"], efforts: &[Low, Medium, High], ..GROQ_PLAIN },
    ModelSettings { names: &["qwen3"], efforts: &[Off], ..GROQ_PLAIN },
    GROQ_PLAIN,
];

pub(super) const MISTRAL: &[ModelSettings] =
    &[ModelSettings { names: &["mistral-medium", "mistral-small"], efforts: &[Off, High], ..PLAIN }, PLAIN];

pub(super) const TOGETHER: &[ModelSettings] =
    &[ModelSettings { names: &["gpt-oss"], efforts: &[Low, Medium, High], ..PLAIN }, PLAIN];

pub(super) const XAI: &[ModelSettings] = &[
    ModelSettings { names: &["grok-3-mini"], efforts: &[Low, High], ..PLAIN },
    ModelSettings { names: &["grok-2", "grok-3", "grok-4-", "grok-4.1", "grok-4.2", "grok-code"], ..PLAIN },
    ModelSettings { efforts: &[Off, Low, Medium, High], ..PLAIN },
];

/// Self-hosted servers pass the effort to the template of the model. They ignore a verbosity.
pub(super) const LOCAL: &[ModelSettings] = &[ModelSettings { efforts: EVERY_EFFORT, ..PLAIN }];

/// llama.cpp also keeps the beginning of the last request in memory.
pub(super) const LLAMACPP: &[ModelSettings] =
    &[ModelSettings { efforts: EVERY_EFFORT, cache: automatic(1), ..PLAIN }];
