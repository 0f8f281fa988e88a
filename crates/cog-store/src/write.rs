//! Writing a file: under a temporary name in its directory, then renamed, so that it is always complete.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use tempfile::{Builder, NamedTempFile};

/// What a write survives once it has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The program is killed: a reader finds the old content or the new one. After a power cut it may find neither.
    Kill,
    /// The machine loses power: content and name are on disk. Costs two syncs, some milliseconds.
    PowerCut,
}

/// Who may read a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only this user (0600).
    Private,
    /// The permissions of the file that is replaced; for a new file, those that the process gives (umask).
    Shared,
}

/// Writes a file that only this user may read. A reader finds the old content or the new one, never a part.
///
/// # Errors
/// The file cannot be written; it is then unchanged.
pub fn write_durably(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    replace(path, Access::Private, durability, |file| file.write_all(bytes)).map(drop)
}

/// Writes a file with the content that `write` gives to it, and returns it, still open. A reader finds the old content or the
/// new one, never a part. The directory must exist; a link at the path is replaced ([`destination`] follows it).
///
/// # Errors
/// The file cannot be written; it is then unchanged.
pub fn replace<E: From<io::Error>>(
    path: &Path,
    access: Access,
    durability: Durability,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<File, E> {
    let mut temporary = create_temporary(path, access)?;
    write(temporary.as_file_mut())?;
    if durability == Durability::PowerCut {
        // Before the rename: some file systems write the new name to disk before the content, and a power cut between the two
        // would leave an empty file.
        temporary.as_file().sync_all()?;
    }
    let file = temporary.persist(path).map_err(|failed| failed.error)?;
    if durability == Durability::PowerCut {
        sync_directory_of(path)?;
    }
    Ok(file)
}

/// Gives a file a second name, which replaces the file there. Both names are on disk afterwards.
///
/// # Errors
/// The file system has no hard links, or the directory cannot be written.
pub fn link(from: &Path, to: &Path) -> io::Result<()> {
    let prefix = temporary_prefix(to);
    let temporary = builder(&prefix).make_in(directory_of(to), |name| fs::hard_link(from, name))?;
    let name = temporary.path().to_owned();
    temporary.into_temp_path().persist(to).map_err(|failed| failed.error)?;
    // A rename between two names of the same file does nothing and reports success, so the temporary name stays.
    let _ = fs::remove_file(name);
    sync_directory_of(to)
}

/// Waits until the names in the directory of a file are on disk.
///
/// # Errors
/// The directory cannot be opened or synced.
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(()); // a directory cannot be opened
    }
    OpenOptions::new().read(true).open(directory_of(path))?.sync_all()
}

/// What a path leads to that a user names as output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A file that exists or will be created. Links are followed, so that [`replace`] keeps them.
    File(PathBuf),
    /// A pipe or a device, which is written directly.
    Stream,
}

/// Returns what a path leads to.
///
/// # Errors
/// It is a directory, or a link that cannot be followed.
pub fn destination(path: &Path) -> io::Result<Destination> {
    match fs::metadata(path) {
        Ok(about) if about.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(about) if !about.is_file() => Ok(Destination::Stream),
        Ok(_) => Ok(Destination::File(fs::canonicalize(path)?)),
        Err(_) => Ok(Destination::File(path.to_owned())),
    }
}

/// The characters after the prefix of a temporary file.
const RANDOM: usize = 6;

/// What stands between the name of a file and the random characters of its temporary file.
const MARK: &str = ".cog-";

/// The length of a file name up to which its temporary file has it in its name. File systems allow 255 bytes.
const MAX_NAMED: usize = 200;

/// Removes the temporary files that killed programs left in a directory: whose file has a name that satisfies `is_ours`, and which
/// were written last before `before`, if it is given. Files that cannot be removed stay; they do no harm.
pub fn remove_abandoned(directory: &Path, before: Option<SystemTime>, is_ours: impl Fn(&[u8]) -> bool) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if replaced_name(entry.file_name().as_encoded_bytes()).is_some_and(&is_ours)
            && before.is_none_or(|before| was_written_before(&entry, before))
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn was_written_before(entry: &fs::DirEntry, time: SystemTime) -> bool {
    entry.metadata().and_then(|about| about.modified()).is_ok_and(|at| at < time)
}

