//! Creates the providers that the settings select.

use std::{path::Path, sync::Arc};

use cog_provider::{
    Breaker, BreakerSettings, Choice, HttpProvider, OFFLINE, Pace, Provider, ProviderSelectError, Recording,
    RecordingFailure,
    vendors::{ProviderSettings, VENDORS, Vendor},
};
use cog_run::Providers;
use cog_spec::{Code, ErrorBody};

use crate::{
    logged::Logged,
    settings::{DetectedServer, Settings, Source, detect},
};

/// Whether the exchange with the provider is recorded or replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordMode<'a> {
    /// Neither.
    Off,
    /// Recorded in this directory.
    Record(&'a Path),
    /// Replayed from this directory.
    Replay(&'a Path),
}

/// The selected providers, and the reason.
pub struct Selected {
    /// The providers, to be called in this order.
    pub providers: Providers,
    /// The note for the user: `calling openai, model gpt-… (OPENAI_API_KEY is set)`.
    pub note: String,
    /// Tells why the recording, if there is one, lacks a reply.
    pub recording: RecordingFailure,
}

impl Selected {
    /// Returns providers whose replies are not recorded.
    pub fn new(providers: Providers, note: impl Into<String>) -> Self {
        Self { providers, note: note.into(), recording: RecordingFailure::default() }
    }
}

impl From<Providers> for Selected {
    fn from(providers: Providers) -> Self {
        Self::new(providers, "")
    }
}

/// The position of a provider: the setting `model` applies to the first one only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderPosition {
    /// The provider that is called first.
    First,
    /// Any other provider.
    Other,
}

/// Creates the providers that the settings select.
///
/// # Errors
/// E4001 for an unknown name, an invalid base URL or an unusable recording.
pub fn select(settings: &Settings, mode: RecordMode<'_>) -> Result<Selected, ErrorBody> {
    if let RecordMode::Replay(directory) = mode {
        return replayed(settings, directory);
    }
    match (selection(settings)?, mode) {
        ((Choice::Vendor(first), others), RecordMode::Off) => with_fallbacks(settings, first, &others),
        ((Choice::Vendor(vendor), others), RecordMode::Record(directory)) if others.is_empty() => {
            recorded(settings, vendor, directory)
        }
        ((Choice::Offline, _), RecordMode::Off) => Ok(offline(settings)),
        ((Choice::Vendor(_), _), _) => {
            Err(cannot_record("a recording has one provider, but several are given"))
        }
        ((Choice::Offline, _), _) => {
            Err(cannot_record("a recording requires a provider: offline mode calls no model"))
        }
    }
}

/// Creates the providers that the settings select, where the program may have some of its own. If nothing is selected, its own
/// are called in their order: it has them for no other reason.
///
/// # Errors
/// As [`select`].
pub fn select_with(settings: &Settings, own: Vec<Arc<dyn Provider>>) -> Result<Selected, ErrorBody> {
    let requested = settings.provider.value.clone().unwrap_or_default();
    let names: Vec<&str> = requested.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.is_empty()
        && let Some(first) = own.first()
    {
        let note = format!(
            "calling {}, model {} (a provider of the program)",
            first.info().name,
            first.info().model
        );
        let providers = Providers::new(own.clone(), own_or_by_name(settings, own));
        return Ok(Selected::new(providers, note));
    }
    if names.iter().all(|name| find(&own, name).is_none()) {
        let selected = select(settings, RecordMode::Off)?;
        let providers = selected.providers.with_lookup(own_or_by_name(settings, own));
        return Ok(Selected { providers, ..selected });
    }
    if names.contains(&OFFLINE) && names.len() > 1 {
        return Err(unusable(settings, &ProviderSelectError::OfflineWithOthers));
    }
    let mut order = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let position = if index == 0 { ProviderPosition::First } else { ProviderPosition::Other };
        match find(&own, name) {
            Some(provider) => order.push(Arc::clone(provider)),
            None => order.extend(single(settings, name, position)?.providers.default_order().to_vec()),
        }
    }
    let note = format!("calling {} ({})", names.join(", "), settings.provider.source);
    Ok(Selected::new(Providers::new(order, own_or_by_name(settings, own)), note))
}

fn find<'a>(providers: &'a [Arc<dyn Provider>], name: &str) -> Option<&'a Arc<dyn Provider>> {
    providers.iter().find(|provider| provider.info().name == name)
}

