//! `cog doctor`: which providers are set up and answer, and what each can do; which ffmpeg there is.

mod ffmpeg;

use std::time::Duration;

use cog_json::{ToJson, Writer};
use cog_provider::{
    HttpProvider, ProviderError,
    vendors::{AuthRequirement, VENDORS, Vendor},
};
use cog_spec::{Code, ErrorBody};
use futures_util::future::join_all;

use self::ffmpeg::Ffmpeg;
use super::{
    asking::{self, Rank},
    running,
};
use crate::{
    args::DoctorArgs,
    error::CliError,
    exit::Exit,
    output::{Console, Progress, Table, wrap},
    settings::{Environment, Flags, Settings},
};

/// How long a provider may take to list its models.
const PATIENCE: Duration = Duration::from_secs(15);

/// Asks each provider that is set up for its models, all at once.
pub(crate) fn doctor(
    args: &DoctorArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::load(Flags::default(), environment, console)?;
    let chosen = asking::chosen(&settings).map_err(|error| CliError::Body(Box::new(error)))?;
    let progress = Progress::begin(console, "calling the providers");
    let probes = patients(args, &settings).into_iter().map(|vendor| probe(vendor, args, &settings));
    let done = running::wait(join_all(probes));
    drop(progress);
    let Some(found) = done? else { return Ok(Exit::Interrupted) };
    let ffmpeg = Ffmpeg::find(&settings.media);
    if args.format.is_json() {
        console.print_json(&Report { chosen: &chosen, found: &found, ffmpeg: &ffmpeg })?;
    } else {
        console.print(&(describe(&chosen, args, &found, console) + &ffmpeg.described()))?;
    }
    Ok(if found.iter().any(Finding::is_ill) { Exit::Failed } else { Exit::Ok })
}

/// The vendors to look at: the one that was named, all of them, or those that are set up.
fn patients(args: &DoctorArgs, settings: &Settings) -> Vec<&'static Vendor> {
    let wanted = |vendor: &&Vendor| match &args.provider {
        Some(name) => vendor.name == name,
        None => args.all || is_set_up(vendor, settings),
    };
    VENDORS.iter().filter(wanted).collect()
}

fn is_set_up(vendor: &Vendor, settings: &Settings) -> bool {
    let is_set = |names: &[&str]| names.iter().any(|name| settings.variable(name).is_some());
    let names = settings.provider.value.as_deref().unwrap_or_default().split(',');
    let is_named = names.into_iter().any(|name| name.trim() == vendor.name);
    is_named
        || is_set(vendor.key_vars)
        || (vendor.key == AuthRequirement::Optional && is_set(vendor.base_url_vars))
}

/// What was found of one vendor.
struct Finding {
    vendor: &'static Vendor,
    model: String,
    state: State,
}

enum State {
    /// It is not set up, and was not asked.
    Absent,
    /// It lists these models.
    Answers(Vec<String>),
    /// It does not answer.
    Ill(ErrorBody),
}

async fn probe(vendor: &'static Vendor, args: &DoctorArgs, settings: &Settings) -> Finding {
    let of_vendor = asking::settings_of(settings, vendor, Rank::First);
    let model = of_vendor.model.clone().or(vendor.default_model.map(str::to_owned)).unwrap_or_default();
    let is_asked = args.provider.is_some() || is_set_up(vendor, settings);
    let state = match HttpProvider::new(vendor, of_vendor) {
        _ if !is_asked => State::Absent,
        Ok(provider) => ask(&provider).await,
        Err(error) => State::Ill(ErrorBody::from(&error)),
    };
    Finding { vendor, model, state }
}

async fn ask(provider: &HttpProvider) -> State {
    match tokio::time::timeout(PATIENCE, provider.models()).await {
        Ok(Ok(models)) => State::Answers(models),
        Ok(Err(error)) => State::Ill(ErrorBody::from(&error)),
        Err(_) => {
            let message = format!("{} did not respond within {} s", provider.base_url(), PATIENCE.as_secs());
            State::Ill(ErrorBody::from(&ProviderError::Other { code: Code::ProviderUnavailable, message }))
        }
    }
}

