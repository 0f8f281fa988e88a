//! What the operator of a server allows the client of a run, and shows it.

use std::{fmt, sync::Arc};

use cog_provider::{OFFLINE, Provider};
use cog_spec::{Code, ErrorBody};

/// The rules for the client of a run: which models it may name, and whether errors hide what belongs to the operator.
///
/// They hold for the parts of the run and the modules that it calls as tools too.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ClientRules {
    /// The providers and models that the client may name. None allows all.
    pub models: Option<ModelAccess>,
    /// The id of the client's request. With it, errors name the id instead of the operator's addresses, variables and files and
    /// the vendor's text ([`ErrorBody::for_client`]). The log has the whole error under the id.
    pub request_id: Option<Arc<str>>,
}

impl ClientRules {
    /// Returns the error as the client receives it, and logs what the client does not receive.
    pub fn shown(&self, error: ErrorBody) -> ErrorBody {
        let Some(request_id) = &self.request_id else { return error };
        if error.is_for_operator() {
            tracing::warn!(
                request_id = &**request_id,
                code = error.code.as_str(),
                error = error.message,
                "the client receives only the code of this error"
            );
        }
        error.for_client(request_id)
    }
}

/// The providers and models that a client may name. Clones share one list.
///
/// A client that names neither gets the operator's default, and the default can always be named too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAccess(Arc<[AllowedModel]>);

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowedModel {
    provider: String,
    /// None allows the configured model of the provider only.
    model: Option<ModelPattern>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ModelPattern {
    Exact(String),
    Prefix(String),
}

impl ModelAccess {
    /// Parses a list such as `openai,anthropic/claude-haiku-5,ollama/*`: the configured model of a provider, one model, or all models
    /// whose names begin with the text before `*`. An empty list allows no choice.
    ///
    /// # Errors
    /// The first entry that is not of this form.
    pub fn parse(list: &str) -> Result<Self, String> {
        let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries
            .map(|entry| AllowedModel::parse(entry).ok_or_else(|| entry.to_owned()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Checks the names in a request before anything is looked up, so that an error does not reveal which providers exist.
    ///
    /// # Errors
    /// E4007 for a provider that is not in the list.
    pub(crate) fn check_names(
        &self,
        requested: Option<&str>,
        default_order: &[Arc<dyn Provider>],
    ) -> Result<(), ErrorBody> {
        let names = requested.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
        for name in names {
            let is_default = default_order.iter().any(|provider| provider.info().name == name)
                || (default_order.is_empty() && name == OFFLINE);
            if !is_default && self.0.iter().all(|entry| entry.provider != name) {
                return Err(refused(&format!("provider `{}`", shown(name))));
            }
        }
        Ok(())
    }

    /// Checks the model that a provider is called with; none is its configured one. `is_default` is whether the operator chose the
    /// provider.
    ///
    /// # Errors
    /// E4007 for a model that is not in the list.
    pub(crate) fn check_model(
        &self,
        provider: &dyn Provider,
        model: Option<&str>,
        is_default: bool,
    ) -> Result<(), ErrorBody> {
        let info = provider.info();
        let requested = model.filter(|model| !model.is_empty()).unwrap_or(&info.model);
        let is_configured = requested == &*info.model;
        let is_listed = self.0.iter().any(|entry| {
            entry.provider == info.name
                && entry.model.as_ref().map_or(is_configured, |pattern| pattern.accepts(requested))
        });
        match (is_configured && is_default) || is_listed {
            true => Ok(()),
            false => Err(refused(&format!("model `{}` of provider `{}`", shown(requested), info.name))),
        }
    }
}

impl fmt::Display for ModelAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match &entry.model {
                None => write!(f, "{comma}{}", entry.provider)?,
                Some(ModelPattern::Exact(model)) => write!(f, "{comma}{}/{model}", entry.provider)?,
                Some(ModelPattern::Prefix(prefix)) => write!(f, "{comma}{}/{prefix}*", entry.provider)?,
            }
        }
        Ok(())
    }
}

impl AllowedModel {
    fn parse(entry: &str) -> Option<Self> {
        // The name of a model may contain a slash: `openrouter/meta-llama/llama-4`.
        let (provider, model) = match entry.split_once('/') {
            Some((provider, model)) => (provider, Some(model)),
            None => (entry, None),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let model = model.map(ModelPattern::parse);
        let is_valid = !provider.is_empty() && provider.chars().all(is_name) && model.as_ref() != Some(&None);
        is_valid.then(|| Self { provider: provider.to_owned(), model: model.flatten() })
    }
}

impl ModelPattern {
    fn parse(model: &str) -> Option<Self> {
        match model.strip_suffix('*') {
            Some(prefix) if !prefix.contains('*') => Some(Self::Prefix(prefix.to_owned())),
            None if !model.is_empty() && !model.contains('*') => Some(Self::Exact(model.to_owned())),
            _ => None,
        }
    }

    fn accepts(&self, model: &str) -> bool {
        match self {
            Self::Exact(name) => name == model,
            Self::Prefix(prefix) => model.starts_with(prefix.as_str()),
        }
    }
}

fn refused(what: &str) -> ErrorBody {
    ErrorBody::new(Code::PermissionDenied, format!("this client may not use {what}"))
        .suggest("Leave out `provider` and `model` to use the default, or ask the operator of the server.")
}

fn shown(name: &str) -> String {
    name.chars().take(60).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider;

    fn named(name: &'static str, model: &'static str) -> Arc<dyn Provider> {
        provider::from_fn(name, model, async |_| Ok("{}"))
    }

    #[test]
    fn list_has_providers_models_and_prefixes() {
        let access =
            ModelAccess::parse("openai, anthropic/claude-haiku-5,ollama/*,openrouter/meta-llama/llama-4")
                .unwrap();
        assert_eq!(
            access.to_string(),
            "openai,anthropic/claude-haiku-5,ollama/*,openrouter/meta-llama/llama-4"
        );
        for (provider, model, is_allowed) in [
            ("openai", None, true),
            ("openai", Some("configured"), true),
            ("openai", Some("gpt-6"), false),
            ("anthropic", None, false),
            ("anthropic", Some("claude-haiku-5"), true),
            ("anthropic", Some("claude-haiku-50"), false),
            ("ollama", Some("anything"), true),
            ("openrouter", Some("meta-llama/llama-4"), true),
            ("groq", None, false),
        ] {
            let checked = access.check_model(&*named(provider, "configured"), model, false);
            assert_eq!(checked.is_ok(), is_allowed, "{provider} {model:?}");
        }
    }

    #[test]
    fn default_can_be_named_but_not_with_another_model() {
        let access = ModelAccess::parse("").unwrap();
        let order = [named("openai", "small")];
        assert!(access.check_names(Some("openai"), &order).is_ok());
        assert!(access.check_model(&*order[0], Some("small"), true).is_ok());
        let error = access.check_model(&*order[0], Some("large"), true).unwrap_err();
        assert_eq!(error.code, Code::PermissionDenied.into());
        for name in ["anthropic", "openai,anthropic", OFFLINE] {
            assert!(access.check_names(Some(name), &order).is_err(), "{name}");
        }
        assert!(access.check_names(Some(OFFLINE), &[]).is_ok());
    }

    #[test]
    fn entry_of_another_form_is_an_error() {
        for entry in ["/gpt-6", "openai/", "openai/*-mini", "open ai", "openai/a**", "*"] {
            assert_eq!(ModelAccess::parse(entry).unwrap_err(), entry);
        }
    }
}
