//! What `cog doctor` says about this installation: the version, what is set and where, and what the system allows. Keys are named,
//! never shown.

use std::{
    io::{IsTerminal as _, stderr, stdin, stdout},
    path::{Path, PathBuf},
};

use cog_host::settings::{Row, ServeSettings, Settings, Source};
use cog_module::files;
use serde::Serialize;

use crate::{
    error::CliError,
    output::{Palette, wrap},
};

/// This installation.
#[derive(Serialize)]
pub(super) struct Installation {
    version: &'static str,
    /// The system, the processor, the profile, and the optional features.
    build: Vec<&'static str>,
    /// What is wrong and yet does not prevent a run.
    warnings: Vec<String>,
    files: Vec<Place>,
    /// The settings that are not the default.
    settings: Vec<SetValue>,
    /// The variables that have a key; their values are not read.
    keys: Vec<SetKey>,
    network: Vec<Fact>,
    modules: Vec<Place>,
    directories: Vec<Place>,
    environment: Vec<Fact>,
}

/// A file or directory, and its state.
#[derive(Serialize)]
struct Place {
    path: String,
    state: String,
}

#[derive(Serialize)]
struct SetValue {
    name: String,
    value: String,
    source: String,
}

#[derive(Serialize)]
struct SetKey {
    name: String,
    source: String,
}

#[derive(Serialize)]
struct Fact {
    name: &'static str,
    value: String,
}

/// What [`Row`] shows for a key.
const HIDDEN: &str = "***";

impl Installation {
    /// Describes the installation. Reads files.
    ///
    /// # Errors
    /// A setting of the server is invalid.
    pub(super) fn describe(settings: &Settings) -> Result<Self, CliError> {
        let (_, server) = ServeSettings::read(settings, |_| None)?;
        let rows: Vec<Row> = settings.rows().into_iter().chain(server).collect();
        let set = rows.into_iter().filter(|row| row.source != Source::Default);
        let (keys, others): (Vec<Row>, Vec<Row>) = set.partition(|row| row.value.to_string() == HIDDEN);
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            build: build(),
            warnings: settings.warnings(),
            files: settings.files().into_iter().map(|file| Place::file(&file.path, file.is_read)).collect(),
            settings: others.into_iter().map(SetValue::from).collect(),
            keys: keys
                .into_iter()
                .map(|row| SetKey { name: row.name, source: row.source.to_string() })
                .collect(),
            network: network(settings),
            modules: settings.finder().roots().iter().map(|root| Place::modules(root)).collect(),
            directories: directories(settings).iter().map(|directory| Place::written(directory)).collect(),
            environment: environment(settings),
        })
    }

    /// Formats it for a person.
    pub(super) fn text(&self, palette: Palette, columns: Option<usize>) -> String {
        let settings =
            self.settings.iter().map(|one| format!("{} = {} ({})", one.name, one.value, one.source));
        let keys = self.keys.iter().map(|key| format!("{} ({})", key.name, key.source));
        let sections: [(&str, Vec<String>); 8] = [
            ("Warnings", self.warnings.clone()),
            ("Settings files", self.files.iter().map(Place::line).collect()),
            ("Settings", settings.collect()),
            ("Keys", keys.collect()),
            ("Network", self.network.iter().map(Fact::line).collect()),
            ("Modules", self.modules.iter().map(Place::line).collect()),
            ("Directories", self.directories.iter().map(Place::line).collect()),
            ("Environment", self.environment.iter().map(Fact::line).collect()),
        ];
        let mut text = format!("\ncog {} ({})\n", self.version, self.build.join(", "));
        for (title, lines) in sections.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            text += &format!("\n{}\n", palette.bold(title));
            // A pipe gets whole lines: what is pasted into a ticket is searched.
            let lines =
                lines.iter().flat_map(|line| wrap(line, columns.map_or(usize::MAX, |columns| columns - 2)));
            lines.for_each(|line| text += &format!("  {line}\n"));
        }
        text
    }
}

