//! Where the results of a batch go: to stdout as they finish, or to a file by way of a journal. The progress and the summary
//! go to stderr.

use std::{
    io::stdout,
    path::Path,
    time::{Duration, SystemTime},
};

use cog_batch::{
    Batch, CsvStyle, Description, Finished, Journal, JournalPaths, LineSink, Output as OutputFile, Progress,
    Resume, Rows, Stop, Summary, View, delimiter_of,
};
use cog_host::settings::Settings;

use super::files::{self, describe};
use crate::{
    args::BatchArgs,
    commands::emit,
    error::CliError,
    output::{Console, FRAME, truncate},
    system::Signals,
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
        match self {
            Self::Stdout => {
                let mut sink = LineSink::new(stdout(), args.results.order);
                let finished = Finished::default();
                let summary =
                    batch.run(rows, &finished, &mut sink, async || signals.next().await, view.view()).await;
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
                let summary = batch
                    .run(rows, &finished, &mut journal, async || signals.next().await, view.view())
                    .await;
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
    let columns = files::columns(args);
    let output = OutputFile {
        carried: columns.carried(),
        csv: CsvStyle { delimiter: delimiter_of(path), escapes_formulas: args.results.escape_formulas },
        ..OutputFile::new(files::output_format(args)?, args.results.order, &batch.module.contract)
    };
    let has_failures = summary.rows.failed + summary.rows.earlier_failed > 0;
    match args.results.keep_journal || has_failures || summary.is_sample {
        true => {
            output.write_file(&mut results, path)?;
            // The other rows of a sample have no result yet.
            if !summary.is_sample {
                results.mark_complete()?;
            }
        }
        false => output.finish(results, path)?,
    }
    Ok(())
}

/// Whether a file exists and has content.
fn has_content(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() > 0)
}

/// The time between two lines in a pipe.
const LINES: Duration = Duration::from_secs(10);

/// Shows the progress: one line that is redrawn on a terminal, otherwise a line every ten seconds.
pub(super) struct ProgressView<'a> {
    console: &'a Console,
    show: Box<dyn FnMut(&Progress<'_>) + 'a>,
}

impl<'a> ProgressView<'a> {
    pub(super) fn new(console: &'a Console) -> Self {
        let mut is_first = true;
        Self {
            console,
            show: Box::new(move |progress| match console.err().is_terminal {
                true => console.replace_line(&truncate(&line(progress), console.width().saturating_sub(1))),
                // The first one comes at once, before there is anything to say.
                false if is_first => is_first = false,
                false => console.note(&line(progress)),
            }),
        }
    }

    pub(super) fn view(&mut self) -> View<'_> {
        let every = if self.console.err().is_terminal { FRAME * 2 } else { LINES };
        View { every, show: &mut self.show }
    }
}

/// Erases the line, also after an interruption.
impl Drop for ProgressView<'_> {
    fn drop(&mut self) {
        if self.console.err().is_terminal {
            self.console.replace_line("");
        }
    }
}

/// Returns the progress in one line: `120 of 5000 rows · 14.2/s · 2 failed (E3001 2) · $0.0314 of $1.31 · 5m 44s left`.
fn line(progress: &Progress<'_>) -> String {
    let summary = progress.summary;
    let counts = summary.rows;
    let ended = counts.done() + counts.earlier + counts.excluded;
    let total = progress.total.map(|total| {
        let about = if progress.is_read { "" } else { "about " };
        format!(" of {about}{total}")
    });
    let mut parts = vec![format!("{ended}{} rows", total.unwrap_or_default())];
    parts.push(format!("{:.1}/s with {} at once", progress.per_second, progress.running));
    if counts.failed > 0 {
        parts.push(format!("{} failed ({})", counts.failed, codes(summary)));
    }
    match (summary.cost, progress.expected_cost) {
        (Some(cost), Some(expected)) => parts.push(format!("${cost:.4} of about ${expected:.4}")),
        (Some(cost), None) => parts.push(format!("${cost:.4}")),
        (None, _) => {}
    }
    if let Some(trouble) = &progress.trouble {
        parts.push(trouble.clone());
    } else if let Some(pause) = progress.pause {
        parts.push(format!("paused by the vendor for {}", duration(pause)));
    } else if let Some(left) = progress.left {
        parts.push(format!("{} left", duration(left)));
    }
    parts.join(" · ")
}

/// Returns the failures by code, the most frequent first.
fn codes(summary: &Summary) -> String {
    let mut codes: Vec<_> = summary.failures.iter().collect();
    codes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let shown: Vec<_> = codes.iter().map(|(code, count)| format!("{code} {count}")).collect();
    shown.join(", ")
}

/// Prints the summary as a table.
pub(super) fn print_summary(summary: &Summary, console: &Console) {
    let rows = summary.rows;
    let mut counts = vec![format!("{} ok", rows.ok), format!("{} failed", rows.failed)];
    if rows.earlier > 0 {
        let failed = match rows.earlier_failed {
            0 => String::new(),
            failed => format!(" ({failed} failed)"),
        };
        counts.push(format!("{} with an earlier result{failed}", rows.earlier));
    }
    for (count, name) in [
        (rows.changed, "run again because their row has changed"),
        (rows.excluded, "excluded"),
        (rows.duplicates, "duplicates"),
        (rows.repeated, "repeated because the provider was overloaded or did not answer"),
    ] {
        if count > 0 {
            counts.push(format!("{count} {name}"));
        }
    }
    let mut lines = vec![("rows", counts.join(", "))];
    if rows.failed > 0 {
        lines.push(("failures", codes(summary)));
    }
    let tokens = summary.tokens;
    if tokens.input + tokens.output > 0 {
        let cached = if tokens.cached_input > 0 {
            format!(" ({} cached)", tokens.cached_input)
        } else {
            String::new()
        };
        lines.push(("tokens", format!("{} in{cached}, {} out", tokens.input, tokens.output)));
        let cost = summary.cost.map_or("unknown".to_owned(), |cost| format!("${cost:.4}"));
        lines.push(("cost", cost));
    }
    #[expect(clippy::cast_precision_loss, reason = "a speed, not a count")]
    let speed = rows.done() as f64 / summary.elapsed.as_secs_f64().max(0.001);
    lines.push(("time", format!("{}, {speed:.1} rows/s", duration(summary.elapsed))));
    console.table(&lines);
}

/// Returns a duration with at most two units: `1h 2m`, `3m 4s`, `5s`.
pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded, and never negative"
    )]
    let seconds = seconds as u64;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (hours, minutes, _) => format!("{hours}h {minutes}m"),
    }
}

/// Returns the time, for prices.
#[expect(clippy::disallowed_methods, reason = "prices change with the date; no other decision depends on it")]
pub(super) fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        for (seconds, text) in [(0, "0s"), (59, "59s"), (61, "1m 1s"), (3_725, "1h 2m"), (90_000, "25h 0m")] {
            assert_eq!(duration(Duration::from_secs(seconds)), text);
        }
    }
}
