//! What the program says about itself: `cog config` and `cog trust`, what the operator has set; `cog schema`, `cog capabilities`
//! and `cog errors`, what the specification and this runtime define; completion and manual pages.

use std::{borrow::Cow, ffi::OsStr, path::Path};

use clap::{Arg, Command, CommandFactory as _};
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _},
    env::Shells,
};
use cog_host::{
    TrustError, TrustStore,
    run_log::{Entries, Entry},
    settings::{Environment, Flags, Row, ServeSettings, Settings, settings_schema},
};
use cog_json::{Array, ToJson, Writer};
use cog_module::ListedModule;
use cog_spec::{Code, Recoverable, Schema};

use super::emit;
use crate::{
    args::{
        CapabilitiesArgs, Cli, CompletionsArgs, ConfigArgs, ErrorsArgs, ManArgs, SchemaArgs, SchemaName,
        TrustArgs,
    },
    error::{CliError, Exit},
    output::{Console, Table, wrap},
    parse::program,
};

/// Prints every setting. A key is shown as `***`.
pub(crate) fn config(
    args: &ConfigArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let (_, of_server) = ServeSettings::read(&settings, |_| None)?;
    let mut rows = settings.rows();
    rows.extend(of_server);
    if args.format.is_json() {
        console.print_json(&Report { settings: &rows })?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(["setting", "value", "source"]);
    for Row { name, value, source } in &rows {
        table.row([name.clone(), value.to_string(), source.to_string()]);
    }
    console.print(&table.render(console.out().palette, None))?;
    Ok(Exit::Ok)
}

struct Report<'a> {
    settings: &'a [Row],
}

/// Written by hand: its rows are written by hand.
impl ToJson for Report<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("settings", &Array(self.settings));
        });
    }
}

/// Trusts a directory, stops trusting it, or lists the trusted ones.
pub(crate) fn trust(args: &TrustArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let store = TrustStore::new(&settings).ok_or_else(|| CliError::Usage {
        message: "trust needs a home directory".to_owned(),
        suggestion: Some("Set HOME, or use --trust for one command.".to_owned()),
    })?;
    if args.list {
        let directories = store.directories().map_err(|error| failed(&error))?;
        let directories: Vec<String> = directories.iter().map(|one| one.path.display().to_string()).collect();
        if args.format.is_json() {
            console.print_json(&directories)?;
        } else {
            console.print(&directories.join("\n"))?;
        }
        return Ok(Exit::Ok);
    }
    let path = args.path.as_deref().unwrap_or(Path::new("."));
    if args.remove {
        if store.remove(path).map_err(|error| failed(&error))? {
            let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            console.note(&format!("modules in {} may no longer call tools", path.display()));
            return Ok(Exit::Ok);
        }
        return Err(CliError::Usage {
            message: format!("`{}` is not trusted", path.display()),
            suggestion: Some("`cog trust --list` shows the trusted directories.".to_owned()),
        });
    }
    let directory = store.add(path).map_err(|error| failed(&error))?;
    console.note(&format!("modules in {} may call tools", directory.path.display()));
    for (module, granted) in directory.granted.iter().flatten().filter(|(_, granted)| !granted.is_empty()) {
        let module = if module.is_empty() { "." } else { module };
        console.note(&format!("{module}: {}", Vec::from_iter(granted.clone()).join(", ")));
    }
    Ok(Exit::Ok)
}

fn failed(error: &TrustError) -> CliError {
    CliError::Usage { message: error.to_string(), suggestion: Some(error.suggestion()) }
}

/// Prints a schema.
pub(crate) fn schema(args: &SchemaArgs, console: &Console) -> Result<Exit, CliError> {
    let text = text(args.name);
    match &args.output {
        Some(path) => emit::file(path, &text, console)?,
        None => console.print(&text)?,
    }
    Ok(Exit::Ok)
}

fn text(name: SchemaName) -> Cow<'static, str> {
    let schema = match name {
        SchemaName::Manifest => Schema::Manifest,
        SchemaName::Expected => Schema::Expected,
        SchemaName::Settings => return settings_schema().into(),
        SchemaName::Envelope => Schema::Envelope,
        SchemaName::Chunk => Schema::Chunk,
        SchemaName::Capabilities => Schema::Capabilities,
        SchemaName::Forms => Schema::Forms,
        SchemaName::Message => Schema::Message,
        SchemaName::Handoff => Schema::Handoff,
        SchemaName::Openapi => return cog_server::openapi().into(),
    };
    schema.text().into()
}

/// Prints the capabilities document.
pub(crate) fn capabilities(args: &CapabilitiesArgs, console: &Console) -> Result<Exit, CliError> {
    emit::json(&cog_server::capabilities(), &args.output, console)?;
    Ok(Exit::Ok)
}

/// Prints the table, or the details of one code.
pub(crate) fn errors(args: &ErrorsArgs, console: &Console) -> Result<Exit, CliError> {
    match (args.code, args.format.is_json()) {
        (Some(code), true) => console.print_json(&ErrorEntry(code))?,
        (None, true) => {
            console.print_json(&Array(&Code::ALL.iter().copied().map(ErrorEntry).collect::<Vec<_>>()))?;
        }
        (Some(code), false) => console.print(&explain(code, console))?,
        (None, false) => console.print(&table(console))?,
    }
    Ok(Exit::Ok)
}

fn table(console: &Console) -> String {
    let mut table = Table::new(["code", "name", "meaning"]);
    for code in Code::ALL {
        table.row([code.as_str(), code.name(), code.meaning()].map(str::to_owned));
    }
    table.render(console.out().palette, console.out_columns())
}

