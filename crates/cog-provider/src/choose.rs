//! Which provider to ask.

use thiserror::Error;

use crate::vendors::{KeyNeed, ProviderSettings, VENDORS, Vendor};

/// The provider that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// A vendor.
    Vendor(&'static Vendor),
    /// Nobody: golden answers and samples (supplement section 4).
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

/// A provider of this name is not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no provider `{name}`; known are {}", known().join(", "))]
pub struct UnknownProvider {
    /// The name that was asked for.
    pub name: String,
}

/// Chooses the provider: the one that is asked for (`--provider`, else `LLM_PROVIDER`), else the first
/// vendor whose key is set, else nobody (supplement section 11).
///
/// A vendor that needs no key counts as set up once its address is given.
///
/// # Errors
/// A name that is not known.
pub fn choose(
    asked: Option<&str>,
    setting: impl Fn(&str) -> Option<String>,
) -> Result<Choice, UnknownProvider> {
    match asked.map(str::trim).filter(|name| !name.is_empty()) {
        Some(OFFLINE) => Ok(Choice::Offline),
        Some(name) => Vendor::named(&name.to_ascii_lowercase())
            .map(Choice::Vendor)
            .ok_or_else(|| UnknownProvider { name: name.to_owned() }),
        None => Ok(first_set_up(setting)),
    }
}

/// Every name that [`choose`] knows.
pub fn known() -> Vec<&'static str> {
    VENDORS.iter().map(|vendor| vendor.name).chain([OFFLINE]).collect()
}

fn first_set_up(setting: impl Fn(&str) -> Option<String>) -> Choice {
    let set_up = |vendor: &&Vendor| {
        let settings = ProviderSettings::of(vendor, &setting);
        settings.key.is_some() || (vendor.key == KeyNeed::Optional && settings.base_url.is_some())
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
        choose(asked, setting).unwrap().name()
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
    fn an_unknown_name_lists_the_known_ones() {
        let error = choose(Some("opneai"), |_| None).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no provider `opneai`; known are openai, anthropic, gemini"),
            "{error}"
        );
        assert!(error.ends_with("custom, offline"), "{error}");
    }
}
