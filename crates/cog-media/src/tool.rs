//! Reads documents, audio and video in a separate process.
//!
//! [`Tool`] starts it, passes the content as an open file, and reads JSON or media from its standard output, within
//! limits. [`internal_media`] runs in that process. Containers and PDF are read there by Rust code only. Frames and
//! audio tracks are extracted by ffmpeg, which gets no URL, no name and no file except the one to read.

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

/// The maximum number of concurrent processes; more wait.
const MAX_PROCESSES: usize = 4;

/// The maximum bytes of JSON output.
const MAX_JSON: u64 = 32 << 20;

/// Starts the processes that read documents, audio and video.
///
/// The program is this binary, or any program that calls [`internal_media`] if its first argument is `internal-media`.
/// It starts with an empty environment. It is killed after a timeout, and if the future is dropped.
#[derive(Debug)]
pub struct Tool {
    program: PathBuf,
    ffmpeg: Option<PathBuf>,
    permits: Semaphore,
}

impl Tool {
    /// Creates a tool with this program as reader and without ffmpeg.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ffmpeg: None, permits: Semaphore::new(MAX_PROCESSES) }
    }

    /// Sets the path of ffmpeg.
    #[must_use]
    pub fn with_ffmpeg(self, ffmpeg: Option<PathBuf>) -> Self {
        Self { ffmpeg, ..self }
    }

    /// Returns the path of ffmpeg.
    pub fn ffmpeg(&self) -> Option<&Path> {
        self.ffmpeg.as_deref()
    }

    /// Returns what a container or document declares: duration, dimensions, tracks, pages.
    ///
    /// # Errors
    /// [`MediaError::Damaged`] if it cannot be read within its limits of time and memory.
    pub async fn probe(&self, stored: &Stored, media_type: &'static str) -> Result<Facts, MediaError> {
        match self.read(stored, media_type, &["probe", media_type]).await? {
            Report::Facts(facts) => Ok(facts),
            other => Err(unreadable(media_type, other)),
        }
    }

    /// Returns the text of a PDF, page by page.
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
        let child = Child { program: &self.program, timeout: limits::READING, max_bytes: MAX_JSON };
        let _permit = self.permit().await;
        let written = child.run(stored, arguments).await.map_err(|failure| failed(failure, media_type))?;
        let what = "the reader process returned invalid output";
        let report = run_blocking(move || Report::from_output(&written.bytes)).await?;
        report.ok_or(MediaError::Damaged { media_type, what })
    }

    fn program(&self) -> &Path {
        &self.program
    }

    /// Waits until a process may be started.
    async fn permit(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.permits.acquire().await
    }
}

/// Returns the error for a process that failed, without repeating its output.
fn failed(failure: Failure, media_type: &'static str) -> MediaError {
    let damaged = |what| MediaError::Damaged { media_type, what };
    match failure {
        Failure::Start(error) => {
            MediaError::ReaderUnavailable { what: format!("the reader process cannot start: {error}") }
        }
        Failure::TimedOut => damaged("reading it timed out"),
        Failure::TooLarge => damaged("the output is too large"),
        Failure::Failed => damaged("the reader process failed or exceeded its memory or time limit"),
        Failure::Storage(error) => error,
    }
}

fn unreadable(media_type: &'static str, report: Report) -> MediaError {
    let what = match report {
        Report::Error(error) => error.what(),
        Report::Facts(_) | Report::Pages(_) => "the reader process returned unexpected output",
    };
    MediaError::Damaged { media_type, what }
}
