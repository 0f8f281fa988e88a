//! `cog doctor`: which providers are configured and respond, which programs read media files, and what is set on this machine. Its
//! output is meant to be pasted into a ticket.

mod installation;

use std::{path::Path, process::Command, time::Duration};

use cog_host::{
    providers::{self, ProviderPosition},
    settings::{Environment, Flags, MediaSettings, Settings, without_credentials},
};
use cog_json::{Array, ToJson, Writer};
use cog_media::Programs;
use cog_provider::{
    HttpProvider, ListedModel, ProviderError,
    vendors::{AuthRequirement, VENDORS, Vendor},
};
use cog_spec::{Code, ErrorBody};
use futures_util::future::join_all;

use self::installation::Installation;
use super::runtime;
use crate::{
    args::DoctorArgs,
    commands::runtime::note_telemetry,
    error::{CliError, Exit},
    output::{Console, Progress, Table, wrap},
};

/// The maximum time for a provider to list its models.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Requests the model lists of all configured providers concurrently.
pub(crate) fn doctor(
    args: &DoctorArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    note_telemetry(&settings, console);
    let chosen = providers::names(&settings).map_err(|error| CliError::Body(Box::new(error)))?;
    let progress = Progress::begin(console, "calling the providers");
    let probes = selected_vendors(args, &settings).into_iter().map(|vendor| probe(vendor, args, &settings));
    let done = runtime::wait(join_all(probes));
    drop(progress);
    let Some(found) = done? else { return Ok(Exit::Interrupted) };
    let programs = MediaPrograms::find(&settings.media);
    let installation = Installation::describe(&settings)?;
    if args.format.is_json() {
        let telemetry = settings.telemetry_target();
        let found = &found;
        let programs = &programs;
        let installation = &installation;
        console.print_json(&Report { chosen: &chosen, found, programs, telemetry, installation })?;
    } else {
        let telemetry = settings.telemetry_target().map(|target| format!("\nTelemetry: {target}\n"));
        let text = describe(&chosen, args, &found, console) + &programs.described();
        let installation = installation.text(console.out().palette, console.out_columns());
        console.print(&(text + &telemetry.unwrap_or_default() + &installation))?;
    }
    Ok(if found.iter().any(Finding::has_error) { Exit::Failed } else { Exit::Ok })
}

/// Returns the providers to check: the given one, all, or the configured ones.
fn selected_vendors(args: &DoctorArgs, settings: &Settings) -> Vec<&'static Vendor> {
    let selected = VENDORS.iter().filter(|vendor| match &args.provider {
        Some(name) => vendor.name == name,
        None => args.all || is_configured(vendor, settings),
    });
    selected.collect()
}

/// Whether the settings have what a call to a vendor needs.
pub(super) fn is_configured(vendor: &Vendor, settings: &Settings) -> bool {
    let names = settings.provider.value.as_deref().unwrap_or_default().split(',');
    let is_named = names.into_iter().any(|name| name.trim() == vendor.name);
    is_named
        || providers::detected(settings, vendor).is_some()
        || has_variable(vendor.key_vars, settings)
        || (vendor.key == AuthRequirement::Optional && has_variable(vendor.base_url_vars, settings))
}

fn has_variable(names: &[&str], settings: &Settings) -> bool {
    names.iter().any(|name| settings.variable(name).is_some())
}

/// The result for one provider.
struct Finding {
    vendor: &'static Vendor,
    model: String,
    base_url: String,
    /// The base URL, if the server was found without a setting.
    found_at: Option<String>,
    state: State,
}

enum State {
    /// Not configured, and not called.
    NotConfigured,
    /// It has these models.
    Ok(Models),
    /// The call failed.
    Error(ErrorBody),
}

