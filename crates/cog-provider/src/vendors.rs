//! Who can be asked: one row for each vendor.
//!
//! A row holds everything that tells one vendor from the next. What they share is the protocol.

mod settings;
mod table;

use cog_spec::{Dialect, Modality};

use crate::{Formats, protocol::ProtocolKind};

pub use settings::{InvalidBaseUrl, ProviderSettings, normal_base_url};
pub use table::VENDORS;

/// A vendor: a row of [`VENDORS`] (docs/spec/settings.md).
#[derive(Debug, PartialEq, Eq)]
pub struct Vendor {
    /// The name to choose it by, `openai`.
    pub name: &'static str,
    /// As people call it, `OpenAI`.
    pub title: &'static str,
    /// The wire form it speaks.
    pub protocol: ProtocolKind,
    /// Its address; empty where only the operator knows it.
    pub base_url: &'static str,
    /// The variables that give another address, first one first.
    pub base_url_vars: &'static [&'static str],
    /// The path to add to an address that has none.
    pub bare_path: &'static str,
    /// The port of an address that names neither scheme nor port; only where the vendor's own tools do so.
    pub bare_port: Option<u16>,
    /// The variables that hold the key, first one first.
    pub key_vars: &'static [&'static str],
    /// Whether it can be asked without a key.
    pub key: AuthRequirement,
    /// The header that carries the key.
    pub auth: Auth,
    /// The model that is asked where none is named.
    pub default_model: Option<&'static str>,
    /// How it is told the schema of an answer.
    pub dialect: Dialect,
    /// What its models can take.
    pub input: &'static [Modality],
    /// How it takes media.
    pub formats: Formats,
    /// Which of its models make media; the first that fits a name counts.
    pub makers: &'static [MediaModel],
    /// Where it differs from its protocol.
    pub quirks: Quirks,
}

/// Models that make media.
#[derive(Debug, PartialEq, Eq)]
pub struct MediaModel {
    /// A part of their names; all names hold an empty one.
    pub named: &'static str,
    /// What they make.
    pub makes: &'static [Modality],
    /// The wire form in which they are asked; none for that of the row.
    pub protocol: Option<ProtocolKind>,
}

/// Whether a vendor wants a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthRequirement {
    /// Always.
    Required,
    /// Only if its operator says so: servers of one's own.
    Optional,
}

/// How a key travels. Always in a header, so that it is in no address and no log of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// `NAME: KEY`.
    Header(&'static str),
}

impl Auth {
    /// The header's name, and its value for this key.
    pub fn header(self, key: &str) -> (&'static str, String) {
        match self {
            Auth::Bearer => ("authorization", format!("Bearer {key}")),
            Auth::Header(name) => (name, key.to_owned()),
        }
    }
}

/// Where a vendor differs from its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirks {
    /// The parameter for the most tokens of output.
    pub max_tokens: &'static str,
    /// The parameter for the seed; none where there is none.
    pub seed: Option<&'static str>,
    /// Whether a temperature may be given.
    pub temperature: bool,
    /// Whether `stream_options` is understood.
    pub stream_options: bool,
    /// Whether an answer with a schema can be streamed.
    pub streams_schema: bool,
    /// Further fields of the body: the key, and its value as JSON.
    pub extra: &'static [(&'static str, &'static str)],
}

impl Quirks {
    /// No difference.
    pub const NONE: Self = Self {
        max_tokens: "max_tokens",
        seed: Some("seed"),
        temperature: true,
        stream_options: true,
        streams_schema: true,
        extra: &[],
    };
}

impl Vendor {
    /// The vendor of this name.
    pub fn named(name: &str) -> Option<&'static Vendor> {
        VENDORS.iter().find(|vendor| vendor.name == name)
    }

    /// The kinds of media that a model makes beside text.
    pub fn makes(&self, model: &str) -> &'static [Modality] {
        self.maker(model).map_or(&[], |maker| maker.makes)
    }

    /// The wire form in which a model is asked.
    pub fn protocol_of(&self, model: &str) -> ProtocolKind {
        self.maker(model).and_then(|maker| maker.protocol).unwrap_or(self.protocol)
    }

    fn maker(&self, model: &str) -> Option<&'static MediaModel> {
        self.makers.iter().find(|maker| model.contains(maker.named))
    }

    /// The variable to name in messages about the key.
    pub fn key_var(&self) -> Option<&'static str> {
        self.key_vars.first().copied()
    }
}

#[cfg(test)]
mod tests;
