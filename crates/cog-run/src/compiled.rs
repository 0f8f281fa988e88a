//! The parts of a request that do not depend on the input, compiled once per module.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use cog_module::Module;
use cog_provider::OutputSchema;
use cog_schema::{Contract, Loss};
use cog_spec::Dialect;

use crate::words;

/// The parts of a request to a model that do not depend on the input.
pub(crate) struct Compiled {
    /// The output contract as prompt text.
    pub(crate) words: Arc<str>,
    /// The contract without generated media, which the model does not write as JSON. None when it is the
    /// complete contract.
    asked: Option<Contract>,
    /// The schema of the answer in each dialect, created on first use.
    told: Vec<OnceLock<Told>>,
}

/// The contract as it is sent to a provider.
pub(crate) struct Told {
    pub(crate) output: Arc<OutputSchema>,
    /// The constraints that the dialect cannot express.
    pub(crate) lost: Vec<Loss>,
}

impl Compiled {
    fn new(module: &Module) -> Self {
        let told = Dialect::ALL.iter().map(|_| OnceLock::new()).collect();
        let makes_media =
            module.manifest.modalities.output.iter().any(|kind| !kind.output_types().is_empty());
        let (asked, made) = match makes_media.then(|| module.contract.without_media_outputs()).flatten() {
            Some((asked, made)) => (Some(asked), made),
            None => (None, Vec::new()),
        };
        let words = words::output_contract(module, asked.as_ref().unwrap_or(&module.contract), &made);
        Self { words: words.into(), asked, told }
    }

    /// Returns the contract in a dialect.
    pub(crate) fn told(&self, module: &Module, dialect: Dialect) -> Option<&Told> {
        let place = Dialect::ALL.iter().position(|known| *known == dialect)?;
        Some(self.told.get(place)?.get_or_init(|| self.tell(module, dialect)))
    }

    fn tell(&self, module: &Module, dialect: Dialect) -> Told {
        let projection = self.asked.as_ref().unwrap_or(&module.contract).project(dialect);
        let output = OutputSchema {
            name: module.manifest.name.clone(),
            dialect: projection.dialect,
            schema: projection.schema.map(cog_json::Value::from),
            instructions: Arc::clone(&self.words),
        };
        Told { output: Arc::new(output), lost: projection.lost }
    }
}

/// The modules that were used, each compiled once.
#[derive(Default)]
pub(crate) struct Compilations(Mutex<HashMap<usize, Entry>>);

type Entry = (Weak<Module>, Arc<Compiled>);

impl Compilations {
    /// Returns the compiled parts of this module, and compiles them on first use.
    ///
    /// The key is the address of the module. The [`Weak`] of an entry prevents that this address is reused.
    pub(crate) fn of(&self, module: &Arc<Module>) -> Arc<Compiled> {
        let place = Arc::as_ptr(module).addr();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, compiled)) = known.get(&place) {
            return Arc::clone(compiled);
        }
        known.retain(|_, (module, _)| module.strong_count() > 0);
        let compiled = Arc::new(Compiled::new(module));
        known.insert(place, (Arc::downgrade(module), Arc::clone(&compiled)));
        compiled
    }
}
