//! `cog run`: a module, an input, one envelope; or, with `--stream`, its chunks.

use std::sync::Arc;

use cog_media::Delivery;
use cog_module::Module;
use cog_run::{Cancellation, ChunkStream, RunInput, RunOptions, Runtime};
use cog_spec::{Envelope, ErrorBody};

use super::{
    asking::{self, Tape},
    emit, example, input, running, streamed,
};
use crate::{
    args::{OutputArgs, RunArgs},
    error::CliError,
    exit::Exit,
    output::{Console, Layout, card},
    settings::{Environment, Flags, Settings},
};

/// Runs the module and prints its envelope, whatever happens.
pub(crate) fn run(args: &RunArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    if let Err(fault) = emit::check(args.output.output.as_deref()) {
        console.print_json(&Envelope::failure(fault.to_body()))?;
        return Err(fault);
    }
    let flags = Flags { strict: args.check.strict.then_some(true), ..args.model.flags() };
    let settings = Settings::load(flags, environment, console)?;
    let mut run = Run { args, settings, console, module: None };
    let ended = match run.ready() {
        Ok(ready) if args.stream.stream => run.stream(ready)?,
        Ok(ready) => run.answer(ready)?,
        Err(error) => Ended::Answered(Envelope::failure(error)),
    };
    run.close(ended)
}

struct Run<'a> {
    args: &'a RunArgs,
    settings: Settings,
    console: &'a Console,
    /// Once it is loaded.
    module: Option<Arc<Module>>,
}

/// A run that only has to begin.
struct Ready {
    runtime: Runtime,
    module: Arc<Module>,
    input: RunInput,
    /// Who is asked, in words.
    told: String,
}

/// What became of a run.
enum Ended {
    /// One envelope, to be printed.
    Answered(Envelope),
    /// Chunks, which were all told, and the envelope that they give.
    Streamed(Envelope),
}

impl Run<'_> {
    /// Everything that is there before the run.
    fn ready(&mut self) -> Result<Ready, ErrorBody> {
        let asked = asking::asked(&self.settings, self.tape())?;
        let runtime = running::runtime(&self.settings, asked.providers);
        let module = running::load(&runtime, &self.args.input.module, &self.settings, self.console)?;
        self.module = Some(Arc::clone(&module));
        if self.args.stream.require_streaming {
            streamed::require(&module)?;
        }
        let input = input::read(&self.args.input, &module)?;
        Ok(Ready { runtime, module, input, told: asked.told })
    }

    /// One envelope.
    fn answer(&self, ready: Ready) -> Result<Ended, CliError> {
        let stop = Cancellation::new();
        running::block_on(async {
            Ok(Ended::Answered(match self.begin(ready, stop.clone()) {
                Ok(chunks) => streamed::follow(chunks, &stop, streamed::View::waiting(self.console)).await?,
                Err(refused) => *refused,
            }))
        })?
    }

    /// Chunks, where the module streams; else one envelope that says so (ruling R55).
    fn stream(&self, ready: Ready) -> Result<Ended, CliError> {
        if let Some(warning) = streamed::fallback(&ready.module) {
            let mut ended = self.answer(ready)?;
            if let Ended::Answered(envelope) = &mut ended {
                envelope.warnings.push(warning);
            }
            return Ok(ended);
        }
        let (module, stop) = (Arc::clone(&ready.module), Cancellation::new());
        running::block_on(async {
            match self.begin(ready, stop.clone()) {
                Ok(chunks) => {
                    let view = streamed::View::open(&self.args.output, self.console, &module)?;
                    Ok(Ended::Streamed(streamed::follow(chunks, &stop, view).await?))
                }
                Err(refused) => Ok(Ended::Answered(*refused)),
            }
        })?
    }

    /// Begins, and tells who is asked, unless the input is refused.
    fn begin(&self, ready: Ready, stop: Cancellation) -> Result<ChunkStream, Box<Envelope>> {
        let Ready { runtime, module, input, told } = ready;
        let started = runtime.execute_stream(&module, input, self.options(&module, stop));
        let advised =
            |refused: Box<Envelope>| Box::new(example::advised(*refused, &self.args.input, &module));
        let chunks = started.map_err(advised)?;
        self.console.note(&told);
        Ok(chunks)
    }

    fn tape(&self) -> Tape<'_> {
        match (&self.args.record, &self.args.replay) {
            (Some(directory), _) => Tape::Record(directory),
            (_, Some(directory)) => Tape::Replay(directory),
            _ => Tape::Off,
        }
    }

    fn options(&self, module: &Module, stop: Cancellation) -> RunOptions {
        let RunArgs { stream, check, .. } = self.args;
        RunOptions {
            media: Some(running::access(module, &self.settings, &self.args.input.media)),
            delivery: self.args.media_dir.clone().map_or_else(Delivery::default, Delivery::Directory),
            strict: self.settings.strict.value,
            timeout: Some(self.settings.timeout.value),
            generation: self.args.generation.generation(),
            on_violation: check.on_violation,
            max_attempts: check.max_attempts,
            chunk_type: stream.chunk_type,
            buffer_size: stream.buffer_size,
            stop,
            ..RunOptions::default()
        }
    }

    /// Prints what was not yet told, and says how the program ends.
    fn close(&self, ended: Ended) -> Result<Exit, CliError> {
        let envelope = match ended {
            Ended::Answered(envelope) => {
                self.print(&envelope)?;
                envelope
            }
            Ended::Streamed(envelope) => {
                if self.is_shown() {
                    self.print_card(&envelope)?;
                } else {
                    self.tell(&envelope);
                }
                envelope
            }
        };
        if streamed::is_interrupted(&envelope) {
            self.console.note("interrupted: the call to the provider was cancelled");
            return Ok(Exit::Interrupted);
        }
        Ok(running::exit(&envelope))
    }

    /// A card for a person, JSON for a program; for a program what went wrong also on stderr.
    fn print(&self, envelope: &Envelope) -> Result<(), CliError> {
        if self.console.out().is_terminal && self.is_shown() {
            return self.print_card(envelope);
        }
        self.tell(envelope);
        self.emit(envelope)
    }

    /// Whether the answer is for a person's eyes.
    fn is_shown(&self) -> bool {
        let OutputArgs { pretty, output } = &self.args.output;
        self.console.is_watched() && !pretty && output.is_none()
    }

    fn print_card(&self, envelope: &Envelope) -> Result<(), CliError> {
        let layout = Layout { paint: self.console.out().paint, width: self.console.width() };
        Ok(self.console.print(&card(envelope, self.module.as_deref(), layout))?)
    }

    fn tell(&self, envelope: &Envelope) {
        envelope.warnings.iter().for_each(|warning| self.console.warn(warning));
        if let Some(error) = envelope.error() {
            self.console.complain(&error.into());
        }
    }

    /// An answer that was paid for is not lost to a file that cannot be written.
    fn emit(&self, envelope: &Envelope) -> Result<(), CliError> {
        let written = emit::json(envelope, &self.args.output, self.console);
        if matches!(written, Err(CliError::File { .. })) {
            self.console.print_json(envelope)?;
        }
        written
    }
}
