//! The settings of the generation: what runs prefer that set nothing themselves.

use std::{fmt::Display, str::FromStr};

use cog_spec::{Effort, Generation, ParseEnumError, ServiceTier, Verbosity};

use super::{
    Row, Setting, SettingsError, Shown,
    sources::{Layers, Names},
};

/// The settings of the generation.
#[derive(Debug)]
pub struct GenerationSettings {
    /// The amount of reasoning.
    pub effort: Setting<Option<Effort>>,
    /// The detail of the answer.
    pub verbosity: Setting<Option<Verbosity>>,
    /// The class of service.
    pub service_tier: Setting<Option<ServiceTier>>,
}

const EFFORT: Names = Names { flag: "", variable: "COG_EFFORT" };
const VERBOSITY: Names = Names { flag: "", variable: "COG_VERBOSITY" };
const SERVICE_TIER: Names = Names { flag: "", variable: "COG_SERVICE_TIER" };

impl GenerationSettings {
    /// Reads the variables and the files.
    ///
    /// # Errors
    /// A variable with an unknown value.
    pub(super) fn read(layers: &Layers<'_>) -> Result<Self, SettingsError> {
        Ok(Self {
            effort: optional(layers.pick(EFFORT, None, parse, |file| file.effort)?),
            verbosity: optional(layers.pick(VERBOSITY, None, parse, |file| file.verbosity)?),
            service_tier: optional(layers.pick(SERVICE_TIER, None, parse, |file| file.service_tier)?),
        })
    }

    /// Returns the parameters that runs prefer.
    pub fn preferred(&self) -> Generation {
        Generation {
            effort: self.effort.value,
            verbosity: self.verbosity.value,
            service_tier: self.service_tier.value,
            ..Generation::default()
        }
    }

    /// Returns the settings as `cog config` shows them.
    pub(super) fn rows(&self) -> [Row; 3] {
        [
            Row::new("effort", &self.effort, name),
            Row::new("verbosity", &self.verbosity, name),
            Row::new("service_tier", &self.service_tier, name),
        ]
    }
}

fn parse<T: FromStr<Err = ParseEnumError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseEnumError| error.to_string())
}

fn optional<T>(setting: Option<Setting<T>>) -> Setting<Option<T>> {
    setting.map_or_else(|| Setting::default(None), Setting::some)
}

fn name(value: &Option<impl Display>) -> Shown {
    Shown::maybe(value.as_ref())
}
