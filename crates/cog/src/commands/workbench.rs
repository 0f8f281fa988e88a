//! What the page of a server does beyond running modules, with what the commands do: checks, tests, the log, labels, calibrations.

use std::{sync::Arc, time::Duration};

use cog_host::{
    run_log::{Entries, Entry, LabelTarget, RunLog},
    settings::{Environment, Flags, Settings},
};
use cog_json::{Node, ToJson, Writer};
use cog_module::{
    Diagnostic, Finder, Level, Module, Origin,
    calibration::{CalibrationEntry, CalibrationKey, Calibrations},
};
use cog_provider::vendors::VENDORS;
use cog_run::feedback::Feedback;
use cog_schema::nearest;
use cog_server::{ListedProvider, NewCase, TestRequest, Workbench};
use cog_spec::{Calibration, Code, ErrorBody};
use cog_trust::Goal;
use futures_util::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use tokio::{
    runtime::Handle,
    sync::{
        mpsc::{Sender, channel},
        oneshot,
    },
};

use super::{
    calibrate::report::Report,
    doctor::is_configured,
    insights,
    logs::{label, newest},
    test::{add::add_answer, live::LiveTests},
};
use crate::{args::ModelArgs, args::TestArgs, error::CliError, output::Console};

/// The lines of a test that wait for a client.
const WAITING_LINES: usize = 16;

/// The maximum size of the inputs and answers in a list of runs, in bytes. Further runs are listed without them.
const MAX_CONTENTS: usize = 8 << 20;

/// The workbench of a server that this program runs.
pub(super) struct HostWorkbench(Arc<Shared>);

struct Shared {
    settings: Arc<Settings>,
    /// For the settings of a test with another model.
    environment: Environment,
    timeout: Option<Duration>,
    trust: bool,
    finder: Finder,
    console: Console,
}

impl HostWorkbench {
    /// The workbench of a server with these settings and modules.
    pub(super) fn new(
        settings: &Arc<Settings>,
        environment: &Environment,
        model: &ModelArgs,
        finder: &Finder,
        console: &Console,
    ) -> Self {
        Self(Arc::new(Shared {
            settings: Arc::clone(settings),
            environment: environment.clone(),
            timeout: model.timeout,
            trust: model.trust,
            finder: finder.clone(),
            console: console.clone(),
        }))
    }
}

impl Workbench for HostWorkbench {
    fn providers(&self) -> Vec<ListedProvider> {
        let settings = &self.0.settings;
        let chosen = settings.provider.value.as_deref().unwrap_or_default();
        let first = chosen.split(',').next().unwrap_or_default().trim();
        let mut listed: Vec<ListedProvider> = VENDORS
            .iter()
            .map(|vendor| {
                let own = settings.model.value.clone().filter(|_| vendor.name == first);
                let of_vendor = || settings.model_for(vendor).map(|model| model.value);
                let model = own.or_else(of_vendor).or_else(|| vendor.default_model.map(str::to_owned));
                ListedProvider {
                    name: vendor.name.to_owned(),
                    model: model.unwrap_or_default(),
                    is_configured: is_configured(vendor, settings),
                }
            })
            .collect();
        listed.push(ListedProvider {
            name: cog_provider::OFFLINE.to_owned(),
            model: String::new(),
            is_configured: true,
        });
        listed.sort_by_key(|provider| (provider.name != first, !provider.is_configured));
        listed
    }

    fn has_logs(&self) -> bool {
        RunLog::new(&self.0.settings).is_some()
    }

    fn check(&self, origin: &Origin) -> Vec<Diagnostic> {
        let reports = cog_host::validate([origin], Level::Any, &self.0.finder).into_iter();
        reports.flat_map(|report| report.diagnostics).collect()
    }

