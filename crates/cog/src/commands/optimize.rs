//! `cog optimize`: a better prompt, found on golden tests.

mod cost;
mod report;
mod runner;
mod search;

use std::{cell::RefCell, sync::Arc};

use cog_contract::optimize::{PromptRules, Split};
use cog_host::{
    Host, Hosted, Use,
    run_log::RunLog,
    settings::{Environment, Settings},
};
use cog_json::{Node, Value};
use cog_module::{
    Module, Origin,
    golden::{self, Expected, GoldenCase},
};
use cog_run::{RunInput, RunOptions, Runtime};
use cog_spec::{Ask, Code, ErrorBody, Generation};

use self::{
    cost::{Costs, Limits},
    report::{HeldOut, Report},
    runner::{Runner, Writer},
    search::{End, Ended, SearchLimits},
};
use super::{insights, runtime};
use crate::{
    args::{OptimizeArgs, StrongModel},
    error::{CliError, Exit},
    output::{Console, Progress},
};

/// The maximum number of output tokens of an answer, unless the manifest has a limit: without one, a call has no largest cost.
const MAX_TOKENS: u64 = 4_096;

/// Searches for a better prompt, and proposes or applies it.
pub(crate) fn optimize(
    args: &OptimizeArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = runtime::load_run_settings(args.model.flags(), environment, console)?;
    let Hosted { runtime, note, .. } = Host::new(&settings).runtime(Use::Optimize)?;
    if runtime.providers().default_order().is_empty() {
        return Err(offline().into());
    }
    let module = runtime::load(&runtime, &args.module, &settings, console)?;
    check_module(&module)?;
    let found = golden::discover(&module);
    console.diagnose(&found.problems);
    let cases = found.cases;
    // Before anything is measured: a split that follows the results would hide how good they are.
    let split = Split::new(cases.iter().map(|case| case.input.node())).map_err(|few| {
        ErrorBody::new(Code::InvalidInput, few.to_string()).suggest(
            "Import cases with `cog test import`, or make golden tests of runs that a person has checked.",
        )
    })?;
    console.note(&note);
    let work =
        Work { args, settings: &settings, runtime: &runtime, module: &module, cases: &cases, split, console };
    let Some(report) = runtime::wait(work.report())? else { return Ok(Exit::Interrupted) };
    let report = report?;
    let text = match args.format.is_json() {
        true => cog_json::ToJson::to_json(&report),
        false => report.describe(args.apply, console),
    };
    console.print(&text)?;
    if args.apply
        && let Some(prompt) = report.proposed()
    {
        insights::write_prompt(&module, prompt, console)?;
    }
    Ok(if matches!(report.end, End::Failed(_)) { Exit::Failed } else { Exit::Ok })
}

fn offline() -> ErrorBody {
    ErrorBody::new(Code::ProviderUnavailable, "no model is called, and a sample says nothing about a prompt")
        .with_recoverable(false)
        .suggest("Name a provider with --provider; `cog doctor --all` lists them.")
}

/// Refuses a module whose prompt cannot be replaced, or whose runs have no largest cost.
fn check_module(module: &Module) -> Result<(), ErrorBody> {
    let name = &module.manifest.name;
    let refused = |message: String| ErrorBody::new(Code::InvalidInput, message);
    match &module.origin {
        Origin::Directory(directory) if directory.join("prompt.md").is_file() => {}
        Origin::Directory(_) => {
            let message = format!("{name} has no prompt.md, so that its prompt cannot be replaced");
            return Err(refused(message).suggest("Migrate it with `cog migrate`."));
        }
        _ => {
            let message = format!("`{name}` is built in, so that its prompt cannot be replaced");
            return Err(refused(message).suggest(format!("Copy it with `cog new NAME --from {name}`.")));
        }
    }
    if module.calls_modules() {
        let message =
            format!("{name} calls other modules: what a run costs has no limit that is known before");
        return Err(refused(message).suggest("Optimize the modules that it calls."));
    }
    if !module.manifest.tools.allowed.is_empty() {
        let message = format!("{name} calls tools: what a run costs has no limit that is known before");
        return Err(refused(message).suggest("Optimize a module without tools."));
    }
    Ok(())
}

struct Work<'a> {
    args: &'a OptimizeArgs,
    settings: &'a Settings,
    runtime: &'a Runtime,
    module: &'a Arc<Module>,
    cases: &'a [GoldenCase],
    split: Split,
    console: &'a Console,
}