async fn probe(vendor: &'static Vendor, args: &DoctorArgs, settings: &Settings) -> Finding {
    let provider_settings = providers::provider_settings(settings, vendor, ProviderPosition::First);
    let model =
        provider_settings.model.clone().or(vendor.default_model.map(str::to_owned)).unwrap_or_default();
    let is_called = args.provider.is_some() || is_configured(vendor, settings);
    let base_url = provider_settings.base_url.as_deref().unwrap_or(vendor.base_url);
    let base_url = without_credentials(base_url);
    let state = match HttpProvider::new(vendor, provider_settings) {
        _ if !is_called => State::NotConfigured,
        Ok(provider) => list_models(&provider, &model).await,
        Err(error) => State::Error(ErrorBody::from(&error)),
    };
    let found_at = providers::detected(settings, vendor).map(|server| server.base_url.clone());
    Finding { vendor, model, base_url, found_at, state }
}

async fn list_models(provider: &HttpProvider, model: &str) -> State {
    match tokio::time::timeout(TIMEOUT, provider.models()).await {
        Ok(Ok(models)) => State::Ok(Models::new(called(provider.vendor(), model, &models), models)),
        Ok(Err(error)) => State::Error(ErrorBody::from(&error)),
        Err(_) => {
            let message = format!("{} did not respond within {} s", provider.base_url(), TIMEOUT.as_secs());
            State::Error(ErrorBody::from(&ProviderError::Other { code: Code::ProviderUnavailable, message }))
        }
    }
}

impl Finding {
    fn has_error(&self) -> bool {
        matches!(self.state, State::Error(_))
    }

    /// Returns the status in JSON.
    fn status(&self) -> &'static str {
        match self.state {
            State::NotConfigured => "not_configured",
            State::Ok(_) => "ok",
            State::Error(_) => "error",
        }
    }

    /// Returns the status in the table.
    fn status_text(&self) -> String {
        match &self.state {
            State::NotConfigured => format!("set {}", self.variable()),
            State::Ok(models) => models.status(),
            State::Error(_) => "error".to_owned(),
        }
    }

    /// Returns the variable that configures the provider; the provider's own base URL variable is the last one.
    fn variable(&self) -> &'static str {
        let name = match self.vendor.key {
            AuthRequirement::Required => self.vendor.key_vars.first(),
            AuthRequirement::Optional => self.vendor.base_url_vars.last(),
        };
        name.copied().unwrap_or_default()
    }

    /// Returns the input modalities and the schema dialect.
    fn capabilities(&self) -> String {
        let input: Vec<_> = self.vendor.input.iter().map(|modality| modality.as_str()).collect();
        format!("{}, {}", input.join(" "), self.vendor.dialect)
    }
}

fn describe(chosen: &str, args: &DoctorArgs, found: &[Finding], console: &Console) -> String {
    let palette = console.out().palette;
    let found_at = found.iter().find_map(|finding| finding.found_at.as_ref());
    let found_at = found_at.map(|url| format!(" (found at {url})")).unwrap_or_default();
    let mut text = format!("Provider: {}{found_at}", palette.bold(chosen));
    if found.is_empty() {
        return text
            + "\n\nNo provider is configured. `cog doctor --all` lists the providers and their variables.\n";
    }
    let mut table = Table::new(["provider", "status", "model", "input, schema"]);
    for finding in found {
        let model = if finding.model.is_empty() { "-" } else { &finding.model };
        table.row(
            [finding.vendor.name, &finding.status_text(), model, &finding.capabilities()].map(str::to_owned),
        );
    }
    text += &format!("\n\n{}", table.render(palette, console.out_columns()));
    for finding in found {
        text += &finding.details(args.provider.is_some(), console);
    }
    text
}

impl Finding {
    /// Formats the error, or the models if they are requested.
    fn details(&self, with_models: bool, console: &Console) -> String {
        let palette = console.out().palette;
        let (about, help) = match &self.state {
            State::Error(error) => (vec![error.message.clone()], error.suggestion.clone()),
            State::Ok(models) => {
                (models.facts().into_iter().chain(with_models.then(|| models.names())).collect(), None)
            }
            State::NotConfigured => (Vec::new(), None),
        };
        if matches!(self.state, State::NotConfigured) {
            return String::new();
        }
        let mut text = format!("\n{} at {}\n", palette.bold(self.vendor.title), self.base_url);
        for line in about.iter().flat_map(|line| wrap(line, console.width().saturating_sub(2))) {
            text += &format!("  {line}\n");
        }
        text + &help.map(|help| format!("  {} {help}\n", palette.name("help:"))).unwrap_or_default()
    }
}

