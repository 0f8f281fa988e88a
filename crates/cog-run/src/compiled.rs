//! The parts of a request that do not depend on the input, compiled once per module.

mod words;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use cog_module::Module;
use cog_provider::OutputSchema;
use cog_schema::{Contract, Loss};
use cog_spec::Dialect;

use crate::tool::ToolInfo;

/// The parts of a request to a model that do not depend on the input.
pub(crate) struct Compiled {
    /// The contract without generated media, which the model does not write as JSON. None when it is the
    /// complete contract.
    model_contract: Option<Contract>,
    /// The fields of the generated media.
    media_fields: Vec<String>,
    /// The schema of the answer in each dialect, created on first use.
    projected: Vec<OnceLock<ProjectedContract>>,
    /// The module as a tool, created on first use.
    tool: OnceLock<ToolInfo>,
}

/// The contract in the dialect of a provider.
pub(crate) struct ProjectedContract {
    pub(crate) output: Arc<OutputSchema>,
    /// The constraints that the dialect cannot express.
    pub(crate) lost: Vec<Loss>,
}

impl Compiled {
    fn new(module: &Module) -> Self {
        let projected = Dialect::ALL.iter().map(|_| OnceLock::new()).collect();
        let makes_media =
            module.manifest.modalities.output.iter().any(|kind| !kind.output_types().is_empty());
        let (model_contract, media_fields) =
            match makes_media.then(|| module.contract.without_media_outputs()).flatten() {
                Some((contract, fields)) => (Some(contract), fields),
                None => (None, Vec::new()),
            };
        Self { model_contract, media_fields, projected, tool: OnceLock::new() }
    }

    /// Returns the module as a tool.
    pub(crate) fn as_tool(&self, module: &Module) -> ToolInfo {
        self.tool.get_or_init(|| ToolInfo::from_module(module)).clone()
    }

    /// Returns the contract in a dialect.
    pub(crate) fn projected(&self, module: &Module, dialect: Dialect) -> Option<&ProjectedContract> {
        let index = Dialect::ALL.iter().position(|known| *known == dialect)?;
        Some(self.projected.get(index)?.get_or_init(|| self.project(module, dialect)))
    }

    fn project(&self, module: &Module, dialect: Dialect) -> ProjectedContract {
        let contract = self.model_contract.as_ref().unwrap_or(&module.contract);
        let projection = contract.project(dialect);
        let words = words::output_contract(module, contract, &self.media_fields, projection.is_shown);
        let output = OutputSchema {
            name: module.manifest.name.clone(),
            dialect: projection.dialect,
            schema: projection.schema.map(cog_json::Value::from),
            instructions: words.into(),
        };
        ProjectedContract { output: Arc::new(output), lost: projection.lost }
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
    pub(crate) fn get(&self, module: &Arc<Module>) -> Arc<Compiled> {
        let address = Arc::as_ptr(module).addr();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, compiled)) = known.get(&address) {
            return Arc::clone(compiled);
        }
        known.retain(|_, (module, _)| module.strong_count() > 0);
        let compiled = Arc::new(Compiled::new(module));
        known.insert(address, (Arc::downgrade(module), Arc::clone(&compiled)));
        compiled
    }
}

#[cfg(test)]
mod tests;