impl From<Row> for SetValue {
    fn from(row: Row) -> Self {
        Self { name: row.name, value: row.value.to_string(), source: row.source.to_string() }
    }
}

impl Fact {
    fn line(&self) -> String {
        format!("{}: {}", self.name, self.value)
    }
}

impl Place {
    fn new(path: &Path, state: impl Into<String>) -> Self {
        let shown = path.display().to_string();
        Self { path: if shown.is_empty() { ".".to_owned() } else { shown }, state: state.into() }
    }

    fn file(path: &Path, is_read: bool) -> Self {
        Self::new(path, if is_read { "read" } else { "not present" })
    }

    /// Describes a directory in which modules are searched for.
    fn modules(root: &Path) -> Self {
        if !root.is_dir() {
            return Self::new(root, "not present");
        }
        match files::directory_names(root).len() {
            1 => Self::new(root, "1 directory"),
            count => Self::new(root, format!("{count} directories")),
        }
    }

    /// Describes a directory in which files are written.
    fn written(directory: &Path) -> Self {
        // The directory is made when it is needed: what exists of its path decides.
        let existing = directory.ancestors().find(|ancestor| ancestor.is_dir());
        let can_write =
            existing.is_some_and(|existing| files::check_writable(&existing.join("file")).is_ok());
        let state = match (directory.is_dir(), can_write) {
            (true, true) => "can be written",
            (false, true) => "will be created",
            (_, false) => "cannot be written",
        };
        Self::new(directory, state)
    }

    fn line(&self) -> String {
        format!("{}: {}", self.path, self.state)
    }
}

fn build() -> Vec<&'static str> {
    let mut build = vec![std::env::consts::OS, std::env::consts::ARCH];
    build.push(if cfg!(debug_assertions) { "debug" } else { "release" });
    let features = [
        ("mcp", cfg!(feature = "mcp")),
        ("nats", cfg!(feature = "nats")),
        ("arrow", cfg!(feature = "arrow")),
        ("telemetry", cfg!(feature = "telemetry")),
    ];
    build.extend(features.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name));
    build
}

fn network(settings: &Settings) -> Vec<Fact> {
    let mut facts: Vec<Fact> =
        settings.proxies().into_iter().map(|(name, value)| Fact { name, value }).collect();
    let sources = settings.certificate_sources();
    if sources.is_empty() {
        facts.push(Fact { name: "certificate authorities", value: "the system's".to_owned() });
    }
    facts.extend(sources.into_iter().map(|source| {
        let path = source.path.display();
        let value = match &source.certificates {
            Ok(count) => format!("{path}, certificates: {count}"),
            Err(reason) => format!("{path}: {reason}"),
        };
        Fact { name: source.variable, value }
    }));
    facts
}

fn directories(settings: &Settings) -> Vec<PathBuf> {
    let log = settings.logs.directory.value.clone().filter(|_| settings.logs.enabled.value);
    let others = [settings.directories.state.clone(), settings.cache.directory.value.clone()];
    log.into_iter().chain(others.into_iter().flatten()).collect()
}

/// The variables of locale and terminal.
const VARIABLES: [&str; 8] =
    ["LC_ALL", "LC_CTYPE", "LANG", "TERM", "COLORTERM", "NO_COLOR", "CLICOLOR_FORCE", "COLUMNS"];

fn environment(settings: &Settings) -> Vec<Fact> {
    let variables = VARIABLES.into_iter();
    let set = variables.filter_map(|name| Some(Fact { name, value: settings.environment_variable(name)? }));
    let streams = [
        ("stdin", stdin().is_terminal()),
        ("stdout", stdout().is_terminal()),
        ("stderr", stderr().is_terminal()),
    ];
    let terminals: Vec<&str> = streams.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect();
    let value = if terminals.is_empty() { "none".to_owned() } else { terminals.join(", ") };
    set.chain([Fact { name: "streams on a terminal", value }]).collect()
}
