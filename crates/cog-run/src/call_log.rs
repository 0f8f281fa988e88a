//! The log of a run's tool calls. A run that starts again continues after them, so that no call takes effect twice.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cog_json::ToJson as _;
use cog_media::{Media, SourceContent};
use cog_spec::{Code, ErrorBody};
use cog_store::private;

use crate::{
    error::task_failed,
    media_files::{MediaFiles, StoredMedia},
};

/// The maximum length of a file that is read.
const MAX_BYTES: u64 = 1 << 30;
/// The start of an entry with the media of the input.
const MEDIA: &str = "{\"media\":";

/// The log of the tool calls of a session's run, or of one part of it. Clones share it.
#[derive(Clone)]
pub(crate) struct CallLog {
    storage: Arc<Storage>,
    /// The part whose entries are meant, by its path and its key; empty for the run itself.
    part: String,
    /// Whether the run was interrupted and starts again.
    is_resumed: bool,
}

struct Storage {
    /// The file; none for a session in memory.
    path: Option<PathBuf>,
    /// The media of inputs, which all sessions share.
    media: Arc<MediaFiles>,
    /// The owner of the run, to whom its media count.
    owner: String,
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
    /// The stored media.
    media: Vec<StoredMedia>,
    /// The bytes of the media in memory.
    media_bytes: usize,
    /// Whether the run has ended, so that nothing may be stored any more.
    is_removed: bool,
}

impl CallLog {
    /// Creates a log in a file, which is created at the first call, or in memory. Media of the input are in `media`.
    pub(crate) fn new(path: Option<PathBuf>, owner: &str, media: Arc<MediaFiles>) -> Self {
        Self::open(Storage { path, media, owner: owner.to_owned(), state: Mutex::default() })
    }

    /// Opens a log that an earlier program may have written.
    pub(crate) fn restored(path: PathBuf, owner: &str, media: Arc<MediaFiles>) -> Self {
        let state = Mutex::new(State { is_restored: true, ..State::default() });
        Self::open(Storage { path: Some(path), media, owner: owner.to_owned(), state })
    }

    fn open(storage: Storage) -> Self {
        Self { storage: Arc::new(storage), part: String::new(), is_resumed: false }
    }

    /// Returns the log of a run that starts again.
    pub(crate) fn resumed(self) -> Self {
        Self { is_resumed: true, ..self }
    }

    /// Returns the log of a part. Another key belongs to another call.
    pub(crate) fn within(&self, path: &str, key: &str) -> Self {
        Self { part: format!("{}/{path}#{key}", self.part), ..self.clone() }
    }

    /// Returns whether this is the log of the run itself, and not of a part.
    fn is_of_run(&self) -> bool {
        self.part.is_empty()
    }

    /// Adds an entry: a line.
    ///
    /// # Errors
    /// The entry, or an earlier one, cannot be written.
    pub(crate) async fn append(&self, line: String) -> io::Result<()> {
        if self.storage.path.is_none() {
            return self.append_now(&line);
        }
        let log = self.clone();
        let written = tokio::task::spawn_blocking(move || log.append_now(&line)).await;
        written.map_err(|error| task_failed(&error))?.inspect_err(|error| {
            tracing::warn!(%error, "cannot write the log of tool calls");
        })
    }

