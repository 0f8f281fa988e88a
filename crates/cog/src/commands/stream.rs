//! The chunks of a run, shown as they arrive.

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
};

use cog_answer::EnvelopeBuilder;
use cog_json::ToJson as _;
use cog_module::{Module, files};
use cog_run::{CancelReason, Cancellation, ChunkStream};
use cog_spec::{Chunk, Code, Envelope, ErrorBody, PartStatus, ResponseMode, Warning};
use tokio::time::{MissedTickBehavior, interval};

use super::emit;
use crate::{
    args::OutputArgs,
    error::CliError,
    output::{Console, FRAME, LineView, LiveView, Progress},
    system::Signals,
};

/// Rejects a module that does not stream (ruling R55).
///
/// # Errors
/// E4010.
pub(super) fn require(module: &Module) -> Result<(), ErrorBody> {
    match fallback(module) {
        None => Ok(()),
        Some(_) => {
            let message = format!("`{}` does not stream: its response.mode is sync", module.manifest.name);
            Err(ErrorBody::new(Code::StreamingNotSupported, message).suggest(
                "Set response.mode to streaming or both in its manifest, or omit --require-streaming.",
            ))
        }
    }
}

/// Returns the warning for a module that does not stream.
pub(super) fn fallback(module: &Module) -> Option<Warning> {
    (module.manifest.response.mode == ResponseMode::Sync).then(Warning::sync_instead_of_stream)
}

/// Whether a signal to [`follow`] ended the run.
pub(super) fn is_interrupted(envelope: &Envelope) -> bool {
    let reason = envelope.error().and_then(|error| error.detail("reason")?.as_str());
    reason == Some(CancelReason::Cancelled.as_str())
}

/// Passes every chunk to `store` and shows it as it arrives, and returns the envelope of the stream. A signal cancels the run,
/// and its error chunk is shown too.
pub(super) async fn follow(
    mut chunks: ChunkStream,
    cancellation: &Cancellation,
    mut view: View<'_>,
    mut store: impl FnMut(&mut Chunk),
) -> Result<Envelope, CliError> {
    let mut envelope = EnvelopeBuilder::new();
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut signals = Signals::new()?;
    loop {
        tokio::select! {
            // In this order, so that signals are handled before the first chunk is shown.
            biased;
            () = signals.next() => cancellation.cancel(CancelReason::Cancelled),
            _ = frames.tick(), if view.is_redrawn() => view.draw()?,
            chunk = chunks.next() => {
                let Some(mut chunk) = chunk else { break };
                store(&mut chunk);
                view.push(&chunk)?;
                if !(view.reads_only_the_end() && is_data(&chunk)) {
                    envelope.push(chunk);
                }
            }
        }
    }
    view.close();
    Ok(envelope.finish())
}

/// Whether a chunk is a part of the data.
fn is_data(chunk: &Chunk) -> bool {
    match chunk {
        Chunk::Delta { .. } => true,
        Chunk::Snapshot { field, .. } => field.as_deref() != Some("meta"),
        Chunk::Meta { .. } | Chunk::Progress(_) | Chunk::Final { .. } | Chunk::Error { .. } => false,
    }
}

/// Where chunks are shown.
pub(super) enum View<'a> {
    /// Progress on stderr: the output is one envelope.
    Waiting(Progress<'a>),
    /// One line of JSON per chunk on stdout.
    Lines(&'a Console),
    /// One line of JSON per chunk in a file, and progress on stderr.
    File(ChunkFile<'a>),
    /// A live view on a terminal.
    Live(Box<LiveView<'a>>),
    /// Lines on a terminal that cannot redraw.
    Appended(LineView<'a>),
}

/// A file of chunks.
pub(super) struct ChunkFile<'a> {
    console: &'a Console,
    path: PathBuf,
    file: File,
    progress: Progress<'a>,
}

impl<'a> View<'a> {
    /// Creates the view of a run that prints one envelope.
    pub(super) fn waiting(console: &'a Console) -> Self {
        Self::Waiting(progress(console))
    }

    /// Creates the view that fits stdout and the arguments.
    pub(super) fn open(output: &OutputArgs, console: &'a Console, module: &Module) -> Result<Self, CliError> {
        let path = output.output.as_deref();
        Ok(match path.filter(|path| !emit::is_stdout(path)) {
            Some(path) => Self::File(ChunkFile::create(path, console)?),
            None if path.is_some() || !console.is_interactive() => Self::Lines(console),
            None if console.is_append_only() => Self::Appended(LineView::begin(console)),
            None => Self::Live(Box::new(LiveView::begin(console, module))),
        })
    }

    fn push(&mut self, chunk: &Chunk) -> Result<(), CliError> {
        match self {
            Self::Waiting(progress) => {
                progress.push(chunk);
                Ok(())
            }
            Self::Lines(console) => {
                note_part(chunk, console);
                Ok(console.print(&line(chunk))?)
            }
            Self::File(file) => file.push(chunk),
            Self::Appended(lines) => Ok(lines.push(chunk)?),
            Self::Live(live) => {
                live.push(chunk);
                Ok(())
            }
        }
    }

    /// Whether the envelope is created from the last chunk, which contains all data, so that no other data are stored.
    fn reads_only_the_end(&self) -> bool {
        matches!(self, Self::Waiting(_))
    }

    /// Whether the view is redrawn between chunks.
    fn is_redrawn(&self) -> bool {
        match self {
            Self::Live(_) => true,
            Self::Waiting(progress) => progress.is_shown(),
            Self::File(file) => file.progress.is_shown(),
            Self::Lines(_) | Self::Appended(_) => false,
        }
    }

    fn draw(&mut self) -> Result<(), CliError> {
        match self {
            Self::Live(live) => return Ok(live.draw()?),
            Self::Waiting(progress) => progress.draw(),
            Self::File(file) => file.progress.draw(),
            Self::Lines(_) | Self::Appended(_) => {}
        }
        Ok(())
    }

    fn close(self) {
        if let Self::File(ChunkFile { console, path, progress, .. }) = self {
            drop(progress);
            emit::written(&path, console);
        }
    }
}

impl<'a> ChunkFile<'a> {
    fn create(path: &Path, console: &'a Console) -> Result<Self, CliError> {
        let file = files::create(path).map_err(|source| emit::unwritable(path, source))?;
        Ok(Self { console, path: path.to_owned(), file, progress: progress(console) })
    }

    fn push(&mut self, chunk: &Chunk) -> Result<(), CliError> {
        self.progress.push(chunk);
        let written = self.file.write_all(line(chunk).as_bytes());
        written.map_err(|error| emit::unwritable(&self.path, error.into()))
    }
}

fn progress(console: &Console) -> Progress<'_> {
    Progress::begin(console, "waiting for the first token")
}

/// Prints the new status of a part of a composition on stderr, except that it waits.
fn note_part(chunk: &Chunk, console: &Console) {
    let Chunk::Progress(progress) = chunk else { return };
    let status = progress.part.as_ref().and_then(|part| part.status);
    if let (Some(message), true) = (&progress.message, status.is_some_and(|it| it != PartStatus::Waiting)) {
        console.note(message);
    }
}

/// Returns the chunk as one line, so that one write sends all of it.
fn line(chunk: &Chunk) -> String {
    let mut line = chunk.to_json();
    line.push('\n');
    line
}
