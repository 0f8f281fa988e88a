//! `cog new` and `cog migrate`: write the files of a module.

use std::{
    io::{BufRead as _, IsTerminal as _, stdin},
    path::{Path, PathBuf},
};

use cog_host::{
    TrustStore,
    settings::{Environment, Flags, Settings},
};
use cog_json::{Array, ToJson, Writer};
use cog_module::{
    Finder, Origin, Trust,
    migrate::{self, Migration, Target},
    scaffold::{self, Kind},
};
use cog_spec::{ParseEnumError, Tier};

use super::runtime::{default_finder, own, targets};
use crate::{
    args::{MigrateArgs, NewArgs},
    error::{CliError, Exit},
    output::{Console, Palette},
};

/// Creates the module, prints its directory, and suggests the next step.
pub(crate) fn new(args: &NewArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let finder = settings.finder();
    let found_by_name = finder.roots().first().map(PathBuf::as_path);
    let parent = args.directory.as_deref().or(found_by_name).unwrap_or(Path::new("."));
    let (directory, trust) = match &args.from {
        Some(from) => {
            let origin = finder.find(from)?;
            (scaffold::copy(parent, &args.name, &origin)?, finder.trust(&origin))
        }
        None => (scaffold::new(parent, &args.name, args.kind(console)?, args.tier()?)?, Trust::Trusted),
    };
    // What the user made here is the user's own, so it may call tools without `cog trust`.
    // A copy of an untrusted module is not trusted either: its manifest was not read.
    if trust == Trust::Trusted
        && let Some(store) = TrustStore::new(&settings)
        && let Err(error) = store.add_own(&directory)
    {
        console.note(&format!("it may not call tools yet: {error}"));
    }
    let shown = directory.strip_prefix(".").unwrap_or(&directory).display().to_string();
    console.print(&shown)?;
    let path = if shown.contains('/') { shown } else { format!("./{shown}") };
    let is_found = finder.find_name(&args.name).is_ok();
    let module = if is_found { &args.name } else { &path };
    console.note(&format!(
        "next: `cog test {module}`; then edit {path}/prompt.md and schema.json, and check them with `cog validate {module}`"
    ));
    if !is_found {
        console.note("`cog list`, `cog test --all` and `cog serve` find modules in cognitive/modules; others by their path");
    }
    Ok(Exit::Ok)
}

/// The maximum length of the line with a kind, in bytes.
const MAX_LINE: u64 = 64;

/// Asks which kind of module to create.
fn asked_kind(console: &Console) -> Result<Kind, CliError> {
    let mut question =
        "what does the module do? Type a number or a name, or press Enter for `answer`.".to_owned();
    for (number, kind) in (1..).zip(Kind::ALL) {
        question += &format!("\n{number}  {:8}  {}", kind.as_str(), kind.describe());
    }
    console.note(&question);
    let mut line = String::new();
    std::io::Read::take(stdin().lock(), MAX_LINE).read_line(&mut line)?;
    parse_kind(line.trim()).map_err(|word| CliError::usage(word.to_string()))
}

/// Returns the kind of a number or a name. An empty answer is the kind that is used without a terminal.
fn parse_kind(word: &str) -> Result<Kind, ParseEnumError> {
    let by_number = word.parse::<usize>().ok().and_then(|number| Kind::ALL.get(number.checked_sub(1)?));
    match by_number {
        Some(kind) => Ok(*kind),
        None if word.is_empty() => Ok(Kind::Answer),
        None => word.parse(),
    }
}

impl NewArgs {
    fn kind(&self, console: &Console) -> Result<Kind, CliError> {
        match self.kind {
            Some(kind) => Ok(kind),
            None if console.err().is_terminal && stdin().is_terminal() => asked_kind(console),
            None => Ok(Kind::Answer),
        }
    }

    fn tier(&self) -> Result<Tier, CliError> {
        self.tier.parse().map_err(|word: ParseEnumError| CliError::usage(word.to_string()))
    }
}

