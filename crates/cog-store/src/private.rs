//! Files and directories that only this user may read: they contain inputs and answers.

#[cfg(unix)]
mod group;

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, BufRead, Read as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// The age after which an incomplete file belongs to a program that was killed.
pub const ABANDONED: Duration = Duration::from_secs(3600);

/// Returns options that create a file only this user may read.
pub fn open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a directory and its parents if they do not exist, so that only this user may read them. Directories that
/// exist are not changed.
///
/// # Errors
/// The directory cannot be created.
pub fn create_directory(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Whether other users of this machine may write a file or directory. The private group of its owner is not others. False on
/// systems without such modes.
pub fn is_writable_by_others(path: &Path) -> bool {
    #[cfg(unix)]
    return fs::metadata(path).is_ok_and(|about| {
        use std::os::unix::fs::MetadataExt as _;
        let by_group = about.mode() & 0o020 != 0 && !group::is_private(about.gid(), about.uid());
        about.mode() & 0o002 != 0 || by_group
    });
    #[cfg(not(unix))]
    return {
        let _ = path;
        false
    };
}

/// Whether other users of this machine may read a file, its group included. False on systems without such modes.
pub fn is_readable_by_others(path: &Path) -> bool {
    #[cfg(unix)]
    return fs::metadata(path).is_ok_and(|about| {
        use std::os::unix::fs::PermissionsExt as _;
        about.permissions().mode() & 0o044 != 0
    });
    #[cfg(not(unix))]
    return {
        let _ = path;
        false
    };
}

/// Opens a file to append to, or to lock. Creates the file and its directory if they do not exist.
///
/// # Errors
/// The file or the directory cannot be created or opened, or it is a pipe.
pub fn append(path: &Path) -> io::Result<File> {
    refuse_pipes(path)?;
    let mut options = open_options();
    options.append(true);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_directory(path.parent().unwrap_or(Path::new(".")))?;
            options.open(path)
        }
        opened => opened,
    }
}

/// Opens a file to read it.
///
/// # Errors
/// There is no file (`NotFound`), it is a pipe, or it cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    refuse_pipes(path)?;
    OpenOptions::new().read(true).open(path)
}

/// Returns whether two open files are one. False on systems that do not tell.
pub fn is_same(one: &File, other: &File) -> bool {
    #[cfg(unix)]
    return {
        use std::os::unix::fs::MetadataExt as _;
        let identity = |file: &File| file.metadata().map(|about| (about.dev(), about.ino())).ok();
        identity(one).is_some_and(|one| identity(other) == Some(one))
    };
    #[cfg(not(unix))]
    return {
        let _ = (one, other);
        false
    };
}

/// Passes the lines of a reader on, with one line in memory. Returns the number of lines over the limit, which are skipped.
///
/// # Errors
/// The reader fails.
pub fn each_line(mut reader: impl BufRead, limit: usize, act: &mut dyn FnMut(&[u8])) -> io::Result<u64> {
    let mut line = Vec::new();
    let mut skipped = 0;
    loop {
        line.clear();
        let maximum = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        let read = (&mut reader).take(maximum).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(skipped);
        }
        if line.last() != Some(&b'\n') && line.len() > limit {
            skipped += 1;
            reader.skip_until(b'\n')?;
            continue;
        }
        act(line.strip_suffix(b"\n").unwrap_or(&line));
    }
}

/// Reads a file of at most `limit` bytes.
///
/// # Errors
/// There is no file (`NotFound`), it is larger (`FileTooLarge`), it is a pipe, or it cannot be read.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let message = format!("the file is larger than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Refuses a pipe before it is opened: that would wait for its other end, which no signal ends. A device like `/dev/null` is not
/// refused, because people link a log to it.
fn refuse_pipes(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if fs::metadata(path).is_ok_and(|about| std::os::unix::fs::FileTypeExt::is_fifo(&about.file_type())) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a pipe, not a file"));
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Reads the complete lines of a log, at most `limit` bytes, and removes a last line without its line break: the program that
/// wrote it was killed, or the disk was full.
///
/// # Errors
/// The file cannot be read or truncated, or is not UTF-8.
pub fn read_complete_lines(file: &File, limit: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if end < bytes.len() {
        bytes.truncate(end);
        file.set_len(end as u64)?;
    }
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// A file of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Its path.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was written last.
    pub modified: SystemTime,
}

impl ListedFile {
    /// Returns the time since it was written.
    pub fn age(&self, now: SystemTime) -> Duration {
        now.duration_since(self.modified).unwrap_or_default()
    }
}

/// Returns the files of a directory whose names satisfy `is_ours`, the least recently written first. A directory that does not
/// exist has none.
///
/// # Errors
/// The directory or a file cannot be read.
pub fn list(directory: &Path, is_ours: impl Fn(&str) -> bool) -> io::Result<Vec<ListedFile>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        if !entry.file_name().to_str().is_some_and(&is_ours) {
            continue;
        }
        match entry.metadata() {
            Ok(about) if about.is_file() => {
                files.push(ListedFile {
                    path: entry.path(),
                    bytes: about.len(),
                    modified: about.modified()?,
                });
            }
            Ok(_) => {}
            // Another program has removed it in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    files.sort_by(|one, other| (one.modified, &one.path).cmp(&(other.modified, &other.path)));
    Ok(files)
}
