//! `cog diff`: what changed between two versions of a module, and for whom.

use std::fmt::Write as _;

use cog_contract::diff::{Change, Difference, Effect, Verdict, VersionStep};
use cog_host::settings::Environment;
use cog_json::ToJson;

use super::{revision, runtime::default_finder};
use crate::{
    args::DiffArgs,
    error::{CliError, Exit},
    output::{Console, Palette},
};

/// Prints the changes from the old module to the new one.
pub(crate) fn diff(args: &DiffArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let finder = default_finder(environment.clone())?;
    let old = cog_module::load(&revision::find(&args.old, &finder, &environment)?)?;
    let new = cog_module::load(&revision::find(&args.new, &finder, &environment)?)?;
    let difference = cog_contract::diff::diff(&old, &new);
    if args.format.is_json() {
        console.print_json(&difference)?;
    } else {
        console.print(&describe(&difference, console.out().palette))?;
    }
    let is_refused = args.check && difference.verdict() == Verdict::Breaking;
    Ok(if is_refused { Exit::Failed } else { Exit::Ok })
}

/// The groups of changes, the most important first.
const GROUPS: [(Effect, &str); 5] = [
    (Effect::BreaksCallers, "Breaks callers"),
    (Effect::BreaksReaders, "Breaks readers"),
    (Effect::Unknown, "Not decided"),
    (Effect::Compatible, "Compatible"),
    (Effect::None, "Without effect"),
];

fn describe(difference: &Difference, palette: Palette) -> String {
    let Difference { old, new, .. } = difference;
    let mut text = format!(
        "{} {} to {} {}\n",
        palette.name(&old.name),
        old.version,
        palette.name(&new.name),
        new.version
    );
    for (effect, title) in GROUPS {
        let changes: Vec<&Change> =
            difference.changes.iter().filter(|change| change.effect == effect).collect();
        if changes.is_empty() {
            continue;
        }
        let title = match effect {
            Effect::BreaksCallers | Effect::BreaksReaders => palette.error(title),
            Effect::Unknown => palette.warning(title),
            Effect::Compatible | Effect::None => palette.bold(title),
        };
        let _ = write!(text, "\n{title}\n");
        changes.into_iter().for_each(|change| text += &line(change, palette));
    }
    if !difference.golden_tests.is_empty() {
        let _ = write!(text, "\n{}\n", palette.bold("Golden tests"));
        for test in &difference.golden_tests {
            let _ = writeln!(text, "  {}: {}", test.name, words(test.kind.as_str()));
        }
    }
    text + "\n" + &summary(difference, palette)
}

/// Formats a change, and the document that shows it.
fn line(change: &Change, palette: Palette) -> String {
    let value = |value: &Option<cog_json::Value>| value.as_ref().map(|value| shortened(&value.to_json()));
    let values = match (value(&change.old), value(&change.new)) {
        (Some(old), Some(new)) => format!(": {old} to {new}"),
        (Some(one), None) | (None, Some(one)) => format!(": {one}"),
        (None, None) => String::new(),
    };
    let path = if change.path.starts_with(change.part.as_str()) {
        change.path.clone()
    } else {
        format!("{} {}", change.part.as_str(), change.path)
    };
    let mut text = format!("  {}: {}{values}\n", palette.name(path), words(&change.kind));
    if let Some(example) = &change.example {
        let refused =
            if change.effect == Effect::BreaksCallers { "no longer valid" } else { "not valid before" };
        let _ = writeln!(
            text,
            "    {}",
            palette.dim(format_args!("{refused}: {}", shortened(&example.to_json())))
        );
    }
    text
}

/// Returns `required_added` as `required added`.
fn words(kind: &str) -> String {
    kind.replace('_', " ")
}

/// The maximum length of a value, in characters.
const MAX_SHOWN: usize = 200;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn summary(difference: &Difference, palette: Palette) -> String {
    let verdict = difference.verdict();
    let shown = match verdict {
        Verdict::Equal | Verdict::Compatible => palette.success(verdict.as_str()),
        Verdict::Unknown => palette.warning(verdict.as_str()),
        Verdict::Breaking => palette.error(verdict.as_str()),
    };
    let step = difference.version_step();
    let next = match (step, difference.next_version()) {
        (VersionStep::None, _) => String::new(),
        (_, None) => format!(", version step {}", step.as_str()),
        (_, Some(next)) => format!(", version step {}: {next}", step.as_str()),
    };
    format!("{shown}{next}\n")
}