/// Migrates each module, or shows the changes. After a failure it continues with the next module.
pub(crate) fn migrate(
    args: &MigrateArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let finder = default_finder(environment)?;
    let mut done = Vec::new();
    let mut worst = Exit::Ok;
    for (name, origin) in origins(&finder, args)? {
        done.push(match one(&origin, args) {
            Ok(step) => step,
            // The others are migrated nevertheless: each is complete in itself.
            Err(error) => {
                worst = error.report(console);
                Step::Failed { module: name, error }
            }
        });
    }
    if args.format.is_json() {
        console.print_json(&Array(&done))?;
    } else {
        let text: String =
            done.iter().map(|step| step.describe(args.dry_run, console.out().palette)).collect();
        console.print(if text.is_empty() && worst == Exit::Ok { NOTHING } else { &text })?;
    }
    Ok(worst)
}

const NOTHING: &str = "no modules to migrate";

/// Returns the modules to migrate; with `--all`, there may be none.
fn origins(finder: &Finder, args: &MigrateArgs) -> Result<Vec<(String, Origin)>, CliError> {
    if args.all { Ok(own(finder)) } else { targets(finder, &args.modules, false) }
}

fn one(origin: &Origin, args: &MigrateArgs) -> Result<Step, CliError> {
    let target = if args.to == "v2.2" { Target::V22 } else { Target::V25 };
    let migration = migrate::plan(origin, target)?;
    let backup = if args.dry_run { None } else { migration.apply(!args.no_backup)? };
    Ok(Step::Migrated { migration, backup })
}

/// The migration of one module.
enum Step {
    Migrated { migration: Migration, backup: Option<PathBuf> },
    Failed { module: String, error: CliError },
}

impl Step {
    fn describe(&self, dry_run: bool, palette: Palette) -> String {
        let (migration, backup) = match self {
            Self::Migrated { migration, backup } => (migration, backup),
            Self::Failed { module, .. } => return format!("{}: not migrated\n", palette.name(module)),
        };
        let Migration { name, from, to, notes, .. } = migration;
        let name = palette.name(name);
        if migration.is_empty() {
            return format!("{name}: already {to}, nothing to do\n");
        }
        let mut text = if dry_run { colour(&migration.diff(), palette) } else { String::new() };
        let would = if dry_run { "would become" } else { "is now" };
        text += &format!("{name}: {would} {to} (was {from})\n");
        for note in notes {
            text += &format!("  {} {note}\n", palette.warning("note:"));
        }
        if let Some(backup) = backup {
            text += &format!("  {}\n", palette.dim(format_args!("backup: {}", backup.display())));
        }
        text
    }
}

/// Written by hand: the migration is written by hand.
impl ToJson for Step {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| match self {
            Self::Migrated { migration, backup } => {
                w.field("migration", migration);
                w.optional("backup", &backup.as_ref().map(|path| path.display().to_string()));
            }
            Self::Failed { module, error } => {
                w.field("module", module);
                w.key("error").object(|w| {
                    w.optional("code", &error.code());
                    w.field("message", &error.to_string());
                });
            }
        });
    }
}

/// Colours the added and removed lines of a diff.
fn colour(diff: &str, palette: Palette) -> String {
    let mut text = String::new();
    for line in diff.lines() {
        text += &match line.as_bytes().first() {
            Some(b'+') => palette.success(line),
            Some(b'-') => palette.error(line),
            Some(b'@') => palette.dim(line),
            _ => line.to_owned(),
        };
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_is_a_number_or_a_name() {
        assert_eq!(
            ["1", "4", "extract", ""].map(|word| parse_kind(word).unwrap()),
            [Kind::Classify, Kind::Answer, Kind::Extract, Kind::Answer]
        );
        for word in ["0", "5", "sort", "-1"] {
            assert!(parse_kind(word).is_err(), "{word}");
        }
    }
}
