//! `cog run`: runs a module and prints an envelope, or chunks with `--stream`.

mod continued;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use cog_host::{
    Host, Hosted, NamedModule, Use,
    providers::RecordMode,
    run_log::{RequestedModel, RunLog},
    settings::{Environment, Flags, Settings, Source},
};
use cog_json::ToJson as _;
use cog_media::Delivery;
use cog_module::{Choice, Module};
use cog_provider::RecordingFailure;
use cog_run::{
    Cancellation, ChunkStream, RunContext, RunInput, RunOptions, Runtime, Value, events::Trace,
    sessions::StoredRun, tools::Approval,
};
use cog_spec::{Envelope, ErrorBody};
use cog_store::private;

use self::continued::Conversation;
#[cfg(feature = "mcp")]
use super::person;
use super::{emit, input, runtime, stream};
use crate::{
    args::{HandoffToArgs, OutputArgs, RunArgs},
    commands::runtime::{close_telemetry, load_run_settings, note_telemetry},
    error::{CliError, Exit},
    output::{Console, ErrorReport, Layout, card},
};

/// Runs the module and prints its envelope, also when the run fails.
pub(crate) fn run(mut args: RunArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let start = match args.continue_last {
        true => {
            let settings = Settings::read(Flags::default(), environment.clone())?;
            Start::Conversation(continued::last(&mut args, &settings))
        }
        false => Start::Arguments,
    };
    run_with(&args, start, environment, console)
}

/// Runs the module from this start, and prints its envelope.
pub(super) fn run_with(
    args: &RunArgs,
    start: Start,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let packet = packet(&args.handoff);
    let files = [args.request.output.output.as_deref(), args.trace.as_deref(), packet.as_deref()];
    // Before the model is called: an answer that cannot be written was paid for.
    if let Err(error) = files.into_iter().try_for_each(emit::check) {
        console.print_json(&Envelope::failure(error.to_body()))?;
        return Err(error);
    }
    let flags = Flags { strict: args.check.strict.then_some(true), ..args.request.model.flags() };
    #[cfg_attr(not(feature = "mcp"), expect(unused_mut, reason = "only MCP servers ask"))]
    let mut settings = load_run_settings(flags, environment, console)?;
    #[cfg(feature = "mcp")]
    person::offer(&mut settings, console);
    note_telemetry(&settings, console);
    let log = RunLog::new(&settings).map(Arc::new);
    let approval = continued::from_args(&args.tools);
    let trace = args.trace.as_ref().map(|_| Trace::default());
    let module = None;
    let not_logged = Arc::default();
    let recording = RecordingFailure::default();
    let mut run = Run { args, settings, console, log, not_logged, module, start, approval, trace, recording };
    // Each confirmation that is typed continues the run, which may be halted again by its next call.
    loop {
        let result = run.run()?;
        match continued::prompt(result.envelope(), console)? {
            Some(approval) => run.approval = Some(approval),
            None => {
                let exit = run.close(result);
                close_telemetry(&run.settings, console);
                return exit;
            }
        }
    }
}

/// What a run starts with.
pub(super) enum Start {
    /// The input of the arguments.
    Arguments,
    /// This input.
    Input(RunInput),
    /// The input of the arguments with the conversation before it, or the error if there is none.
    Conversation(Result<Conversation, ErrorBody>),
}

struct Run<'a> {
    args: &'a RunArgs,
    settings: Settings,
    console: &'a Console,
    log: Option<Arc<RunLog>>,
    /// Why a run could not be added to the log.
    not_logged: Arc<OnceLock<String>>,
    /// The module, once it is loaded.
    module: Option<Arc<Module>>,
    start: Start,
    /// The halted run that this one continues.
    approval: Option<Approval>,
    /// The messages of the run.
    trace: Option<Trace>,
    /// Tells why the recording lacks a reply, if it does.
    recording: RecordingFailure,
}

