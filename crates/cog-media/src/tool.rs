//! Reads documents, audio and video in a separate process.
//!
//! [`Tool`] starts it, passes the content as an open file, and reads JSON or media from its standard output, within
//! limits. [`internal_media`] runs in that process. Containers and PDF are read there by Rust code only. Frames and
//! audio tracks are extracted by ffmpeg, and the text and images of pages by poppler, if they are installed. These
//! programs get the same limits, and no URL, no name and no file except the one to read.

mod child;
#[cfg(feature = "decode")]
mod container;
mod ffmpeg;
#[cfg(feature = "decode")]
mod mp4;
#[cfg(feature = "decode")]
mod pdf;
mod poppler;
#[cfg(feature = "decode")]
mod reader;
mod report;
#[cfg(feature = "decode")]
#[cfg(test)]
mod tests;
#[cfg(feature = "decode")]
mod wav;
#[cfg(feature = "decode")]
mod webm;

use std::{
    collections::HashMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

use self::{
    child::{Child, ChildOutput, Failure, Purpose},
    report::{PDF, ReadError, Report},
};
use crate::{MediaError, MediaInfo, Stored, kind::with_codec, store::run_blocking};

#[cfg(feature = "decode")]
pub use self::reader::internal_media;
pub use self::{
    child::READER_VARIABLE,
    ffmpeg::{Frame, FramePlan, FrameSelection},
    report::PageText,
};

/// The maximum number of concurrent processes; more wait.
const MAX_PROCESSES: usize = 4;

/// The maximum bytes of JSON output.
const MAX_JSON: u64 = 32 << 20;

/// Starts the processes that read documents, audio and video.
///
/// The program is this binary, or any program that calls [`internal_media`] if its first argument is `internal-media`.
/// Its environment has only [`READER_VARIABLE`]: with it, a program that does not call that function starts no reader
/// of its own, which would start another one, and so on. It is killed after a timeout, and if the future is dropped.
#[derive(Debug)]
pub struct Tool {
    program: PathBuf,
    arguments: Vec<OsString>,
    programs: Programs,
    permits: Semaphore,
}

/// The programs that a tool starts in addition to its reader, by their paths.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    /// Extracts frames and audio.
    pub ffmpeg: Option<PathBuf>,
    /// Extracts the text of a PDF.
    pub pdftotext: Option<PathBuf>,
    /// Renders the pages of a PDF.
    pub pdftoppm: Option<PathBuf>,
}