impl Work<'_> {
    async fn report(&self) -> Result<Report, CliError> {
        let sources = self.sources();
        let rules = PromptRules { old: &self.module.prompt, sources: &sources };
        let options = self.case_options()?;
        let strong = |model: &StrongModel| RunOptions {
            provider: Some(model.provider.clone()),
            model: model.model.clone(),
            max_attempts: Some(1),
            ..RunOptions::default()
        };
        let with = self.args.with.as_ref().map(strong);
        let judge =
            self.args.judge.as_ref().map(strong).or_else(|| with.clone()).unwrap_or_else(|| options.clone());
        let judge = RunOptions {
            generation: Generation { max_tokens: Some(MAX_TOKENS), ..Generation::default() },
            ..judge
        };
        let writer = match &with {
            Some(options) if !self.args.examples => {
                Writer::Model { module: Arc::new(writer()?), options: Box::new(options.clone()) }
            }
            _ => Writer::Examples,
        };
        let mut runner = Runner {
            runtime: self.runtime,
            module: self.module,
            cases: self.cases,
            secret_in: &|text: &str| self.settings.secret_in(text),
            rules,
            options,
            judge,
            writer,
            budgets: RefCell::default(),
            log: RunLog::new(self.settings).map(Arc::new),
            jobs: self.args.jobs as usize,
            progress: Some(RefCell::new(Progress::begin(self.console, "measuring what a step can cost"))),
        };
        let costs = Costs::measure(&runner, &self.split).await?;
        let limits = Limits { max_cost: self.args.max_cost, max_calls: self.args.max_calls };
        let budgets = costs.budgets(limits)?;
        runner.budgets = RefCell::new(vec![budgets.search.clone(), budgets.total.clone()]);
        let old = self.module.prompt.text();
        let limits = SearchLimits { steps: self.args.steps, seed: self.args.seed };
        let found = match search::search(&runner, &self.split, old, &limits).await {
            Ok(found) => found,
            Err(Ended::Failed(error)) => return Err((*error).into()),
            Err(Ended::Spent) => return Err(cost::unmeasured().into()),
        };
        let new = found.candidates.get(found.best).map(|best| best.proposal.prompt.clone());
        let mut held_out = None;
        if let Some(new) = new.filter(|_| found.best > 0) {
            runner.budgets.replace(vec![budgets.total.clone()]);
            held_out = match search::compare(&runner, &self.split, old, &new).await {
                Ok((old, new, comparison)) => Some(HeldOut { old, new, comparison }),
                Err(Ended::Failed(error)) => return Err((*error).into()),
                Err(Ended::Spent) => None,
            };
        }
        let spent = budgets.total.spent();
        drop(runner);
        Ok(Report::new(self.module, self.cases, &self.split, found, held_out, spent))
    }

    /// Returns the options of a case: one call, in the form that the module is asked in, with a limit of output tokens.
    fn case_options(&self) -> Result<RunOptions, ErrorBody> {
        let manifest = &self.module.manifest;
        let max_tokens = manifest.generation.max_tokens.unwrap_or(MAX_TOKENS);
        let generation = Generation { max_tokens: Some(max_tokens), ..Generation::default() };
        let options = RunOptions { generation, max_attempts: Some(1), ..RunOptions::default() };
        let mut first_error = None;
        // An input that its schema refuses is one failed case. The others tell the form.
        for case in self.cases {
            match self.runtime.forms(self.module, RunInput::Json(case.input.clone()), options.clone()) {
                Ok(asked) => {
                    // A measured form belongs to the prompt that it was measured with, so that another one would be asked in another
                    // form.
                    let generation = Generation { ask: Some(Ask::Form(asked.in_use)), ..options.generation };
                    return Ok(RunOptions { generation, ..options });
                }
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        Err(first_error.unwrap_or_else(offline))
    }

    /// Returns the texts that a prompt must not contain.
    fn sources(&self) -> Vec<String> {
        let mut sources = Vec::new();
        for case in self.cases {
            strings(case.input.node(), &mut sources);
            match &case.expected {
                Expected::Exact(answer) => strings(answer.node(), &mut sources),
                Expected::Schemas { fields, example } => {
                    let schemas = fields.iter().map(|(_, schema)| Value::from(schema.clone()));
                    schemas.chain(example.clone()).for_each(|value| strings(value.node(), &mut sources));
                }
                Expected::Assertions { assertions, example } => {
                    let values = std::iter::once(assertions).chain(example);
                    values.for_each(|value| strings(value.node(), &mut sources));
                }
                _ => {}
            }
        }
        sources
    }
}

/// Adds the strings of a value.
fn strings(node: Node<'_>, found: &mut Vec<String>) {
    found.extend(node.as_str().map(str::to_owned));
    node.elements().for_each(|element| strings(element, found));
    node.members().for_each(|(_, member)| strings(member, found));
}

/// Returns the module that writes prompts.
fn writer() -> Result<Module, ErrorBody> {
    let module = Module::from_parts(
        include_str!("optimize/writer/module.yaml"),
        include_str!("optimize/writer/prompt.md"),
        include_str!("optimize/writer/schema.json"),
    );
    module.map_err(|error| ErrorBody::new(Code::ModuleInvalid, error.to_string()))
}

#[cfg(test)]
mod tests;
