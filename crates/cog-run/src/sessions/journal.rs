//! The journal of sessions on disk: one file per session, written by one thread.
//!
//! Readers see an entry after it is written to the file. The next program thus knows every entry that a
//! client received, even when this one is killed. The files are synced to disk at the end of each run.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
};

use cog_store::{private, sync_directory_of};
use tokio::sync::oneshot;

use super::{
    SessionError,
    shared::{Persistence, Shared, State},
};

/// The maximum number of open files. A run writes often for a short time.
const OPEN_FILES: usize = 64;

/// The writer of a directory. Its queue is bounded: it contains each session at max_bytes once.
pub(crate) struct Journal {
    queue: Sender<Command>,
    writer: Option<JoinHandle<()>>,
    /// Locked while this program uses the directory.
    _lock: File,
}

enum Command {
    /// Writes the new entries of a session.
    Write(Arc<Shared>),
    /// Removes the file of a session.
    Remove(Arc<Shared>),
    /// Reports when every earlier command is done.
    Flush(oneshot::Sender<()>),
    Quit,
}

impl Journal {
    /// Locks the directory for this program, and creates it when it does not exist.
    pub(crate) fn open(directory: &Path, max_bytes: usize) -> Result<Self, SessionError> {
        let failed = |source| SessionError::Directory { path: directory.to_owned(), source };
        let lock = private::append(&directory.join("lock")).map_err(failed)?;
        if let Err(error) = lock.try_lock() {
            return Err(match error {
                std::fs::TryLockError::WouldBlock => SessionError::InUse { path: directory.to_owned() },
                std::fs::TryLockError::Error(source) => failed(source),
            });
        }
        let (queue, commands) = channel();
        let (synced, files) = channel();
        let syncer = start("cog-sessions-sync", move || sync(&files)).map_err(failed)?;
        let writer = Writer {
            directory: directory.to_owned(),
            max_bytes,
            files: HashMap::new(),
            synced,
            has_warned: false,
        };
        let writer = start("cog-sessions", move || {
            writer.run(&commands);
            let _ = syncer.join();
        });
        Ok(Self { queue, writer: Some(writer.map_err(failed)?), _lock: lock })
    }

    /// Queues the new entries of a session for writing.
    pub(crate) fn write(&self, session: &Arc<Shared>) {
        if self.queue.send(Command::Write(Arc::clone(session))).is_err() {
            store_in_memory_only(session);
        }
    }

    /// Queues the file of a session for removal.
    pub(crate) fn remove(&self, session: &Arc<Shared>) {
        let _ = self.queue.send(Command::Remove(Arc::clone(session)));
    }

    /// Waits until every earlier command is done.
    pub(crate) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        if self.queue.send(Command::Flush(done)).is_ok() {
            let _ = wait.await;
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let _ = self.queue.send(Command::Quit);
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// Returns the file of a session. Its name consists of the generated id only.
pub(crate) fn path_of(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}.ndjson"))
}

struct Writer {
    directory: PathBuf,
    /// The maximum bytes of one file.
    max_bytes: usize,
    files: HashMap<String, File>,
    /// The queue of files to sync, whose runs have ended.
    synced: Sender<PathBuf>,
    has_warned: bool,
}

/// The new entries of a session.
struct Unwritten {
    text: String,
    /// The position after the last of these entries.
    to: u64,
    is_end: bool,
}

impl Writer {
    fn run(mut self, commands: &Receiver<Command>) {
        while let Ok(command) = commands.recv() {
            match command {
                Command::Write(session) => self.write(&session),
                Command::Remove(session) => self.remove(&session.id),
                Command::Flush(done) => drop(done.send(())),
                Command::Quit => return,
            }
        }
    }

    /// Writes new entries, then shows them to readers. When writing fails, the session continues in memory
    /// only.
    fn write(&mut self, session: &Arc<Shared>) {
        if session.lock().counted.is_none() {
            return store_in_memory_only(session); // the store has removed it
        }
        let Some(entries) = take_unwritten(&mut session.lock(), self.max_bytes) else {
            store_in_memory_only(session);
            return self.remove(&session.id);
        };
        if let Err(error) = self.append(&session.id, &entries) {
            self.warn(&error);
            store_in_memory_only(session);
            return self.remove(&session.id);
        }
        session.show(entries.to);
    }

    fn append(&mut self, id: &str, entries: &Unwritten) -> io::Result<()> {
        if entries.text.is_empty() {
            return Ok(());
        }
        let path = path_of(&self.directory, id);
        // All at once: which run writes next is not known, and opening a file again is cheap.
        if self.files.len() >= OPEN_FILES && !self.files.contains_key(id) {
            self.files.clear();
        }
        match self.files.get_mut(id) {
            Some(file) => file.write_all(entries.text.as_bytes())?,
            None => {
                let mut file = private::open_options().append(true).open(&path)?;
                file.write_all(entries.text.as_bytes())?;
                self.files.insert(id.to_owned(), file);
            }
        }
        // Another thread syncs: a slow disk must not delay the chunks of other runs.
        if entries.is_end {
            self.files.remove(id);
            let _ = self.synced.send(path);
        }
        Ok(())
    }

    fn remove(&mut self, id: &str) {
        self.files.remove(id);
        let _ = std::fs::remove_file(path_of(&self.directory, id));
    }

    fn warn(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.has_warned, true) {
            let directory = self.directory.display();
            tracing::warn!("cannot write sessions to {directory}; they are stored in memory only: {error}");
        }
    }
}

/// Takes the entries that are not written yet; none when the file cannot store the session any more.
fn take_unwritten(state: &mut State, max_bytes: usize) -> Option<Unwritten> {
    let to = state.log.end();
    let is_end = state.log.is_over();
    let file = state.persistence.as_mut()?;
    file.is_queued = false;
    let (lines, marks) = state.log.copy(file.written, to, usize::MAX / 2).ok()?;
    let is_complete = file.written + marks.len() as u64 == to; // no entry was dropped before it was written
    let mut text = std::mem::take(&mut file.header);
    text.push_str(&lines);
    file.written = to;
    file.bytes += lines.len();
    (is_complete && file.bytes <= max_bytes).then_some(Unwritten { text, to, is_end })
}

/// Continues a session in memory only, and wakes its readers.
fn store_in_memory_only(session: &Shared) {
    session.lock().persistence = None;
    session.notify();
}

/// Syncs files to disk, and their names once for all that wait. Errors are ignored: a file may be removed already.
fn sync(files: &Receiver<PathBuf>) {
    while let Ok(mut path) = files.recv() {
        loop {
            let _ = OpenOptions::new().append(true).open(&path).and_then(|file| file.sync_all());
            match files.try_recv() {
                Ok(next) => path = next,
                Err(_) => break,
            }
        }
        let _ = sync_directory_of(&path);
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(work)
}

impl Persistence {
    /// Returns the persistence of a session that is not written yet.
    pub(crate) fn new(header: String) -> Self {
        Self { header, written: 0, shown: 0, bytes: 0, record: 0, is_queued: false }
    }
}
