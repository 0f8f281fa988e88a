//! Files named by an input (SPEC 4.2.3, docs/spec/media.md).

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use crate::{MediaError, Store, Stored};

/// Opens files under its roots only.
///
/// Links are resolved first; the target must be a regular file under a root. It is then opened from the root
/// downwards, directory by directory, without following links. A directory that is replaced by a link in the meantime
/// therefore has no effect. Pipes and devices are never opened; files in `/proc` and `/sys` are refused.
#[derive(Debug, Clone, Default)]
pub struct FileGuard {
    roots: Vec<PathBuf>,
}

impl FileGuard {
    /// Creates a guard for these directories and files.
    pub fn new(roots: impl IntoIterator<Item = PathBuf>) -> Self {
        // A root may be created later, but not as a link.
        let roots = roots.into_iter();
        let roots = roots.filter_map(|root| root.canonicalize().or_else(|_| std::path::absolute(root)).ok());
        Self { roots: roots.collect() }
    }

    /// Adds a directory or a file, whose links are resolved.
    #[must_use]
    pub(crate) fn with_root(mut self, root: PathBuf) -> Self {
        self.roots.push(root);
        self
    }

    /// Reads a file into a store.
    ///
    /// # Errors
    /// [`MediaError::OutsideRoots`] (E4007), [`MediaError::Unreadable`] (E1006), and as [`Store::push`].
    pub fn open(&self, path: &Path, mut store: Store) -> Result<Stored, MediaError> {
        let mut file = self.find(path)?;
        store.expect(file.metadata()?.len())?;
        let mut block = vec![0; 64 * 1024];
        loop {
            let read = file.read(&mut block).map_err(|_| unreadable(path, "cannot be read"))?;
            match block.get(..read) {
                Some(read) if !read.is_empty() => store.push(read)?,
                _ => return Ok(store.finish()),
            }
        }
    }

    /// Checks that a path leads to a file that may be read, without reading it.
    ///
    /// # Errors
    /// As [`FileGuard::open`].
    pub fn check(&self, path: &Path) -> Result<(), MediaError> {
        self.find(path).map(drop)
    }

    fn find(&self, path: &Path) -> Result<File, MediaError> {
        let real = match path.canonicalize() {
            Ok(real) => real,
            // The error must not reveal which files exist outside the roots.
            Err(_) if self.could_be_inside(path) => return Err(unreadable(path, "file not found")),
            Err(_) => return Err(outside(path)),
        };
        let root = self.roots.iter().find(|root| real.starts_with(root)).ok_or_else(|| outside(path))?;
        open::regular(root, &real).map_err(|what| unreadable(path, what))
    }

    /// Returns whether a missing path would be under a root: its deepest existing directory is.
    fn could_be_inside(&self, path: &Path) -> bool {
        if std::path::absolute(path).is_ok_and(|path| self.roots.contains(&path)) {
            return true;
        }
        let directory = path.ancestors().skip(1).find_map(|directory| {
            let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
            directory.canonicalize().ok()
        });
        directory.is_some_and(|directory| self.roots.iter().any(|root| directory.starts_with(root)))
    }
}

fn outside(path: &Path) -> MediaError {
    MediaError::OutsideRoots { path: path.display().to_string() }
}

fn unreadable(path: &Path, what: &'static str) -> MediaError {
    MediaError::Unreadable { path: path.display().to_string(), what }
}

const NO_FILE: &str = "not a regular file";
const CANNOT: &str = "cannot be opened";

#[cfg(unix)]
mod open {
    use std::{
        fs::File,
        os::fd::OwnedFd,
        path::{Component, Path},
    };

    use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, open, openat, statat};

    use super::{CANNOT, NO_FILE};

    /// Opens a file by its resolved path.
    pub(super) fn regular(root: &Path, real: &Path) -> Result<File, &'static str> {
        let directories = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let inner = real.strip_prefix(root).unwrap_or(Path::new(""));
        // A root that is a file is opened in its parent directory.
        let (root, inner) = match (inner.as_os_str().is_empty(), root.parent(), root.file_name()) {
            (true, Some(directory), Some(name)) => (directory, Path::new(name)),
            _ => (root, inner),
        };
        let name = inner.file_name().ok_or(NO_FILE)?;
        let mut directory = open(root, directories, Mode::empty()).map_err(|_| CANNOT)?;
        for part in inner.parent().unwrap_or(Path::new("")).components() {
            let Component::Normal(part) = part else { return Err(CANNOT) };
            directory = openat(&directory, part, directories, Mode::empty()).map_err(|_| CANNOT)?;
        }
        // Opening a pipe blocks, and opening some devices has side effects.
        let seen = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| CANNOT)?;
        if !is_regular(seen.st_mode) {
            return Err(NO_FILE);
        }
        let file = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::RDONLY;
        let file = openat(&directory, name, file, Mode::empty()).map_err(|_| CANNOT)?;
        if !fstat(&file).is_ok_and(|stat| is_regular(stat.st_mode)) || is_kernel_file(&file) {
            return Err(NO_FILE);
        }
        Ok(File::from(file))
    }

    fn is_regular(mode: rustix::fs::RawMode) -> bool {
        FileType::from_raw_mode(mode) == FileType::RegularFile
    }

    /// Returns whether the file is in a file system of processes, devices or kernel state.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn is_kernel_file(file: &OwnedFd) -> bool {
        use rustix::fs::{FsWord, fstatfs};

        /// From `linux/magic.h`: proc, sysfs, debugfs, tracefs, securityfs, cgroup, cgroup2, configfs.
        const KERNEL: [FsWord; 8] = [
            0x9fa0,
            0x6265_6572,
            0x6462_6720,
            0x7472_6163,
            0x7363_6673,
            0x0027_e0eb,
            0x6367_7270,
            0x6265_6570,
        ];
        fstatfs(file).map_or(true, |system| KERNEL.contains(&system.f_type))
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn is_kernel_file(_: &OwnedFd) -> bool {
        false
    }
}

#[cfg(not(unix))]
mod open {
    use std::{fs::File, path::Path};

    use super::{CANNOT, NO_FILE};

    /// Opens a file by its resolved path.
    #[expect(clippy::disallowed_methods, reason = "all files of inputs are opened here")]
    pub(super) fn regular(_: &Path, real: &Path) -> Result<File, &'static str> {
        if !real.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err(NO_FILE);
        }
        let file = File::open(real).map_err(|_| CANNOT)?;
        // The path must still lead to the opened file, without a link.
        let is_same = real.canonicalize().is_ok_and(|again| again == real);
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        if is_same && is_file { Ok(file) } else { Err(NO_FILE) }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
