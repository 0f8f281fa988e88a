//! What is asked of a model, and the HTTP request it becomes.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use cog_harmony::Conversation;
use cog_json::{ToJson, Writer};
use cog_spec::{Code, Dialect, Generation, Modality};
use thiserror::Error;

/// A question to a model, before any vendor's form.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The model; empty for the one the provider was set up with.
    pub model: String,
    /// The messages, in order.
    pub messages: Conversation,
    /// The schema the answer should have, where one is asked for.
    pub output: Option<Arc<OutputSchema>>,
    /// The kinds of media that the answer may hold beside its text (SPEC 2.2). A provider makes those that its model can
    /// ([`Provider::makes`](crate::Provider::makes)) and answers in text otherwise.
    pub makes: Vec<Modality>,
    /// How the model is to generate.
    pub generation: Generation,
    /// How long the whole call may take, retries included.
    pub timeout: Option<Duration>,
}

impl ModelRequest {
    /// A question to the provider's own model, with nothing else asked for.
    pub fn new(messages: Conversation) -> Self {
        Self {
            model: String::new(),
            messages,
            output: None,
            makes: Vec::new(),
            generation: Generation::default(),
            timeout: None,
        }
    }
}

/// The schema of the answer, in a vendor's dialect (docs/spec/modules.md).
#[derive(Debug, Clone, PartialEq)]
pub struct OutputSchema {
    /// The schema's name: the module's.
    pub name: String,
    /// The dialect the schema was projected to.
    pub dialect: Dialect,
    /// The projected schema; none where only "a JSON object" can be asked for.
    pub schema: Option<cog_json::Value>,
    /// What the system message says of it at its end; empty where it says nothing. A model that answers in no words is
    /// not told it.
    pub words: Arc<str>,
}

/// A request in a vendor's form, ready to send except for the key, which it never holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireRequest {
    /// `POST`, or `GET` when asking which models there are.
    pub method: &'static str,
    /// The whole address.
    pub url: String,
    /// Headers without the one that carries the key.
    pub headers: Vec<(&'static str, String)>,
    /// The header that will carry the key, and what will stand in it: `Bearer $OPENAI_API_KEY`.
    pub auth: Option<(&'static str, String)>,
    /// The body, JSON; empty for `GET`. A clone shares it.
    pub body: Bytes,
}

/// For people: `cog render` shows this. The key is shown as the name of its variable.
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

/// What a vendor cannot take. Told before the call; nothing is dropped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// An option of `generation` that the vendor has no parameter for.
    #[error("{vendor} takes no `{option}`")]
    Option {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The option.
        option: &'static str,
    },
    /// A kind of content.
    #[error("{vendor} takes no {modality} here")]
    Modality {
        /// The display name of the vendor.
        vendor: &'static str,
        /// The kind.
        modality: Modality,
    },
    /// Tool calls and their results.
    #[error("messages of a tool call cannot be sent to {vendor}")]
    Tools {
        /// The display name of the vendor.
        vendor: &'static str,
    },
    /// An image by its address, where only the image itself can be sent.
    #[error("{vendor} takes images only as data, not by address")]
    Address {
        /// The display name of the vendor.
        vendor: &'static str,
    },
    /// More than the vendor takes in one request.
    #[error("the request has {bytes} bytes or more, and {vendor} takes {limit}")]
    TooLarge {
        /// The display name of the vendor.
        vendor: &'static str,
        /// How many it has, at least.
        bytes: u64,
        /// The most.
        limit: u64,
        /// Whether media are in it.
        has_media: bool,
    },
    /// No model is named, and the vendor's row has no default.
    #[error("no model is named, and {vendor} has none by default")]
    NoModel {
        /// The display name of the vendor.
        vendor: &'static str,
    },
    /// A model name that cannot stand in a request.
    #[error("`{model}` is no name of a model")]
    BadModel {
        /// The name.
        model: String,
    },
}

impl RequestError {
    /// The code of the specification.
    pub const fn code(&self) -> Code {
        match self {
            Self::Option { .. } | Self::Tools { .. } => Code::UnsupportedValue,
            Self::Modality { .. } | Self::Address { .. } => Code::MultimodalNotSupported,
            Self::TooLarge { has_media: true, .. } => Code::MediaTooLarge,
            Self::TooLarge { .. } => Code::InputTooLarge,
            Self::NoModel { .. } | Self::BadModel { .. } => Code::ProviderUnavailable,
        }
    }

    /// What to do about it.
    pub fn suggestion(&self) -> String {
        match self {
            Self::Option { option, .. } => {
                format!(
                    "Leave out `generation.{option}` (--{}), or choose another provider.",
                    option.replace('_', "-")
                )
            }
            Self::Modality { modality, .. } => format!("Choose a provider and model that take {modality}."),
            Self::Address { .. } => "Give the image as a file or as base64.".to_owned(),
            Self::TooLarge { .. } => {
                "Send fewer or smaller media, or less text, or choose another provider.".to_owned()
            }
            Self::Tools { .. } => "Choose another provider.".to_owned(),
            Self::NoModel { .. } | Self::BadModel { .. } => {
                "Name a model with --model or LLM_MODEL; `cog doctor` lists those that a provider offers."
                    .to_owned()
            }
        }
    }
}