impl Finding {
    fn is_ill(&self) -> bool {
        matches!(self.state, State::Ill(_))
    }

    /// The state in a word, for a program.
    fn status(&self) -> &'static str {
        match self.state {
            State::Absent => "not_configured",
            State::Answers(_) => "ok",
            State::Ill(_) => "error",
        }
    }

    /// The state in a few words, for a person.
    fn told(&self) -> String {
        match &self.state {
            State::Absent => format!("set {}", self.variable()),
            State::Answers(models) if models.len() == 1 => "ok, 1 model".to_owned(),
            State::Answers(models) => format!("ok, {} models", models.len()),
            State::Ill(_) => "error".to_owned(),
        }
    }

    /// The variable that sets the vendor up; of several addresses the vendor's own, which stands last.
    fn variable(&self) -> &'static str {
        let name = match self.vendor.key {
            AuthRequirement::Required => self.vendor.key_vars.first(),
            AuthRequirement::Optional => self.vendor.base_url_vars.last(),
        };
        name.copied().unwrap_or_default()
    }

    /// What its models take, and how they are told a schema.
    fn can(&self) -> String {
        let takes: Vec<_> = self.vendor.input.iter().map(|modality| modality.as_str()).collect();
        format!("{}, {}", takes.join(" "), self.vendor.dialect)
    }
}

fn describe(chosen: &str, args: &DoctorArgs, found: &[Finding], console: &Console) -> String {
    let paint = console.out().paint;
    let mut text = format!("Provider: {}", paint.bold(chosen));
    if found.is_empty() {
        return text
            + "\n\nNo provider is configured. `cog doctor --all` lists the providers and their variables.\n";
    }
    let mut table = Table::new(["provider", "status", "model", "input, schema"]);
    for finding in found {
        let model = if finding.model.is_empty() { "-" } else { &finding.model };
        table.row([finding.vendor.name, &finding.told(), model, &finding.can()].map(str::to_owned));
    }
    text += &format!("\n\n{}", table.render(paint, console.out_columns()));
    for finding in found {
        text += &finding.details(args.provider.is_some(), console);
    }
    text
}

impl Finding {
    /// Why it does not answer; its models, where they are asked for.
    fn details(&self, with_models: bool, console: &Console) -> String {
        let paint = console.out().paint;
        let (about, help) = match &self.state {
            State::Ill(error) => (error.message.clone(), error.suggestion.clone()),
            State::Answers(models) if with_models => (models.join(", "), None),
            State::Answers(_) | State::Absent => return String::new(),
        };
        let mut text = format!("\n{}\n", paint.bold(self.vendor.title));
        for line in wrap(&about, console.width().saturating_sub(2)) {
            text += &format!("  {line}\n");
        }
        text + &help.map(|help| format!("  {} {help}\n", paint.name("help:"))).unwrap_or_default()
    }
}

struct Report<'a> {
    chosen: &'a str,
    found: &'a [Finding],
    ffmpeg: &'a Ffmpeg,
}

impl ToJson for Report<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("chosen", self.chosen);
            w.field("providers", self.found);
            w.field("ffmpeg", self.ffmpeg);
        });
    }
}

impl ToJson for Finding {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", self.vendor.name);
            w.field("title", self.vendor.title);
            w.field("status", self.status());
            w.field("model", &self.model);
            w.field("input", self.vendor.input);
            w.field("dialect", self.vendor.dialect.as_str());
            w.field("variable", self.variable());
            match &self.state {
                State::Absent => {}
                State::Answers(models) => {
                    w.field("models", models);
                }
                State::Ill(error) => {
                    w.field("error", error);
                }
            }
        });
    }
}
