//! The table of vendors, and the only location for facts about a vendor.
//!
//! To add a vendor that uses a supported protocol, add a row.

use cog_spec::{
    Dialect,
    Modality::{self, Audio, Document, Image, Text, Video},
};

use super::{
    Auth, AuthRequirement, Commands, ImageSettings, ImageSizes, MediaModel, Quirks, TokenProbabilities,
    Vendor, model_table as models, tool_table as tools,
};
use crate::{Formats, ManyImages, protocol_kind::ProtocolKind};

/// Every vendor, in the order in which keys are looked up (docs/settings.md).
pub static VENDORS: &[Vendor] = &[
    OPENAI, ANTHROPIC, GEMINI, OLLAMA, DEEPSEEK, MOONSHOT, QWEN, MINIMAX, OPENROUTER, GROQ, MISTRAL,
    TOGETHER, XAI, AZURE, VLLM, LLAMACPP, LMSTUDIO, CUSTOM,
];

impl Vendor {
    /// Returns the vendor with this name.
    pub fn by_name(name: &str) -> Option<&'static Vendor> {
        VENDORS.iter().find(|vendor| vendor.name == name)
    }
}

const TEXT: &[Modality] = &[Text];
const IMAGES: &[Modality] = &[Text, Image];

/// The media formats that the OpenAI protocol supports.
const OPENAI_FORMATS: Formats = Formats {
    types: &[
        "image/jpeg",
        "image/png",
        "image/webp",
        "image/gif",
        "audio/wav",
        "audio/mpeg",
        "application/pdf",
    ],
    max_side: None,
    many_images: None,
    max_image_bytes: Some(20 << 20),
    by_url: false,
    max_request_bytes: None,
};

/// The same formats, for vendors that fetch images by URL.
const FETCHING: Formats = Formats { by_url: true, ..OPENAI_FORMATS };

/// The image types that the servers of llama.cpp decode: they have no decoder for WebP.
const LLAMA_FORMATS: Formats = Formats { types: &["image/jpeg", "image/png"], ..OPENAI_FORMATS };

/// The defaults for rows of the OpenAI protocol.
const OPENAI_LIKE: Vendor = Vendor {
    name: "",
    title: "",
    prices: None,
    protocol: ProtocolKind::OpenAiChat,
    base_url: "",
    base_url_vars: &[],
    protocol_var: None,
    default_path: "",
    default_port: None,
    key_vars: &[],
    key: AuthRequirement::Required,
    auth: Auth::Bearer,
    default_model: None,
    version_path: None,
    commands: None,
    retirements: &[],
    dialect: Dialect::OpenAiStrict,
    engine: None,
    input: IMAGES,
    formats: OPENAI_FORMATS,
    media_models: &[],
    models: &[],
    tools: tools::UNKNOWN_SERVER,
    quirks: Quirks::NONE,
};

/// Models that generate only images.
const IMAGES_ONLY: MediaModel =
    MediaModel { output: &[Image], protocol: Some(ProtocolKind::OpenAiImages), ..MediaModel::ANY };

/// The sizes of every GPT image model.
const GPT_IMAGE_SIZES: &[(u32, u32)] = &[(1024, 1024), (1536, 1024), (1024, 1536)];

/// GPT image models accept no style: it belongs in the prompt.
const GPT_IMAGE_1: MediaModel = MediaModel {
    images: ImageSettings { sizes: ImageSizes::Listed(GPT_IMAGE_SIZES), styles: &[] },
    ..IMAGES_ONLY
};

/// Since GPT Image 2, any size within limits.
const GPT_IMAGE_2: MediaModel = MediaModel {
    images: ImageSettings {
        sizes: ImageSizes::Within {
            multiple: 16,
            max_side: 3840,
            max_ratio: 3,
            pixels: (655_360, 8_294_400),
        },
        styles: &[],
    },
    ..IMAGES_ONLY
};

