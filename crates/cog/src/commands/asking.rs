//! Who is asked: from the settings to a provider.

use std::{path::Path, sync::Arc};

use cog_provider::{
    Choice, HttpProvider, Pace, Provider, Recording,
    vendors::{ProviderSettings, Vendor},
};
use cog_spec::{Code, ErrorBody};

use crate::settings::{Settings, Source};

/// Whether the exchange with the provider is kept, or played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tape<'a> {
    /// Neither.
    Off,
    /// Kept in this folder.
    Record(&'a Path),
    /// Played from this folder.
    Replay(&'a Path),
}

/// Who is asked, and why they are.
pub(super) struct Asked {
    /// The provider; none where nobody is asked.
    pub(super) provider: Option<Arc<dyn Provider>>,
    /// What to tell the person: `asking openai, model gpt-… (OPENAI_API_KEY)`.
    pub(super) told: String,
}

/// The provider that the settings choose.
///
/// # Errors
/// E4001: a name that nobody has, an address that cannot be asked, a cassette that cannot be used.
pub(super) fn asked(settings: &Settings, tape: Tape<'_>) -> Result<Asked, ErrorBody> {
    if let Tape::Replay(folder) = tape {
        return replayed(settings, folder);
    }
    let vendor = match (choice(settings)?, tape) {
        (Choice::Vendor(vendor), _) => vendor,
        (Choice::Offline, Tape::Off) => return Ok(offline(settings)),
        (Choice::Offline, _) => return Err(nothing_to_record()),
    };
    let provider =
        HttpProvider::new(vendor, settings_of(settings, vendor)).map_err(|error| ErrorBody::from(&error))?;
    let provider = match tape {
        Tape::Record(folder) => provider.record(folder).map_err(|error| ErrorBody::from(&error))?,
        _ => provider,
    };
    let told =
        format!("asking {}, model {} ({})", vendor.name, named(provider.model()), reason(settings, vendor));
    Ok(Asked { provider: Some(Arc::new(provider)), told })
}

/// Which provider the settings choose.
pub(super) fn choice(settings: &Settings) -> Result<Choice, ErrorBody> {
    let asked = settings.provider.value.as_deref();
    cog_provider::choose(asked, |name| settings.variable(name)).map_err(|error| {
        ErrorBody::new(Code::ProviderUnavailable, error.to_string())
            .with_recoverable(false)
            .suggest(format!("it was asked for by {}", settings.provider.source))
    })
}

/// What the settings say about one vendor.
pub(super) fn settings_of(settings: &Settings, vendor: &Vendor) -> ProviderSettings {
    let model = settings.model.value.clone();
    ProviderSettings {
        model: model.or_else(|| settings.model_for(vendor).map(|model| model.value)),
        retries: settings.retries.value,
        ..ProviderSettings::of(vendor, |name| settings.variable(name))
    }
}

fn nothing_to_record() -> ErrorBody {
    ErrorBody::new(Code::ProviderUnavailable, "--record has nothing to record: nobody is asked")
        .with_recoverable(false)
        .suggest("name a provider with --provider; `cog doctor --all` lists them")
}

/// The recording says whom it is of; the settings may say otherwise.
fn replayed(settings: &Settings, folder: &Path) -> Result<Asked, ErrorBody> {
    let recorded = Recording::read(folder).map_err(|error| ErrorBody::from(&error))?;
    let vendor = match choice(settings)? {
        Choice::Vendor(vendor) if settings.provider.value.is_some() => vendor,
        _ => {
            Vendor::named(&recorded.provider).ok_or_else(|| unknown_recording(folder, &recorded.provider))?
        }
    };
    let model = settings.model.value.clone().unwrap_or(recorded.model);
    let told = format!("replaying {} ({}, model {})", folder.display(), vendor.name, named(&model));
    let of_vendor = ProviderSettings { model: Some(model), ..settings_of(settings, vendor) };
    let provider = HttpProvider::replay(vendor, of_vendor, folder, Pace::AtOnce)
        .map_err(|error| ErrorBody::from(&error))?;
    Ok(Asked { provider: Some(Arc::new(provider)), told })
}

fn unknown_recording(folder: &Path, provider: &str) -> ErrorBody {
    let message = format!("the recording {} is of `{provider}`, which is no provider", folder.display());
    ErrorBody::new(Code::ProviderUnavailable, message).with_recoverable(false)
}

fn offline(settings: &Settings) -> Asked {
    let why = match settings.provider.source {
        Source::Default => "no provider is set up; `cog doctor --all` says how".to_owned(),
        ref source => format!("as {source} says"),
    };
    Asked { provider: None, told: format!("offline: no model is asked ({why})") }
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
