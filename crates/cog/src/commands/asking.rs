//! Who is asked: from the settings to providers.

use std::{path::Path, sync::Arc};

use cog_provider::{
    Breaker, BreakerSettings, Choice, HttpProvider, Pace, Provider, ProviderSelectError, Recording,
    vendors::{ProviderSettings, VENDORS, Vendor},
};
use cog_run::Providers;
use cog_spec::{Code, ErrorBody};

use super::logged::Logged;
use crate::settings::{Settings, Source};

/// Whether the exchange with the provider is kept, or played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tape<'a> {
    /// Neither.
    Off,
    /// Kept in this directory.
    Record(&'a Path),
    /// Played from this directory.
    Replay(&'a Path),
}

/// Who is asked, and why they are.
pub(super) struct Asked {
    pub(super) providers: Providers,
    /// What to tell the person: `asking openai, model gpt-… (OPENAI_API_KEY)`.
    pub(super) told: String,
}

/// Whether a vendor is the first to be asked: the setting `model` speaks of that one alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    First,
    Other,
}

/// The providers that the settings choose.
///
/// # Errors
/// E4001: a name that nobody has, an address that cannot be asked, a cassette that cannot be used.
pub(super) fn asked(settings: &Settings, tape: Tape<'_>) -> Result<Asked, ErrorBody> {
    if let Tape::Replay(directory) = tape {
        return replayed(settings, directory);
    }
    match (choice(settings)?, tape) {
        ((Choice::Vendor(first), others), Tape::Off) => in_order(settings, first, &others),
        ((Choice::Vendor(vendor), others), Tape::Record(directory)) if others.is_empty() => {
            recorded(settings, vendor, directory)
        }
        ((Choice::Offline, _), Tape::Off) => Ok(offline(settings)),
        ((Choice::Vendor(_), _), _) => {
            Err(cannot_record("--record works with one provider, but several are given"))
        }
        ((Choice::Offline, _), _) => {
            Err(cannot_record("--record requires a provider: offline mode calls no model"))
        }
    }
}

/// The names of those whom the settings choose, in order: `openai, anthropic`.
pub(super) fn chosen(settings: &Settings) -> Result<String, ErrorBody> {
    let (first, others) = choice(settings)?;
    let names: Vec<_> = std::iter::once(first).chain(others).map(Choice::name).collect();
    Ok(names.join(", "))
}

/// What the settings say about one vendor.
pub(super) fn settings_of(settings: &Settings, vendor: &Vendor, rank: Rank) -> ProviderSettings {
    let model = settings.model.value.clone().filter(|_| rank == Rank::First);
    ProviderSettings {
        model: model.or_else(|| settings.model_for(vendor).map(|model| model.value)),
        retries: settings.retries.value,
        first_token: settings.first_token_timeout.value,
        stall: settings.idle_timeout.value,
        ..ProviderSettings::of(vendor, |name| settings.variable(name))
    }
}

/// Whom the settings choose, and who is asked where that one gives no answer.
fn choice(settings: &Settings) -> Result<(Choice, Vec<Choice>), ErrorBody> {
    let asked = settings.provider.value.as_deref();
    cog_provider::choose(asked, |name| settings.variable(name)).map_err(|error| {
        ErrorBody::new(Code::ProviderUnavailable, error.to_string())
            .with_recoverable(false)
            .suggest(format!("it is set by {}", settings.provider.source))
    })
}

/// These vendors one after the other, and any other by its name.
fn in_order(settings: &Settings, first: &'static Vendor, others: &[Choice]) -> Result<Asked, ErrorBody> {
    let open = |vendor, rank| HttpProvider::new(vendor, settings_of(settings, vendor, rank));
    let provider = open(first, Rank::First).map_err(|error| ErrorBody::from(&error))?;
    let mut told = format!("{} ({})", with_model(&provider), reason(settings, first));
    let mut order = vec![ready(settings, provider)];
    for other in others {
        let Choice::Vendor(vendor) = other else { continue };
        let provider = open(vendor, Rank::Other).map_err(|error| ErrorBody::from(&error))?;
        told += &format!(", fallback {}", with_model(&provider));
        order.push(ready(settings, provider));
    }
    Ok(Asked {
        providers: Providers::new(order, any(settings)),
        told: format!("calling {told}{}", by_proxy(settings)),
    })
}