/// The models that OpenAI has retired, which other servers may still offer.
const DALL_E_2: MediaModel = MediaModel {
    images: ImageSettings { sizes: ImageSizes::Listed(&[(256, 256), (512, 512), (1024, 1024)]), styles: &[] },
    ..IMAGES_ONLY
};
const DALL_E_3: MediaModel = MediaModel {
    images: ImageSettings {
        sizes: ImageSizes::Listed(&[(1024, 1024), (1792, 1024), (1024, 1792)]),
        styles: &["natural", "vivid"],
    },
    ..IMAGES_ONLY
};

/// OpenAI's models that generate only images, and those that hear and generate speech. The latter refuse images and
/// schemas, and the other models refuse audio.
const OPENAI_MEDIA_MODELS: &[MediaModel] = &[
    MediaModel { name_contains: "gpt-image-1", ..GPT_IMAGE_1 },
    MediaModel { name_contains: "chatgpt-image", ..GPT_IMAGE_1 },
    MediaModel { name_contains: "gpt-image", ..GPT_IMAGE_2 },
    MediaModel { name_contains: "dall-e-2", ..DALL_E_2 },
    MediaModel { name_contains: "dall-e", ..DALL_E_3 },
    MediaModel {
        name_contains: "audio",
        output: &[Audio],
        input: Some(&[Text, Audio]),
        has_schema: false,
        ..MediaModel::ANY
    },
];

/// OpenAI's deprecations, as of November 2026.
const OPENAI_RETIREMENTS: &[(&str, &str)] = &[
    ("o4-mini", "2026-10-23"),
    ("gpt-4-turbo", "2026-10-23"),
    ("gpt-3.5-turbo", "2026-10-23"),
    ("gpt-5", "2026-12-11"),
    ("o3", "2026-12-11"),
    ("gpt-4.1", "2027-01-14"),
    ("gpt-4o", "2027-01-14"),
    ("gpt-5.1", "2027-04-01"),
    ("gpt-5.4-nano", "2027-04-01"),
];

/// Models that generate images in addition to the text of a chat.
const IMAGE_MODELS: &[MediaModel] =
    &[MediaModel { name_contains: "image", output: &[Image], ..MediaModel::ANY }];

/// The defaults for self-hosted servers: any schema, and a key only if the operator configured one.
const LOCAL: Vendor = Vendor {
    key: AuthRequirement::Optional,
    dialect: Dialect::JsonSchema,
    models: models::LOCAL,
    tools: tools::LOCAL,
    ..OPENAI_LIKE
};

/// OpenAI recommends Responses: over Chat Completions, its reasoning models cannot use tools.
const OPENAI: Vendor = Vendor {
    name: "openai",
    title: "OpenAI",
    prices: Some("openai"),
    protocol: ProtocolKind::OpenAiResponses,
    base_url: "https://api.openai.com/v1",
    base_url_vars: &["OPENAI_BASE_URL"],
    protocol_var: Some("OPENAI_PROTOCOL"),
    key_vars: &["OPENAI_API_KEY"],
    default_model: Some("gpt-6-luna"),
    retirements: OPENAI_RETIREMENTS,
    input: &[Text, Image, Document],
    formats: FETCHING,
    media_models: OPENAI_MEDIA_MODELS,
    models: models::OPENAI,
    tools: tools::OPENAI,
    quirks: Quirks {
        max_tokens: "max_completion_tokens",
        pads_events: true,
        probabilities: TokenProbabilities::WithoutReasoning,
        ..Quirks::NONE
    },
    ..OPENAI_LIKE
};

/// The maximum image size: 5 MB of base64.
const ANTHROPIC_IMAGE: u64 = (5 << 20) / 4 * 3;

const ANTHROPIC: Vendor = Vendor {
    name: "anthropic",
    title: "Anthropic",
    prices: Some("anthropic"),
    protocol: ProtocolKind::Anthropic,
    base_url: "https://api.anthropic.com",
    base_url_vars: &["ANTHROPIC_BASE_URL"],
    key_vars: &["ANTHROPIC_API_KEY"],
    auth: Auth::Header("x-api-key"),
    default_model: Some("claude-sonnet-5-5"),
    dialect: Dialect::Anthropic,
    input: &[Text, Image, Document],
    formats: Formats {
        max_side: Some(8000),
        many_images: Some(ManyImages { over: 20, max_side: 2000 }),
        max_image_bytes: Some(ANTHROPIC_IMAGE),
        max_request_bytes: Some(32 << 20),
        ..FETCHING
    },
    models: models::ANTHROPIC,
    tools: tools::ANTHROPIC,
    quirks: Quirks { seed: None, ..Quirks::NONE },
    ..OPENAI_LIKE
};

