//! The parameters of the generation in a manifest, a run and a request (docs/spec/modules.md).

use crate::{Ask, string_enum::string_enum};

string_enum! {
    /// How much a model reasons before it answers. A model supports some of the levels.
    Effort {
        /// Without reasoning.
        None = "none",
        /// As little as possible.
        Minimal = "minimal",
        /// Little.
        Low = "low",
        /// The usual amount.
        Medium = "medium",
        /// Much.
        High = "high",
        /// More than `high`.
        XHigh = "xhigh",
        /// As much as the model can.
        Max = "max",
    }
}

string_enum! {
    /// How detailed the answer is.
    Verbosity {
        /// Short.
        Low = "low",
        /// The usual length.
        Medium = "medium",
        /// Detailed.
        High = "high",
    }
}

string_enum! {
    /// The class of service, which determines speed and price.
    ServiceTier {
        /// The choice of the provider, or the configuration of the account.
        Auto = "auto",
        /// The standard speed and price.
        Standard = "standard",
        /// Slower and cheaper, and may be rejected under load.
        Flex = "flex",
        /// Faster and more expensive.
        Priority = "priority",
    }
}

/// `generation`: the parameters of the generation. None is the provider's default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Generation {
    /// The temperature, from 0 to 2.
    pub temperature: Option<f64>,
    /// The maximum number of output tokens.
    pub max_tokens: Option<u64>,
    /// The seed, for models that support one.
    pub seed: Option<i64>,
    /// The strings at which the generation stops.
    pub stop: Vec<String>,
    /// The amount of reasoning.
    pub effort: Option<Effort>,
    /// The detail of the answer.
    pub verbosity: Option<Verbosity>,
    /// The class of service.
    pub service_tier: Option<ServiceTier>,
    /// The form in which the model is asked for its answer.
    pub ask: Option<Ask>,
}

impl Generation {
    /// Returns these parameters, and the parameters of `other` where one is not set.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            temperature: self.temperature.or(other.temperature),
            max_tokens: self.max_tokens.or(other.max_tokens),
            seed: self.seed.or(other.seed),
            stop: if self.stop.is_empty() { other.stop.clone() } else { self.stop.clone() },
            effort: self.effort.or(other.effort),
            verbosity: self.verbosity.or(other.verbosity),
            service_tier: self.service_tier.or(other.service_tier),
            ask: self.ask.or(other.ask),
        }
    }

    /// Returns the names of the parameters that are set and sent to the model, as in a manifest.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let all = [
            ("temperature", self.temperature.is_some()),
            ("max_tokens", self.max_tokens.is_some()),
            ("seed", self.seed.is_some()),
            ("stop", !self.stop.is_empty()),
            ("effort", self.effort.is_some()),
            ("verbosity", self.verbosity.is_some()),
            ("service_tier", self.service_tier.is_some()),
        ];
        all.into_iter().filter_map(|(name, is_set)| is_set.then_some(name))
    }

    /// Removes the parameter with this name, and returns whether it was set.
    pub fn remove(&mut self, name: &str) -> bool {
        match name {
            "temperature" => self.temperature.take().is_some(),
            "max_tokens" => self.max_tokens.take().is_some(),
            "seed" => self.seed.take().is_some(),
            "stop" => !std::mem::take(&mut self.stop).is_empty(),
            "effort" => self.effort.take().is_some(),
            "verbosity" => self.verbosity.take().is_some(),
            "service_tier" => self.service_tier.take().is_some(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete() -> Generation {
        Generation {
            temperature: Some(0.2),
            max_tokens: Some(100),
            seed: Some(1),
            stop: vec!["END".to_owned()],
            effort: Some(Effort::Low),
            verbosity: Some(Verbosity::High),
            service_tier: Some(ServiceTier::Flex),
            ask: None,
        }
    }

    #[test]
    fn each_parameter_overrides_the_other_one() {
        let run = Generation { temperature: Some(1.0), effort: Some(Effort::Max), ..Generation::default() };
        let merged = run.or(&complete());
        assert_eq!(merged, Generation { temperature: run.temperature, effort: run.effort, ..complete() });
        assert_eq!(complete().or(&run), complete());
    }

    #[test]
    fn every_name_can_be_removed_once() {
        let mut generation = complete();
        for name in complete().names() {
            assert!(generation.remove(name), "{name}");
            assert!(!generation.remove(name), "{name}");
        }
        assert_eq!(generation, Generation::default());
        assert_eq!((generation.names().count(), generation.remove("top_p")), (0, false));
    }
}