/// Returns the names of the selected providers, in order: `openai, anthropic`.
pub fn names(settings: &Settings) -> Result<String, ErrorBody> {
    let (first, others) = selection(settings)?;
    let names: Vec<_> = std::iter::once(first).chain(others).map(Choice::name).collect();
    Ok(names.join(", "))
}

/// A provider without fallbacks, to be compared with others.
pub struct MatrixTarget {
    /// Its name.
    pub provider: &'static str,
    /// The model; empty for the offline provider.
    pub model: String,
    /// The provider alone.
    pub providers: Providers,
}

/// Creates each selected provider by itself; with several models, the only provider once for each of them.
///
/// # Errors
/// As [`select`]; E1001 for several providers with several models.
pub fn each(settings: &Settings, models: &[&str]) -> Result<Vec<MatrixTarget>, ErrorBody> {
    let (first, others) = selection(settings)?;
    if models.len() > 1 {
        if !others.is_empty() {
            return Err(too_many());
        }
        let first_with = models.iter().copied().map(Some);
        return first_with
            .map(|model| matrix_target(settings, first, ProviderPosition::First, model))
            .collect();
    }
    let others = others.into_iter().map(|one| (one, ProviderPosition::Other));
    let positioned = std::iter::once((first, ProviderPosition::First)).chain(others);
    positioned.map(|(choice, position)| matrix_target(settings, choice, position, None)).collect()
}

fn too_many() -> ErrorBody {
    ErrorBody::new(Code::InvalidInput, "several models are compared on one provider, but several are given")
        .suggest("Give several providers, or several models of one provider.")
}

/// Creates the provider with this name, without fallbacks.
///
/// # Errors
/// As [`select`].
pub fn named(settings: &Settings, name: &str) -> Result<Providers, ErrorBody> {
    Ok(single(settings, name, ProviderPosition::Other)?.providers)
}

fn single(settings: &Settings, name: &str, position: ProviderPosition) -> Result<MatrixTarget, ErrorBody> {
    let chosen = cog_provider::choose(Some(name), |name| settings.variable(name));
    let (choice, _) = chosen.map_err(|error| {
        ErrorBody::new(Code::ProviderUnavailable, error.to_string()).with_recoverable(false)
    })?;
    matrix_target(settings, choice, position, None)
}

fn matrix_target(
    settings: &Settings,
    choice: Choice,
    position: ProviderPosition,
    model: Option<&str>,
) -> Result<MatrixTarget, ErrorBody> {
    let Choice::Vendor(vendor) = choice else {
        let providers = offline(settings).providers;
        return Ok(MatrixTarget { provider: choice.name(), model: String::new(), providers });
    };
    let mut own = provider_settings(settings, vendor, position);
    own.model = model.map(str::to_owned).or(own.model);
    let provider = HttpProvider::new(vendor, own).map_err(|error| ErrorBody::from(&error))?;
    let model = provider.info().model.to_string();
    Ok(MatrixTarget { provider: vendor.name, model, providers: Providers::single(wrap(settings, provider)) })
}

/// Returns the settings of one provider.
pub fn provider_settings(
    settings: &Settings,
    vendor: &Vendor,
    position: ProviderPosition,
) -> ProviderSettings {
    let model = settings.model.value.clone().filter(|_| position == ProviderPosition::First);
    let detected = detected(settings, vendor);
    let variables = ProviderSettings::from_variables(vendor, |name| settings.variable(name));
    ProviderSettings {
        model: model
            .or_else(|| settings.model_for(vendor).map(|model| model.value))
            .or_else(|| detected?.model().map(str::to_owned)),
        base_url: variables.base_url.or_else(|| Some(detected?.base_url.clone())),
        prices: settings.prices_for(vendor),
        secrets: settings.redactor().secrets(),
        retries: settings.retries.value,
        first_token_timeout: settings.first_token_timeout.value,
        idle_timeout: settings.idle_timeout.value,
        // The other requests of a server continue while a large body is written. Runtimes with one thread ignore it.
        block_in_place: true,
        ..variables
    }
}

/// Returns the server that was found on this machine, if it is this vendor's.
pub fn detected<'a>(settings: &'a Settings, vendor: &Vendor) -> Option<&'a DetectedServer> {
    settings.detected.get()?.as_ref().filter(|server| server.vendor.name == vendor.name)
}

