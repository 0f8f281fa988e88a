//! Documents, sound and video are read in a process of their own (DESIGN.md decision 8).
//!
//! [`Tool`] starts it, hands it the bytes as an open file, and takes JSON or media from its standard output, all of it
//! bounded; [`internal_media`] is what runs in it. Containers and PDF are read there by Rust alone; frames and sound
//! tracks are taken by ffmpeg, which gets no address, no name and no file but the one it is to read.

mod child;
#[cfg(feature = "decode")]
mod confine;
#[cfg(feature = "decode")]
mod container;
mod ffmpeg;
#[cfg(feature = "decode")]
mod handle;
mod limits;
mod page;
#[cfg(feature = "decode")]
mod pdf;
#[cfg(feature = "decode")]
mod reader;
mod report;
#[cfg(feature = "decode")]
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

use self::{
    child::{Child, Failure},
    report::Report,
};
use crate::{Facts, MediaError, Stored, blocking::run_blocking};

#[cfg(feature = "decode")]
pub use self::reader::internal_media;
pub use self::{
    ffmpeg::{Frame, FramePlan, FrameSelection},
    page::PageText,
};

/// How many processes one tool keeps at a time; more wait for their turn.
const AT_ONCE: usize = 4;

/// The most bytes of what was read, as JSON.
const MAX_JSON: u64 = 32 << 20;

/// Starts the processes that read documents, sound and video.
///
/// The program is this program's own binary, or any that calls [`internal_media`] where its first argument is
/// `internal-media`. It is started with an empty environment and killed where it takes too long, and where the future
/// that waits for it is dropped.
#[derive(Debug)]
pub struct Tool {
    program: PathBuf,
    ffmpeg: Option<PathBuf>,
    places: Semaphore,
}

impl Tool {
    /// A tool that runs this program as its reader, and has no ffmpeg.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ffmpeg: None, places: Semaphore::new(AT_ONCE) }
    }

    /// The same with this ffmpeg, where there is one.
    #[must_use]
    pub fn with_ffmpeg(self, ffmpeg: Option<PathBuf>) -> Self {
        Self { ffmpeg, ..self }
    }

    /// The ffmpeg that takes frames and sound tracks.
    pub fn ffmpeg(&self) -> Option<&Path> {
        self.ffmpeg.as_deref()
    }

    /// What a container or document says of itself: duration, sides, tracks, pages.
    ///
    /// # Errors
    /// [`MediaError::Damaged`] where it cannot be read, within the time and memory that it may take.
    pub async fn probe(&self, stored: &Stored, media_type: &'static str) -> Result<Facts, MediaError> {
        match self.read(stored, media_type, &["probe", media_type]).await? {
            Report::Facts(facts) => Ok(facts),
            other => Err(unreadable(media_type, other)),
        }
    }

    /// The text of a PDF, page by page.
    ///
    /// # Errors
    /// As [`Tool::probe`].
    pub async fn text(&self, stored: &Stored) -> Result<Vec<PageText>, MediaError> {
        match self.read(stored, page::PDF, &["text"]).await? {
            Report::Pages(pages) => Ok(pages),
            other => Err(unreadable(page::PDF, other)),
        }
    }

    async fn read(
        &self,
        stored: &Stored,
        media_type: &'static str,
        arguments: &[&str],
    ) -> Result<Report, MediaError> {
        let child = Child { program: &self.program, patience: limits::READING, most_bytes: MAX_JSON };
        let _place = self.place().await;
        let written = child.run(stored, arguments).await.map_err(|failure| failed(failure, media_type))?;
        let what = "the reader process returned invalid output";
        let report = run_blocking(move || Report::of(&written.bytes)).await?;
        report.ok_or(MediaError::Damaged { media_type, what })
    }

    fn program(&self) -> &Path {
        &self.program
    }

    /// Waits until a process may be started.
    async fn place(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.places.acquire().await
    }
}

/// What a process that gave nothing says of the medium, in words of our own.
fn failed(failure: Failure, media_type: &'static str) -> MediaError {
    let damaged = |what| MediaError::Damaged { media_type, what };
    match failure {
        Failure::Start(error) => {
            MediaError::NoReader { what: format!("the reader process cannot start: {error}") }
        }
        Failure::Late => damaged("reading it timed out"),
        Failure::TooMuch => damaged("the output is too large"),
        Failure::Died => damaged("the reader process failed or exceeded its memory or time limit"),
        Failure::Storage(error) => error,
    }
}

fn unreadable(media_type: &'static str, report: Report) -> MediaError {
    let what = match report {
        Report::Fault(fault) => fault.what(),
        Report::Facts(_) | Report::Pages(_) => "the reader process returned unexpected output",
    };
    MediaError::Damaged { media_type, what }
}
