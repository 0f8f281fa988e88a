//! What `cog test` runs: the cases of each module, on each provider.

use std::{
    fmt::{self, Display, Formatter},
    sync::Arc,
};

use cog_host::providers::{self, Contender, RecordMode};
use cog_module::{
    Diagnostic, Module, Origin,
    golden::{self, GoldenCase},
};
use cog_run::Runtime;
use cog_spec::ErrorBody;

use super::bench::Bench;
use crate::{
    commands::{runtime, targets::Target},
    error::CliError,
};

/// The cases of each module, and the variants on which they run.
pub(super) struct Plan {
    variants: Vec<Variant>,
    modules: Vec<PlannedModule>,
}

/// What answers the cases.
pub(super) struct Variant {
    /// The provider and the model, if several are compared.
    pub(super) column: Option<Column>,
    /// The runtime that calls the provider; none if recordings answer, or each case is recorded.
    pub(super) runtime: Option<Runtime>,
}

/// A provider and its model, which are compared with others.
#[derive(Clone, PartialEq)]
pub(super) struct Column {
    pub(super) provider: &'static str,
    /// Empty for the offline provider.
    pub(super) model: String,
}

impl Display for Column {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.model.as_str() {
            "" => f.write_str(self.provider),
            model => write!(f, "{}/{model}", self.provider),
        }
    }
}

pub(super) struct PlannedModule {
    /// The name as given.
    pub(super) name: String,
    /// The module with the selected cases, or the error of loading it.
    pub(super) loaded: Result<LoadedModule, ErrorBody>,
}

pub(super) struct LoadedModule {
    module: Arc<Module>,
    pub(super) cases: Vec<GoldenCase>,
    /// The files that cannot be read as cases.
    pub(super) problems: Vec<Diagnostic>,
}

/// One run of one case.
pub(super) struct Job<'a> {
    pub(super) name: &'a str,
    pub(super) module: &'a Arc<Module>,
    pub(super) case: &'a GoldenCase,
    pub(super) variant: &'a Variant,
}

impl Plan {
    /// Returns each module on each variant.
    pub(super) fn suites(&self) -> impl Iterator<Item = (&Variant, &PlannedModule)> {
        self.modules.iter().flat_map(|module| self.variants.iter().map(move |variant| (variant, module)))
    }

    /// Returns the runs, in the order of the suites and their cases.
    pub(super) fn jobs(&self, repeat: u32) -> impl Iterator<Item = Job<'_>> {
        self.suites().flat_map(move |(variant, planned)| {
            let loaded = planned.loaded.as_ref().ok();
            loaded.into_iter().flat_map(move |LoadedModule { module, cases, .. }| {
                cases.iter().flat_map(move |case| {
                    (0..repeat).map(move |_| Job { name: &planned.name, module, case, variant })
                })
            })
        })
    }
}

impl Bench<'_> {
    /// Loads the modules and selects their cases.
    ///
    /// # Errors
    /// A provider is unknown or its settings are invalid, or no case has the requested name.
    pub(super) fn plan(&self, targets: Vec<Target>) -> Result<Plan, CliError> {
        let plan = Plan {
            variants: self.variants()?,
            modules: targets.into_iter().map(|(name, origin)| self.planned(name, &origin)).collect(),
        };
        let has_errors = plan.modules.iter().any(|module| module.loaded.is_err());
        match &self.args.case {
            Some(text) if !has_errors && plan.jobs(1).next().is_none() => Err(no_case(text)),
            _ => Ok(plan),
        }
    }

    fn variants(&self) -> Result<Vec<Variant>, CliError> {
        if !self.args.model.names_provider() || self.args.record {
            return Ok(vec![Variant { column: None, runtime: None }]);
        }
        let create = |providers| self.settings.runtime_builder(providers).build();
        if self.args.matrix {
            let models = self.args.model.model.iter().flat_map(|names| names.split(','));
            let models: Vec<_> = models.map(str::trim).filter(|name| !name.is_empty()).collect();
            let variant = |Contender { provider, model, providers }| {
                let column = Some(Column { provider, model });
                Ok(Variant { column, runtime: Some(create(providers)?) })
            };
            return providers::each(self.settings, &models)?.into_iter().map(variant).collect();
        }
        let selected = providers::select(self.settings, RecordMode::Off)?;
        Ok(vec![Variant { column: None, runtime: Some(create(selected.providers)?) }])
    }

    fn planned(&self, name: String, origin: &Origin) -> PlannedModule {
        let loaded = match origin {
            // Nobody has chosen the path of a module that was listed.
            Origin::Directory(directory) if !self.args.modules.contains(&name) => {
                runtime::note_shadowing(self.runtime.finder(), &name, origin, self.console);
                let path = directory.display().to_string();
                runtime::load_found(&self.runtime, &path, self.settings, self.console)
            }
            _ => runtime::load(&self.runtime, &name, self.settings, self.console),
        };
        PlannedModule { loaded: loaded.map(|module| self.selected(module)), name }
    }

    fn selected(&self, module: Arc<Module>) -> LoadedModule {
        let found = golden::discover(&module);
        self.console.diagnose(&found.problems);
        let is_selected =
            |case: &GoldenCase| self.args.case.as_deref().is_none_or(|part| case.name.contains(part));
        let cases = found.cases.into_iter().filter(is_selected).collect();
        LoadedModule { module, cases, problems: found.problems }
    }
}

fn no_case(text: &str) -> CliError {
    CliError::usage(format!("no case has a name that contains `{text}`; `cog info MODULE` lists the cases"))
}