/// Returns the selected provider and its fallbacks.
fn selection(settings: &Settings) -> Result<(Choice, Vec<Choice>), ErrorBody> {
    let name = settings.provider.value.as_deref();
    let chosen = cog_provider::choose(name, |name| settings.variable(name));
    match chosen.map_err(|error| unusable(settings, &error))? {
        (Choice::Offline, others) if name.is_none() => {
            let found = detect(settings).filter(|server| server.model().is_some());
            Ok((found.map_or(Choice::Offline, |server| Choice::Vendor(server.vendor)), others))
        }
        chosen => Ok(chosen),
    }
}

fn unusable(settings: &Settings, error: &ProviderSelectError) -> ErrorBody {
    ErrorBody::new(Code::ProviderUnavailable, error.to_string())
        .with_recoverable(false)
        .suggest(format!("It is set by {}.", settings.provider.source))
}

/// Creates the provider and its fallbacks, in order, and any other provider by name.
fn with_fallbacks(
    settings: &Settings,
    first: &'static Vendor,
    others: &[Choice],
) -> Result<Selected, ErrorBody> {
    let provider = open(settings, first, ProviderPosition::First)?;
    let mut note = format!("{} ({})", with_model(&provider), reason(settings, first));
    let mut order = vec![wrap(settings, provider)];
    for other in others {
        let Choice::Vendor(vendor) = other else { continue };
        let provider = open(settings, vendor, ProviderPosition::Other)?;
        note += &format!(", fallback {}", with_model(&provider));
        order.push(wrap(settings, provider));
    }
    let note = format!("calling {note}{}", proxy_note(settings));
    Ok(Selected::new(Providers::new(order, by_name(settings)), note))
}

/// Creates the provider of a vendor with the settings of the operator.
fn open(
    settings: &Settings,
    vendor: &'static Vendor,
    position: ProviderPosition,
) -> Result<HttpProvider, ErrorBody> {
    HttpProvider::new(vendor, provider_settings(settings, vendor, position))
        .map_err(|error| ErrorBody::from(&error))
}

/// Returns a lookup of providers by name. All requests with one name share one provider, and with it the connections and the circuit
/// breaker.
fn by_name(
    settings: &Settings,
) -> impl Fn(&str) -> Result<Arc<dyn Provider>, ErrorBody> + Send + Sync + 'static {
    let vendors: Vec<_> = VENDORS
        .iter()
        .filter_map(|vendor| open(settings, vendor, ProviderPosition::Other).ok())
        .map(|provider| wrap(settings, provider))
        .collect();
    move |name| {
        let known = vendors.iter().find(|provider| provider.info().name == name);
        known.cloned().ok_or_else(|| {
            let unknown = ProviderSelectError::Unknown { name: name.to_owned() };
            ErrorBody::new(Code::UnsupportedValue, unknown.to_string())
        })
    }
}

/// Returns a lookup that finds the program's own providers before the others.
fn own_or_by_name(
    settings: &Settings,
    own: Vec<Arc<dyn Provider>>,
) -> impl Fn(&str) -> Result<Arc<dyn Provider>, ErrorBody> + Send + Sync + 'static {
    let by_name = by_name(settings);
    move |name| match find(&own, name) {
        Some(provider) => Ok(Arc::clone(provider)),
        None => by_name(name),
    }
}

/// Wraps a provider with logging and a circuit breaker. The log is inside, so that a call that the breaker refuses is not logged as one
/// that was sent.
fn wrap(settings: &Settings, provider: HttpProvider) -> Arc<dyn Provider> {
    let breaker = BreakerSettings {
        failures: settings.breaker_failures.value,
        reset_timeout: settings.breaker_reset_timeout.value,
    };
    Arc::new(Breaker::new(Logged::wrap(Arc::new(provider)), breaker))
}

fn recorded(settings: &Settings, vendor: &'static Vendor, directory: &Path) -> Result<Selected, ErrorBody> {
    let provider = open(settings, vendor, ProviderPosition::First)?;
    let provider = provider.record(directory).map_err(|error| ErrorBody::from(&error))?;
    let note =
        format!("calling {} ({}){}", with_model(&provider), reason(settings, vendor), proxy_note(settings));
    let recording = provider.recording_failure();
    Ok(Selected { providers: Providers::single(wrap(settings, provider)), note, recording })
}

/// Returns the note about a proxy that is ignored.
fn proxy_note(settings: &Settings) -> String {
    match settings.unusable_proxy() {
        Some(name) => {
            format!("; {name} is ignored, since it is not a URL such as http://proxy.example:3128")
        }
        None => String::new(),
    }
}