/// Returns the name of the file that a temporary file was to replace.
fn replaced_name(name: &[u8]) -> Option<&[u8]> {
    let (prefix, random) = name.split_at_checked(name.len().checked_sub(RANDOM)?)?;
    let is_random = random.iter().all(u8::is_ascii_alphanumeric);
    prefix.strip_suffix(MARK.as_bytes())?.strip_prefix(b".").filter(|_| is_random)
}

/// Returns what the name of a temporary file begins with.
fn temporary_prefix(path: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().filter(|name| name.len() <= MAX_NAMED).unwrap_or_default());
    prefix.push(MARK);
    prefix
}

fn builder(prefix: &OsStr) -> Builder<'_, 'static> {
    let mut builder = Builder::new();
    builder.prefix(prefix).rand_bytes(RANDOM);
    builder
}

/// Creates a temporary file in the directory of a file. The error does not contain its generated name.
fn create_temporary(path: &Path, access: Access) -> io::Result<NamedTempFile> {
    let prefix = temporary_prefix(path);
    let mut builder = builder(&prefix);
    // The default of a temporary file is 0600.
    #[cfg(unix)]
    if access == Access::Shared {
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let file = builder.tempfile_in(directory_of(path)).map_err(|error| io::Error::from(error.kind()))?;
    if access == Access::Shared
        && let Ok(about) = fs::metadata(path)
    {
        file.as_file().set_permissions(about.permissions())?;
    }
    Ok(file)
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests look at files")]
mod tests {
    use std::time::Duration;

    use super::*;

    const FUTURE: Duration = Duration::from_secs(60);

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn file_has_the_old_content_until_the_new_one_is_complete() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        for durability in [Durability::Kill, Durability::PowerCut] {
            write_durably(&path, b"a long first content", durability).unwrap();
            let failed = replace(&path, Access::Private, durability, |file| {
                file.write_all(b"second")?;
                assert_eq!(fs::read(&path).unwrap(), b"a long first content");
                Err(io::Error::from(io::ErrorKind::StorageFull))
            });
            assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
            assert_eq!(names(place.path()), ["file"], "a failed write leaves nothing");
            write_durably(&path, b"second", durability).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"second");
        }
    }

    /// Runs in another process, which `killed_program_leaves_the_old_content` starts.
    #[test]
    #[ignore = "a part of another test"]
    fn killed_before_the_rename() {
        let path = PathBuf::from(std::env::var_os("COG_STORE_TEST").unwrap());
        let _ = replace::<io::Error>(&path, Access::Private, Durability::PowerCut, |file| {
            file.write_all(b"new content")?;
            std::process::abort()
        });
    }

    #[test]
    fn killed_program_leaves_the_old_content() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        write_durably(&path, b"old", Durability::Kill).unwrap();
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "write::tests::killed_before_the_rename", "--ignored"])
            .env("COG_STORE_TEST", &path)
            .output()
            .unwrap()
            .status;
        assert!(!status.success());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(place.path()).len(), 2, "the temporary file is left");
        let now = SystemTime::now();
        remove_abandoned(place.path(), None, |name| name == b"another");
        remove_abandoned(place.path(), Some(now - FUTURE), |name| name == b"file");
        assert_eq!(names(place.path()).len(), 2, "it is of another file, or may be in use");
        remove_abandoned(place.path(), Some(now + FUTURE), |name| name == b"file");
        assert_eq!(names(place.path()), ["file"]);
    }

    #[test]
    fn name_of_a_user_is_not_one_of_a_temporary_file() {
        for name in [".file.cog-", "file.cog-123456", ".file.cog-12345", ".file.cog-12-456", "a"] {
            assert_eq!(replaced_name(name.as_bytes()), None, "{name}");
        }
        assert_eq!(replaced_name(b".file.cog-12aB56"), Some(&b"file"[..]));
    }

    #[test]
    fn link_replaces_a_file() {
        let place = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| place.path().join(name));
        write_durably(&from, b"content", Durability::Kill).unwrap();
        write_durably(&to, b"old", Durability::Kill).unwrap();
        for _ in 0..2 {
            link(&from, &to).unwrap();
            assert_eq!(fs::read(&to).unwrap(), b"content");
            assert_eq!(names(place.path()), ["from", "to"]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_private_or_of_the_replaced_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let write = |access| {
            replace::<io::Error>(&path, access, Durability::Kill, |_| Ok(())).unwrap();
            mode(&path)
        };
        let usual = place.path().join("usual");
        fs::write(&usual, "").unwrap();
        assert_eq!(write(Access::Shared), mode(&usual));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(write(Access::Shared), 0o640);
        assert_eq!(write(Access::Private), 0o600);
    }
}
