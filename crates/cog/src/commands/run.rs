//! `cog run`: runs a module and prints an envelope, or chunks with `--stream`.

mod continued;
mod conversation;
mod files;

use std::sync::Arc;

use cog_host::{
    Host, Hosted, NamedModule, Use,
    providers::RecordMode,
    run_log::{RequestedModel, RunLog},
    settings::{Environment, Flags, Settings, Source},
};
use cog_media::Delivery;
use cog_module::{Choice, Module};
use cog_run::{
    Cancellation, ChunkStream, RunContext, RunInput, RunOptions, Runtime, Value, events::Trace,
    sessions::StoredRun, tools::Approval,
};
use cog_spec::{Chunk, Envelope, ErrorBody};

use self::conversation::Conversation;
use super::{emit, input, runtime, stream};
use crate::{
    args::{OutputArgs, RunArgs},
    commands::runtime::{close_telemetry, load_run_settings, note_telemetry},
    error::{CliError, Exit},
    output::{Console, Layout, card},
};

/// Runs the module and prints its envelope, also when the run fails.
pub(crate) fn run(mut args: RunArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let start = match args.continue_last {
        true => {
            let settings = Settings::read(Flags::default(), environment.clone())?;
            Start::Conversation(conversation::last(&mut args, &settings))
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
    let packet = files::packet(&args.handoff);
    let files = [args.request.output.output.as_deref(), args.trace.as_deref(), packet.as_deref()];
    if let Err(error) = files.into_iter().try_for_each(emit::check) {
        console.print_json(&Envelope::failure(error.to_body()))?;
        return Err(error);
    }
    let flags = Flags { strict: args.check.strict.then_some(true), ..args.request.model.flags() };
    let settings = load_run_settings(flags, environment, console)?;
    note_telemetry(&settings, console);
    let log = RunLog::new(&settings);
    let approval = continued::from_args(&args.tools);
    let trace = args.trace.as_ref().map(|_| Trace::new());
    let module = None;
    let input = None;
    let mut run = Run { args, settings, console, log, module, start, input, approval, trace };
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
    log: Option<RunLog>,
    /// The module, once it is loaded.
    module: Option<Arc<Module>>,
    start: Start,
    /// The input, once it is read and if it is logged.
    input: Option<RunInput>,
    /// The halted run that this one continues.
    approval: Option<Approval>,
    /// The messages of the run.
    trace: Option<Trace>,
}

/// The module of a run.
struct Named {
    /// Its name or its path.
    name: String,
    choice: Choice,
}

/// A run that is ready to start.
struct Ready {
    runtime: Runtime,
    module: Arc<Module>,
    input: RunInput,
    /// The note about the provider.
    note: String,
    /// The interrupted run that this one continues.
    stored: Option<StoredRun>,
}

/// A run that has started.
struct Started {
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
    fn prepare(&mut self) -> Result<Ready, ErrorBody> {
        if let Start::Conversation(Err(error)) = &self.start {
            return Err(error.clone());
        }
        // A run that was interrupted and then halted continues after its confirmation.
        let stored = match &self.approval {
            Some(_) => None,
            None => continued::opened(self.args, &self.settings)?,
        };
        let Named { name, choice } = self.module_name(stored.as_ref())?;
        let host = Host {
            record_mode: self.record_mode(),
            cache_dir: self.args.cache.as_deref(),
            state_dir: self.args.state_dir.as_deref(),
            ..Host::new(&self.settings)
        };
        let used = Use::Run(NamedModule { name: &name, choice });
        let Hosted { runtime, note, skipped_tools } = host.runtime(used)?;
        skipped_tools.iter().for_each(|sentence| self.console.note(sentence));
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
            (Some(_), _) => RunInput::Json(Value::null()), // it is that of the halted run
            (None, Some(stored)) => stored.record().input.clone(),
            (None, None) => self.read_input(&module)?,
        };
        Ok(Ready { runtime, module, input, note, stored })
    }

    /// Returns the module by its name or path. A halted or interrupted run continues with its module, its provider and its
    /// model, unless the flags name others.
    fn module_name(&mut self, stored: Option<&StoredRun>) -> Result<Named, ErrorBody> {
        let given = self.args.request.input.module.clone();
        // What is stored says only where the module is. Whether the user chose it is stored with it.
        let former = |module: String, is_chosen: bool| match &given {
            Some(name) => Named { name: name.clone(), choice: Choice::User },
            None => Named { name: module, choice: if is_chosen { Choice::User } else { Choice::Program } },
        };
        if let Some(record) = stored.map(StoredRun::record) {
            if let Some(provider) = &record.provider {
                self.settings.continue_with(provider, record.model.as_deref());
            }
            return Ok(former(record.module.clone(), record.is_trusted_for_run));
        }
        if let Some(Approval { id, .. }) = &self.approval {
            let halted = self.settings.tools.pending_approvals().get(id, None)?;
            if let Some(provider) = &halted.provider {
                self.settings.continue_with(provider, halted.model.as_deref());
            }
            return Ok(former(halted.module, halted.is_trusted_for_run));
        }
        let is_from_log = match &self.start {
            Start::Arguments => false,
            Start::Input(_) => true,
            Start::Conversation(conversation) => {
                conversation.as_ref().is_ok_and(|conversation| !conversation.is_module_given)
            }
        };
        let choice = if is_from_log { Choice::Program } else { Choice::User };
        Ok(Named { name: given.unwrap_or_default(), choice })
    }

    /// Reads the input, and stores it if the log contains inputs.
    fn read_input(&mut self, module: &Module) -> Result<RunInput, ErrorBody> {
        let given = || input::read(&self.args.request.input, module, &self.settings.media);
        let input = match std::mem::replace(&mut self.start, Start::Arguments) {
            Start::Arguments => {
                let input = given()?;
                if input::is_json_as_text(&input, module) {
                    self.console.note("--args is text, and this text is an input of the module; --input-json reads it as one");
                }
                input
            }
            Start::Input(input) => input,
            Start::Conversation(conversation) => {
                let conversation = conversation?;
                self.console.note(&conversation.note());
                conversation.add_to(given()?)?
            }
        };
        if self.log.as_ref().is_some_and(RunLog::stores_contents) {
            self.input = Some(input.clone());
        }
        Ok(input)
    }

    /// Runs the module to one envelope.
    fn answer(&self, ready: Ready) -> Result<RunResult, CliError> {
        runtime::block_on(async {
            Ok(RunResult::Envelope(match self.start(ready, false) {
                Ok(started) => self.follow(started, stream::View::waiting(self.console)).await?,
                Err(rejected) => *rejected,
            }))
        })?
    }

    /// Runs the module as a stream; a module that does not stream returns one envelope with a warning (ruling R55).
    fn stream(&self, ready: Ready) -> Result<RunResult, CliError> {
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
    fn start(&self, ready: Ready, is_streamed: bool) -> Result<Started, Box<Envelope>> {
        let Ready { runtime, module, input, note, stored } = ready;
        let cancellation = Cancellation::new();
        let options = self.options(cancellation.clone());
        let new =
            || continued::created(self.args, &module, &input, options.clone(), &self.settings, self.console);
        let stored = stored.or_else(new);
        let mut context = RunContext::default();
        context.parent_span = self.settings.parent_span();
        let options = stored.as_ref().map_or_else(|| options.clone(), |stored| stored.options(&options));
        if let Some(stored) = &stored {
            context = stored.context(context);
        }
        // The progress line shows the field that arrives, and the stream has the answers of the parts to store.
        context.is_folded = !is_streamed && stored.is_none() && !self.console.err().is_terminal;
        match runtime.prepare(&module, input, options, context) {
            Ok(chunks) => {
                self.console.note(&note);
                if let Some(stored) = &stored {
                    continued::announce(stored, self.args, self.console);
                }
                Ok(Started { chunks, cancellation, stored })
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
    async fn follow(&self, started: Started, view: stream::View<'_>) -> Result<Envelope, CliError> {
        let Started { chunks, cancellation, mut stored } = started;
        let store = |chunk: &mut Chunk| stored.iter_mut().for_each(|stored| stored.push(chunk));
        let envelope = stream::follow(chunks, &cancellation, view, store).await?;
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
        let mut options = RunOptions::new()
            .media(self.settings.local_access(input::media_files(&self.args.request.input.media)))
            .delivery(self.args.media_dir.clone().map_or_else(Delivery::default, Delivery::Directory))
            .strict(self.settings.strict.value)
            .generation(self.args.request.generation.generation())
            .cancellation(cancellation);
        // The runtime has the limit of the settings. Here it would replace that of a run that this one continues.
        let timeout = &self.settings.timeout;
        options.timeout = matches!(timeout.source, Source::Flag(_)).then_some(timeout.value);
        options.on_violation = check.on_violation;
        options.max_attempts = check.max_attempts;
        options.chunk_type = stream.chunk_type;
        options.buffer_size = stream.buffer_size;
        options.risk = tools.risk;
        options.max_tool_rounds = tools.max_tool_rounds;
        options.handoff_to.clone_from(&self.args.handoff.handoff_to);
        options.approval.clone_from(&self.approval);
        match &self.trace {
            Some(trace) => options.events(Arc::new(trace.clone())),
            None => options,
        }
    }

    /// Prints what was not printed yet, and returns the exit code.
    fn close(&self, result: RunResult) -> Result<Exit, CliError> {
        self.add_to_log(result.envelope());
        let written = self.write_trace().and(self.write_handoff(result.envelope()));
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

    /// Adds the run to the log. A log that cannot be written is only reported if it was set up.
    fn add_to_log(&self, envelope: &Envelope) {
        let (Some(log), Some(module)) = (&self.log, &self.module) else { return };
        if let Err(error) = log.add(module, self.input.as_ref(), envelope, RequestedModel::default())
            && self.settings.logs.are_set()
        {
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
            self.console.error(&error.into());
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
