//! `cog new` and `cog migrate`: write the files of a module.

use std::path::{Path, PathBuf};

use cog_host::{
    TrustStore,
    settings::{Environment, Flags, Settings},
};
use cog_json::{Array, ToJson, Writer};
use cog_module::{
    Finder, Origin, Trust,
    migrate::{self, Migration, Target},
    scaffold,
};
use cog_spec::Tier;

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
    let found_by_name = finder.roots().first().filter(|root| root.is_dir());
    let parent = args.directory.as_deref().or(found_by_name.map(PathBuf::as_path)).unwrap_or(Path::new("."));
    let (directory, trust) = match &args.from {
        Some(from) => {
            let origin = finder.find(from)?;
            (scaffold::copy(parent, &args.name, &origin)?, finder.trust(&origin))
        }
        None => (scaffold::new(parent, &args.name, args.tier()?)?, Trust::Trusted),
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
    console.note(&format!("next: edit {path}/prompt.md and schema.json, then `cog validate {path}`"));
    if finder.find_name(&args.name).is_err() {
        console.note("`cog list`, `cog test --all` and `cog serve` find modules in cognitive/modules; others by their path");
    }
    Ok(Exit::Ok)
}

impl NewArgs {
    fn tier(&self) -> Result<Tier, CliError> {
        self.tier.parse().map_err(|word: cog_spec::ParseEnumError| CliError::usage(word.to_string()))
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