/// The module of a run, and who chose it.
struct ModuleChoice {
    /// Its name or its path.
    name: String,
    choice: Choice,
}

impl ModuleChoice {
    /// Returns the module that the arguments name, otherwise the one of the run that continues. What is stored says only where that
    /// module is; whether the user chose it is stored with it, so that a continued run gets no more trust than the first one had.
    fn again(given: Option<String>, stored: &str, was_chosen: bool) -> Self {
        match given {
            Some(name) => Self { name, choice: Choice::User },
            None if was_chosen => Self { name: stored.to_owned(), choice: Choice::User },
            None => Self { name: stored.to_owned(), choice: Choice::Program },
        }
    }
}

/// A run that is ready to start.
struct PreparedRun {
    runtime: Runtime,
    module: Arc<Module>,
    input: RunInput,
    /// The note about the provider.
    note: String,
    /// The interrupted run that this one continues.
    stored: Option<StoredRun>,
}

/// A run that has started.
struct StartedRun {
    chunks: ChunkStream,
    cancellation: Cancellation,
    /// The file from which the run continues if it is interrupted.
    stored: Option<StoredRun>,
}

/// The result of a run.
enum RunResult {
    /// One envelope, not printed yet.
    Envelope(Envelope),
    /// The envelope of a stream whose chunks were printed.
    Stream(Envelope),
}

impl RunResult {
    fn envelope(&self) -> &Envelope {
        let (Self::Envelope(envelope) | Self::Stream(envelope)) = self;
        envelope
    }
}

