//! `cog logs label` and `cog logs clear`: what people say about runs, and removing the log.

use std::path::Path;

use cog_host::{
    run_log::{AddedLabel, LabelTarget, LabelledRun, Labels, RunLog},
    settings::{Environment, Flags, Settings},
};
use cog_json::Value;
use cog_module::Module;
use cog_run::feedback::Feedback;
use cog_spec::{Code, ErrorBody};

use crate::{
    args::{LogsClearArgs, LogsLabelArgs},
    commands::input,
    error::{CliError, Exit},
    output::Console,
};

/// Labels a run.
pub(super) fn label(
    args: &LogsLabelArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let target = LabelTarget::find(&settings, &args.id)?;
    let data = args.data.as_deref().map(answer).transpose()?;
    let id = target.id.clone();
    let added = store(target, Feedback::new(args.label, data, args.note.clone())?, &settings, console)?;
    console.print(&format!("{id}  {}\n", added.label.label.as_str()))?;
    if !added.is_new {
        console.note("the run has this label already");
    }
    Ok(Exit::Ok)
}

/// Checks a label, and stores it.
pub(in crate::commands) fn store(
    target: LabelTarget,
    feedback: Feedback,
    settings: &Settings,
    console: &Console,
) -> Result<AddedLabel, CliError> {
    let LabelTarget { id, about } = target;
    if feedback.data.is_some() {
        let module = module_of(&about, settings)?;
        if module.manifest.version != about.module_version {
            console.note(&format!(
                "the run was of version {}, and the answer is checked against the schema of version {}",
                about.module_version, module.manifest.version
            ));
        }
        feedback.check(&module)?;
    }
    Ok(Labels::new(settings)?.add(&id, about, None, feedback)?)
}

/// Loads the module of a run as it is now.
///
/// # Errors
/// E4006 if it is no longer there, E4005 if it is invalid.
pub(in crate::commands) fn module_of(run: &LabelledRun, settings: &Settings) -> Result<Module, CliError> {
    let target = run.directory.as_deref().unwrap_or(&run.module);
    Ok(cog_module::load(&settings.finder().find(target)?)?)
}

/// Reads a corrected answer. Of an envelope, such as the edited output of `cog run`, it is the data.
fn answer(file: &Path) -> Result<Value, ErrorBody> {
    let text = input::any_text(file)?.map_err(|error| invalid(file, &error.to_string()))?;
    let value = Value::parse(&text).map_err(|error| invalid(file, &error.to_string()))?;
    let is_envelope = value.get("ok").is_some_and(|ok| ok.as_bool().is_some()) && value.get("meta").is_some();
    Ok(value.get("data").filter(|_| is_envelope).map_or_else(|| value.clone(), |data| data.to_value()))
}

fn invalid(file: &Path, reason: &str) -> ErrorBody {
    ErrorBody::new(Code::ParseError, format!("{}: {reason}", file.display()))
        .suggest("Write the whole answer as JSON.")
}

/// Removes every run from the log.
pub(super) fn clear(
    args: &LogsClearArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let has_log = RunLog::clear(&settings)?;
    console.print(if has_log { "removed the log\n" } else { "there is no log\n" })?;
    if args.labels {
        let had_labels = Labels::new(&settings)?.clear()?;
        console.print(if had_labels { "removed the labels\n" } else { "there are no labels\n" })?;
    }
    Ok(Exit::Ok)
}