    fn test(
        &self,
        request: TestRequest,
    ) -> BoxFuture<'static, Result<BoxStream<'static, String>, ErrorBody>> {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            let (lines, mut received) = channel(WAITING_LINES);
            let (ready, started) = oneshot::channel();
            let events = Handle::current();
            // It ends with the stream, whose other end it holds.
            tokio::task::spawn_blocking(move || shared.test(request, &lines, ready, &events));
            started
                .await
                .map_err(|_| ErrorBody::new(Code::InternalError, "the tests could not be started"))??;
            let lines = stream::poll_fn(move |context| received.poll_recv(context));
            Ok(lines.boxed())
        })
    }

    fn add_case(&self, module: &Module, case: NewCase) -> Result<String, ErrorBody> {
        add_answer(module, &case.name, &case.input, &case.envelope).map_err(body)
    }

    fn runs(&self, module: Option<&str>, limit: usize) -> Result<String, ErrorBody> {
        let mut left = MAX_CONTENTS;
        let entries = newest(&self.0.settings, module, None, limit)?.into_iter();
        let runs = entries.map(|entry| {
            let size = entry.contents.as_ref().map_or(0, |contents| contents.envelope.to_json().len());
            let input = entry.contents.as_ref().and_then(|contents| contents.input.as_ref());
            let size = size + input.map_or(0, |input| input.to_json().len());
            left = left.saturating_sub(size);
            ListedRun { with_contents: left > 0, entry }
        });
        let runs: Vec<ListedRun> = runs.collect();
        Ok(cog_json::Array(&runs).to_json())
    }

    fn run(&self, id: &str) -> Result<Option<String>, ErrorBody> {
        let settings = &self.0.settings;
        let Some(entry) = Entries::read(settings)?.newest_first().find(|entry| entry.id == id) else {
            return Ok(None);
        };
        let labels = cog_host::run_log::Labels::new(settings)?;
        let entry = Entry::with_labels(vec![entry], &labels)?.pop();
        Ok(entry.map(|entry| ListedRun { with_contents: true, entry }.to_json()))
    }

    fn label(&self, run: &str, feedback: Feedback) -> Result<Option<String>, ErrorBody> {
        let Some(target) = LabelTarget::by_id(&self.0.settings, run)? else { return Ok(None) };
        let added = label::store(target, feedback, &self.0.settings, &self.0.console).map_err(body)?;
        Ok(Some(GivenLabel(&added.label).to_json()))
    }

    fn insights(&self, module: &Module) -> Result<String, ErrorBody> {
        insights::of_log(&self.0.settings, module)
    }

    fn trust(&self, module: &Module) -> Result<String, ErrorBody> {
        let calibrations = module.calibrations(self.0.settings.directories.state.as_deref());
        match calibrations.problem() {
            Some(problem) => Err(ErrorBody::new(Code::InvalidReference, problem)
                .suggest("Remove the file, and run `cog calibrate` again.")),
            None => Ok(Trust { module, calibrations: &calibrations }.to_json()),
        }
    }
}

impl Shared {
    /// Runs tests, as `cog test` does, until the client is gone. Reports first whether they can be started.
    fn test(
        &self,
        request: TestRequest,
        lines: &Sender<String>,
        ready: oneshot::Sender<Result<(), ErrorBody>>,
        events: &Handle,
    ) {
        let TestRequest { module, cases, provider, model } = request;
        let args = TestArgs::on(provider, model);
        let settings = match self.settings_of(&args) {
            Ok(settings) => settings,
            Err(error) => return drop(ready.send(Err(error))),
        };
        match LiveTests::new(&args, &settings, module, &cases, &self.console) {
            Ok(tests) => {
                if ready.send(Ok(())).is_ok() {
                    events.block_on(async {
                        tokio::select! {
                            () = lines.closed() => {}
                            () = tests.run(lines) => {}
                        }
                    });
                }
            }
            Err(error) => drop(ready.send(Err(body(error)))),
        }
    }

    /// Returns the settings with the provider and the model of a test.
    fn settings_of(&self, args: &TestArgs) -> Result<Settings, ErrorBody> {
        let known = cog_provider::provider_names();
        if let Some(unknown) = args.model.provider.iter().find(|name| !known.contains(&name.as_str())) {
            let shown: String = unknown.chars().take(60).collect();
            let error = ErrorBody::new(Code::UnsupportedValue, format!("provider `{shown}` is unknown"));
            return Err(match nearest(unknown, known.iter().copied()) {
                Some(near) => error.suggest(format!("Did you mean `{near}`?")),
                None => error.suggest("GET /v1/workbench lists the providers."),
            });
        }
        let flags = Flags { timeout: self.timeout, trust: self.trust.then_some(true), ..args.flags() };
        Settings::read(flags, self.environment.clone()).map_err(|error| body(error.into()))
    }
}