fn explain(code: Code, console: &Console) -> String {
    let palette = console.out().palette;
    let mut text = format!("{} {}\n", palette.error(code), palette.bold(code.name()));
    for line in [code.meaning(), code.advice()].into_iter().flat_map(|part| wrap(part, console.width())) {
        text += &format!("{line}\n");
    }
    for fact in facts(code) {
        text += &format!("  {}\n", palette.dim(fact));
    }
    text
}

fn facts(code: Code) -> Vec<String> {
    let mut facts = vec![
        format!("category: {}", code.category().as_str()),
        format!("retryable: {}", recoverable(code)),
        format!("HTTP status: {}", code.http_status()),
    ];
    let legacy = code.legacy().filter(|legacy| *legacy != code.name());
    facts.extend(legacy.map(|legacy| format!("legacy text code: {legacy}")));
    facts
}

const fn recoverable(code: Code) -> &'static str {
    match code.recoverable() {
        Recoverable::Yes => "yes",
        Recoverable::No => "no",
        Recoverable::Maybe => "maybe",
    }
}

struct ErrorEntry(Code);

/// Written by hand: all members are computed.
impl ToJson for ErrorEntry {
    fn write_json(&self, w: &mut Writer<'_>) {
        let code = self.0;
        w.object(|w| {
            w.field("code", code.as_str());
            w.field("name", code.name());
            w.field("category", code.category().as_str());
            w.field("recoverable", recoverable(code));
            w.field("http_status", &u32::from(code.http_status()));
            w.optional("legacy", &code.legacy());
            w.field("meaning", code.meaning());
            w.field("advice", code.advice());
        });
    }
}

/// The variable that the scripts of `cog completions` set to the name of the shell.
const VARIABLE: &str = "COG_COMPLETE";

/// Prints the candidates if a shell calls for them; otherwise returns none.
pub(crate) fn complete() -> Option<Exit> {
    let directory = std::env::current_dir().ok();
    let shell = CompleteEnv::with_factory(command).var(VARIABLE);
    match shell.try_complete(std::env::args_os(), directory.as_deref()) {
        Ok(true) => Some(Exit::Ok),
        Ok(false) => None,
        Err(error) => {
            let _ = error.print();
            Some(Exit::Usage)
        }
    }
}

/// Returns the script that makes a shell call this program.
fn script(shell: &str) -> std::io::Result<Vec<u8>> {
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(shell) {
        completer.write_registration(VARIABLE, program(), program(), program(), &mut script)?;
    }
    Ok(script)
}

/// The commands, with the modules and the logged runs as candidates of each argument that names one.
fn command() -> Command {
    with_candidates(Cli::command().name(program()))
}

fn with_candidates(command: Command) -> Command {
    command.mut_args(with_completer).mut_subcommands(with_candidates)
}

fn with_completer(arg: Arg) -> Arg {
    match arg.get_value_names() {
        Some([name]) if name == "MODULE" => arg.add(ArgValueCompleter::new(modules)),
        Some([name]) if name == "ID" => arg.add(ArgValueCompleter::new(runs)),
        _ => arg,
    }
}

/// Returns the logged runs whose IDs begin with `current`, the newest first.
fn runs(current: &OsStr) -> Vec<CompletionCandidate> {
    // The log may have thousands of runs, and a shell shows few candidates.
    const MAX_RUNS: usize = 100;
    let text = current.to_string_lossy();
    let settings = Settings::read(Flags::default(), Environment::from_process()).ok();
    let Some(entries) = settings.and_then(|settings| Entries::read(&settings).ok()) else {
        return Vec::new();
    };
    let found = entries.newest_first().filter(|run| run.id.starts_with(&*text)).take(MAX_RUNS);
    found.map(run_candidate).collect()
}

fn run_candidate(run: Entry) -> CompletionCandidate {
    let help = format!("{} {} {}", run.time, run.module, run.result());
    CompletionCandidate::new(run.id).help(Some(help.into()))
}

/// Returns the modules whose names begin with `current`, or directories if it is a path.
fn modules(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    if text.contains('/') || text.starts_with('.') {
        return PathCompleter::dir().complete(current);
    }
    // A shell shows no errors of a completion.
    let Ok(settings) = Settings::read(Flags::default(), Environment::from_process()) else {
        return Vec::new();
    };
    let listed = settings.finder().list().into_iter().filter(|module| module.name.starts_with(&*text));
    listed.map(module_candidate).collect()
}

fn module_candidate(module: ListedModule) -> CompletionCandidate {
    let purpose = module.manifest.ok().map(|manifest| manifest.responsibility.into());
    CompletionCandidate::new(module.name).help(purpose)
}

/// Prints the script for a shell and for the name of this program.
pub(crate) fn completions(args: &CompletionsArgs, console: &Console) -> Result<Exit, CliError> {
    let script = script(&args.shell.to_string())?;
    console.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}

/// Prints the overview, or the page of one command, as roff.
pub(crate) fn man(args: &ManArgs, console: &Console) -> Result<Exit, CliError> {
    let mut cog = Cli::command().name(program());
    cog.build();
    let mut page = &cog;
    for wanted in &args.command {
        page = page.find_subcommand(wanted).ok_or_else(|| unknown(wanted))?;
    }
    let mut roff = Vec::new();
    clap_mangen::Man::new(page.clone()).render(&mut roff)?;
    console.print(&String::from_utf8_lossy(&roff))?;
    Ok(Exit::Ok)
}

fn unknown(name: &str) -> CliError {
    CliError::Usage {
        message: format!("unknown command `{name}`"),
        suggestion: Some("`cog help` lists the commands.".to_owned()),
    }
}
