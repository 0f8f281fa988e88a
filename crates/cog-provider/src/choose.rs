//! Which provider to ask.

use thiserror::Error;

use crate::vendors::{AuthRequirement, ProviderSettings, VENDORS, Vendor};

/// The provider that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// A vendor.
    Vendor(&'static Vendor),
    /// Nobody: golden answers and samples (docs/spec/golden-tests.md).
    Offline,
}

impl Choice {
    /// Its name, `openai` or `offline`.
    pub const fn name(self) -> &'static str {
        match self {
            Choice::Vendor(vendor) => vendor.name,
            Choice::Offline => OFFLINE,
        }
    }
}

/// The name of the provider that asks nobody.
pub const OFFLINE: &str = "offline";

/// Names that choose no provider.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProviderSelectError {
    /// A provider of this name is not known.
    #[error("there is no provider `{name}`; known are {}", known().join(", "))]
    Unknown {
        /// The name that was asked for.
        name: String,
    },
    /// Nobody, and somebody.
    #[error("`{OFFLINE}` asks nobody, so that no other provider can stand beside it")]
    OfflineBesideOthers,
}

/// Chooses whom to ask, in order: those that are asked for (`--provider a,b`, else `LLM_PROVIDER`), else the first
/// vendor whose key is set, else nobody (docs/spec/settings.md). There is always one; the others are asked where it
/// gives no answer.
///
/// A vendor that needs no key counts as set up once its address is given.
///
/// # Errors
/// A name that is not known.
pub fn choose(
    asked: Option<&str>,
    setting: impl Fn(&str) -> Option<String>,
) -> Result<(Choice, Vec<Choice>), ProviderSelectError> {
    let mut names = asked.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    let Some(first) = names.next() else { return Ok((first_set_up(setting), Vec::new())) };
    let (first, others) = (named(first)?, names.map(named).collect::<Result<Vec<_>, _>>()?);
    let asks_nobody = first == Choice::Offline || others.contains(&Choice::Offline);
    if asks_nobody && !others.is_empty() {
        Err(ProviderSelectError::OfflineBesideOthers)
    } else {
        Ok((first, others))
    }
}

fn named(name: &str) -> Result<Choice, ProviderSelectError> {
    if name == OFFLINE {
        return Ok(Choice::Offline);
    }
    let vendor = Vendor::named(&name.to_ascii_lowercase());
    vendor.map(Choice::Vendor).ok_or_else(|| ProviderSelectError::Unknown { name: name.to_owned() })
}

/// Every name that [`choose`] knows.
pub fn known() -> Vec<&'static str> {
    VENDORS.iter().map(|vendor| vendor.name).chain([OFFLINE]).collect()
}

fn first_set_up(setting: impl Fn(&str) -> Option<String>) -> Choice {
    let set_up = |vendor: &&Vendor| {
        let settings = ProviderSettings::of(vendor, &setting);
        settings.key.is_some() || (vendor.key == AuthRequirement::Optional && settings.base_url.is_some())
    };
    VENDORS.iter().find(set_up).map_or(Choice::Offline, Choice::Vendor)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The choice by name, with these variables set.
    fn chosen(asked: Option<&str>, set: &[(&str, &str)]) -> &'static str {
        let setting =
            |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        choose(asked, setting).unwrap().0.name()
    }

    #[test]
    fn the_one_asked_for_wins() {
        assert_eq!(chosen(Some("gemini"), &[("OPENAI_API_KEY", "k")]), "gemini");
        assert_eq!(chosen(Some("offline"), &[("OPENAI_API_KEY", "k")]), "offline");
        assert_eq!(chosen(Some(" OpenAI "), &[]), "openai");
    }

    #[test]
    fn else_the_first_row_with_a_key() {
        assert_eq!(chosen(None, &[("GROQ_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")]), "anthropic");
        assert_eq!(chosen(None, &[("OPENAI_API_KEY", " "), ("XAI_API_KEY", "k")]), "xai");
        assert_eq!(chosen(Some(""), &[("XAI_API_KEY", "k")]), "xai");
    }

    #[test]
    fn a_server_of_ones_own_counts_by_its_address() {
        assert_eq!(chosen(None, &[("OLLAMA_HOST", "127.0.0.1")]), "ollama");
        assert_eq!(chosen(None, &[("OPENAI_BASE_URL", "http://localhost:1")]), "offline");
    }

    #[test]
    fn else_nobody() {
        assert_eq!(chosen(None, &[]), "offline");
    }

    #[test]
    fn several_are_asked_in_their_order() {
        let (first, others) = choose(Some("openai, Anthropic,"), |_| None).unwrap();
        assert_eq!((first.name(), others.len(), others[0].name()), ("openai", 1, "anthropic"));
        assert_eq!(choose(Some("openai,offline"), |_| None), Err(ProviderSelectError::OfflineBesideOthers));
        assert!(choose(Some("openai,nobody"), |_| None).is_err());
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = choose(Some("opneai"), |_| None).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no provider `opneai`; known are openai, anthropic, gemini"),
            "{error}"
        );
        assert!(error.ends_with("custom, offline"), "{error}");
    }
}