impl Run<'_> {
    /// Runs the module, or continues its halted run.
    fn run(&mut self) -> Result<RunResult, CliError> {
        match self.prepare() {
            Ok(ready) if self.args.stream.stream => self.stream(ready),
            Ok(ready) => self.answer(ready),
            Err(error) => Ok(RunResult::Envelope(Envelope::failure(error))),
        }
    }

    /// Prepares the run.
    fn prepare(&mut self) -> Result<PreparedRun, ErrorBody> {
        if let Start::Conversation(Err(error)) = &self.start {
            return Err(error.clone());
        }
        // A run that was interrupted and then halted continues after its confirmation.
        let stored = match &self.approval {
            Some(_) => None,
            None => continued::opened(self.args, &self.settings)?,
        };
        let ModuleChoice { name, choice } = self.module_name(stored.as_ref())?;
        let host = Host {
            record_mode: self.record_mode(),
            cache_dir: self.args.cache.as_deref(),
            state_dir: self.args.state_dir.as_deref(),
            ..Host::new(&self.settings)
        };
        let used = Use::Run(NamedModule { name: &name, choice });
        let Hosted { runtime, note, notes, recording } = host.runtime(used)?;
        if self.recording.error().is_none() {
            self.recording = recording;
        }
        notes.iter().for_each(|sentence| self.console.note(sentence));
        let load = match choice {
            Choice::User => runtime::load,
            Choice::Program => runtime::load_found,
        };
        let module = load(&runtime, &name, &self.settings, self.console)?;
        self.module = Some(Arc::clone(&module));
        if self.args.stream.require_streaming {
            stream::require(&module)?;
        }
        let input = match (&self.approval, &stored) {
            // The halted run has its input.
            (Some(_), _) => RunInput::Json(Value::null()),
            (None, Some(stored)) => stored.record().input.clone(),
            (None, None) => self.read_input(&module)?,
        };
        Ok(PreparedRun { runtime, module, input, note, stored })
    }

    /// Returns the module by its name or path. A halted or interrupted run continues with its module, its provider and its
    /// model, unless the flags name others.
    fn module_name(&mut self, stored: Option<&StoredRun>) -> Result<ModuleChoice, ErrorBody> {
        let given = self.args.request.input.module.clone();
        if let Some(record) = stored.map(StoredRun::record) {
            if let Some(provider) = &record.provider {
                self.settings.continue_with(provider, record.model.as_deref());
            }
            return Ok(ModuleChoice::again(given, &record.module, record.is_trusted_for_run));
        }
        if let Some(Approval { id, .. }) = &self.approval {
            let halted = self.settings.tools.pending_approvals().get(id, None)?;
            if let Some(provider) = &halted.provider {
                self.settings.continue_with(provider, halted.model.as_deref());
            }
            return Ok(ModuleChoice::again(given, &halted.module, halted.is_trusted_for_run));
        }
        let is_from_log = match &self.start {
            Start::Arguments => false,
            Start::Input(_) => true,
            Start::Conversation(conversation) => {
                conversation.as_ref().is_ok_and(|conversation| !conversation.is_module_given)
            }
        };
        let choice = if is_from_log { Choice::Program } else { Choice::User };
        Ok(ModuleChoice { name: given.unwrap_or_default(), choice })
    }

    /// Reads the input.
    fn read_input(&mut self, module: &Module) -> Result<RunInput, ErrorBody> {
        match std::mem::replace(&mut self.start, Start::Arguments) {
            Start::Arguments => {
                let input = self.given_input(module)?;
                if input::is_json_as_text(&input, module) {
                    self.console.note("--args is text, and this text is an input of the module; --input-json reads it as one");
                }
                Ok(input)
            }
            Start::Input(input) => Ok(input),
            Start::Conversation(conversation) => {
                let conversation = conversation?;
                self.console.note(&conversation.note());
                conversation.add_to(self.given_input(module)?)
            }
        }
    }

    fn given_input(&self, module: &Module) -> Result<RunInput, ErrorBody> {
        input::read(&self.args.request.input, module, &self.settings.media)
    }

    /// Runs the module to one envelope.
    fn answer(&self, ready: PreparedRun) -> Result<RunResult, CliError> {
        runtime::block_on(async {
            Ok(RunResult::Envelope(match self.start(ready, false) {
                Ok(started) => self.follow(started, stream::View::waiting(self.console)).await?,
                Err(rejected) => *rejected,
            }))
        })?
    }

    /// Runs the module as a stream; a module that does not stream returns one envelope with a warning (ruling R55).
    fn stream(&self, ready: PreparedRun) -> Result<RunResult, CliError> {
        if let Some(warning) = stream::fallback(&ready.module) {
            let mut result = self.answer(ready)?;
            if let RunResult::Envelope(envelope) = &mut result {
                envelope.warnings.push(warning);
            }
            return Ok(result);
        }
        let module = Arc::clone(&ready.module);
        runtime::block_on(async {
            match self.start(ready, true) {
                Ok(started) => {
                    let view = stream::View::open(&self.args.request.output, self.console, &module)?;
                    Ok(RunResult::Stream(self.follow(started, view).await?))
                }
                Err(rejected) => Ok(RunResult::Envelope(*rejected)),
            }
        })?
    }

    /// Starts the run and reports the provider, unless the input is rejected.
    fn start(&self, ready: PreparedRun, is_streamed: bool) -> Result<StartedRun, Box<Envelope>> {
        let PreparedRun { runtime, module, input, note, stored } = ready;
        let cancellation = Cancellation::default();
        let options = self.options(cancellation.clone());
        let stored = stored.or_else(|| {
            continued::created(self.args, &module, &input, options.clone(), &self.settings, self.console)
        });
        let mut context = RunContext::default();
        context.parent_span = self.settings.parent_span();
        let options = stored.as_ref().map_or_else(|| options.clone(), |stored| stored.options(&options));
        if let Some(stored) = &stored {
            context = stored.context(context);
        }
        // A folded run creates no chunks for data. They are needed for the progress line, which shows the field that arrives, and for
        // the answers of the parts, which are stored.
        context.is_folded = !is_streamed && stored.is_none() && !self.console.err().is_terminal;
        match runtime.prepare(&module, input, options, context) {
            Ok(chunks) => {
                self.console.note(&note);
                if let Some(stored) = &stored {
                    continued::announce(stored, self.args, self.console);
                }
                Ok(StartedRun { chunks, cancellation, stored })
            }
            Err(rejected) => {
                if let Some(stored) = stored {
                    stored.reject();
                }
                Err(Box::new(input::advised(*rejected, &self.args.request.input, &module)))
            }
        }
    }

    /// Shows the chunks of the run, and stores what an interrupted one needs to continue.
    async fn follow(&self, started: StartedRun, view: stream::View<'_>) -> Result<Envelope, CliError> {
        let StartedRun { chunks, cancellation, mut stored } = started;
        let envelope = stream::follow(chunks, &cancellation, view, |chunk| {
            if let Some(stored) = &mut stored {
                stored.push(chunk);
            }
        })
        .await?;
        if let Some(stored) = stored {
            continued::close(stored, self.args, self.console);
        }
        Ok(envelope)
    }

    fn record_mode(&self) -> RecordMode<'_> {
        match (&self.args.record, &self.args.replay) {
            (Some(directory), _) => RecordMode::Record(directory),
            (_, Some(directory)) => RecordMode::Replay(directory),
            _ => RecordMode::Off,
        }
    }

    fn options(&self, cancellation: Cancellation) -> RunOptions {
        let RunArgs { stream, check, tools, .. } = self.args;
        let media = input::media_files(&self.args.request.input);
        let mut options = RunOptions {
            media: Some(self.settings.local_access(media)),
            delivery: self.args.media_dir.clone().map_or_else(Delivery::default, Delivery::Directory),
            strict: self.settings.strict.value,
            generation: self.args.request.generation.generation(),
            cancellation,
            ..RunOptions::default()
        };
        // The runtime has the limit of the settings. Set here, it would replace the limit of the run that this one continues.
        let timeout = &self.settings.timeout;
        options.timeout = matches!(timeout.source, Source::Flag(_)).then_some(timeout.value);
        options.accept = check.accept;
        options.escalate = check.escalate;
        options.on_violation = check.on_violation;
        options.max_attempts = check.max_attempts;
        options.evidence.clone_from(&check.evidence);
        options.chunk_type = stream.chunk_type;
        options.buffer_size = stream.buffer_size;
        options.risk = tools.risk;
        options.max_tool_rounds = tools.max_tool_rounds;
        options.handoff_to.clone_from(&self.args.handoff.handoff_to);
        options.approval.clone_from(&self.approval);
        if let Some(trace) = &self.trace {
            options.events.push(Arc::new(trace.clone()));
        }
        if let Some(log) = &self.log {
            let not_logged = Arc::clone(&self.not_logged);
            options.events.push(log.listener(RequestedModel::default(), move |error| {
                let _ = not_logged.set(error.to_string());
            }));
        }
        options
    }

    /// Prints what was not printed yet, and returns the exit code.
    fn close(&self, result: RunResult) -> Result<Exit, CliError> {
        self.report_log();
        let written = self.write_trace().and(self.write_handoff(result.envelope())).and(self.recorded());
        let envelope = match result {
            RunResult::Envelope(envelope) => {
                self.print(&envelope)?;
                envelope
            }
            RunResult::Stream(envelope) => {
                if self.is_shown() {
                    self.print_card(&envelope)?;
                } else {
                    self.report(&envelope);
                }
                envelope
            }
        };
        if stream::is_interrupted(&envelope) {
            self.console.note("interrupted: the call to the provider was cancelled");
            return Ok(Exit::Interrupted);
        }
        written.map(|()| runtime::exit(&envelope))
    }

    /// Reports a recording that lacks a reply. The answer is printed nevertheless.
    fn recorded(&self) -> Result<(), CliError> {
        match self.recording.error() {
            None => Ok(()),
            Some(error) => Err(ErrorBody::from(error).into()),
        }
    }

    /// Reports a log that could not be written, if it was set up.
    fn report_log(&self) {
        if let Some(error) = self.not_logged.get().filter(|_| self.settings.logs.are_set()) {
            self.console.note(&format!("this run is not in `cog logs`: {error}"));
        }
    }

    /// Prints a card on a terminal; otherwise JSON, and errors also on stderr.
    fn print(&self, envelope: &Envelope) -> Result<(), CliError> {
        if self.console.out().is_terminal && self.is_shown() {
            return self.print_card(envelope);
        }
        self.report(envelope);
        self.emit(envelope)
    }

    /// Whether the answer is shown on a terminal.
    fn is_shown(&self) -> bool {
        let OutputArgs { pretty, output } = &self.args.request.output;
        self.console.is_interactive() && !pretty && output.is_none()
    }

    fn print_card(&self, envelope: &Envelope) -> Result<(), CliError> {
        let layout = Layout { palette: self.console.out().palette, width: self.console.width() };
        Ok(self.console.print(&card(envelope, self.module.as_deref(), layout))?)
    }

    fn report(&self, envelope: &Envelope) {
        envelope.warnings.iter().for_each(|warning| self.console.warn(warning));
        if let Some(error) = envelope.error() {
            let message = error.attributed_message();
            self.console.error(&ErrorReport { message: &message, ..ErrorReport::from(error) });
        }
    }

    /// Writes the envelope; to stdout if its file cannot be written, so that no paid answer is lost.
    fn emit(&self, envelope: &Envelope) -> Result<(), CliError> {
        let written = emit::json(envelope, &self.args.request.output, self.console);
        if matches!(written, Err(CliError::File { .. })) {
            self.console.print_json(envelope)?;
        }
        written
    }
}

