//! What a runtime gets from the settings: module directories, limits, stores, and what its runs may open.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cog_flow::Flows;
use cog_media::Access;
use cog_module::{Finder, Module, Origin};
use cog_run::{ContextStore, Providers, Runtime, RuntimeBuilder};

use crate::settings::Settings;

impl Settings {
    /// Creates the module finder.
    pub fn finder(&self) -> Finder {
        Finder::new("", self.modules.value.clone(), self.home.as_deref())
            .with_trusted(self.trusted_directories())
    }

    /// Creates the builder of a runtime.
    pub fn runtime_builder(&self, providers: Providers) -> RuntimeBuilder {
        let builder = Runtime::builder()
            .finder(self.finder())
            .composer(Arc::new(Flows::new()))
            .timeout(self.timeout.value)
            .generation(self.generation.preferred())
            .budget(self.budget.limits())
            .tool_limits(self.tools.limits())
            .confirmed_tools(self.tools.confirm.value.iter().cloned())
            .halted_runs(self.tools.halted_runs())
            .providers(providers);
        match self.telemetry.tracer(self.redactor()) {
            Some(tracer) => builder.tracer(tracer),
            None => builder,
        }
    }

    /// Sets the cache of answers: in a directory, otherwise in that of the settings, if there is one.
    pub fn add_cache(&self, builder: RuntimeBuilder, directory: Option<&Path>) -> RuntimeBuilder {
        match self.cache.cache(directory) {
            Some(cache) => builder.cache(cache),
            None => builder,
        }
    }

    /// Returns what a run of this module may open: files in its directory, the working directory and the operator's roots,
    /// these further files, and the URLs that the operator allows (docs/spec/media.md).
    pub fn access(&self, module: &Module, files: impl IntoIterator<Item = PathBuf>) -> Access {
        let directory = match &module.origin {
            Origin::Directory(directory) => directory.canonicalize().ok(),
            _ => None,
        };
        let roots = [Some(PathBuf::from(".")), directory.clone()];
        Access {
            directory,
            fetcher: self.media.fetcher(),
            by_url: self.media.by_url.value,
            strip_metadata: self.media.strip_metadata.value,
            files: self.media.files(roots.into_iter().flatten().chain(files)),
            tool: Some(self.media.tool()),
            ..Access::default()
        }
    }
}

/// Returns the store of context for later runs: in the directory if there is one, otherwise in memory.
pub fn context_store(state_dir: Option<&Path>) -> ContextStore {
    match state_dir {
        Some(directory) => ContextStore::in_directory(directory.join("context")),
        None => ContextStore::in_memory(),
    }
}