const GEMINI: Vendor = Vendor {
    name: "gemini",
    title: "Gemini",
    prices: Some("google"),
    protocol: ProtocolKind::Gemini,
    base_url: "https://generativelanguage.googleapis.com",
    base_url_vars: &["GEMINI_BASE_URL"],
    key_vars: &["GEMINI_API_KEY"],
    auth: Auth::Header("x-goog-api-key"),
    default_model: Some("gemini-3.8-flash"),
    dialect: Dialect::Gemini,
    input: &[Text, Image, Audio, Video, Document],
    formats: Formats {
        types: &[
            "image/jpeg",
            "image/png",
            "image/webp",
            "audio/wav",
            "audio/mpeg",
            "audio/ogg",
            "video/mp4",
            "video/webm",
            "video/quicktime",
            "application/pdf",
        ],
        max_side: None,
        many_images: None,
        max_image_bytes: Some(20 << 20),
        by_url: false,
        // Larger requests need the vendor's files API, which is not supported.
        max_request_bytes: Some(100 << 20),
    },
    media_models: IMAGE_MODELS,
    models: models::GEMINI,
    tools: tools::GEMINI,
    quirks: Quirks { probabilities: TokenProbabilities::Models(&["gemini-2"]), ..Quirks::NONE },
    ..OPENAI_LIKE
};

const OLLAMA: Vendor = Vendor {
    name: "ollama",
    title: "Ollama",
    protocol: ProtocolKind::Ollama,
    base_url: "http://localhost:11434",
    base_url_vars: &["OLLAMA_BASE_URL", "OLLAMA_HOST"],
    default_port: Some(11434),
    key_vars: &["OLLAMA_API_KEY"],
    default_model: Some("qwen3"),
    version_path: Some("/api/version"),
    commands: Some(Commands { start: "ollama serve", pull: "ollama pull" }),
    dialect: Dialect::LlamaCpp,
    formats: LLAMA_FORMATS,
    models: models::OLLAMA,
    tools: tools::OLLAMA,
    ..LOCAL
};

const DEEPSEEK: Vendor = Vendor {
    name: "deepseek",
    title: "DeepSeek",
    prices: Some("deepseek"),
    base_url: "https://api.deepseek.com",
    base_url_vars: &["DEEPSEEK_BASE_URL"],
    protocol_var: Some("DEEPSEEK_PROTOCOL"),
    key_vars: &["DEEPSEEK_API_KEY"],
    default_model: Some("deepseek-v4-flash"),
    dialect: Dialect::JsonObject,
    input: TEXT,
    models: models::DEEPSEEK,
    tools: tools::DEEPSEEK,
    quirks: Quirks { seed: None, ..Quirks::NONE },
    ..OPENAI_LIKE
};

const MOONSHOT: Vendor = Vendor {
    name: "moonshot",
    title: "Moonshot",
    prices: Some("moonshotai"),
    base_url: "https://api.moonshot.ai/v1",
    base_url_vars: &["MOONSHOT_BASE_URL"],
    protocol_var: Some("MOONSHOT_PROTOCOL"),
    key_vars: &["MOONSHOT_API_KEY"],
    default_model: Some("kimi-k2.6"),
    dialect: Dialect::JsonObject,
    models: models::MOONSHOT,
    tools: tools::MOONSHOT,
    quirks: Quirks { seed: None, ..Quirks::NONE },
    ..OPENAI_LIKE
};