// The files that a run writes in addition to its answer: with `--trace`, every message with its metadata; with `--handoff-to`, the
// packet for the next agent.

impl Run<'_> {
    /// Writes the messages of the run, with keys masked, so that only this user may read them.
    fn write_trace(&self) -> Result<(), CliError> {
        let (Some(path), Some(trace)) = (&self.args.trace, &self.trace) else { return Ok(()) };
        let text = self.settings.redactor().redact(&trace.messages().to_json_pretty());
        write(path, &text).map_err(|error| emit::unwritable(path, error.into()))?;
        emit::written(path, self.console);
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = private::open_options().write(true).truncate(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}

/// Returns the file of the packet: the value of --handoff-out, otherwise one named after the agent; none if the run hands
/// over to none.
fn packet(args: &HandoffToArgs) -> Option<PathBuf> {
    Some(file_for(args.handoff_to.as_deref()?, args))
}

fn file_for(agent: &str, args: &HandoffToArgs) -> PathBuf {
    if let Some(path) = &args.handoff_out {
        return path.clone();
    }
    // The model may have chosen the name of the agent, which must not lead to another directory.
    let plain = agent.replace(|c: char| !c.is_alphanumeric() && !"-_.".contains(c), "-");
    PathBuf::from(format!("handoff-{plain}.json"))
}

impl Run<'_> {
    /// Writes the packet of a successful run, and reports a file that the caller did not name. A run that continues hands over
    /// to the agent of the halted run.
    fn write_handoff(&self, envelope: &Envelope) -> Result<(), CliError> {
        let Some(packet) = &envelope.handoff else { return Ok(()) };
        let agent = packet.get("meta").and_then(|meta| meta.get("target_agent")?.as_str());
        let path = file_for(agent.unwrap_or_default(), &self.args.handoff);
        emit::file(&path, &packet.to_json_pretty(), self.console)?;
        if self.args.handoff.handoff_out.is_none() {
            self.console.note(&format!("the handoff packet is in {}", path.display()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_file_is_in_the_working_directory() {
        let file = |agent: &str| {
            let args = HandoffToArgs { handoff_to: Some(agent.to_owned()), handoff_out: None };
            packet(&args).unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(file("coder"), "handoff-coder.json");
        assert_eq!(file("../a b"), "handoff-..-a-b.json");
    }
}