/// Any vendor by its name, each one provider for all requests that name it.
fn any(settings: &Settings) -> impl Fn(&str) -> Result<Arc<dyn Provider>, ErrorBody> + Send + Sync + 'static {
    let open = |vendor| HttpProvider::new(vendor, settings_of(settings, vendor, Rank::Other)).ok();
    let vendors: Vec<_> = VENDORS.iter().filter_map(open).map(|provider| ready(settings, provider)).collect();
    move |name| {
        let known = vendors.iter().find(|provider| provider.name() == name);
        known.cloned().ok_or_else(|| {
            let unknown = ProviderSelectError::Unknown { name: name.to_owned() };
            ErrorBody::new(Code::UnsupportedValue, unknown.to_string())
        })
    }
}

/// A provider whose exchanges are logged, and which is left alone where it fails again and again.
fn ready(settings: &Settings, provider: HttpProvider) -> Arc<dyn Provider> {
    let breaker = BreakerSettings {
        failures: settings.breaker_failures.value,
        pause: settings.breaker_reset_timeout.value,
    };
    Arc::new(Breaker::around(Logged::over(Arc::new(provider)), breaker))
}

fn recorded(settings: &Settings, vendor: &'static Vendor, directory: &Path) -> Result<Asked, ErrorBody> {
    let provider = HttpProvider::new(vendor, settings_of(settings, vendor, Rank::First));
    let provider =
        provider.and_then(|provider| provider.record(directory)).map_err(|error| ErrorBody::from(&error))?;
    let told =
        format!("calling {} ({}){}", with_model(&provider), reason(settings, vendor), by_proxy(settings));
    Ok(Asked { providers: Providers::one(ready(settings, provider)), told })
}

/// What is to be said of a proxy that will not be used.
fn by_proxy(settings: &Settings) -> String {
    let told = |name| format!("; {name} is ignored, since it is not a URL such as http://proxy.example:3128");
    settings.unusable_proxy().map(told).unwrap_or_default()
}

/// The recording says whom it is of; the settings may say otherwise.
fn replayed(settings: &Settings, directory: &Path) -> Result<Asked, ErrorBody> {
    let recorded = Recording::read(directory).map_err(|error| ErrorBody::from(&error))?;
    let vendor = match choice(settings)? {
        (Choice::Vendor(vendor), _) if settings.provider.value.is_some() => vendor,
        _ => Vendor::named(&recorded.provider)
            .ok_or_else(|| unknown_recording(directory, &recorded.provider))?,
    };
    let model = settings.model.value.clone().unwrap_or(recorded.model);
    let told = format!("replaying {} ({}, model {})", directory.display(), vendor.name, named(&model));
    let of_vendor = ProviderSettings { model: Some(model), ..settings_of(settings, vendor, Rank::First) };
    let provider = HttpProvider::replay(vendor, of_vendor, directory, Pace::AtOnce)
        .map_err(|error| ErrorBody::from(&error))?;
    Ok(Asked { providers: Providers::one(ready(settings, provider)), told })
}

fn offline(settings: &Settings) -> Asked {
    let why = match settings.provider.source {
        Source::Default => "no provider is configured; see `cog doctor --all`".to_owned(),
        ref source => format!("set by {source}"),
    };
    Asked {
        providers: Providers::new(Vec::new(), any(settings)),
        told: format!("offline mode: no model will be called ({why})"),
    }
}

fn cannot_record(message: &str) -> ErrorBody {
    ErrorBody::new(Code::ProviderUnavailable, message)
        .with_recoverable(false)
        .suggest("give one provider with --provider; `cog doctor --all` lists them")
}

fn unknown_recording(directory: &Path, provider: &str) -> ErrorBody {
    let message =
        format!("the recording {} is from `{provider}`, which is not a known provider", directory.display());
    ErrorBody::new(Code::ProviderUnavailable, message).with_recoverable(false)
}

fn with_model(provider: &HttpProvider) -> String {
    format!("{}, model {}", provider.name(), named(provider.model()))
}

fn named(model: &str) -> &str {
    if model.is_empty() { "unnamed" } else { model }
}

/// Why this vendor: who asked for it, else which of its variables is set.
fn reason(settings: &Settings, vendor: &Vendor) -> String {
    if settings.provider.value.is_some() {
        return settings.provider.source.to_string();
    }
    let variables = vendor.key_vars.iter().chain(vendor.base_url_vars);
    let set = variables.copied().find(|name| settings.variable(name).is_some());
    set.map_or_else(|| "default".to_owned(), |name| format!("{name} is set"))
}
