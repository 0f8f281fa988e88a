//! Runs of programs without a server, in files, so that another process continues an interrupted one.

use std::{
    collections::HashMap,
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cog_json::{Value, Writer};
use cog_media::SourceContent;
use cog_spec::{Chunk, Code, ErrorBody, Progress};
use cog_store::private::{self, ABANDONED};

use super::{SessionState, file, log, session::SessionSettings};
use crate::{
    RunContext, RunInput, RunOptions, call_log::CallLog, clock, media_files::MediaFiles, options,
    parts_state::FinishedParts, session::generate_id,
};

/// The format version of the first line.
const VERSION: u64 = 1;
/// The maximum length of a file that is read.
const MAX_BYTES: u64 = 1 << 30;
/// The maximum number of files; the oldest ones are removed.
const MAX_RUNS: usize = 100;
/// The time for which an interrupted run is stored: a week.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// The owner of the media of a run: the user of the program.
const OWNER: &str = "";
/// The maximum bytes of the media of a run.
const MAX_MEDIA: u64 = 64 << 20;

/// The stored runs of a directory. Each is a file until its run has ended: the run, then the answers of its parts. Beside it are
/// the log of its tool calls and the media of its input that can expire. Only this user may read them.
#[derive(Debug, Clone)]
pub struct StoredRuns(PathBuf);

/// What a run starts with.
#[derive(Debug, Clone)]
pub struct RunRecord {
    /// The module, as [`Runtime::load`](crate::Runtime::load) finds it.
    pub module: String,
    /// The input.
    pub input: RunInput,
    /// The options of the run.
    pub options: RunOptions,
    /// The providers that the program selected, `a,b`.
    pub provider: Option<String>,
    /// The model that the program selected.
    pub model: Option<String>,
    /// Whether the user chose the module for this run. Otherwise a run that continues asks again whether it is trusted.
    pub is_trusted_for_run: bool,
}

/// A run whose file this process has locked. When it is dropped without [`StoredRun::close`], the run can be continued.
#[derive(Debug)]
pub struct StoredRun {
    id: String,
    path: PathBuf,
    file: File,
    record: RunRecord,
    /// The answers of the parts that an earlier process received.
    finished: FinishedParts,
    call_log: CallLog,
    /// The stored media of the input, by their URLs and uploads.
    media: Arc<HashMap<String, SourceContent>>,
    is_continued: bool,
    /// Whether the end of the run allows to continue it.
    is_interrupted: bool,
}

impl RunRecord {
    fn to_line(&self) -> String {
        let (args, input) = match &self.input {
            RunInput::Json(value) => (None, Some(value)),
            RunInput::Args(text) => (Some(text), None),
            RunInput::ArgsWith(text, rest) => (Some(text), Some(rest)),
        };
        let mut line = String::new();
        Writer::compact(&mut line).object(|w| {
            w.field("cog_run", &VERSION);
            w.field("module", &self.module);
            w.optional("provider", &self.provider);
            w.optional("model", &self.model);
            w.field("trusted_for_run", &self.is_trusted_for_run);
            w.field("options", &self.options);
            options::write_stored(w.key("internal_options"), &self.options, &[]);
            w.optional("args", &args);
            w.optional("input", &input);
        });
        line.push('\n');
        line
    }

    fn read(line: &str) -> Option<Self> {
        let value = Value::parse(line).ok().filter(|value| value.get("cog_run").is_some())?;
        let text = |key| Some(value.get(key)?.as_str()?.to_owned());
        let mut options = RunOptions::read(value.get("options")?, &[]).ok()?;
        options::read_stored(value.get("internal_options")?, &mut options)?;
        let input = value.get("input").map(|input| value.child(input));
        let input = match (text("args"), input) {
            (Some(text), Some(rest)) => RunInput::ArgsWith(text, rest),
            (Some(text), None) => RunInput::Args(text),
            (None, input) => RunInput::Json(input?),
        };
        Some(Self {
            module: text("module")?,
            input,
            options,
            provider: text("provider"),
            model: text("model"),
            is_trusted_for_run: value.get("trusted_for_run").is_some_and(|is| is.as_bool() == Some(true)),
        })
    }
}

impl StoredRuns {
    /// Returns the runs of a directory, which is created at the first use.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Stores a run that is about to start.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(&self, record: RunRecord) -> io::Result<StoredRun> {
        private::create_directory(&self.0)?;
        self.prune();
        let id = generate_id().map_err(io::Error::other)?;
        let path = self.path_of(&id);
        let mut file = private::open_options().create_new(true).write(true).open(&path)?;
        // Locked before anything is written: another program that prunes the directory leaves it alone.
        let written = file.lock().and_then(|()| file.write_all(record.to_line().as_bytes()));
        written.inspect_err(|_| drop(fs::remove_file(&path)))?;
        let call_log = CallLog::new(Some(file::call_log(&path)), OWNER, Arc::new(media_of(&path)));
        let (finished, media) = Default::default();
        let is_continued = false;
        let is_interrupted = false;
        Ok(StoredRun { id, path, file, record, finished, call_log, media, is_continued, is_interrupted })
    }

    /// Opens a run that was interrupted.
    ///
    /// # Errors
    /// E4013 for an id without a stored run, E4014 for a run that is still in progress or cannot be read.
    pub fn open(&self, id: &str) -> Result<StoredRun, ErrorBody> {
        let path = self.path_of(id);
        let name = path.file_name().and_then(|name| name.to_str());
        if name.and_then(file::id_of) != Some(id) {
            return Err(unknown(id, &self.0));
        }
        let file = private::open_options().create(false).read(true).append(true).open(&path);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => unknown(id, &self.0),
            _ => unreadable(id, &error.to_string()),
        })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_progress(id)),
            Err(TryLockError::Error(error)) => return Err(unreadable(id, &error.to_string())),
        }
        if !path.exists() {
            return Err(unknown(id, &self.0)); // it has ended after the file was opened
        }
        let text = private::read_complete_lines(&file, MAX_BYTES)
            .map_err(|error| unreadable(id, &error.to_string()))?;
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let Some(record) = RunRecord::read(first) else {
            return Err(unreadable(id, "it is not as it was stored"));
        };
        let finished = rest.lines().filter_map(log::read_part_answer).collect();
        let call_log = CallLog::restored(file::call_log(&path), OWNER, Arc::new(media_of(&path))).resumed();
        call_log.restore_media();
        let media = Arc::new(call_log.media());
        let id = id.to_owned();
        let is_continued = true;
        let is_interrupted = false;
        Ok(StoredRun { id, path, file, record, finished, call_log, media, is_continued, is_interrupted })
    }

    /// Removes the oldest runs beyond the limits, unless they are in progress.
    fn prune(&self) {
        let files = file::list(&self.0).unwrap_or_default();
        let surplus = (files.len() + 1).saturating_sub(MAX_RUNS);
        let now = clock::now();
        // The list begins with the oldest.
        for (index, file) in files.into_iter().enumerate() {
            if index < surplus || file.age(now) > MAX_AGE {
                remove_unlocked(&file.path);
            }
        }
        self.remove_left_over();
    }

    /// Removes what runs that were removed have left, because their program was killed.
    fn remove_left_over(&self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let path = entry.path().with_extension("ndjson");
            let is_ours = path.file_name().and_then(|name| file::id_of(name.to_str()?)).is_some();
            if is_ours && !path.exists() {
                remove_beside(&path);
            }
        }
    }

    fn path_of(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.ndjson"))
    }
}

