//! The providers of a runtime, their order and their names.

use std::sync::Arc;

use cog_provider::{OFFLINE, Provider};
use cog_spec::{Code, ErrorBody};

/// The operator's providers. A request may choose one by name, but cannot set its URL or key.
#[derive(Clone, Default)]
pub struct Providers {
    default: Vec<Arc<dyn Provider>>,
    named: Option<Arc<Named>>,
    is_offline: bool,
}

type Named = dyn Fn(&str) -> Result<Arc<dyn Provider>, ErrorBody> + Send + Sync;

impl Providers {
    /// Returns a set with one provider, which every run uses.
    pub fn single(provider: Arc<dyn Provider>) -> Self {
        Self { default: vec![provider], ..Self::default() }
    }

    /// Returns a set that calls no model: runs return golden answers and samples (docs/spec/golden-tests.md).
    pub fn offline() -> Self {
        Self { is_offline: true, ..Self::default() }
    }

    /// Returns a set from the providers for requests that name none, in order, and all providers by name.
    pub fn new(
        default: Vec<Arc<dyn Provider>>,
        named: impl Fn(&str) -> Result<Arc<dyn Provider>, ErrorBody> + Send + Sync + 'static,
    ) -> Self {
        Self { default, ..Self::default() }.with_lookup(named)
    }

    /// Sets what finds a provider by its name, for requests that name one.
    #[must_use]
    pub fn with_lookup(
        self,
        named: impl Fn(&str) -> Result<Arc<dyn Provider>, ErrorBody> + Send + Sync + 'static,
    ) -> Self {
        Self { named: Some(Arc::new(named)), ..self }
    }

    /// Returns the providers for requests that name none, in order; empty when offline.
    pub fn default_order(&self) -> &[Arc<dyn Provider>] {
        &self.default
    }

    /// Returns whether there is no provider for requests that name none, and samples were not asked for.
    pub(crate) fn are_missing(&self) -> bool {
        self.default.is_empty() && !self.is_offline
    }

    /// Returns the providers to call, in order; empty when offline. `requested` contains names separated by
    /// commas.
    ///
    /// # Errors
    /// A name that is not configured.
    pub(crate) fn choose(&self, requested: Option<&str>) -> Result<Vec<Arc<dyn Provider>>, ErrorBody> {
        let Some(requested) = requested else { return Ok(self.default.clone()) };
        let names: Vec<&str> = requested.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        match names.as_slice() {
            [] => Ok(self.default.clone()),
            [OFFLINE] => Ok(Vec::new()),
            names => names.iter().map(|name| self.named(name)).collect(),
        }
    }

    fn named(&self, name: &str) -> Result<Arc<dyn Provider>, ErrorBody> {
        if let Some(provider) = self.default.iter().find(|provider| provider.info().name == name) {
            return Ok(Arc::clone(provider));
        }
        match &self.named {
            Some(named) if name != OFFLINE => named(name),
            _ => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> ErrorBody {
        if name == OFFLINE {
            let message = "`offline` cannot be combined with other providers";
            return ErrorBody::new(Code::UnsupportedValue, message)
                .suggest("Use only `offline`, or remove it.");
        }
        let known: Vec<&str> =
            self.default.iter().map(|provider| &*provider.info().name).chain([OFFLINE]).collect();
        let message = format!("provider `{name}` is not configured; allowed: {}", known.join(", "));
        ErrorBody::new(Code::UnsupportedValue, message)
    }
}