/// Returns the error of a command as that of a request.
fn body(error: CliError) -> ErrorBody {
    let code = error.code().and_then(|code| code.parse().ok());
    let suggestion = error.suggestion();
    match error {
        CliError::Body(error) => *error,
        error => {
            let body = ErrorBody::new(code.unwrap_or(Code::InvalidReference), error.to_string());
            match suggestion {
                Some(suggestion) => body.suggest(suggestion),
                None => body,
            }
        }
    }
}

/// A run of the log.
struct ListedRun {
    entry: Entry,
    /// Whether the input and the answer are written, if they are stored.
    with_contents: bool,
}

/// Written by hand: the keys are those of docs/workbench.md.
impl ToJson for ListedRun {
    fn write_json(&self, w: &mut Writer<'_>) {
        let Entry { contents, .. } = &self.entry;
        let envelope = contents.as_ref().map(|contents| &contents.envelope);
        let risk = envelope.and_then(|envelope| envelope.get("meta")?.get("risk")).map(Node::to_value);
        let contents = contents.as_ref().filter(|_| self.with_contents);
        w.object(|w| {
            w.field("id", &self.entry.id);
            w.field("module", &self.entry.module);
            w.field("version", &self.entry.module_version);
            w.field("time", &self.entry.time);
            w.field("ok", &self.entry.ok);
            w.optional("code", &self.entry.code);
            w.optional("model", &self.entry.model);
            w.optional("time_ms", &self.entry.time_ms);
            w.optional("confidence", &self.entry.confidence);
            w.optional("risk", &risk);
            w.optional("label", &self.entry.labels.last().map(|label| label.label.as_str()));
            if let Some(contents) = contents {
                w.optional("args", &contents.args);
                w.optional("input", &contents.input);
                w.field("envelope", &contents.envelope);
            }
        });
    }
}

/// A label that is stored.
struct GivenLabel<'a>(&'a cog_host::run_log::Label);

/// Written by hand: a label repeats much of its run.
impl ToJson for GivenLabel<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let label = self.0;
        w.object(|w| {
            w.field("run", &label.run);
            w.field("label", label.label.as_str());
            w.field("time", &label.time);
            w.field("module", &label.about.module);
            w.optional("note", &label.note);
        });
    }
}

/// The calibrations of a module.
struct Trust<'a> {
    module: &'a Module,
    calibrations: &'a Calibrations,
}

/// Written by hand: most modules have one, the first.
impl ToJson for Trust<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let stored = self.calibrations.models().map(|calibration| Stored { of: self, calibration });
        let stored: Vec<Stored<'_>> = stored.collect();
        let (first, others) =
            stored.split_first().map_or((None, &[][..]), |(first, others)| (Some(first), others));
        w.object(|w| {
            w.key("calibration");
            match first {
                Some(first) => first.write_json(w),
                None => w.null(),
            }
            w.field("others", &cog_json::Array(others));
        });
    }
}

/// A stored calibration.
struct Stored<'a> {
    of: &'a Trust<'a>,
    calibration: &'a Calibration,
}

impl ToJson for Stored<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let Calibration { provider, model, effort, form, collected, map, .. } = self.calibration;
        let module = self.of.module;
        let key = CalibrationKey {
            provider: provider.clone(),
            model: model.clone(),
            effort: *effort,
            form,
            evidence: collected.parse().unwrap_or_default(),
        };
        let stale = match self.of.calibrations.find(module, &key) {
            CalibrationEntry::Stale(_, why) => Some(why),
            _ => None,
        };
        let goal = module.manifest.confidence.gate.and_then(|gate| Goal::new(gate.accuracy, gate.risk));
        w.object(|w| {
            w.field("provider", provider);
            w.field("model", model);
            w.optional("effort", &effort.map(|effort| effort.as_str()));
            w.field("form", form.name);
            w.field("evidence", &map.kinds().collect::<Vec<_>>());
            w.optional("stale", &stale);
            w.key("report");
            match Report::of_stored(&module.manifest.name, self.calibration, goal) {
                Some(report) => report.write_json(w),
                None => w.null(),
            }
        });
    }
}
