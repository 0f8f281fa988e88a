//! Who is asked, and how it is to generate.

use std::time::Duration;

use clap::{Args, builder::PossibleValuesParser};
use cog_spec::Generation;

use crate::settings::{Flags, parse_duration};

/// Who is asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// Who is asked: a vendor, or `offline`; several, `a,b`, one after the other
    ///
    /// The next one is asked where one gives no answer: no connection, 5xx, 429, a key refused, no first word in time.
    /// Without the flag LLM_PROVIDER, else the first vendor whose key is set, else offline. `cog doctor --all` lists
    /// them.
    #[arg(long, short, value_name = "NAME", value_delimiter = ',', value_parser = providers(), hide_possible_values = true, ignore_case = true)]
    pub(crate) provider: Vec<String>,
    /// The model; else LLM_MODEL, else the vendor's default
    #[arg(long, short, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The longest the run may take, such as 30s or 2m
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,
}

impl ModelArgs {
    /// Whether the flag names somebody who is asked.
    pub(crate) fn names_provider(&self) -> bool {
        self.provider.iter().any(|name| name != cog_provider::OFFLINE)
    }

    /// What these flags set.
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            provider: (!self.provider.is_empty()).then(|| self.provider.join(",")),
            model: self.model.clone(),
            timeout: self.timeout,
            ..Flags::default()
        }
    }
}

fn providers() -> PossibleValuesParser {
    PossibleValuesParser::new(cog_provider::known())
}

/// How the model is to generate; what is not given is as the manifest says.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct GenerationArgs {
    /// How freely the model chooses its words, 0 to 2
    #[arg(long, value_name = "NUMBER", value_parser = temperature, allow_hyphen_values = true)]
    temperature: Option<f64>,
    /// The most tokens of output
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    max_tokens: Option<u64>,
    /// For models that take one: the same seed, the same answer, as far as the vendor keeps it
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    seed: Option<i64>,
}

impl GenerationArgs {
    /// The same as the runtime takes it.
    pub(crate) fn generation(&self) -> Generation {
        Generation {
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            seed: self.seed,
            stop: Vec::new(),
        }
    }
}

fn temperature(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=2.0).contains(&number) => Ok(number),
        _ => Err("a number from 0 to 2".to_owned()),
    }
}
