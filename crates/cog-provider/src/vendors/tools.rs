//! How the models of a vendor use tools.

use cog_spec::Dialect;

use super::{Vendor, models::has_prefix};

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
    /// Whether the result of a tool may contain media, over protocols that have a form for them. If not, the media follow in
    /// a message of the user.
    pub result_media: bool,
    /// The members of a reply that contain its reasoning and are sent back in the next request.
    pub reasoning: &'static [&'static str],
    /// Whether the reasoning is requested in encrypted form, to be sent back.
    pub encrypted_reasoning: bool,
    /// What replaces the signature of a call that another provider sent; `None` if the models require no signature.
    pub placeholder: Option<&'static str>,
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
    };

    /// Any model that supports tools, and nothing else beside them.
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
