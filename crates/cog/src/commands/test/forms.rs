//! `cog test --forms`: the golden tests in each form in which a model can be asked, compared with each other (ruling R91).

mod choose;
mod page;
mod report;

use std::{cell::RefCell, path::PathBuf};

use cog_host::{Host, Use, providers::RecordMode};
use cog_module::{
    Module,
    forms::{BestForm, KeepFormError},
};
use cog_run::{AskedForms, RunInput, Runtime};
use cog_spec::{Code, ErrorBody, Form};
use futures_util::{StreamExt as _, stream};

pub(super) use self::choose::Outcome;
use self::{
    choose::{Best, Candidate, Spending},
    report::{Comparison, FormsReport, Measured, ModuleForms, Skipped},
};
use super::{
    Bench,
    case::recording,
    plan::{Column, Job, LoadedModule, Plan, PlannedModule, Variant},
    report::{CaseReport, Suite},
};
use crate::{
    args::{ReportFormat, TestArgs},
    commands::runtime,
    error::{CliError, Exit},
    output::Progress,
};

/// Checks that the flags fit `--forms`.
pub(super) fn check(args: &TestArgs) -> Result<(), CliError> {
    if !args.forms {
        return Ok(());
    }
    if matches!(args.format, ReportFormat::Junit | ReportFormat::Github) {
        return Err(CliError::usage(
            "--forms reports as human, json or html: a form that is worse is no failed test",
        ));
    }
    if args.model.provider.len() > 1 && !args.matrix {
        return Err(CliError::usage(
            "--forms compares the forms of one model, and a fallback has another; with --matrix, each provider is compared",
        ));
    }
    Ok(())
}

/// Runs the cases in each form, reports on the forms, and stores the best one with `--keep`.
pub(super) fn compare(bench: &Bench<'_>, plan: &Plan) -> Result<Exit, CliError> {
    let Some(modules) = runtime::wait(bench.compare_forms(plan))? else { return Ok(Exit::Interrupted) };
    let report = FormsReport { modules };
    let text = match bench.args.format {
        ReportFormat::Json => cog_json::ToJson::to_json(&report),
        ReportFormat::Html => page::page(&report),
        _ => report.describe(bench.console),
    };
    bench.print(&text)?;
    Ok(report.exit())
}

