//! The providers of a run, in the order in which they are called.

use std::{collections::VecDeque, sync::Arc};

use cog_module::Module;
use cog_provider::Provider;
use cog_spec::{ErrorBody, Secret, Warning};

use crate::{
    Budget, Providers, RunOptions,
    composition::{Composition, CompositionProvider},
    input::CheckedInput,
    offline, preflight,
};

/// The providers of a run.
pub(super) struct Chain {
    /// The provider that is called first.
    pub(super) first: Arc<dyn Provider>,
    /// The fallback providers, in order.
    pub(super) others: VecDeque<Arc<dyn Provider>>,
    /// The budgets that the calls are counted in.
    pub(super) budgets: Vec<Budget>,
    /// Whether no provider is configured.
    pub(super) is_offline: bool,
}

impl Chain {
    /// Returns the providers of a run, with the warning of an answer without a model. A composed module whose parts give
    /// the answer calls none itself.
    pub(super) fn new(
        providers: &Providers,
        module: &Module,
        options: &RunOptions,
        composition: Option<&Composition>,
        input: &CheckedInput,
    ) -> Result<(Self, Option<Warning>), ErrorBody> {
        let mut others = VecDeque::from(providers.choose(options.provider.as_deref())?);
        let is_offline = others.is_empty();
        let chain = |first, others| Self { first, others, budgets: options.budgets.clone(), is_offline };
        if composition.is_some_and(|composition| !composition.uses_own_prompt()) {
            return Ok((chain(Arc::new(CompositionProvider::new(String::new())), VecDeque::new()), None));
        }
        if let Some(first) = others.pop_front() {
            return Ok((chain(first, others), None));
        }
        let (first, warning) = offline::provider(module, input)?;
        Ok((chain(first, others), Some(warning)))
    }

    /// Returns the providers that a stored reply replaces, if there is one.
    pub(super) fn or_replay(self, replay: Option<Arc<dyn Provider>>) -> Self {
        match replay {
            Some(first) => Self { first, others: VecDeque::new(), budgets: Vec::new(), ..self },
            None => self,
        }
    }

    /// Checks that each provider has what the module requires. Returns the warnings about the first one, which is called
    /// with this model.
    pub(super) fn check(
        &self,
        module: &Module,
        model: &str,
        options: &RunOptions,
        has_tools: bool,
    ) -> Result<Vec<Warning>, ErrorBody> {
        let check = |provider: &dyn Provider, model: &str| -> Result<Vec<Warning>, ErrorBody> {
            let mut warnings = preflight::media_output(module, provider, model, options)?;
            warnings.extend(preflight::requirements(&module.manifest, provider, model, has_tools)?);
            Ok(warnings)
        };
        let warnings = check(self.first.as_ref(), model)?;
        // The driver calls each fallback with its own model.
        self.others.iter().try_for_each(|other| check(other.as_ref(), "").map(drop))?;
        Ok(warnings)
    }

    /// Returns the keys of all providers, which never appear in an answer.
    pub(super) fn keys(&self) -> Vec<Secret> {
        self.others.iter().chain([&self.first]).filter_map(|provider| provider.info().key.clone()).collect()
    }
}
