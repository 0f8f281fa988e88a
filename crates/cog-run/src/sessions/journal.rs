//! Sessions on disk: one file each, written by a thread of its own.
//!
//! Readers see an entry once it is in the file: what a client has, the next program knows, also when this one is
//! killed. The files reach the disk itself at the end of each run.

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

use tokio::sync::oneshot;

use super::{
    error::SessionError,
    shared::{Persistence, Shared, State},
};

/// How many files are held open at most: a run writes often for a short time.
const OPEN_FILES: usize = 64;

/// The writer of a directory. What waits is bounded: a session stands in the queue once, however much it has to write.
pub(crate) struct Journal {
    queue: Sender<Command>,
    writer: Option<JoinHandle<()>>,
    /// Locked as long as the directory is ours.
    _lock: File,
}

enum Command {
    /// There is more of a session to write.
    Write(Arc<Shared>),
    /// A session has left.
    Remove(Arc<Shared>),
    /// Tell when everything before this is done.
    Flush(oneshot::Sender<()>),
    Quit,
}

impl Journal {
    /// MediaCapabilities the directory for this program, and makes it where it is not there.
    pub(crate) fn open(directory: &Path, most: usize) -> Result<Self, SessionError> {
        let fault = |source| SessionError::Directory { path: directory.to_owned(), source };
        make_private(directory).map_err(fault)?;
        let lock = private().write(true).open(directory.join("lock")).map_err(fault)?;
        if let Err(error) = lock.try_lock() {
            return Err(match error {
                std::fs::TryLockError::WouldBlock => SessionError::InUse { path: directory.to_owned() },
                std::fs::TryLockError::Error(source) => fault(source),
            });
        }
        let (queue, commands) = channel();
        let (synced, files) = channel();
        let syncer = start("cog-sessions-sync", move || sync(&files)).map_err(fault)?;
        let writer = Writer {
            directory: directory.to_owned(),
            most,
            files: HashMap::new(),
            synced,
            has_warned: false,
        };
        let writer = start("cog-sessions", move || {
            writer.run(&commands);
            let _ = syncer.join();
        });
        Ok(Self { queue, writer: Some(writer.map_err(fault)?), _lock: lock })
    }

    /// Has what is new of a session written.
    pub(crate) fn write(&self, session: &Arc<Shared>) {
        if self.queue.send(Command::Write(Arc::clone(session))).is_err() {
            give_up(session);
        }
    }

    /// Has the file of a session removed.
    pub(crate) fn remove(&self, session: &Arc<Shared>) {
        let _ = self.queue.send(Command::Remove(Arc::clone(session)));
    }

    /// Waits until everything so far is in the files.
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

/// The file of a session. Its name is made of our own id alone.
pub(crate) fn path_of(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}.ndjson"))
}

struct Writer {
    directory: PathBuf,
    /// The bytes of one file.
    most: usize,
    files: HashMap<String, File>,
    /// Files whose runs have ended.
    synced: Sender<PathBuf>,
    has_warned: bool,
}

/// What is to be written of a session.
struct Piece {
    text: String,
    /// The place after the last entry of it.
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

    /// Writes what is new, then shows it to readers. Where that fails, the stream goes on without its file.
    fn write(&mut self, session: &Arc<Shared>) {
        if session.lock().counted.is_none() {
            return give_up(session); // it has left already
        }
        let Some(piece) = take(&mut session.lock(), self.most) else {
            give_up(session);
            return self.remove(&session.id);
        };
        if let Err(error) = self.append(&session.id, &piece) {
            self.warn(&error);
            give_up(session);
            return self.remove(&session.id);
        }
        session.show(piece.to);
    }

    fn append(&mut self, id: &str, piece: &Piece) -> io::Result<()> {
        if piece.text.is_empty() {
            return Ok(());
        }
        let path = path_of(&self.directory, id);
        if self.files.len() >= OPEN_FILES && !self.files.contains_key(id) {
            self.files.clear();
        }
        match self.files.get_mut(id) {
            Some(file) => file.write_all(piece.text.as_bytes())?,
            None => {
                let mut file = private().append(true).open(&path)?;
                file.write_all(piece.text.as_bytes())?;
                self.files.insert(id.to_owned(), file);
            }
        }
        if piece.is_end {
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
            tracing::warn!("sessions cannot be written to {directory}, and live in memory alone: {error}");
        }
    }
}

/// MediaCapabilities what has not been written; none where the file cannot hold the session any more.
fn take(state: &mut State, most: usize) -> Option<Piece> {
    let to = state.log.end();
    let is_end = state.log.is_over();
    let kept = state.kept.as_mut()?;
    kept.is_queued = false;
    let (lines, marks) = state.log.copy(kept.written, to, usize::MAX / 2).ok()?;
    let is_whole = kept.written + marks.len() as u64 == to; // nothing has left before it was written
    let mut text = std::mem::take(&mut kept.header);
    text.push_str(&lines);
    kept.written = to;
    kept.bytes += lines.len();
    (is_whole && kept.bytes <= most).then_some(Piece { text, to, is_end })
}

/// Lets a session live in memory alone, and its readers go on.
fn give_up(session: &Shared) {
    session.lock().kept = None;
    session.tell();
}

/// Brings files to the disk itself.
fn sync(files: &Receiver<PathBuf>) {
    while let Ok(path) = files.recv() {
        // Gone already, or as safe as it can be.
        let _ = OpenOptions::new().append(true).open(path).and_then(|file| file.sync_all());
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// A file that nobody else may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A directory that nobody else may look into.
fn make_private(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    #[cfg(unix)]
    std::fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

impl Persistence {
    /// A session that is to be written from its beginning.
    pub(crate) fn new(header: String) -> Self {
        Self { header, written: 0, shown: 0, bytes: 0, is_queued: false }
    }
}