/// Creates a provider that replays a recording. The settings may override the recorded provider and model.
fn replayed(settings: &Settings, directory: &Path) -> Result<Selected, ErrorBody> {
    let recorded = Recording::read(directory).map_err(|error| ErrorBody::from(&error))?;
    // Without a setting the recording decides, and nothing is looked for: a replay calls no server.
    let chosen = settings.provider.value.is_some().then(|| selection(settings)).transpose()?;
    let vendor = match chosen {
        Some((Choice::Vendor(vendor), _)) => vendor,
        _ => Vendor::by_name(&recorded.provider)
            .ok_or_else(|| unknown_recording(directory, &recorded.provider))?,
    };
    let model = settings.model.value.clone().unwrap_or(recorded.model);
    let note = format!("replaying {} ({}, model {})", directory.display(), vendor.name, model_name(&model));
    let replay_settings = ProviderSettings {
        model: Some(model),
        ..provider_settings(settings, vendor, ProviderPosition::First)
    };
    let provider = HttpProvider::replay(vendor, replay_settings, directory, Pace::Immediate)
        .map_err(|error| ErrorBody::from(&error))?;
    Ok(Selected::new(Providers::single(wrap(settings, provider)), note))
}

fn offline(settings: &Settings) -> Selected {
    let reason = match &settings.provider.source {
        Source::Default if let Some(Some(server)) = settings.detected.get() => {
            let Vendor { title, default_model, commands, .. } = server.vendor;
            let pull = commands.map_or("", |it| it.pull);
            let model = default_model.unwrap_or_default();
            format!("{title} at {} has no models; run `{pull} {model}`", server.base_url)
        }
        Source::Default => "no provider is configured; see `cog doctor --all`".to_owned(),
        source => format!("set by {source}"),
    };
    let note = format!("offline mode: no model will be called ({reason})");
    Selected::new(Providers::offline().with_lookup(by_name(settings)), note)
}

fn cannot_record(message: &str) -> ErrorBody {
    ErrorBody::new(Code::ProviderUnavailable, message)
        .with_recoverable(false)
        .suggest("Give one provider with --provider; `cog doctor --all` lists them.")
}

fn unknown_recording(directory: &Path, provider: &str) -> ErrorBody {
    let message =
        format!("the recording {} is from `{provider}`, which is not a known provider", directory.display());
    ErrorBody::new(Code::ProviderUnavailable, message).with_recoverable(false)
}

fn with_model(provider: &HttpProvider) -> String {
    format!("{}, model {}", provider.info().name, model_name(&provider.info().model))
}

fn model_name(model: &str) -> &str {
    if model.is_empty() { "unnamed" } else { model }
}

/// Returns why this provider is selected: the source of the setting, otherwise the variable that is set.
fn reason(settings: &Settings, vendor: &Vendor) -> String {
    if settings.provider.value.is_some() {
        return settings.provider.source.to_string();
    }
    let variables = vendor.key_vars.iter().chain(vendor.base_url_vars);
    let set = variables.copied().find(|name| settings.variable(name).is_some());
    match set.map(|name| (name, settings.source_of(name))) {
        Some((_, Source::File(path))) => format!("configured in {}", path.display()),
        Some((name, _)) => format!("{name} is set"),
        None => match detected(settings, vendor) {
            Some(server) => format!("found at {}; COG_DETECT_OLLAMA=off ignores it", server.base_url),
            None => "default".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Environment, Flags};

    #[test]
    fn offline_beside_a_provider_of_the_program_is_an_error() {
        let vendor = Vendor::by_name("ollama").unwrap();
        let own = || vec![Arc::new(HttpProvider::new(vendor, ProviderSettings::default()).unwrap()) as _];
        let select = |names: &str| {
            let environment = Environment::from([("LLM_PROVIDER", names)]);
            select_with(&Settings::read(Flags::default(), environment).unwrap(), own())
        };
        for names in ["ollama,offline", "offline, ollama"] {
            let error = select(names).err().unwrap();
            assert_eq!(error.message, "`offline` cannot be combined with other providers");
            assert_eq!(error.suggestion.as_deref(), Some("It is set by LLM_PROVIDER."));
        }
        assert_eq!(select("ollama").unwrap().providers.default_order().len(), 1);
    }
}
