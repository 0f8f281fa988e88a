//! The settings that the models of a vendor support.

use cog_spec::{Dialect, Effort, ServiceTier};

use super::Vendor;

/// The settings that some models of a vendor support. The first entry that matches a model applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelSettings {
    /// The beginnings of their names, without the part before a slash. The empty string matches every name.
    pub names: &'static [&'static str],
    /// Whether the models accept a temperature.
    pub temperature: Temperature,
    /// The levels of effort that are set by the protocol's own parameter.
    pub efforts: &'static [Effort],
    /// The levels of effort that are set by other members, as JSON: of the body, or of Gemini's `thinkingConfig`.
    pub effort_members: &'static [(Effort, &'static str)],
    /// Whether the models accept a verbosity.
    pub verbosity: bool,
    /// The classes of service, each with the vendor's name for it.
    pub service_tiers: &'static [(ServiceTier, &'static str)],
    /// The cache of the beginning of requests, at the vendor's own base URL; `None` if nothing is known about it.
    pub cache: Option<PromptCache>,
}

/// The cache of a model for the beginning of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptCache {
    /// How a request marks the part to cache.
    pub mark: CacheMark,
    /// The minimum length of that part in tokens; `None` if it is not documented.
    pub min_tokens: Option<u64>,
}

/// How a request marks the part that the vendor caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheMark {
    /// Not at all: the vendor finds equal beginnings itself.
    Automatic,
    /// `prompt_cache_key` names requests with an equal beginning.
    Key,
    /// In addition, `prompt_cache_breakpoint` ends the part, and `prompt_cache_options` turns off other ends.
    Breakpoint,
    /// `cache_control` ends the part.
    Control,
}

impl CacheMark {
    /// Returns the member of a request that marks the part, if there is one.
    pub const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Automatic => None,
            Self::Key => Some("prompt_cache_key"),
            Self::Breakpoint => Some("prompt_cache_breakpoint"),
            Self::Control => Some("cache_control"),
        }
    }
}

/// Whether a model accepts a temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temperature {
    /// Always.
    Accepted,
    /// Only with the effort `none`.
    WithoutReasoning,
    /// Never.
    Rejected,
}

impl ModelSettings {
    /// Any model: a temperature, and no further settings.
    pub const PLAIN: Self = Self {
        names: &[""],
        temperature: Temperature::Accepted,
        efforts: &[],
        effort_members: &[],
        verbosity: false,
        service_tiers: &[],
        cache: None,
    };

    /// Returns the first entry that matches the model's name.
    pub(crate) fn find<'a>(entries: &'a [Self], model: &str) -> Option<&'a Self> {
        entries.iter().find(|entry| has_prefix(entry.names, model))
    }

    /// Returns the levels of effort, in their order.
    pub(crate) fn all_efforts(&self) -> impl Iterator<Item = Effort> {
        let all = Effort::ALL.iter().copied();
        all.filter(|effort| self.efforts.contains(effort) || self.members(*effort).is_some())
    }

    /// Returns the members that set this level of effort, as JSON, if it is not set by the protocol's own parameter.
    pub(crate) fn members(&self, effort: Effort) -> Option<&'static str> {
        self.effort_members.iter().find(|(level, _)| *level == effort).map(|(_, members)| *members)
    }

    /// Returns the vendor's name of a class of service.
    pub(crate) fn service_tier(&self, tier: ServiceTier) -> Option<&'static str> {
        self.service_tiers.iter().find(|(known, _)| *known == tier).map(|(_, name)| *name)
    }
}

/// Returns whether a model's name, without the part before a slash, begins with one of these.
pub(crate) fn has_prefix(names: &[&str], model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    names.iter().any(|start| name.starts_with(start))
}

impl Vendor {
    /// Returns the settings that a model supports.
    pub fn settings_of(&self, model: &str) -> &'static ModelSettings {
        ModelSettings::find(self.models, model).unwrap_or(&ModelSettings::PLAIN)
    }
}

// How the models of a vendor use tools.

/// How some models of a vendor use tools. The first entry that matches a model applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolSettings {
    /// The beginnings of their names, without the part before a slash. The empty string matches every name.
    pub names: &'static [&'static str],
    /// Whether the models accept tools.
    pub supported: bool,
    /// The dialect in which the arguments of a tool are described.
    pub dialect: Dialect,
    /// Whether the models enforce the schema of a tool that is marked as strict.
    pub strict: bool,
    /// Whether a request with tools may have a schema for the answer. If not, the schema is sent as text
    /// ([`Dialect::Prompt`]).
    pub with_schema: bool,
    /// Whether a request may force the model to call a tool.
    pub forced: ToolSupport,
    /// Whether a request may limit the model to one call per reply.
    pub limits_calls: bool,
    /// Whether the models accept tools over Chat Completions, if that is the protocol.
    pub over_chat: ToolSupport,
    /// Whether the result of a tool may contain media, over protocols that have a form for them. If not, the media
    /// follow in a message of the user.
    pub result_media: bool,
    /// The members of a reply that contain its reasoning and are sent back in the next request.
    pub reasoning: &'static [&'static str],
    /// Whether the reasoning is requested in encrypted form, to be sent back.
    pub encrypted_reasoning: bool,
    /// What replaces the signature of a call that another provider sent; `None` if the models require no signature.
    pub placeholder: Option<&'static str>,
    /// Whether the name of a tool begins with a letter or `_`.
    pub letter_first: bool,
    /// Whether the arguments of a tool have names of at most 64 letters, digits, `_`, `.` and `-`.
    pub plain_arguments: bool,
    /// The limits of one request.
    pub limits: RequestLimits,
}

/// How many tools one request may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Tools.
    pub tools: usize,
    /// Tools that are marked as strict.
    pub strict: usize,
    /// Members that are not required, in the strict tools and the schema of the answer.
    pub optional: usize,
    /// Members that accept several types, in the strict tools and the schema of the answer.
    pub unions: usize,
}

impl RequestLimits {
    /// No documented limit.
    pub const NONE: Self =
        Self { tools: usize::MAX, strict: usize::MAX, optional: usize::MAX, unions: usize::MAX };
}

/// Whether a model accepts a use of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSupport {
    /// Always.
    Accepted,
    /// Only with the effort `none`.
    WithoutReasoning,
    /// Never.
    Rejected,
}

impl ToolSettings {
    /// Any model that supports no tools.
    pub const NONE: Self = Self {
        names: &[""],
        supported: false,
        dialect: Dialect::JsonSchema,
        strict: false,
        with_schema: false,
        forced: ToolSupport::Accepted,
        limits_calls: false,
        over_chat: ToolSupport::Accepted,
        result_media: false,
        reasoning: &[],
        encrypted_reasoning: false,
        placeholder: None,
        letter_first: false,
        plain_arguments: false,
        limits: RequestLimits::NONE,
    };

    /// Any model that supports tools, and nothing else together with them.
    pub const PLAIN: Self = Self { supported: true, ..Self::NONE };

    /// Returns the first entry that matches the model's name.
    pub(crate) fn find(entries: &'static [Self], model: &str) -> &'static Self {
        entries.iter().find(|entry| has_prefix(entry.names, model)).unwrap_or(&Self::NONE)
    }
}

impl Vendor {
    /// Returns how a model uses tools.
    pub fn tools_of(&self, model: &str) -> &'static ToolSettings {
        ToolSettings::find(self.tools, model)
    }
}
