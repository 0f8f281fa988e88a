//! The providers of a run, in the order in which they are called.

use std::{collections::VecDeque, sync::Arc};

use cog_media::Delivery;
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
        let mut warning = None;
        let first: Arc<dyn Provider> =
            if composition.is_some_and(|composition| !composition.uses_own_prompt()) {
                others.clear();
                Arc::new(CompositionProvider::new(String::new()))
            } else if let Some(first) = others.pop_front() {
                first
            } else {
                let (sample, is_sample) = offline::provider(module, input)?;
                warning = Some(is_sample);
                sample
            };
        Ok((Self { first, others, budgets: options.budgets.clone(), is_offline }, warning))
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
        delivery: &Delivery,
        has_tools: bool,
    ) -> Result<Vec<Warning>, ErrorBody> {
        let warnings = check(module, self.first.as_ref(), model, delivery, has_tools)?;
        for other in &self.others {
            // The driver calls each fallback with its own model.
            check(module, other.as_ref(), "", delivery, has_tools)?;
        }
        Ok(warnings)
    }

    /// Returns the keys of all providers, which never appear in an answer.
    pub(super) fn keys(&self) -> Vec<Secret> {
        self.others.iter().chain([&self.first]).filter_map(|provider| provider.info().key.clone()).collect()
    }
}

fn check(
    module: &Module,
    provider: &dyn Provider,
    model: &str,
    delivery: &Delivery,
    has_tools: bool,
) -> Result<Vec<Warning>, ErrorBody> {
    let mut warnings = preflight::media_output(module, provider, model, delivery)?;
    warnings.extend(preflight::requirements(&module.manifest, provider, model, has_tools)?);
    Ok(warnings)
}
