//! What `cog test` runs: the cases of each module, on each provider.

use std::{
    fmt::{self, Display, Formatter},
    sync::Arc,
};

use cog_host::{
    Host, Use,
    mcp::{self, Needed},
    providers::{self, MatrixTarget, Selected},
};
use cog_module::{
    Diagnostic, Module, Origin,
    golden::{self, GoldenCase},
};
use cog_run::{Runtime, tools::Tool};
use cog_spec::{ErrorBody, Form};

use super::Bench;
use crate::{
    commands::runtime::{self, Target},
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
    /// The tools of MCP servers, for the runtime of a case.
    pub(super) tools: Vec<Arc<dyn Tool>>,
}

/// A provider and its model, which are compared with others, or a form in which the model is asked.
#[derive(Clone, PartialEq)]
pub(super) struct Column {
    pub(super) provider: String,
    /// Empty for the offline provider.
    pub(super) model: String,
    /// The form, if forms are compared.
    pub(super) form: Option<&'static Form>,
}

impl Column {
    /// Returns what distinguishes it from the other columns of its table.
    pub(super) fn heading(&self) -> String {
        self.form.map_or_else(|| self.to_string(), |form| form.name.to_owned())
    }
}

impl Display for Column {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.model.as_str() {
            "" => f.write_str(&self.provider)?,
            model => write!(f, "{}/{model}", self.provider)?,
        }
        match self.form {
            Some(form) => write!(f, " in the form {form}"),
            None => Ok(()),
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
    pub(super) module: Arc<Module>,
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
    /// The form in which the model is asked, if forms are compared.
    pub(super) form: Option<&'static Form>,
}

impl Plan {
    /// Returns the modules that were loaded, with their names as given.
    pub(super) fn modules(&self) -> Vec<(String, Arc<Module>)> {
        let loaded = self.modules.iter().filter_map(|planned| {
            Some((planned.name.clone(), Arc::clone(&planned.loaded.as_ref().ok()?.module)))
        });
        loaded.collect()
    }

    /// Whether there is nothing to run and nothing to report.
    pub(super) fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

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
                    (0..repeat).map(move |_| Job { name: &planned.name, module, case, variant, form: None })
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
        let mut modules: Vec<_> =
            targets.into_iter().map(|(name, origin)| self.planned(name, &origin)).collect();
        if self.args.failed {
            modules.retain(|module| module.loaded.as_ref().map_or(true, |loaded| !loaded.cases.is_empty()));
        }
        let plan = Plan { variants: self.variants(&modules)?, modules };
        let has_errors = plan.modules.iter().any(|module| module.loaded.is_err());
        let selects = !self.args.case.is_empty() && !self.args.failed;
        match selects && !has_errors && plan.jobs(1).next().is_none() {
            true => Err(no_case(&self.args.case)),
            false => Ok(plan),
        }
    }

    /// Returns the plan of one module that is loaded, with the cases of these names; without names, with all.
    ///
    /// # Errors
    /// The provider is unknown, its settings are invalid, or an MCP server cannot be started.
    pub(super) fn plan_of(
        &self,
        name: String,
        module: Arc<Module>,
        names: &[String],
    ) -> Result<Plan, CliError> {
        let mut loaded = self.selected(module);
        loaded.cases.retain(|case| names.is_empty() || names.contains(&case.name));
        let modules = vec![PlannedModule { name, loaded: Ok(loaded) }];
        Ok(Plan { variants: self.variants(&modules)?, modules })
    }

    fn variants(&self, modules: &[PlannedModule]) -> Result<Vec<Variant>, CliError> {
        let tools = self.server_tools(modules)?;
        if !self.args.names_provider() || self.args.record {
            return Ok(vec![Variant { column: None, runtime: None, tools }]);
        }
        if !self.args.compares_models() {
            return Ok(vec![self.variant(None, None, tools)?]);
        }
        let models = self.args.model.model.iter().flat_map(|names| names.split(','));
        let models: Vec<_> = models.map(str::trim).filter(|name| !name.is_empty()).collect();
        let targets = providers::each(self.settings, &models)?.into_iter();
        targets
            .map(|MatrixTarget { provider, model, providers }| {
                let column = Column { provider: provider.to_owned(), model, form: None };
                self.variant(Some(column), Some(providers.into()), tools.clone())
            })
            .collect()
    }

    /// Creates the variant that calls these providers, otherwise those of the settings.
    fn variant(
        &self,
        column: Option<Column>,
        providers: Option<Selected>,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Result<Variant, CliError> {
        let host = Host { providers, tools: tools.clone(), ..Host::new(self.settings) };
        Ok(Variant { column, runtime: Some(host.runtime(Use::Test)?.runtime), tools })
    }

    /// Starts the MCP servers whose tools the modules may call, once for all cases. Without an answer there are no calls.
    fn server_tools(&self, modules: &[PlannedModule]) -> Result<Vec<Arc<dyn Tool>>, ErrorBody> {
        let calls_model = self.args.record || self.args.names_provider();
        let loaded = modules.iter().filter_map(|module| module.loaded.as_ref().ok());
        let answered = loaded.filter(|loaded| {
            loaded.cases.iter().any(|case| calls_model || self.args.forms || case.cassette.is_some())
        });
        let answered: Vec<_> = answered.map(|loaded| Arc::clone(&loaded.module)).collect();
        let started = mcp::start(self.settings, Needed::ByLoaded(&answered))?;
        started.notes.iter().for_each(|sentence| self.console.note(sentence));
        started.tools()
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
        let mut cases = found.cases;
        let wanted = &self.args.case;
        cases.retain(|case| wanted.is_empty() || wanted.iter().any(|part| case.name.contains(part)));
        if let Some(last) = self.last.as_ref().filter(|_| self.args.failed) {
            cases.retain(|case| last.has_failed(&module, &case.name));
        }
        LoadedModule { module, cases, problems: found.problems }
    }
}

fn no_case(texts: &[String]) -> CliError {
    let texts = texts.join("` or `");
    CliError::usage(format!("no case has a name that contains `{texts}`; `cog info MODULE` lists the cases"))
}