/// Only some Qwen models support a schema; all of them support "a JSON object".
const QWEN: Vendor = Vendor {
    name: "qwen",
    title: "Qwen",
    base_url: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    base_url_vars: &["QWEN_BASE_URL", "DASHSCOPE_BASE_URL"],
    protocol_var: Some("QWEN_PROTOCOL"),
    key_vars: &["DASHSCOPE_API_KEY"],
    default_model: Some("qwen-plus"),
    dialect: Dialect::JsonObject,
    models: models::QWEN,
    tools: tools::QWEN,
    ..OPENAI_LIKE
};

/// MiniMax documents no `response_format`; without `reasoning_split` its reasoning is part of the answer.
const MINIMAX: Vendor = Vendor {
    name: "minimax",
    title: "MiniMax",
    prices: Some("minimax"),
    base_url: "https://api.minimax.io/v1",
    base_url_vars: &["MINIMAX_BASE_URL"],
    protocol_var: Some("MINIMAX_PROTOCOL"),
    key_vars: &["MINIMAX_API_KEY"],
    default_model: Some("MiniMax-M3"),
    dialect: Dialect::Prompt,
    input: TEXT,
    tools: tools::MINIMAX,
    quirks: Quirks {
        max_tokens: "max_completion_tokens",
        seed: None,
        extra: &[("reasoning_split", "true")],
        ..Quirks::NONE
    },
    ..OPENAI_LIKE
};