struct Report<'a> {
    chosen: &'a str,
    found: &'a [Finding],
    programs: &'a MediaPrograms,
    /// Where spans and metrics are exported.
    telemetry: Option<String>,
    installation: &'a Installation,
}

/// Written by hand: its findings are written by hand.
impl ToJson for Report<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("chosen", self.chosen);
            w.field("providers", &Array(self.found));
            self.programs.write_fields(w);
            w.optional("telemetry", &self.telemetry);
            w.field("installation", self.installation);
        });
    }
}

/// Written by hand: it has the members of the provider and its state.
impl ToJson for Finding {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", self.vendor.name);
            w.field("title", self.vendor.title);
            w.field("status", self.status());
            w.field("model", &self.model);
            w.field("base_url", &self.base_url);
            w.field("input", self.vendor.input);
            w.field("dialect", self.vendor.dialect.as_str());
            w.field("variable", self.variable());
            w.optional("found_at", &self.found_at);
            match &self.state {
                State::NotConfigured => {}
                State::Ok(models) => models.write_members(w),
                State::Error(error) => {
                    w.field("error", error);
                }
            }
        });
    }
}

/// The programs that read media files in runs.
struct MediaPrograms([Program; 3]);

/// A program that runs use.
struct Program {
    name: &'static str,
    /// What its absence means.
    without: &'static str,
    /// Its path and, if it can be run, its version.
    found: Option<(String, Option<String>)>,
}

impl MediaPrograms {
    /// Finds the programs that runs use, and their versions.
    fn find(settings: &MediaSettings) -> Self {
        let tool = settings.tool();
        let Programs { ffmpeg, pdftotext, pdftoppm } = tool.programs();
        Self([
            program(
                "ffmpeg",
                "-version",
                "it is required to extract frames and audio from videos",
                ffmpeg.as_deref(),
            ),
            program(
                "pdftotext",
                "-v",
                "a simpler reader extracts the text of PDF files",
                pdftotext.as_deref(),
            ),
            program("pdftoppm", "-v", "it is required to send scanned pages as images", pdftoppm.as_deref()),
        ])
    }

    /// Describes them, one per line.
    fn described(&self) -> String {
        let lines = self.0.iter().map(Program::described);
        format!("\n{}\n", lines.collect::<Vec<_>>().join("\n"))
    }

    /// Writes each as a member; null if it is not installed.
    fn write_fields(&self, w: &mut Writer<'_>) {
        for program in &self.0 {
            w.field(program.name, program);
        }
    }
}

impl Program {
    fn described(&self) -> String {
        let Self { name, without, found } = self;
        match found {
            Some((path, Some(version))) => format!("{name} {version}: {path}"),
            Some((path, None)) => format!("{name}: cannot run {path}"),
            None => format!("{name}: not found; {without}"),
        }
    }
}

fn program(name: &'static str, flag: &str, without: &'static str, path: Option<&Path>) -> Program {
    let found = path.map(|path| (path.display().to_string(), version(name, flag, path)));
    Program { name, without, found }
}

/// Returns the version that a program prints: `ffmpeg version 5.1.9 Copyright …`.
fn version(name: &str, flag: &str, path: &Path) -> Option<String> {
    // Without the variables of this process, which contain the keys of providers.
    let output = Command::new(path).arg(flag).env_clear().output().ok()?;
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let version = printed.strip_prefix(name)?.trim_start().strip_prefix("version ")?;
    version.split_whitespace().next().map(str::to_owned)
}

/// Written by hand: null if it is not installed.
impl ToJson for Program {
    fn write_json(&self, w: &mut Writer<'_>) {
        match &self.found {
            None => w.null(),
            Some((path, version)) => w.object(|w| {
                w.field("path", path.as_str());
                w.optional("version", &version.as_deref());
            }),
        }
    }
}

/// Returns the model that runs call. A server of llama.cpp has one model, and accepts any name for it.
fn called(vendor: &Vendor, model: &str, listed: &[ListedModel]) -> String {
    match listed {
        [first, ..] if vendor.engine == Some("llamacpp") && vendor.default_model == Some(model) => {
            first.name.clone()
        }
        _ => model.to_owned(),
    }
}

