//! What a reply costs, at the prices of the operator or at the list prices of its vendor, and the context windows of
//! models.
//!
//! The crate `genai-prices` calculates. `prices/` contains its data for the vendors of the table, written by
//! `cargo xtask generate`. A list is decoded when a vendor replies for the first time.

use std::{sync::LazyLock, time::SystemTime};

use cog_spec::{Amount, Cost, Currency, PriceDate, PriceSource, Usage};
use genai_prices::{Calculator, PriceRequest, Usage as Counts, UsageKey};

/// The day on which prices were verified last.
const VERIFIED: &str = include_str!("../../prices/verified");

/// Declares the price lists, and the function that returns one by its name.
macro_rules! price_lists {
    ($($name:literal),+ $(,)?) => {
        fn calculator(list: &str) -> Option<&'static Calculator> {
            match list {
                $($name => {
                    static LIST: LazyLock<Option<Calculator>> = LazyLock::new(|| {
                        Calculator::from_json(include_bytes!(concat!("../../prices/", $name, ".json"))).ok()
                    });
                    LIST.as_ref()
                })+
                _ => None,
            }
        }

        #[cfg(test)]
        const LISTS: &[&str] = &[$($name),+];
    };
}

price_lists!(
    "anthropic",
    "deepseek",
    "google",
    "groq",
    "minimax",
    "mistral",
    "moonshotai",
    "openai",
    "openrouter",
    "together",
    "x-ai",
);

/// The classes of service with the prices of the list, as vendors name them.
const STANDARD: &[&str] = &["default", "standard", "on_demand"];

/// Returns the cost of a reply at a time. None if the list has no price for the model or its class of service, or if
/// the counts contradict each other.
pub(crate) fn cost(list: &str, model: &str, usage: &Usage, now: SystemTime) -> Option<Cost> {
    let calculator = calculator(list)?;
    let counts = counts(usage);
    let request = PriceRequest::new(model, &counts).with_provider_id(list).with_timestamp(now);
    let price = match usage.service_tier.as_deref().map(str::to_ascii_lowercase) {
        Some(tier) if !STANDARD.contains(&tier.as_str()) => tier_price(calculator, request, &tier)?,
        _ => calculator.calculate(&request).ok()?.total_price,
    };
    Some(Cost {
        amount: Amount::new(price)?,
        currency: Currency::Usd,
        source: PriceSource::GenaiPrices,
        date: PriceDate::new(VERIFIED)?,
    })
}

/// The price of a model in US dollars per million tokens, which the operator set: gateways and self-hosted servers have no
/// list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelPrice {
    /// The price of the input.
    pub input: f64,
    /// The price of the output, reasoning included.
    pub output: f64,
    /// The price of the input that the server read from its cache; `None` if it costs as much as other input.
    pub cached_input: Option<f64>,
    /// The price of the input that the server wrote to its cache; `None` if it costs as much as other input.
    pub cache_write: Option<f64>,
}

/// The operator's prices by model. A name that ends with `*` means every model that begins with the rest of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelPrices(Vec<(String, ModelPrice)>);

impl ModelPrices {
    /// No prices.
    pub const NONE: Self = Self(Vec::new());

    /// Returns the cost of a reply at a time; `None` if none of the names of the model has a price, or if the counts
    /// contradict each other.
    pub(crate) fn cost(&self, models: &[&str], usage: &Usage, now: SystemTime) -> Option<Cost> {
        let ModelPrice { input, output, cached_input, cache_write } = self.price(models)?;
        let read = usage.cached_input_tokens.unwrap_or(0);
        let written = usage.cache_write_input_tokens.unwrap_or(0);
        let fresh = usage.input_tokens.checked_sub(read)?.checked_sub(written)?;
        let sum = number(fresh) * input
            + number(read) * cached_input.unwrap_or(input)
            + number(written) * cache_write.unwrap_or(input)
            + number(usage.output_tokens) * output;
        Some(Cost {
            amount: Amount::new(sum / 1e6)?,
            currency: Currency::Usd,
            source: PriceSource::Settings,
            date: day(now)?,
        })
    }

