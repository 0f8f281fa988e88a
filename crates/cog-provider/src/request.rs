//! Model requests, and the HTTP requests they are converted to.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use cog_harmony::{Conversation, ToolChoice, ToolDefinition};
use cog_json::{ToJson, Writer};
use cog_spec::{Code, Dialect, Form, Generation, Modality};
use thiserror::Error;

/// A request to a model, independent of any vendor's format.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The model; empty for the provider's configured model.
    pub model: String,
    /// The messages, in order.
    pub messages: Conversation,
    /// The required schema of the answer, if any.
    pub output: Option<Arc<OutputSchema>>,
    /// The kinds of media that the answer may contain besides text (SPEC 2.2). A provider generates those that its
    /// model supports ([`ProviderInfo::output_media`](crate::ProviderInfo::output_media)) and otherwise replies in
    /// text.
    pub output_media: Vec<Modality>,
    /// The request for a model that generates only images, which gets no messages; `None` if it gets the text of the
    /// messages.
    pub image: Option<Arc<ImageRequest>>,
    /// The tools that the model may call; `None` for a request without tools.
    pub tools: Option<Arc<ToolRequest>>,
    /// The generation options.
    pub generation: Generation,
    /// A name for requests with the same system text and schema, so that the provider can cache them; `None` if the
    /// system text depends on the input.
    pub cache_key: Option<String>,
    /// Whether to request the token usage of a stream from a vendor that has `stream_options` for it.
    pub stream_options: bool,
    /// Whether the limit of output tokens has its other name in Chat Completions: `max_completion_tokens` instead of
    /// `max_tokens`, or the reverse. Servers that copy the protocol may know only one of them.
    pub renames_token_limit: bool,
    /// Whether the system text is the beginning of the first message of the user. The templates of some models have no system
    /// role, and small models follow one message better. Protocols with a parameter for the system text use that.
    pub merges_system: bool,
    /// Whether to request the probabilities of the answer's tokens, from a server that reports them.
    pub probabilities: bool,
    /// The time limit for the complete call, retries included.
    pub timeout: Option<Duration>,
    /// Is called before each retry.
    pub on_retry: Option<RetryHook>,
    /// Is called with the head of each reply, also of one that reports an error.
    pub on_reply: Option<ReplyHook>,
}

impl ModelRequest {
    /// Creates a request to the provider's own model, without further options.
    pub fn new(messages: Conversation) -> Self {
        Self {
            model: String::new(),
            messages,
            output: None,
            output_media: Vec::new(),
            image: None,
            tools: None,
            generation: Generation::default(),
            cache_key: None,
            stream_options: true,
            renames_token_limit: false,
            merges_system: false,
            probabilities: false,
            timeout: None,
            on_retry: None,
            on_reply: None,
        }
    }
}

/// The tools that a request offers to the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolRequest {
    /// The tools, in a fixed order, so that the provider can cache them.
    pub definitions: Vec<ToolDefinition>,
    /// Which of them the model may call.
    pub choice: ToolChoice,
    /// Whether the model may call several tools in one reply. Some providers have no parameter for it and ignore
    /// `false`.
    pub parallel: bool,
    /// The number of tools that are not strict only because the vendor limits the strict ones.
    pub relaxed: usize,
}

/// What a model that generates only images is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageRequest {
    /// The description of the image.
    pub prompt: String,
    /// The width and height, in pixels.
    pub size: Option<(u32, u32)>,
    /// The style, such as `natural` or `vivid`.
    pub style: Option<String>,
}

/// The status and the headers about rate limits of a reply to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyHead {
    /// The HTTP status.
    pub status: u16,
    /// The wait that the vendor requests.
    pub retry_after: Option<Duration>,
    /// The requests that the vendor still accepts.
    pub requests: Option<Quota>,
    /// The tokens that the vendor still accepts.
    pub tokens: Option<Quota>,
}

impl ReplyHead {
    /// Creates a head with this status, and without headers.
    pub const fn new(status: u16) -> Self {
        Self { status, retry_after: None, requests: None, tokens: None }
    }
}

/// What is left of a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The requests or tokens that are left.
    pub remaining: u64,
    /// The time until the limit is complete again.
    pub reset: Duration,
}

/// A callback that receives the head of each reply to a call.
#[derive(Clone)]
pub struct ReplyHook(Arc<dyn Fn(&ReplyHead) + Send + Sync>);

impl ReplyHook {
    /// Creates a hook. It is called within the call, so it must return quickly.
    pub fn new(hook: impl Fn(&ReplyHead) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }

    #[cfg(feature = "http")]
    pub(crate) fn receive(&self, head: &ReplyHead) {
        (self.0)(head);
    }
}

impl std::fmt::Debug for ReplyHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReplyHook")
    }
}

impl PartialEq for ReplyHook {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A callback that receives the error code of each attempt that failed, and decides whether it is retried.
#[derive(Clone)]
pub struct RetryHook(Arc<dyn Fn(Code) -> bool + Send + Sync>);

impl RetryHook {
    /// Creates a hook, which returns whether the attempt may be retried. It is called within the call, so it must
    /// return quickly.
    pub fn new(hook: impl Fn(Code) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }

    /// Returns whether an attempt that failed with this code may be retried.
    #[cfg(feature = "http")]
    pub(crate) fn allows(&self, code: Code) -> bool {
        (self.0)(code)
    }
}

impl std::fmt::Debug for RetryHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RetryHook")
    }
}

impl PartialEq for RetryHook {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The schema of the answer, in a vendor's dialect (docs/spec/modules.md).
#[derive(Debug, Clone, PartialEq)]
pub struct OutputSchema {
    /// The schema's name, which is the module's name.
    pub name: String,
    /// The dialect of the projected schema.
    pub dialect: Dialect,
    /// The form in which the model is asked.
    pub form: &'static Form,
    /// The projected schema; `None` if the vendor can only be instructed to return "a JSON object".
    pub schema: Option<cog_json::Value>,
    /// The schema as a grammar, for an engine that takes one. The engine does not let a model reason before it answers.
    pub grammar: Option<OutputGrammar>,
    /// The text about the schema at the end of the system message; empty if there is none. A model that generates no
    /// text does not receive it.
    pub instructions: Arc<str>,
}

/// A grammar of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputGrammar {
    /// Its rules, in GBNF.
    pub text: String,
    /// The limit of output tokens if the request has none: what the longest answer needs.
    pub max_tokens: u64,
}

/// A request in a vendor's format, complete except for the key, which it never contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireRequest {
    /// `POST`, or `GET` for listing the models.
    pub method: &'static str,
    /// The complete URL.
    pub url: String,
    /// Headers without the one that carries the key.
    pub headers: Vec<(&'static str, String)>,
    /// The header for the key, with a placeholder as its value: `Bearer $OPENAI_API_KEY`.
    pub auth: Option<(&'static str, String)>,
    /// The body, JSON; empty for `GET`. Clones share it.
    pub body: Bytes,
}

/// The display form, used by `cog render`. The key is shown as the name of its variable.
impl ToJson for WireRequest {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("method", self.method);
            w.field("url", &self.url);
            w.key("headers");
            w.object(|w| {
                for (name, value) in self.headers.iter().chain(&self.auth) {
                    w.field(name, value);
                }
            });
            if let Ok(body) = cog_json::Value::parse_bytes(&self.body) {
                w.field("body", &body);
            }
        });
    }
}

/// A request that a vendor does not support. It is reported before the call; nothing is silently dropped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// An option of `generation` that the model does not support.
    #[error("{vendor} does not support `{option}` with the model `{model}`")]
    Option {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The model.
        model: String,
        /// The option.
        option: &'static str,
    },
    /// A value of an option that the model does not support.
    #[error("{vendor} does not support `{option}: {value}` with the model `{model}`; supported: {supported}")]
    OptionValue {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The model.
        model: String,
        /// The option.
        option: &'static str,
        /// The value.
        value: &'static str,
        /// The supported values, separated by commas.
        supported: String,
    },
    /// A temperature for a model that supports one only without reasoning.
    #[error("{vendor} supports `temperature` with the model `{model}` only if `effort` is none")]
    TemperatureWithReasoning {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The model.
        model: String,
    },
    /// An unsupported kind of content.
    #[error("{vendor} does not support {modality} input")]
    Modality {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The kind.
        modality: Modality,
    },
    /// Tools, tool calls or results, for a model that supports none.
    #[error("{vendor} does not support tools with the model `{model}`")]
    Tools {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The model.
        model: String,
    },
    /// Tools over Chat Completions, for a model that supports them only over Responses.
    #[error("{vendor} supports tools with the model `{model}` only over the protocol Responses")]
    ToolsOverChat {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The model.
        model: String,
    },
    /// An effort together with tools, over Chat Completions.
    #[error(
        "over Chat Completions, {vendor} supports tools with the model `{model}` only if `effort` is none"
    )]
    EffortWithTools {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The model.
        model: String,
    },
    /// A schema for the answer together with tools.
    #[error("{vendor} does not support tools together with a schema with the model `{model}`")]
    SchemaWithTools {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The model.
        model: String,
    },
    /// A choice that forces the model to call a tool.
    #[error("{vendor} cannot force the model `{model}` to call a tool")]
    ForcedTool {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The model.
        model: String,
    },
    /// An invalid name of a tool.
    #[error("`{name}` is not a valid name of a tool: letters, digits, `_` and `-`, at most 64")]
    ToolName {
        /// The name.
        name: String,
    },
    /// A name of a tool that begins with a digit or `-`.
    #[error("{vendor} accepts only names of tools that begin with a letter or `_`, unlike `{name}`")]
    ToolNameStart {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The name.
        name: String,
    },
    /// More tools than a request may contain.
    #[error("the module may call {count} tools, but {vendor} accepts at most {max} in a request")]
    TooManyTools {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The number of tools.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// An image given by URL, for a vendor that accepts only image data.
    #[error("{vendor} accepts images only as data, not by URL")]
    ImageUrl {
        /// The display name of the vendor.
        vendor: &'static str,
    },
    /// A request over the vendor's size limit.
    #[error("the request has at least {bytes} bytes, but {vendor} accepts at most {limit}")]
    TooLarge {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The minimum size of the request, in bytes.
        bytes: u64,
        /// The limit, in bytes.
        limit: u64,
        /// Whether the request contains media.
        has_media: bool,
    },
    /// The request names no model, and the vendor's row has no default.
    #[error("no model is set, and {vendor} has no default model")]
    NoModel {
        /// The display name of the vendor.
        vendor: &'static str,
        /// Its name in settings.
        name: &'static str,
        /// The variable that sets its model.
        variable: String,
    },
    /// An invalid model name.
    #[error("`{model}` is not a valid model name")]
    BadModel {
        /// The name.
        model: String,
    },
}

