//! The log of a run's tool calls. A run that starts again continues after them, so that no call takes effect twice.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cog_json::Value;
use cog_spec::{Code, ErrorBody};

use crate::private_files;

/// The maximum length of a file that is read.
const MAX_BYTES: u64 = 1 << 30;
/// The maximum length of an input with the content of its media.
const MAX_INPUT: usize = 32 << 20;
/// The start of the entry with the input.
const INPUT: &str = "{\"input\":";

/// The log of the tool calls of a session's run. Clones share it.
#[derive(Clone)]
pub(crate) struct CallLog(Arc<Storage>);

struct Storage {
    /// The file; none for a session in memory.
    path: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The entries of a session in memory.
    text: String,
    file: Option<File>,
    /// Whether an earlier program may have written the file. Its last line may not be complete.
    is_restored: bool,
    /// An entry could not be written, so that later ones would have no meaning.
    is_broken: bool,
}

impl CallLog {
    /// Creates a log in a file, which is created at the first call, or in memory.
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self(Arc::new(Storage { path, state: Mutex::default() }))
    }

    /// Opens a log that an earlier program may have written.
    pub(crate) fn restored(path: PathBuf) -> Self {
        let state = State { is_restored: true, ..State::default() };
        Self(Arc::new(Storage { path: Some(path), state: Mutex::new(state) }))
    }

    /// Adds an entry: a line.
    ///
    /// # Errors
    /// The entry, or an earlier one, cannot be written.
    pub(super) async fn append(&self, line: String) -> io::Result<()> {
        if self.0.path.is_none() {
            self.0.lock().text.push_str(&line);
            return Ok(());
        }
        let storage = Arc::clone(&self.0);
        let written = tokio::task::spawn_blocking(move || storage.write(&line)).await;
        written.map_err(io::Error::other)?.inspect_err(|error| {
            tracing::warn!(%error, "cannot write the log of tool calls");
        })
    }

    /// Adds the input of the run with the content of its media. An input over the limit is not stored.
    pub(crate) async fn add_input(&self, input: &Value) {
        let line = format!("{INPUT}{input}}}\n");
        if line.len() <= MAX_INPUT {
            let _ = self.append(line).await; // without it, the media are opened again
        }
    }

    /// Returns the input with the content of its media; none if no source of them can expire.
    pub(crate) fn input(&self) -> Option<Value> {
        let text = self.read().ok()?;
        let line = text.lines().rev().find(|line| line.starts_with(INPUT))?;
        let entry = Value::parse(line).ok()?;
        Some(entry.child(entry.get("input")?))
    }

    /// Returns the entries.
    ///
    /// # Errors
    /// E4014 if the file cannot be read.
    pub(super) fn read(&self) -> Result<String, ErrorBody> {
        match &self.0.path {
            None => Ok(self.0.lock().text.clone()),
            Some(path) => read_file(path).map_err(|error| unreadable(&error)),
        }
    }

    /// Returns the bytes of memory that the log occupies.
    pub(crate) fn bytes(&self) -> usize {
        self.0.lock().text.len()
    }

    /// Removes the entries of a run that has ended.
    pub(crate) fn remove(&self) {
        let state = std::mem::take(&mut *self.0.lock());
        if let Some(path) = self.0.path.as_ref().filter(|_| state.file.is_some() || state.is_restored) {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Storage {
    fn write(&self, line: &str) -> io::Result<()> {
        let mut state = self.lock();
        if state.is_broken {
            return Err(io::Error::other("an earlier entry is missing"));
        }
        let written = self.write_to(&mut state, line);
        state.is_broken = written.is_err();
        written
    }

    fn write_to(&self, state: &mut State, line: &str) -> io::Result<()> {
        let file = match &mut state.file {
            Some(file) => file,
            none => {
                let path = self.path.clone().unwrap_or_default();
                let mut file = private_files::open_options().append(true).open(path)?;
                if state.is_restored {
                    file.write_all(b"\n")?;
                }
                none.insert(file)
            }
        };
        file.write_all(line.as_bytes())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CallLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallLog")
    }
}

/// Reads a file, whose last line may end anywhere. A file that does not exist is empty.
fn read_file(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    match OpenOptions::new().read(true).open(path) {
        Ok(file) => file.take(MAX_BYTES).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unreadable(error: &io::Error) -> ErrorBody {
    let message = format!("the run cannot start again: its tool calls cannot be read: {error}");
    ErrorBody::new(Code::CheckpointInvalid, message)
        .with_recoverable(false)
        .suggest("Run the module again, after you checked what its tools changed.")
}
