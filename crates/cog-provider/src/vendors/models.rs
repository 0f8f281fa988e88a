//! The settings that the models of a vendor support.

use cog_spec::{Effort, ServiceTier};

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
    };

    /// Returns the levels of effort, in their order.
    pub(crate) fn all_efforts(&self) -> impl Iterator<Item = Effort> {
        let is_known = |effort: &Effort| self.efforts.contains(effort) || self.members(*effort).is_some();
        Effort::ALL.iter().copied().filter(is_known)
    }

    /// Returns the members that set this level of effort, as JSON, if it is not set by the protocol's own parameter.
    pub(crate) fn members(&self, effort: Effort) -> Option<&'static str> {
        self.effort_members.iter().find(|(level, _)| *level == effort).map(|(_, members)| *members)
    }

    /// Returns the vendor's name of a class of service.
    pub(crate) fn service_tier(&self, tier: ServiceTier) -> Option<&'static str> {
        self.service_tiers.iter().find(|(known, _)| *known == tier).map(|(_, name)| *name)
    }

    fn matches(&self, model: &str) -> bool {
        let name = model.rsplit('/').next().unwrap_or(model);
        self.names.iter().any(|start| name.starts_with(start))
    }
}

impl Vendor {
    /// Returns the settings that a model supports.
    pub fn settings_of(&self, model: &str) -> &'static ModelSettings {
        self.models.iter().find(|entry| entry.matches(model)).unwrap_or(&ModelSettings::PLAIN)
    }
}
