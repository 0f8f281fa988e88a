//! Where the results of a batch go: to stdout as they finish, or to a file by way of a journal.

use std::{io::stdout, path::Path};

use cog_batch::{
    Batch, Description, Finished, Journal, JournalPaths, LineSink, Output as OutputFile, Resume, Rows, Stop,
    Summary,
};
use cog_host::settings::Settings;

use super::{describe::describe, files, view::ProgressView};
use crate::{
    args::BatchArgs,
    commands::{emit, signals::Signals},
    error::CliError,
    output::Console,
};

/// Where the results go.
pub(super) enum Output {
    /// To stdout.
    Stdout,
    /// To a file, when the batch is complete.
    File {
        /// Stores the results.
        journal: Journal,
        /// The rows that have a result.
        finished: Finished,
    },
}

impl Output {
    /// Opens the output of a batch: stdout, or the journal of a file.
    ///
    /// # Errors
    /// The file has the results of a complete batch, or the journal cannot be used.
    pub(super) fn open(args: &BatchArgs, batch: &Batch, settings: &Settings) -> Result<Self, CliError> {
        match emit::is_stdout(&args.output) {
            true => Ok(Self::Stdout),
            false => Self::open_file(args, &describe(args, batch, settings)?),
        }
    }

    fn open_file(args: &BatchArgs, description: &Description) -> Result<Self, CliError> {
        let path = &args.output;
        let paths = JournalPaths::beside(path);
        Journal::clear_done(&paths)?;
        if !args.results.force && !paths.journal.exists() && has_content(path) {
            return Err(CliError::Usage {
                message: format!("{} exists already", path.display()),
                suggestion: Some("Choose another output, or replace it with --force.".to_owned()),
            });
        }
        let resume = if args.results.allow_changes { Resume::Changed } else { Resume::Same };
        let (journal, finished) = Journal::open(&paths, description, resume)?;
        Ok(Self::File { journal, finished })
    }

    /// Returns the rows that have a result.
    pub(super) fn finished(&self) -> Option<&Finished> {
        match self {
            Self::Stdout => None,
            Self::File { finished, .. } => Some(finished),
        }
    }

    /// Runs the batch, and writes its results.
    pub(super) async fn run(
        self,
        batch: &Batch,
        rows: Rows,
        args: &BatchArgs,
        console: &Console,
    ) -> Result<Summary, CliError> {
        let mut signals = Signals::new()?;
        let mut view = ProgressView::new(console);
        let signals = async || signals.next().await;
        match self {
            Self::Stdout => {
                let mut sink = LineSink::new(stdout(), args.results.order);
                let summary = batch.run(rows, &Finished::default(), &mut sink, signals, view.view()).await;
                sink.close().map_err(Stop::from)?;
                Ok(summary)
            }
            Self::File { mut journal, finished } => {
                if !finished.is_empty() {
                    console.note(&format!("continuing: {} rows have a result", finished.len()));
                }
                if finished.damaged_records() > 0 {
                    let damaged = finished.damaged_records();
                    console.note(&format!("{damaged} results were damaged: their rows run again"));
                }
                let summary = batch.run(rows, &finished, &mut journal, signals, view.view()).await;
                drop(view);
                drop(finished);
                write(journal, &summary, batch, args).await?;
                Ok(summary)
            }
        }
    }
}

/// Writes the output of a batch whose input has ended. The journal stays if the same command has more to do.
async fn write(journal: Journal, summary: &Summary, batch: &Batch, args: &BatchArgs) -> Result<(), CliError> {
    let mut results = journal.close().await?;
    if summary.stopped.is_some() {
        return Ok(());
    }
    results.leave_out(&summary.left_out)?;
    let path = &args.output;
    let output = OutputFile {
        format: files::output_format(args)?,
        order: args.results.order,
        contract: &batch.module.contract,
    };
    let has_failures = summary.rows.failed + summary.rows.earlier_failed > 0;
    match args.results.keep_journal || has_failures || summary.is_sample {
        true => output.write_file(&mut results, path)?,
        false => output.finish(results, path)?,
    }
    Ok(())
}

/// Whether a file exists and has content.
fn has_content(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() > 0)
}