impl RequestError {
    /// Returns the error code of the specification.
    pub const fn code(&self) -> Code {
        match self {
            Self::Option { .. }
            | Self::OptionValue { .. }
            | Self::TemperatureWithReasoning { .. }
            | Self::Tools { .. }
            | Self::ToolsOverChat { .. }
            | Self::EffortWithTools { .. }
            | Self::SchemaWithTools { .. }
            | Self::ForcedTool { .. }
            | Self::ToolName { .. }
            | Self::ToolNameStart { .. }
            | Self::TooManyTools { .. } => Code::UnsupportedValue,
            Self::Modality { .. } | Self::ImageUrl { .. } => Code::MultimodalNotSupported,
            Self::TooLarge { has_media: true, .. } => Code::MediaTooLarge,
            Self::TooLarge { .. } => Code::InputTooLarge,
            Self::NoModel { .. } | Self::BadModel { .. } => Code::ProviderUnavailable,
        }
    }

    /// Returns the option of `generation` that the model does not support, if that is the error.
    pub const fn option(&self) -> Option<&'static str> {
        match self {
            Self::Option { option, .. } | Self::OptionValue { option, .. } => Some(*option),
            Self::TemperatureWithReasoning { .. } => Some("temperature"),
            Self::EffortWithTools { .. } => Some("effort"),
            _ => None,
        }
    }

    /// Returns whether the error is about tools, so that another provider may support the request.
    pub(crate) const fn is_about_tools(&self) -> bool {
        matches!(
            self,
            Self::Tools { .. }
                | Self::ToolsOverChat { .. }
                | Self::SchemaWithTools { .. }
                | Self::ForcedTool { .. }
                | Self::ToolNameStart { .. }
                | Self::TooManyTools { .. }
        )
    }

    /// Returns a suggestion for fixing the error.
    pub fn suggestion(&self) -> String {
        match self {
            Self::Option { option, .. } => {
                format!(
                    "Remove `generation.{option}` (--{}), or choose another provider.",
                    option.replace('_', "-")
                )
            }
            Self::OptionValue { option, .. } => {
                format!("Set `generation.{option}` (--{}) to a supported value.", option.replace('_', "-"))
            }
            Self::TemperatureWithReasoning { .. } => {
                "Remove `generation.temperature` (--temperature), or set --effort none.".to_owned()
            }
            Self::Modality { modality, .. } => {
                format!("Choose a provider and model that support {modality}.")
            }
            Self::ImageUrl { .. } => "Pass the image as a file or as base64.".to_owned(),
            Self::TooLarge { .. } => {
                "Send fewer or smaller media or less text, or choose another provider.".to_owned()
            }
            Self::Tools { .. } => "Choose a model that supports tools.".to_owned(),
            Self::ToolsOverChat { .. } => {
                "Set the protocol of the provider to responses, or choose another model.".to_owned()
            }
            Self::EffortWithTools { .. } => {
                "Remove `generation.effort` (--effort), or set the protocol of the provider to responses."
                    .to_owned()
            }
            Self::SchemaWithTools { .. } => "Send the schema as text, or choose another model.".to_owned(),
            Self::ForcedTool { .. } => "Let the model decide, or set --effort none.".to_owned(),
            Self::ToolName { .. } => "Rename the tool.".to_owned(),
            Self::ToolNameStart { .. } => {
                "Rename the tool, or the MCP server with whose name it begins.".to_owned()
            }
            Self::TooManyTools { .. } => {
                "Name the tools that the module needs in `tools.allowed`, or deny some in `tools.denied`."
                    .to_owned()
            }
            Self::NoModel { name, variable, .. } => format!(
                "Set a model with --model or LLM_MODEL, which are for the first provider, or for this one with {variable} or \
                 with `model` under `[providers.{name}]` in cog.toml. `cog doctor` lists the models of a provider."
            ),
            Self::BadModel { .. } => {
                "Set a model with --model or LLM_MODEL. `cog doctor` lists the models of a provider."
                    .to_owned()
            }
        }
    }
}