    /// Returns the price of a model: under one of its names, otherwise under the longest beginning of one.
    fn price(&self, models: &[&str]) -> Option<ModelPrice> {
        let matching = self.0.iter().filter(|(name, _)| match name.strip_suffix('*') {
            Some(start) => models.iter().any(|model| model.starts_with(start)),
            None => models.contains(&name.as_str()),
        });
        let best = matching.max_by_key(|(name, _)| (!name.ends_with('*'), name.len()));
        best.map(|(_, price)| *price)
    }
}

impl FromIterator<(String, ModelPrice)> for ModelPrices {
    fn from_iter<T: IntoIterator<Item = (String, ModelPrice)>>(prices: T) -> Self {
        Self(prices.into_iter().collect())
    }
}

/// Returns the day of a time.
fn day(time: SystemTime) -> Option<PriceDate> {
    // A clock before 1970 has no form.
    let time = humantime::format_rfc3339_seconds(time.max(SystemTime::UNIX_EPOCH)).to_string();
    PriceDate::new(time.get(..10)?)
}

/// Returns the price in a class of service. For one without prices the calculator returns the standard price, which is
/// not the price of the reply.
fn tier_price(calculator: &Calculator, standard: PriceRequest<'_>, tier: &str) -> Option<f64> {
    // The data use another key for batches than for the other classes.
    let key = if tier == "batch" { "processing" } else { "service_tier" };
    let standard_price = calculator.calculate(&standard).ok()?.total_price;
    let price = calculator.calculate(&standard.with_price_context(key, tier)).ok()?.total_price;
    (price != standard_price).then_some(price)
}

/// Returns the context window of a model in tokens. None if the list does not have it.
pub(crate) fn context_window(list: &str, model: &str) -> Option<u64> {
    let calculator = calculator(list)?;
    let counts = counts(&Usage::default());
    let price = calculator.calculate(&PriceRequest::new(model, &counts).with_provider_id(list)).ok()?;
    let vendor = calculator.find_provider(Some(list), None).ok()??;
    vendor.models().find(|found| found.id() == price.model_id)?.context_window()
}

