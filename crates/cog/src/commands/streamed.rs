//! `cog run --stream`: the chunks of a run, told as they come.

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
};

use cog_answer::ChunkDirectory;
use cog_json::ToJson as _;
use cog_module::{Module, files};
use cog_run::{CancelReason, Cancellation, ChunkStream};
use cog_spec::{Chunk, Code, Envelope, ErrorBody, ResponseMode, Warning};
use futures_util::StreamExt as _;
use tokio::time::{MissedTickBehavior, interval};

use super::{emit, signals::Signals};
use crate::{
    args::OutputArgs,
    error::CliError,
    output::{Console, FRAME, Live, Plain, Progress},
};

/// Refuses a module that answers with one envelope (ruling R55).
///
/// # Errors
/// E4010.
pub(super) fn require(module: &Module) -> Result<(), ErrorBody> {
    match fallback(module) {
        None => Ok(()),
        Some(_) => {
            let message = format!("`{}` does not stream: its response.mode is sync", module.manifest.name);
            Err(ErrorBody::new(Code::StreamingNotSupported, message).suggest(
                "set response.mode to streaming or both in its manifest, or omit --require-streaming",
            ))
        }
    }
}

/// What to say where a module answers with one envelope all the same; none where it streams.
pub(super) fn fallback(module: &Module) -> Option<Warning> {
    (module.manifest.response.mode == ResponseMode::Sync).then(Warning::sync_instead_of_stream)
}

/// Whether the run was ended by a signal that came to [`follow`].
pub(super) fn is_interrupted(envelope: &Envelope) -> bool {
    let reason = |error: &ErrorBody| {
        let reason = error.details.as_ref()?.get("reason")?.as_str()?;
        Some(reason == CancelReason::Cancelled.as_str())
    };
    envelope.error().and_then(reason) == Some(true)
}

/// Shows every chunk when it comes, and gives the envelope that they make. A signal ends the run; its error chunk is
/// shown too.
pub(super) async fn follow(
    mut chunks: ChunkStream,
    stop: &Cancellation,
    mut view: View<'_>,
) -> Result<Envelope, CliError> {
    let mut directory = ChunkDirectory::new();
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut signals = Signals::new()?;
    loop {
        tokio::select! {
            // In this order, so that signals are listened to before the first chunk is told.
            biased;
            () = signals.next() => stop.now(CancelReason::Cancelled),
            _ = frames.tick(), if view.is_drawn() => view.draw()?,
            chunk = chunks.next() => {
                let Some(chunk) = chunk else { break };
                view.see(&chunk)?;
                directory.push(chunk);
            }
        }
    }
    view.close();
    Ok(directory.finish())
}

/// Where chunks are shown.
pub(super) enum View<'a> {
    /// Only that they come, on stderr: the envelope is all that is asked for.
    Waiting(Progress<'a>),
    /// A line of JSON for each, on stdout.
    Lines(&'a Console),
    /// The same in a file, and progress on stderr.
    File(ChunkFile<'a>),
    /// The answer as it fills, on a terminal.
    Live(Live<'a>),
    /// The same on a terminal that can only write on.
    Plain(Plain<'a>),
}

/// A file that chunks are written into.
pub(super) struct ChunkFile<'a> {
    console: &'a Console,
    path: PathBuf,
    file: File,
    progress: Progress<'a>,
}

impl<'a> View<'a> {
    /// The view for who waits for one envelope.
    pub(super) fn waiting(console: &'a Console) -> Self {
        Self::Waiting(begin(console))
    }

    /// The view for what stdout is, and for where the arguments say.
    pub(super) fn open(output: &OutputArgs, console: &'a Console, module: &Module) -> Result<Self, CliError> {
        let path = output.output.as_deref();
        Ok(match path.filter(|path| !emit::is_stdout(path)) {
            Some(path) => Self::File(ChunkFile::create(path, console)?),
            None if path.is_some() || !console.is_watched() => Self::Lines(console),
            None if console.is_typewriter() => Self::Plain(Plain::begin(console)),
            None => Self::Live(Live::begin(console, module)),
        })
    }

    fn see(&mut self, chunk: &Chunk) -> Result<(), CliError> {
        match self {
            Self::Waiting(progress) => {
                progress.see(chunk);
                Ok(())
            }
            Self::Lines(console) => Ok(console.print(&line(chunk))?),
            Self::File(file) => file.see(chunk),
            Self::Plain(plain) => Ok(plain.see(chunk)?),
            Self::Live(live) => {
                live.see(chunk);
                Ok(())
            }
        }
    }

    /// Whether there is anything to draw between the chunks.
    fn is_drawn(&self) -> bool {
        match self {
            Self::Live(_) => true,
            Self::Waiting(progress) => progress.is_shown(),
            Self::File(file) => file.progress.is_shown(),
            Self::Lines(_) | Self::Plain(_) => false,
        }
    }

    fn draw(&mut self) -> Result<(), CliError> {
        match self {
            Self::Live(live) => return Ok(live.draw()?),
            Self::Waiting(progress) => progress.draw(),
            Self::File(file) => file.progress.draw(),
            Self::Lines(_) | Self::Plain(_) => {}
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
        Ok(Self { console, path: path.to_owned(), file, progress: begin(console) })
    }

    fn see(&mut self, chunk: &Chunk) -> Result<(), CliError> {
        self.progress.see(chunk);
        let written = self.file.write_all(line(chunk).as_bytes());
        written.map_err(|error| emit::unwritable(&self.path, error.into()))
    }
}

fn begin(console: &Console) -> Progress<'_> {
    Progress::begin(console, "waiting for the first token")
}

/// One line, written at once: who reads it never sees a part for long.
fn line(chunk: &Chunk) -> String {
    let mut line = chunk.to_json();
    line.push('\n');
    line
}