impl StoredRun {
    /// Returns the id with which the run can be continued, which is also the id of its session.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns what the run starts with.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// Returns the options of the run. A continued run has the options of its start where these set none.
    #[must_use]
    pub fn options(&self, options: &RunOptions) -> RunOptions {
        let former = &self.record.options;
        let options = if self.is_continued { options.or_former(former) } else { options.clone() };
        RunOptions { approval: former.approval.clone(), ..options }
    }

    /// Returns the context of the run: this one, with what is stored of the run.
    #[must_use]
    pub fn context(&self, context: RunContext) -> RunContext {
        RunContext {
            session_id: Some(self.id.clone()),
            finished_parts: Some(self.finished.clone()),
            call_log: Some(self.call_log.clone()),
            stored_media: Arc::clone(&self.media),
            resume_from: self.is_continued.then_some(0),
            recovery: SessionSettings::default().recovery,
            ..context
        }
    }

    /// Stores the answer of a part that a chunk contains, and removes it from the chunk: readers do not receive it.
    pub fn push(&mut self, chunk: &mut Chunk) {
        if chunk.is_end() {
            let state = SessionState::after(chunk);
            self.is_interrupted = matches!(state, SessionState::Interrupted | SessionState::Cancelled);
        }
        let Chunk::Progress(Progress { part: Some(part), .. }) = chunk else { return };
        let mut line = String::new();
        if log::write_part_answer(part, &mut line) {
            line.push('\n');
            if let Err(error) = self.file.write_all(line.as_bytes()) {
                tracing::warn!(%error, part = part.path, "the answer of a part cannot be stored");
            }
            part.answer = None;
        }
    }