fn counts(usage: &Usage) -> Counts {
    let counted = [
        (UsageKey::INPUT_TOKENS, Some(usage.input_tokens)),
        (UsageKey::OUTPUT_TOKENS, Some(usage.output_tokens)),
        (UsageKey::CACHE_READ_TOKENS, usage.cached_input_tokens),
        (UsageKey::CACHE_WRITE_TOKENS, usage.cache_write_input_tokens),
        (UsageKey::CACHE_WRITE_1H_TOKENS, usage.cache_write_1h_input_tokens),
        (UsageKey::OUTPUT_REASONING_TOKENS, usage.reasoning_tokens),
        (UsageKey::INPUT_AUDIO_TOKENS, usage.input_audio_tokens),
        (UsageKey::INPUT_IMAGE_TOKENS, usage.input_image_tokens),
        (UsageKey::OUTPUT_AUDIO_TOKENS, usage.output_audio_tokens),
        (UsageKey::OUTPUT_IMAGE_TOKENS, usage.output_image_tokens),
    ];
    counted.into_iter().filter_map(|(key, count)| Some((key, number(count?)))).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^53")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::vendors::VENDORS;

    /// 2026-11-22.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_305_600)
    }

    /// 40,000 fresh, 50,000 cached and 10,000 written tokens, and 10,000 of the output.
    fn usage(tier: Option<&str>) -> Usage {
        Usage {
            input_tokens: 100_000,
            output_tokens: 10_000,
            cached_input_tokens: Some(50_000),
            cache_write_input_tokens: Some(10_000),
            service_tier: tier.map(str::to_owned),
            ..Usage::default()
        }
    }

    /// Returns the cost in millionths.
    fn micros(list: &str, model: &str, usage: &Usage) -> Option<f64> {
        cost(list, model, usage, now()).map(|cost| (cost.amount.as_f64() * 1e9).round() / 1e3)
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let sonnet = 40_000.0 * 2.0 + 50_000.0 * 0.1 + 10_000.0 * 2.5 + 10_000.0 * 10.0;
        assert_eq!(micros("anthropic", "claude-sonnet-5-5", &usage(None)), Some(sonnet));
        let long = Usage { cache_write_1h_input_tokens: Some(4_000), ..usage(None) };
        let dearer = 4_000.0 * (4.0 - 2.5);
        assert_eq!(micros("anthropic", "claude-sonnet-5-5", &long), Some(sonnet + dearer));
    }

    #[test]
    fn operators_prices_apply_to_their_models() {
        let price = |input| ModelPrice { input, output: 2.0, cached_input: Some(0.25), cache_write: None };
        let names = [("exact", 1.0), ("gpt-*", 4.0), ("gpt-6-*", 8.0), ("gpt-6-luna*", 16.0), ("*", 32.0)];
        let prices: ModelPrices =
            names.into_iter().map(|(name, input)| (name.to_owned(), price(input))).collect();
        for (model, input) in [
            ("exact", 1.0),
            ("exactly", 32.0),
            ("gpt-5", 4.0),
            ("gpt-6-sol", 8.0),
            ("gpt-6-luna", 16.0),
            ("", 32.0),
        ] {
            assert_eq!(prices.price(&[model]), Some(price(input)), "{model}");
        }
        assert_eq!(prices.price(&["gpt-5", "exact"]), Some(price(1.0)), "the name of the request");
        let cost = prices.cost(&["exact"], &usage(Some("flex")), now()).unwrap();
        let micros = 40_000.0 * 1.0 + 50_000.0 * 0.25 + 10_000.0 * 1.0 + 10_000.0 * 2.0;
        assert_eq!((cost.amount.as_f64() * 1e6).round(), micros);
        assert_eq!((cost.source, cost.date.as_str()), (PriceSource::Settings, "2026-11-22"));
        assert_eq!(ModelPrices::NONE.cost(&["exact"], &usage(None), now()), None);
        let wrong = Usage { input_tokens: 1, cached_input_tokens: Some(2), ..Usage::default() };
        assert_eq!(prices.cost(&["exact"], &wrong, now()), None);
        let early = now() - Duration::from_secs(100 * 365 * 24 * 3600);
        assert_eq!(prices.cost(&["exact"], &usage(None), early).unwrap().date.as_str(), "1970-01-01");
    }

    #[test]
    fn each_service_tier_has_its_price() {
        let standard = 40_000.0 * 0.1 + 50_000.0 * 0.01 + 10_000.0 * 0.125 + 10_000.0 * 0.5;
        let factors = [
            (None, Some(1.0)),
            (Some("default"), Some(1.0)),
            (Some("STANDARD"), Some(1.0)),
            (Some("flex"), Some(0.5)),
            (Some("batch"), Some(0.5)),
            (Some("priority"), Some(2.0)),
            (Some("unheard-of"), None),
        ];
        for (tier, factor) in factors {
            let expected = factor.map(|factor| standard * factor);
            assert_eq!(micros("openai", "gpt-6-luna", &usage(tier)), expected, "{tier:?}");
        }
    }

    #[test]
    fn long_prompts_have_the_price_of_their_size() {
        let prompt = |input_tokens| Usage { input_tokens, ..Usage::default() };
        assert_eq!(micros("openai", "gpt-6-luna", &prompt(272_000)), Some(27_200.0));
        assert_eq!(micros("openai", "gpt-6-luna", &prompt(300_000)), Some(60_000.0));
    }

    #[test]
    fn reasoning_has_the_price_of_the_output_or_its_own() {
        let reasoning = |reasoning_tokens| Usage { reasoning_tokens, ..usage(None) };
        let all = reasoning(Some(10_000));
        let none = reasoning(None);
        assert_eq!(micros("openai", "gpt-6-luna", &all), micros("openai", "gpt-6-luna", &none));
        let own = "perplexity/sonar-deep-research";
        let cheaper = 10_000.0 * (8.0 - 3.0);
        assert_eq!(
            micros("openrouter", own, &none).unwrap() - micros("openrouter", own, &all).unwrap(),
            cheaper
        );
    }

    #[test]
    fn media_have_their_own_prices() {
        let image = Usage { output_image_tokens: Some(9_000), ..usage(None) };
        let dearer = 9_000.0 * (30.0 - 2.5);
        let model = "gemini-2.5-flash-image";
        let price =
            |usage: &Usage| micros("google", model, &Usage { cached_input_tokens: None, ..usage.clone() });
        assert_eq!(price(&image).unwrap() - price(&usage(None)).unwrap(), dearer);
        let audio =
            Usage { input_audio_tokens: Some(9_000), ..Usage { input_tokens: 10_000, ..Usage::default() } };
        assert_eq!(micros("google", "gemini-2.5-flash", &audio), Some(9_000.0 * 1.0 + 1_000.0 * 0.3));
        let cached = Usage { cached_input_tokens: Some(5_000), ..audio };
        assert_eq!(
            micros("google", "gemini-2.5-flash", &cached),
            None,
            "which tokens were cached is unknown"
        );
    }

    #[test]
    fn prices_change_with_the_date() {
        let price = |days: u64| {
            let at = now() + Duration::from_secs(days * 24 * 3600);
            cost("google", "gemini-3.8-flash", &Usage { input_tokens: 1000, ..Usage::default() }, at)
        };
        assert!(price(0).unwrap().amount < price(60).unwrap().amount);
    }

    #[test]
    fn dated_models_have_the_price_of_their_model() {
        let dated = micros("openai", "gpt-6-luna-2026-10-01", &usage(None));
        assert!(dated.is_some());
        assert_eq!(dated, micros("openai", "gpt-6-luna", &usage(None)));
    }

    #[test]
    fn models_have_a_context_window() {
        for (list, model, expected) in [
            ("openai", "gpt-6-luna", Some(1_050_000)),
            ("openai", "gpt-6-luna-2026-10-01", Some(1_050_000)),
            ("openai", "gpt-4", Some(8192)),
            ("anthropic", "claude-sonnet-5-5", Some(1_000_000)),
            ("openai", "mock-model", None),
            ("nowhere", "gpt-4", None),
        ] {
            assert_eq!(context_window(list, model), expected, "{model}");
        }
    }

    #[test]
    fn unknown_model_and_list_have_no_cost() {
        assert_eq!(micros("openai", "mock-model", &usage(None)), None);
        assert_eq!(micros("openai", "", &usage(None)), None);
        assert_eq!(micros("nowhere", "gpt-6-luna", &usage(None)), None);
    }

    #[test]
    fn contradictory_counts_have_no_cost() {
        for key in [0, 1] {
            let mut counts = Usage { input_tokens: 1, ..Usage::default() };
            *[&mut counts.cached_input_tokens, &mut counts.cache_write_input_tokens][key] = Some(5);
            assert_eq!(micros("openai", "gpt-6-luna", &counts), None);
        }
    }

    #[test]
    fn every_list_is_valid_and_default_models_have_prices() {
        for list in LISTS {
            assert!(calculator(list).is_some(), "{list}");
        }
        for vendor in VENDORS {
            let (Some(list), Some(model)) = (vendor.prices, vendor.default_model) else { continue };
            assert!(micros(list, model, &usage(None)).is_some(), "{} {model}", vendor.name);
        }
        assert!(PriceDate::new(VERIFIED).is_some());
    }
}