    /// Adds an entry. Blocks on the disk.
    ///
    /// # Errors
    /// As [`CallLog::append`].
    pub(crate) fn append_now(&self, line: &str) -> io::Result<()> {
        let line: Cow<'_, str> = match self.is_of_run() {
            true => line.into(),
            false => format!("{}{}}}\n", self.prefix(), line.trim_end()).into(),
        };
        if self.storage.path.is_none() {
            self.storage.lock().text.push_str(&line);
            return Ok(());
        }
        self.storage.write(&line)
    }

    /// Stores media of an input, each with its URL or upload, unless it is stored already. The run and its parts share them.
    /// Media that cannot be stored are opened again by a run that starts again.
    pub(crate) async fn add_media(&self, media: Vec<(String, Media)>) {
        let log = Self { part: String::new(), ..self.clone() };
        let added = tokio::task::spawn_blocking(move || match log.storage.store(&media) {
            Some(line) => log.append_now(&line),
            None => Ok(()),
        });
        if let Ok(Err(error)) = added.await {
            tracing::warn!(%error, "cannot write the log of tool calls");
        }
    }

    /// Returns the stored media of the input, by their URLs and uploads. Blocks on the disk.
    pub(crate) fn media(&self) -> HashMap<String, SourceContent> {
        let text = self.read().unwrap_or_default();
        self.storage.media.open_all(&media_in(&text))
    }

    /// Counts the media in a log that an earlier program has written. Blocks on the disk.
    pub(crate) fn restore_media(&self) {
        let text = self.read().unwrap_or_default();
        let Storage { media, owner, .. } = &*self.storage;
        let found = media_in(&text).into_iter().filter(|item| media.restore(owner, &item.file)).collect();
        self.storage.lock().media = found;
    }

    /// Returns the entries of an interrupted run; none if the run does not start again.
    ///
    /// # Errors
    /// E4014 if the file cannot be read.
    pub(crate) fn read_interrupted(&self) -> Result<String, ErrorBody> {
        if self.is_resumed { self.read() } else { Ok(String::new()) }
    }

    fn read(&self) -> Result<String, ErrorBody> {
        let text = match &self.storage.path {
            None => self.storage.lock().text.clone(),
            Some(path) => read_file(path).map_err(|error| unreadable(&error))?,
        };
        if self.is_of_run() {
            return Ok(text);
        }
        let prefix = self.prefix();
        let own = text.lines().filter_map(|line| line.strip_prefix(&prefix)?.strip_suffix('}'));
        Ok(own.flat_map(|entry| [entry, "\n"]).collect())
    }

    /// Returns the start of each line of a part.
    fn prefix(&self) -> String {
        format!("{{\"part\":{},\"entry\":", self.part.to_json())
    }

    /// Returns the bytes of memory that the log occupies.
    pub(crate) fn bytes(&self) -> usize {
        let state = self.storage.lock();
        state.text.len() + state.media_bytes
    }

    /// Removes the entries of a run that has ended.
    pub(crate) fn remove(&self) {
        let removed = State { is_removed: true, ..State::default() };
        let state = std::mem::replace(&mut *self.storage.lock(), removed);
        let Storage { media, owner, .. } = &*self.storage;
        media.release(owner, state.media.iter().map(|item| item.file.as_str()));
        if let Some(path) = self.storage.path.as_ref().filter(|_| state.file.is_some() || state.is_restored) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Returns the media in a log.
fn media_in(text: &str) -> Vec<StoredMedia> {
    let lines = text.lines().filter(|line| line.starts_with(MEDIA));
    let entries =
        lines.filter_map(|line| serde_json::from_str::<HashMap<String, Vec<StoredMedia>>>(line).ok());
    entries.flat_map(|mut entry| entry.remove("media").unwrap_or_default()).collect()
}

impl Storage {
    /// Stores media. Returns the entry; none if nothing was stored.
    fn store(&self, media: &[(String, Media)]) -> Option<String> {
        let known: HashSet<String> = self.lock().media.iter().map(|media| media.source.clone()).collect();
        let new: Vec<_> = media.iter().filter(|(source, _)| !known.contains(source)).cloned().collect();
        let entries = self.media.add_all(&self.owner, &new);
        let line = serde_json::to_string(&HashMap::from([("media", &entries)])).ok()?;
        let is_stored = !entries.is_empty();
        self.refer_to(entries, &new)?;
        is_stored.then(|| line + "\n")
    }

    /// Notes stored files, which are released with the log. Returns none if the run has ended in the meantime.
    fn refer_to(&self, stored: Vec<StoredMedia>, media: &[(String, Media)]) -> Option<()> {
        let mut state = self.lock();
        if state.is_removed {
            drop(state);
            self.media.release(&self.owner, stored.iter().map(|media| media.file.as_str()));
            return None;
        }
        state.media.extend(stored);
        if self.path.is_none() {
            let bytes: u64 = media.iter().map(|(_, item)| item.bytes().len()).sum();
            state.media_bytes += usize::try_from(bytes).unwrap_or(usize::MAX);
        }
        Some(())
    }

    fn write(&self, line: &str) -> io::Result<()> {
        let mut state = self.lock();
        if state.is_removed {
            return Ok(());
        }
        // With a gap, a run that starts again could repeat a call that the missing entry reports.
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
                let mut file = private::open_options().append(true).open(path)?;
                // The program before may have been killed within its last line.
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
    match private::read(path, MAX_BYTES) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

fn unreadable(error: &io::Error) -> ErrorBody {
    let message = format!("the run cannot start again: its tool calls cannot be read: {error}");
    ErrorBody::new(Code::CheckpointInvalid, message)
        .with_recoverable(false)
        .suggest("Run the module again, after you checked what its tools changed.")
}

#[cfg(test)]
mod tests {
    use cog_media::{MediaDeclaration, MediaRules, Store, check, decode_base64};

    use super::*;

    #[tokio::test]
    async fn run_that_has_ended_stores_nothing() {
        let place = tempfile::tempdir().unwrap();
        let files = Arc::new(MediaFiles::in_directory(&place.path().join("media")).unwrap());
        let pixel = "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";
        let stored = decode_base64(pixel, Store::with_limit(100)).unwrap();
        let image = check(stored, &MediaDeclaration::default(), &MediaRules::default(), None).await.unwrap();
        let count = || std::fs::read_dir(place.path().join("media")).unwrap().count();
        let log = CallLog::new(Some(place.path().join("a.calls")), "", files);
        log.add_media(vec![("upl_1".to_owned(), image.clone())]).await;
        assert_eq!((count(), log.media().len()), (1, 1));
        log.remove();
        assert_eq!(count(), 0);
        log.add_media(vec![("upl_1".to_owned(), image)]).await;
        log.append("{}\n".to_owned()).await.unwrap();
        assert_eq!((count(), place.path().join("a.calls").exists()), (0, false));
    }
}
