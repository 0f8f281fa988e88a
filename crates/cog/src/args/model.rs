//! Arguments that select the provider and the model, and control generation.

use std::time::Duration;

use clap::{
    Args,
    builder::{NonEmptyStringValueParser, PossibleValuesParser},
};
use cog_host::{
    run_log::Entry,
    settings::{Flags, parse_duration},
};
use cog_spec::{Ask, Effort, Generation, ServiceTier, Verbosity};

use super::keyword;

/// The provider and the model.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// Provider to use, or `offline`; with `a,b`, b is the fallback
    ///
    /// The next provider is called after a connection failure, a 5xx or 429 response, a rejected key, or when no first
    /// token arrives in time. It is also called when the messages exceed the model's context window, or when the
    /// provider does not support the media or the options of the run. Defaults to LLM_PROVIDER, then the first provider
    /// whose key is set, then `offline`. `cog doctor --all` lists the providers.
    #[arg(long, short, value_name = "NAME", value_delimiter = ',', value_parser = providers(), hide_possible_values = true, ignore_case = true)]
    pub(crate) provider: Vec<String>,
    /// Model of the first provider [default: LLM_MODEL, or the provider's default]
    #[arg(long, short, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,
    /// Maximum run time, such as 30s or 2m [default: COG_TIMEOUT, or 5m]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,
    /// Give tools to modules of directories that are not trusted, for this command [default: COG_TRUST]
    ///
    /// Without it, a module that is found by name in the working directory calls tools only after `cog trust`. Set it where
    /// the directory is known to be yours, as in CI.
    #[arg(long, help_heading = "Tools")]
    pub(crate) trust: bool,
}

impl ModelArgs {
    /// Whether `--provider` names a provider that calls a model.
    pub(crate) fn names_provider(&self) -> bool {
        self.provider.iter().any(|name| name != cog_provider::OFFLINE)
    }

    /// Selects the provider and the model of a logged run, unless a provider is given; a given model replaces the logged one.
    pub(crate) fn select_earlier(&mut self, entry: &Entry) {
        if self.provider.is_empty() {
            self.provider = entry.providers();
            self.model = self.model.take().or_else(|| entry.requested_model.clone());
        }
    }

    /// Returns the settings that these flags set.
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            provider: (!self.provider.is_empty()).then(|| self.provider.join(",")),
            model: self.model.clone(),
            timeout: self.timeout,
            trust: self.trust.then_some(true),
            ..Flags::default()
        }
    }
}

pub(super) fn providers() -> PossibleValuesParser {
    PossibleValuesParser::new(cog_provider::provider_names())
}

/// Generation parameters; the manifest sets those that are not given.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct GenerationArgs {
    /// Sampling temperature, 0 to 2
    #[arg(long, value_name = "NUMBER", value_parser = temperature, allow_hyphen_values = true)]
    temperature: Option<f64>,
    /// Maximum output tokens
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    max_tokens: Option<u64>,
    /// Seed for reproducible sampling, if the provider supports it
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    seed: Option<i64>,
    /// Amount of reasoning, if the model supports it
    ///
    /// A level that the model does not support is rejected before the call. Defaults to COG_EFFORT, then the manifest.
    #[arg(long, value_name = "LEVEL", value_parser = keyword::<Effort>(Effort::NAMES))]
    effort: Option<Effort>,
    /// Detail of the answer, if the model supports it [default: COG_VERBOSITY, or the manifest's]
    #[arg(long, value_name = "LEVEL", value_parser = keyword::<Verbosity>(Verbosity::NAMES))]
    verbosity: Option<Verbosity>,
    /// Service tier, which determines speed and price [default: COG_SERVICE_TIER, or the manifest's]
    #[arg(long, value_name = "TIER", value_parser = keyword::<ServiceTier>(ServiceTier::NAMES))]
    service_tier: Option<ServiceTier>,
    /// Form in which the model is asked for its answer
    ///
    /// `envelope` asks for the complete envelope, `data` for the data with a rationale, and `answer` for the deciding fields
    /// alone. `auto` takes what `cog test --forms --keep` stored for the model, otherwise `answer` for engines that enforce
    /// a grammar and `envelope` for the others. What leaves the run is the same envelope. Defaults to COG_ASK, then the
    /// manifest, then `auto`.
    #[arg(long, value_name = "FORM", value_parser = keyword::<Ask>(Ask::NAMES))]
    ask: Option<Ask>,
}

impl GenerationArgs {
    /// Converts the arguments to the runtime's type.
    pub(crate) fn generation(&self) -> Generation {
        Generation {
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            seed: self.seed,
            stop: Vec::new(),
            effort: self.effort,
            verbosity: self.verbosity,
            service_tier: self.service_tier,
            ask: self.ask,
        }
    }
}

fn temperature(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=2.0).contains(&number) => Ok(number),
        _ => Err("not a number from 0 to 2".to_owned()),
    }
}