/// `require_parameters` prevents OpenRouter from choosing a host that ignores the schema.
const OPENROUTER: Vendor = Vendor {
    name: "openrouter",
    title: "OpenRouter",
    prices: Some("openrouter"),
    base_url: "https://openrouter.ai/api/v1",
    base_url_vars: &["OPENROUTER_BASE_URL"],
    protocol_var: Some("OPENROUTER_PROTOCOL"),
    key_vars: &["OPENROUTER_API_KEY"],
    default_model: Some("openai/gpt-6-luna"),
    formats: FETCHING,
    media_models: IMAGE_MODELS,
    models: models::OPENROUTER,
    tools: tools::OPENROUTER,
    quirks: Quirks { extra: &[("provider", r#"{"require_parameters":true}"#)], ..Quirks::NONE },
    ..OPENAI_LIKE
};

/// Groq does not stream an answer that has a schema.
const GROQ: Vendor = Vendor {
    name: "groq",
    title: "Groq",
    prices: Some("groq"),
    base_url: "https://api.groq.com/openai/v1",
    base_url_vars: &["GROQ_BASE_URL"],
    protocol_var: Some("GROQ_PROTOCOL"),
    key_vars: &["GROQ_API_KEY"],
    default_model: Some("openai/gpt-oss-120b"),
    input: TEXT,
    models: models::GROQ,
    tools: tools::GROQ,
    quirks: Quirks { max_tokens: "max_completion_tokens", streams_schema: false, ..Quirks::NONE },
    ..OPENAI_LIKE
};

/// Mistral rejects unknown fields, `stream_options` among them, and always sends usage.
const MISTRAL: Vendor = Vendor {
    name: "mistral",
    title: "Mistral",
    prices: Some("mistral"),
    base_url: "https://api.mistral.ai/v1",
    base_url_vars: &["MISTRAL_BASE_URL"],
    protocol_var: Some("MISTRAL_PROTOCOL"),
    key_vars: &["MISTRAL_API_KEY"],
    default_model: Some("mistral-medium-latest"),
    models: models::MISTRAL,
    tools: tools::MISTRAL,
    quirks: Quirks { seed: Some("random_seed"), stream_options: false, ..Quirks::NONE },
    ..OPENAI_LIKE
};

const TOGETHER: Vendor = Vendor {
    name: "together",
    title: "Together",
    prices: Some("together"),
    base_url: "https://api.together.xyz/v1",
    base_url_vars: &["TOGETHER_BASE_URL"],
    protocol_var: Some("TOGETHER_PROTOCOL"),
    key_vars: &["TOGETHER_API_KEY"],
    default_model: Some("openai/gpt-oss-120b"),
    dialect: Dialect::JsonSchema,
    models: models::TOGETHER,
    ..OPENAI_LIKE
};

/// xAI calls Chat Completions deprecated.
const XAI: Vendor = Vendor {
    name: "xai",
    title: "xAI",
    prices: Some("x-ai"),
    protocol: ProtocolKind::OpenAiResponses,
    base_url: "https://api.x.ai/v1",
    base_url_vars: &["XAI_BASE_URL"],
    protocol_var: Some("XAI_PROTOCOL"),
    key_vars: &["XAI_API_KEY"],
    default_model: Some("grok-4.3"),
    formats: Formats { types: &["image/jpeg", "image/png"], ..FETCHING },
    media_models: &[MediaModel { name_contains: "image", ..IMAGES_ONLY }],
    models: models::XAI,
    tools: tools::XAI,
    quirks: Quirks { max_tokens: "max_completion_tokens", ..Quirks::NONE },
    ..OPENAI_LIKE
};

/// The model is the name of a deployment, which only the operator knows.
const AZURE: Vendor = Vendor {
    name: "azure",
    title: "Azure OpenAI",
    base_url_vars: &["AZURE_OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT"],
    protocol_var: Some("AZURE_OPENAI_PROTOCOL"),
    default_path: "/openai/v1",
    key_vars: &["AZURE_OPENAI_API_KEY"],
    auth: Auth::Header("api-key"),
    media_models: OPENAI_MEDIA_MODELS,
    models: models::OPENAI,
    tools: tools::OPENAI,
    quirks: Quirks {
        max_tokens: "max_completion_tokens",
        probabilities: TokenProbabilities::WithoutReasoning,
        ..Quirks::NONE
    },
    ..OPENAI_LIKE
};

const VLLM: Vendor = Vendor {
    name: "vllm",
    title: "vLLM",
    base_url: "http://localhost:8000/v1",
    base_url_vars: &["VLLM_BASE_URL"],
    protocol_var: Some("VLLM_PROTOCOL"),
    key_vars: &["VLLM_API_KEY"],
    quirks: Quirks { probabilities: TokenProbabilities::Always, ..Quirks::NONE },
    ..LOCAL
};

/// The server has one model and accepts any name for it.
const LLAMACPP: Vendor = Vendor {
    name: "llamacpp",
    title: "llama.cpp",
    base_url: "http://localhost:8080/v1",
    base_url_vars: &["LLAMACPP_BASE_URL"],
    protocol_var: Some("LLAMACPP_PROTOCOL"),
    key_vars: &["LLAMACPP_API_KEY", "LLAMA_API_KEY"],
    default_model: Some("default"),
    dialect: Dialect::LlamaCpp,
    engine: Some("llamacpp"),
    formats: LLAMA_FORMATS,
    models: models::LLAMACPP,
    tools: tools::LLAMACPP,
    quirks: Quirks { grammar: true, probabilities: TokenProbabilities::WithGrammar, ..Quirks::NONE },
    ..LOCAL
};

/// It runs llama.cpp, whose grammar enforces the schema.
const LMSTUDIO: Vendor = Vendor {
    name: "lmstudio",
    title: "LM Studio",
    base_url: "http://localhost:1234/v1",
    base_url_vars: &["LMSTUDIO_BASE_URL"],
    protocol_var: Some("LMSTUDIO_PROTOCOL"),
    key_vars: &["LMSTUDIO_API_KEY"],
    dialect: Dialect::LlamaCpp,
    engine: Some("llamacpp"),
    formats: LLAMA_FORMATS,
    models: models::LLAMACPP,
    tools: tools::LLAMACPP,
    ..LOCAL
};

/// Any server that implements the OpenAI protocol.
const CUSTOM: Vendor = Vendor {
    name: "custom",
    title: "The custom server",
    base_url_vars: &["CUSTOM_BASE_URL"],
    protocol_var: Some("CUSTOM_PROTOCOL"),
    key_vars: &["CUSTOM_API_KEY"],
    media_models: OPENAI_MEDIA_MODELS,
    models: models::UNKNOWN_SERVER,
    tools: tools::UNKNOWN_SERVER,
    ..LOCAL
};
