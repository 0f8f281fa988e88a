//! Labelled runs of the log, as the rows of `--runs`.

use std::collections::{BTreeSet, HashMap};

use cog_host::{
    run_log::{Label, Labels as StoredLabels},
    settings::Settings,
};
use cog_json::Value;
use cog_module::Module;
use cog_run::feedback::LabelKind;
use cog_spec::{Code, ErrorBody};
use serde_json::json;

use super::read::{Labels, LineError, RowForm, run};
use crate::output::Console;

/// Returns the labelled runs of a module in its current version. Notes which were left out, and whether several models made them.
///
/// # Errors
/// E1006 if the labels cannot be read.
pub(super) fn labels(
    settings: &Settings,
    module: &Module,
    kinds: &[&str],
    console: &Console,
) -> Result<Labels, ErrorBody> {
    let all = StoredLabels::new(settings)?.latest(&module.origin)?;
    let version = &module.manifest.version;
    let (current, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|label| label.about.module_version == *version);
    if !others.is_empty() {
        console.note(&format!("{} left out: of another version than {version}", counted(others.len())));
    }
    let (usable, silent): (Vec<_>, Vec<_>) =
        current.into_iter().partition(|label| label.about.confidence.is_some());
    if !silent.is_empty() {
        console.note(&format!("{} left out: their answers state no confidence", counted(silent.len())));
    }
    let models: BTreeSet<&str> = usable.iter().filter_map(|label| label.about.model.as_deref()).collect();
    if models.len() > 1 {
        let models: Vec<_> = models.into_iter().collect();
        console.caution(&format!(
            "the runs are of several models, which one calibration mixes: {}",
            models.join(", ")
        ));
    }
    let mut labels = Labels::default();
    let mut cases = HashMap::new();
    for label in &usable {
        match run(&row(label), RowForm { kinds, has_truth: true }, &mut cases) {
            Ok(run) => labels.runs.push(run),
            Err(body) => {
                labels.errors.push(LineError { location: format!("the label of {}", label.run), body });
            }
        }
    }
    Ok(labels)
}

/// Returns a label as a line of `--runs`. Runs with the same input are one case.
fn row(label: &Label) -> Value {
    let mut row = json!({
        "case": label.about.input_sha256.as_ref().unwrap_or(&label.run),
        "confidence": label.about.confidence,
        "right": label.label == LabelKind::Right,
    });
    if let (Some(evidence), Some(members)) = (&label.about.evidence, row.as_object_mut())
        && let Ok(evidence) = serde_json::to_value(evidence)
    {
        members.insert("evidence".to_owned(), evidence);
    }
    Value::from(row)
}

fn counted(count: usize) -> String {
    if count == 1 { "1 labelled run".to_owned() } else { format!("{count} labelled runs") }
}

/// Creates the error of a module without labelled runs.
pub(super) fn no_runs(module: &Module) -> ErrorBody {
    let message = format!("no labelled run of `{}` can be used", module.manifest.name);
    ErrorBody::new(Code::InvalidReference, message)
        .suggest("Label runs with `cog review`, `cog logs label`, or the feedback of clients.")
}