/// The models that a provider lists, and the one that runs call.
struct Models {
    /// The name of the model that runs call; empty if there is none.
    called: String,
    listed: Vec<ListedModel>,
}

impl Models {
    fn new(called: String, listed: Vec<ListedModel>) -> Self {
        Self { called, listed }
    }

    /// Returns the number of models, and whether the called one is missing, for the table.
    fn status(&self) -> String {
        let count = match self.listed.len() {
            1 => "1 model".to_owned(),
            count => format!("{count} models"),
        };
        if self.is_missing() {
            format!("ok, {count}, but not {}", self.called)
        } else {
            format!("ok, {count}")
        }
    }

    /// Returns the names, for one line.
    fn names(&self) -> String {
        self.listed.iter().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Returns what the list contains about the called model and about models that will be shut down, one per line.
    fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        if self.is_missing() {
            facts.push(format!(
                "{} is not in the provider's list; choose a model with --model or LLM_MODEL",
                self.called
            ));
        }
        facts.extend(self.called().and_then(facts_of));
        let retiring = self.retiring();
        if !retiring.is_empty() {
            let lines = retiring.iter().map(|(name, date)| format!("{name} ({date})"));
            facts.push(format!("retiring: {}", lines.collect::<Vec<_>>().join(", ")));
        }
        facts
    }

    fn called(&self) -> Option<&ListedModel> {
        self.listed.iter().find(|model| model.name == self.called).or_else(|| {
            let mut named = self.listed.iter().filter(|model| model.is_named(&self.called));
            named.next().filter(|_| !self.called.is_empty())
        })
    }

    /// Returns whether the provider lists models, but not the called one.
    fn is_missing(&self) -> bool {
        !self.called.is_empty() && !self.listed.is_empty() && self.called().is_none()
    }

    /// Returns the models with a date from which they are not available, the earliest first.
    fn retiring(&self) -> Vec<(&str, &str)> {
        let dated =
            self.listed.iter().filter_map(|model| Some((model.name.as_str(), model.retires_at.as_deref()?)));
        let mut dated: Vec<_> = dated.collect();
        dated.sort_by_key(|(_, date)| *date);
        dated
    }
}

/// Returns the facts about the called model in one line, if there are any.
fn facts_of(model: &ListedModel) -> Option<String> {
    let supported =
        (!model.capabilities.is_empty()).then(|| format!("supports {}", model.capabilities.join(", ")));
    let facts = [
        model.max_input_tokens.map(|count| format!("{count} input tokens")),
        model.max_output_tokens.map(|count| format!("{count} output tokens")),
        model.lifecycle.clone(),
        model.retires_at.as_ref().map(|date| format!("not available from {date}")),
        supported,
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    (!facts.is_empty()).then(|| format!("{}: {}", model.name, facts.join("; ")))
}

impl Models {
    /// Writes the members for JSON.
    fn write_members(&self, w: &mut Writer<'_>) {
        let names: Vec<&str> = self.listed.iter().map(|model| model.name.as_str()).collect();
        w.field("models", &Array(&names));
        w.field("model_listed", &!self.is_missing());
        w.optional("model_facts", &self.called().map(Facts));
        let retiring: Vec<&ListedModel> =
            self.listed.iter().filter(|model| model.retires_at.is_some()).collect();
        let retiring: Vec<Facts<'_>> = retiring.into_iter().map(Facts).collect();
        w.field("retiring", &Array(&retiring));
    }
}

/// A model as JSON.
struct Facts<'a>(&'a ListedModel);

/// Written by hand: the type is not serializable.
impl ToJson for Facts<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let model = self.0;
        w.object(|w| {
            w.field("name", &model.name);
            w.optional("max_input_tokens", &model.max_input_tokens);
            w.optional("max_output_tokens", &model.max_output_tokens);
            w.optional("lifecycle", &model.lifecycle);
            w.optional("retires_at", &model.retires_at);
            w.field("capabilities", &model.capabilities);
        });
    }
}