impl Tool {
    /// Creates a tool with this program as reader and without other programs.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            programs: Programs::default(),
            permits: Semaphore::new(MAX_PROCESSES),
        }
    }

    /// Sets the arguments before `internal-media`, such as the script of an interpreter.
    #[must_use]
    pub fn with_arguments(self, arguments: Vec<OsString>) -> Self {
        Self { arguments, ..self }
    }

    /// Sets the other programs.
    #[must_use]
    pub fn with_programs(self, programs: Programs) -> Self {
        Self { programs, ..self }
    }

    /// Returns the other programs.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Returns what a container or document declares: duration, dimensions, tracks, pages.
    ///
    /// # Errors
    /// [`MediaError::Damaged`] if it cannot be read within its limits of time and memory; [`MediaError::Unsupported`]
    /// if its codec is not supported.
    pub async fn probe(&self, stored: &Stored, media_type: &'static str) -> Result<MediaInfo, MediaError> {
        match self.read(stored, media_type, &["probe", media_type]).await? {
            Report::Info(facts) => Ok(facts),
            Report::Error(ReadError::Codec(codec)) => {
                Err(MediaError::unsupported(Some(&with_codec(media_type, &codec)), &[]))
            }
            other => Err(unreadable(media_type, other)),
        }
    }

    /// Returns the duration in milliseconds that the header of audio declares, if it does and is known here.
    async fn declared_duration(
        &self,
        stored: &Stored,
        media_type: &'static str,
    ) -> Result<Option<u64>, MediaError> {
        if !matches!(media_type, "audio/mp4" | "audio/flac") {
            return Ok(None);
        }
        match self.read(stored, media_type, &["declared", media_type]).await? {
            Report::Info(facts) => Ok(facts.duration_ms),
            other => Err(unreadable(media_type, other)),
        }
    }

    /// Returns the text of a PDF, page by page: from pdftotext if it is installed and can read it, otherwise from the
    /// reader.
    ///
    /// # Errors
    /// As [`Tool::probe`].
    pub async fn text(&self, stored: &Stored) -> Result<Vec<PageText>, MediaError> {
        let Some(pages) = self.pdftotext(stored).await? else { return self.own_text(stored).await };
        // pdftotext shows a value only if the document draws it, and no box that is ticked.
        let own = self.own_text(stored).await.unwrap_or_default();
        let own = own.into_iter().filter(PageText::has_annotations).map(|page| (page.number, page));
        let mut own: HashMap<u32, PageText> = own.collect();
        Ok(pages.into_iter().map(|page| own.remove(&page.number).unwrap_or(page)).collect())
    }

    async fn own_text(&self, stored: &Stored) -> Result<Vec<PageText>, MediaError> {
        match self.read(stored, PDF, &["text"]).await? {
            Report::Pages(pages) => Ok(pages),
            other => Err(unreadable(PDF, other)),
        }
    }

    /// Returns the width and height of each page of a PDF in points, as it is displayed; none for a page that declares
    /// no size.
    ///
    /// # Errors
    /// As [`Tool::probe`].
    pub async fn page_sizes(&self, stored: &Stored) -> Result<Vec<Option<(f64, f64)>>, MediaError> {
        match self.read(stored, PDF, &["sizes"]).await? {
            Report::Sizes(sizes) => Ok(sizes),
            other => Err(unreadable(PDF, other)),
        }
    }

    async fn read(
        &self,
        stored: &Stored,
        media_type: &'static str,
        arguments: &[&str],
    ) -> Result<Report, MediaError> {
        let timeout = Purpose::Read.timeout();
        let child = Child { program: &self.program, before: &self.arguments, timeout, max_bytes: MAX_JSON };
        let _permit = self.permit().await;
        let written = child.run(stored, arguments).await.map_err(|failure| match failure {
            // A reader reports what it cannot read, and exits with success.
            Failure::Failed => MediaError::NoReader { what: "the process that should read it is no reader" },
            failure => failed(failure, media_type),
        })?;
        let what = "the reader process returned invalid output";
        let report = run_blocking(move || Report::from_output(&written.bytes)).await?;
        report.ok_or(MediaError::Damaged { media_type, what })
    }

    /// Runs another program on a file. The reader process becomes it, after it has limited itself for this purpose.
    async fn run_program(
        &self,
        purpose: Purpose,
        program: &Path,
        stored: &Stored,
        arguments: &[&str],
        max_bytes: u64,
    ) -> Result<ChildOutput, Failure> {
        let mut command: Vec<OsString> = vec![purpose.command().into(), program.into()];
        command.extend(arguments.iter().map(OsString::from));
        let timeout = purpose.timeout();
        let child = Child { program: &self.program, before: &self.arguments, timeout, max_bytes };
        let permit = self.permit().await;
        let _permit = permit.map_err(|error| Failure::Storage(std::io::Error::other(error).into()))?;
        child.run(stored, &command).await
    }

    /// Waits until a process may be started.
    async fn permit(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.permits.acquire().await
    }
}

/// Returns the error for a process that failed, without repeating its output.
fn failed(failure: Failure, media_type: &'static str) -> MediaError {
    let what = match failure {
        Failure::Start(error) => {
            return MediaError::ReaderUnavailable {
                what: format!("the reader process cannot start: {error}"),
            };
        }
        Failure::NotStarted => {
            let what = "the program that reads it cannot be started".to_owned();
            return MediaError::ReaderUnavailable { what };
        }
        Failure::Nested => {
            return MediaError::NoReader { what: "this process was itself started as a reader" };
        }
        Failure::Storage(error) => return error,
        Failure::TimedOut => "reading it timed out",
        Failure::TooLarge => "the output is too large",
        Failure::Killed => "the reader process exceeded its memory or time limit",
        Failure::Failed => "its content cannot be decoded",
    };
    MediaError::Damaged { media_type, what }
}

fn unreadable(media_type: &'static str, report: Report) -> MediaError {
    let what = match report {
        Report::Error(error) => error.what(),
        Report::Info(_) | Report::Pages(_) | Report::Sizes(_) => {
            "the reader process returned unexpected output"
        }
    };
    MediaError::Damaged { media_type, what }
}
