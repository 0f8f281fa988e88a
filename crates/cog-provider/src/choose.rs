//! Choosing the provider to call.

use thiserror::Error;

use crate::vendors::{AuthRequirement, ProviderSettings, VENDORS, Vendor};

/// The chosen provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// A vendor, called over HTTP.
    Vendor(&'static Vendor),
    /// No model is called: golden answers and samples (docs/spec/golden-tests.md).
    Offline,
}

impl Choice {
    /// Returns the provider's name, `openai` or `offline`.
    pub const fn name(self) -> &'static str {
        match self {
            Choice::Vendor(vendor) => vendor.name,
            Choice::Offline => OFFLINE,
        }
    }
}

/// The name of the provider that calls no model.
pub const OFFLINE: &str = "offline";

/// An invalid choice of providers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProviderSelectError {
    /// No provider has this name.
    #[error("unknown provider `{name}`; known providers: {}", provider_names().join(", "))]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// `offline` was combined with another provider.
    #[error("`{OFFLINE}` cannot be combined with other providers")]
    OfflineWithOthers,
}

/// Chooses the providers to call (docs/settings.md).
///
/// The requested names come first (`--provider a,b`, otherwise `LLM_PROVIDER`). Without them it is the first vendor
/// whose key is set, otherwise `offline`. The result is never empty; later providers are fallbacks for the first.
///
/// A vendor that needs no key counts as configured if its base URL is set.
///
/// # Errors
/// Fails if a name is unknown.
pub fn choose(
    requested: Option<&str>,
    setting: impl Fn(&str) -> Option<String>,
) -> Result<(Choice, Vec<Choice>), ProviderSelectError> {
    // An empty list, such as an unset variable of a container, means none.
    let mut names = requested.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    let Some(first) = names.next() else { return Ok((first_configured(setting), Vec::new())) };
    let first = by_name(first)?;
    let others = names.map(by_name).collect::<Result<Vec<_>, _>>()?;
    let has_offline = first == Choice::Offline || others.contains(&Choice::Offline);
    if has_offline && !others.is_empty() {
        Err(ProviderSelectError::OfflineWithOthers)
    } else {
        Ok((first, others))
    }
}

fn by_name(name: &str) -> Result<Choice, ProviderSelectError> {
    if name == OFFLINE {
        return Ok(Choice::Offline);
    }
    let vendor = Vendor::by_name(&name.to_ascii_lowercase());
    vendor.map(Choice::Vendor).ok_or_else(|| ProviderSelectError::Unknown { name: name.to_owned() })
}

/// Returns every name that [`choose`] accepts.
pub fn provider_names() -> Vec<&'static str> {
    VENDORS.iter().map(|vendor| vendor.name).chain([OFFLINE]).collect()
}

fn first_configured(setting: impl Fn(&str) -> Option<String>) -> Choice {
    let configured = VENDORS.iter().find(|vendor| {
        let settings = ProviderSettings::from_variables(vendor, &setting);
        settings.key.is_some() || (vendor.key == AuthRequirement::Optional && settings.base_url.is_some())
    });
    configured.map_or(Choice::Offline, Choice::Vendor)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the name of the chosen provider when these variables are set.
    fn chosen(requested: Option<&str>, set: &[(&str, &str)]) -> &'static str {
        let setting =
            |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        choose(requested, setting).unwrap().0.name()
    }

    #[test]
    fn requested_provider_is_chosen() {
        assert_eq!(chosen(Some("gemini"), &[("OPENAI_API_KEY", "k")]), "gemini");
        assert_eq!(chosen(Some("offline"), &[("OPENAI_API_KEY", "k")]), "offline");
        assert_eq!(chosen(Some(" OpenAI "), &[]), "openai");
    }

    #[test]
    fn first_provider_with_a_key_is_chosen() {
        assert_eq!(chosen(None, &[("GROQ_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")]), "anthropic");
        assert_eq!(chosen(None, &[("OPENAI_API_KEY", " "), ("XAI_API_KEY", "k")]), "xai");
        assert_eq!(chosen(Some(""), &[("XAI_API_KEY", "k")]), "xai");
    }

    #[test]
    fn self_hosted_server_is_configured_by_its_base_url() {
        assert_eq!(chosen(None, &[("OLLAMA_HOST", "127.0.0.1")]), "ollama");
        assert_eq!(chosen(None, &[("OPENAI_BASE_URL", "http://localhost:1")]), "offline");
    }

    #[test]
    fn default_is_offline() {
        assert_eq!(chosen(None, &[]), "offline");
    }

    #[test]
    fn several_providers_stay_in_order() {
        let (first, others) = choose(Some("openai, Anthropic,"), |_| None).unwrap();
        assert_eq!((first.name(), others.len(), others[0].name()), ("openai", 1, "anthropic"));
        assert_eq!(choose(Some("openai,offline"), |_| None), Err(ProviderSelectError::OfflineWithOthers));
        assert!(choose(Some("openai,unknown"), |_| None).is_err());
    }

    #[test]
    fn unknown_name_lists_known_providers() {
        let error = choose(Some("opneai"), |_| None).unwrap_err().to_string();
        assert!(
            error.starts_with("unknown provider `opneai`; known providers: openai, anthropic, gemini"),
            "{error}"
        );
        assert!(error.ends_with("custom, offline"), "{error}");
    }
}