    /// Ends the run. Returns whether it can be continued; otherwise its file is removed.
    pub fn close(self) -> bool {
        if !self.is_interrupted {
            self.remove();
        }
        self.is_interrupted
    }

    /// Ends a run that was rejected before it started. One that was to be continued stays.
    pub fn reject(self) {
        if !self.is_continued {
            self.remove();
        }
    }

    fn remove(&self) {
        let _ = fs::remove_file(&self.path);
        self.call_log.remove();
        remove_beside(&self.path);
    }
}

/// Returns the media of a run.
fn media_of(path: &Path) -> MediaFiles {
    MediaFiles::below(&path.with_extension("media"), MAX_MEDIA)
}

/// Removes the other files of a run. Its own file is removed before them: without it, nothing continues.
fn remove_beside(path: &Path) {
    let _ = fs::remove_file(file::call_log(path));
    media_of(path).remove_all();
}

/// Removes the files of a run that is not in progress, while no other program can open it. An empty file belongs to a
/// run which another program is about to lock.
fn remove_unlocked(path: &Path) {
    let Ok(file) = private::open_options().create(false).read(true).open(path) else { return };
    if file.try_lock().is_ok() && !file.metadata().is_ok_and(|about| is_about_to_be_locked(&about)) {
        let _ = fs::remove_file(path);
        remove_beside(path);
    }
}

fn is_about_to_be_locked(about: &fs::Metadata) -> bool {
    let age = about.modified().ok().and_then(|at| at.elapsed().ok()).unwrap_or_default();
    about.len() == 0 && age < ABANDONED
}

fn unknown(id: &str, directory: &Path) -> ErrorBody {
    let shown: String = id.chars().take(64).collect();
    let message = format!("{} has no interrupted run `{shown}`", directory.display());
    ErrorBody::new(Code::SessionExpired, message).suggest(
        "A run is stored until it ends, for a week at most. Check --state-dir, or run the module again.",
    )
}

fn in_progress(id: &str) -> ErrorBody {
    ErrorBody::new(Code::CheckpointInvalid, format!("the run `{id}` is still in progress"))
        .suggest("Wait for its end, or stop its process.")
}

fn unreadable(id: &str, reason: &str) -> ErrorBody {
    ErrorBody::new(Code::CheckpointInvalid, format!("the run `{id}` cannot be continued: {reason}"))
        .with_recoverable(false)
        .suggest("Run the module again.")
}

#[cfg(test)]
mod tests;