impl Bench<'_> {
    async fn compare_forms(&self, plan: &Plan) -> Vec<ModuleForms> {
        let mut modules = Vec::new();
        for (variant, planned) in plan.suites() {
            let comparison = match &planned.loaded {
                // Every module was asked for, and most have no tests yet.
                Ok(loaded) if loaded.cases.is_empty() && self.args.all => continue,
                Ok(loaded) => self.compare_module(variant, planned, loaded).await,
                Err(error) => Err(error.clone()),
            };
            modules.push(ModuleForms { module: planned.name.clone(), comparison });
        }
        modules
    }

    async fn compare_module(
        &self,
        variant: &Variant,
        planned: &PlannedModule,
        loaded: &LoadedModule,
    ) -> Result<Comparison, ErrorBody> {
        if loaded.cases.is_empty() {
            let message = format!("{} has no golden tests, so its forms cannot be compared", planned.name);
            return Err(ErrorBody::new(Code::InvalidReference, message).suggest(
                "Write tests/NAME.input.json and tests/NAME.expected.json; 20 pairs or more tell forms apart.",
            ));
        }
        if self.args.keep {
            // Before the calls, which cost money.
            loaded.module.check_forms().map_err(|error| unkept(&loaded.module, error))?;
        }
        let asked = self.asked_forms(variant, loaded)?;
        let mut measured = Vec::new();
        let mut skipped = Vec::new();
        for form in &asked.forms {
            let obstacle = form.obstacle.map(str::to_owned);
            match obstacle.or_else(|| self.missing_recording(variant, loaded, form.form)) {
                Some(reason) => skipped.push(Skipped { form: form.form, reason }),
                None => measured.push(self.measure(variant, planned, loaded, &asked, form.form).await),
            }
        }
        let candidates: Vec<Candidate> = measured.iter().map(Measured::candidate).collect();
        let best = choose::best(&candidates, asked.in_use);
        let kept = match &best {
            Ok(best) if self.args.keep => Some(self.keep(loaded, &asked, best, &candidates)?),
            _ => None,
        };
        Ok(Comparison { asked, cases: loaded.cases.len(), measured, skipped, best, kept })
    }

    /// Returns the forms in which the model of the variant, or of the recordings, can be asked.
    fn asked_forms(&self, variant: &Variant, loaded: &LoadedModule) -> Result<AskedForms, ErrorBody> {
        let other;
        let runtime = match &variant.runtime {
            Some(runtime) => runtime,
            None => {
                other = self.runtime_of_recordings(variant, loaded)?;
                &other
            }
        };
        let mut first_error = None;
        // An input that its schema refuses is one failed case. The others tell which forms there are.
        for case in &loaded.cases {
            let input = RunInput::Json(case.input.clone());
            match runtime.forms(&loaded.module, input, self.run_options(None)) {
                Ok(asked) => return Ok(asked),
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        Err(first_error.unwrap_or_else(no_answers))
    }

    /// Returns a runtime with the model that is recorded, or that was.
    fn runtime_of_recordings(&self, variant: &Variant, loaded: &LoadedModule) -> Result<Runtime, ErrorBody> {
        let directory = match self.args.record {
            true => None,
            false => Some(first_recording(loaded).ok_or_else(no_answers)?),
        };
        let record_mode = directory.as_deref().map_or(RecordMode::Off, RecordMode::Replay);
        let host = Host { record_mode, tools: variant.tools.clone(), ..Host::new(self.settings) };
        Ok(host.runtime(Use::Test)?.runtime)
    }

    /// Returns why a form cannot be replayed; none if it can, or if the model is called.
    fn missing_recording(
        &self,
        variant: &Variant,
        loaded: &LoadedModule,
        form: &'static Form,
    ) -> Option<String> {
        if variant.runtime.is_some() || self.args.record {
            return None;
        }
        let mut cases = loaded.cases.iter();
        let case = cases.find(|case| recording(&loaded.module, case, Some(form)).is_none())?;
        Some(format!("no model is called, and `{}` has no recording in this form", case.name))
    }

    /// Runs the cases in one form.
    async fn measure(
        &self,
        variant: &Variant,
        planned: &PlannedModule,
        loaded: &LoadedModule,
        asked: &AskedForms,
        form: &'static Form,
    ) -> Measured {
        let repeat = self.args.repeat as usize;
        let total = loaded.cases.len() * repeat;
        let jobs = loaded.cases.iter().flat_map(|case| std::iter::repeat_n(case, repeat)).map(|case| Job {
            name: &planned.name,
            module: &loaded.module,
            case,
            variant,
            form: Some(form),
        });
        let progress = RefCell::new(Progress::begin(self.console, form.name));
        let runs = (1..).zip(jobs).map(|(number, job)| self.run(&progress, number, total, job));
        let attempts: Vec<_> = stream::iter(runs).buffered(self.args.jobs as usize).collect().await;
        let mut attempts = attempts.into_iter();
        let cases = loaded.cases.iter().map(|case| CaseReport {
            name: case.name.clone(),
            file: case.expected_file.clone(),
            attempts: attempts.by_ref().take(repeat).collect(),
            required: repeat,
        });
        let column =
            Column { provider: asked.provider.clone(), model: asked.model.clone(), form: Some(form) };
        let suite = Suite { module: planned.name.clone(), column: Some(column), cases: Ok(cases.collect()) };
        Measured { form, suite }
    }

    fn keep(
        &self,
        loaded: &LoadedModule,
        asked: &AskedForms,
        best: &Best,
        candidates: &[Candidate],
    ) -> Result<PathBuf, ErrorBody> {
        let chosen = candidates.iter().find(|candidate| candidate.form == best.form);
        let entry = BestForm {
            provider: asked.provider.clone(),
            model: asked.model.clone(),
            form: best.form,
            cases: chosen.map_or(0, Candidate::answered),
            right: chosen.map_or(0, Candidate::right),
        };
        if asked.is_named {
            self.console.note(&format!(
                "the manifest or a setting names the form `{}`, so forms.json is not read; `ask: auto` reads it",
                asked.in_use
            ));
        }
        loaded.module.keep_form(entry).map_err(|error| unkept(&loaded.module, error))
    }
}

fn unkept(module: &Module, error: KeepFormError) -> ErrorBody {
    match error {
        KeepFormError::NoDirectory => {
            let name = &module.manifest.name;
            let message = format!("`{name}` is built in, so nothing can be stored with it");
            ErrorBody::new(Code::PermissionDenied, message)
                .suggest(format!("Copy it with `cog new NAME --from {name}`."))
        }
        KeepFormError::Damaged(found) => ErrorBody::new(Code::InvalidReference, &found.message)
            .suggest(found.suggestion.unwrap_or_default()),
        error => ErrorBody::new(Code::InvalidReference, error.to_string()),
    }
}

/// Returns the first recording of a case in a form.
fn first_recording(loaded: &LoadedModule) -> Option<PathBuf> {
    let mut all = Form::ALL.iter().flat_map(|form| loaded.cases.iter().map(move |case| (case, *form)));
    all.find_map(|(case, form)| recording(&loaded.module, case, Some(form)))
}

fn no_answers() -> ErrorBody {
    ErrorBody::new(Code::ProviderUnavailable, "no model is called, and the module has no recordings of forms")
        .with_recoverable(false)
        .suggest("Add --provider NAME; with --record, the replies are stored for each form.")
}

impl Measured {
    /// Returns what counts when the best form is chosen.
    fn candidate(&self) -> Candidate {
        let cases = self.suite.cases.iter().flatten();
        let figures = self.suite.figures();
        Candidate {
            form: self.form,
            outcomes: cases.map(CaseReport::outcome).collect(),
            spending: Spending { cost: figures.cost(), tokens: figures.tokens() },
        }
    }
}
