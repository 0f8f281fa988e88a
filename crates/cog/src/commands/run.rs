//! `cog run`: a module, an input, one envelope.

use std::sync::Arc;

use cog_answer::Folder;
use cog_module::Module;
use cog_run::{ChunkStream, RunOptions};
use cog_spec::{Envelope, ErrorBody};
use futures_util::StreamExt as _;

use super::{
    asking::{self, Tape},
    emit, example, input, running,
};
use crate::{
    args::{OutputArgs, RunArgs},
    exit::Exit,
    fault::Fault,
    output::{Console, Layout, Progress, TICK, card},
    settings::{Environment, Flags, Settings},
};

/// Runs the module and prints its envelope, whatever happens.
pub(crate) fn run(args: &RunArgs, environment: Environment, console: &Console) -> Result<Exit, Fault> {
    if let Err(fault) = emit::check(args.output.output.as_deref()) {
        console.print_json(&Envelope::failure(fault.to_body()))?;
        return Err(fault);
    }
    let flags = Flags { strict: args.strict.then_some(true), ..args.model.flags() };
    let settings = Settings::read(flags, environment)?;
    let mut run = Run { args, settings, console, module: None };
    let envelope = match run.envelope() {
        Ok(Some(envelope)) => envelope,
        Ok(None) => {
            console.note("interrupted: the call to the provider was cancelled");
            return Ok(Exit::Interrupted);
        }
        Err(error) => Envelope::failure(error),
    };
    run.print(&envelope)?;
    Ok(running::exit(&envelope))
}

struct Run<'a> {
    args: &'a RunArgs,
    settings: Settings,
    console: &'a Console,
    /// Once it is loaded.
    module: Option<Arc<Module>>,
}

impl Run<'_> {
    /// The envelope of the run; none where it was interrupted.
    fn envelope(&mut self) -> Result<Option<Envelope>, ErrorBody> {
        let asked = asking::asked(&self.settings, self.tape())?;
        let runtime = running::runtime(&self.settings, asked.providers);
        let module = running::load(&runtime, &self.args.input.module, &self.settings, self.console)?;
        self.module = Some(Arc::clone(&module));
        let input = input::read(&self.args.input)?;
        self.console.note(&asked.told);
        let (runtime, options) = (&runtime, self.options());
        let answered = async move {
            match runtime.execute_stream(&module, input, options) {
                Ok(chunks) => follow(chunks, self.console).await,
                Err(refused) => example::advised(*refused, &self.args.input, &module),
            }
        };
        running::wait(answered)
    }

    fn tape(&self) -> Tape<'_> {
        match (&self.args.record, &self.args.replay) {
            (Some(folder), _) => Tape::Record(folder),
            (_, Some(folder)) => Tape::Replay(folder),
            _ => Tape::Off,
        }
    }

    fn options(&self) -> RunOptions {
        RunOptions {
            strict: self.settings.strict.value,
            timeout: Some(self.settings.timeout.value),
            generation: self.args.generation.generation(),
            ..RunOptions::default()
        }
    }

    /// A card for a person, JSON for a program; for a program what went wrong also on stderr.
    fn print(&self, envelope: &Envelope) -> Result<(), Fault> {
        let OutputArgs { pretty, output } = &self.args.output;
        if self.console.out().is_terminal && !pretty && output.is_none() {
            let layout = Layout { paint: self.console.out().paint, width: self.console.width() };
            return Ok(self.console.print(&card(envelope, self.module.as_deref(), layout))?);
        }
        self.tell(envelope);
        self.emit(envelope)
    }

    fn tell(&self, envelope: &Envelope) {
        envelope.warnings.iter().for_each(|warning| self.console.warn(warning));
        if let Some(error) = envelope.error() {
            self.console.complain(&error.into());
        }
    }

    /// An answer that was paid for is not lost to a file that cannot be written.
    fn emit(&self, envelope: &Envelope) -> Result<(), Fault> {
        let written = emit::json(envelope, &self.args.output, self.console);
        if matches!(written, Err(Fault::File { .. })) {
            self.console.print_json(envelope)?;
        }
        written
    }
}

/// The envelope of the chunks, which the progress line shows as they come.
async fn follow(mut chunks: ChunkStream, console: &Console) -> Envelope {
    let mut progress = Progress::begin(console, "waiting for the first word");
    let mut folder = Folder::new();
    let mut ticks = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            chunk = chunks.next() => {
                let Some(chunk) = chunk else { break };
                progress.see(&chunk);
                folder.push(chunk);
            }
            _ = ticks.tick(), if progress.is_shown() => progress.draw(),
        }
    }
    folder.finish()
}
