use std::{
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use cog_module::files::{self, FileError};
use sha2::{Digest as _, Sha256};

use super::stored::{MAX_BYTES, MAX_STATES, Stored, is_id};
use crate::{
    clock,
    private_files::{self, MediaFiles},
};

/// The extension of the directory with the media of a state.
const MEDIA: &str = "media";

/// The directory with a directory for each client of a server. The states of the operator's own runs are not in it.
const CLIENTS: &str = "clients";

/// States in files: `ID.json` with its media in `ID.media`, and an empty `ID.used` for a run that has continued.
#[derive(Debug)]
pub(super) struct Directory(PathBuf);

impl Directory {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Returns the directory of an owner's states; none owns the operator's own runs.
    pub(super) fn of(&self, owner: Option<&str>) -> Self {
        let Some(owner) = owner else { return Self(self.0.clone()) };
        let digest = Sha256::digest(owner);
        let name = digest.iter().take(16).fold(String::new(), |mut name, byte| {
            let _ = write!(name, "{byte:02x}");
            name
        });
        Self(self.0.join(CLIENTS).join(name))
    }

    /// Removes states of clients beyond the limit: of the client who has the most, the oldest.
    pub(super) fn prune_clients(&self) {
        let clients = fs::read_dir(self.0.join(CLIENTS)).into_iter().flatten().flatten();
        let mut states: Vec<_> = clients.map(|client| Self(client.path()).newest_first()).collect();
        // The directory of a client stays when it is empty: another program may be about to write to it.
        let mut count = states.iter().map(Vec::len).sum::<usize>();
        while count > MAX_STATES
            && let Some(oldest) = states.iter_mut().max_by_key(|client| client.len()).and_then(Vec::pop)
        {
            let _ = fs::remove_file(oldest.1);
            count -= 1;
        }
    }

    /// Returns the files of the states, the newest first.
    fn newest_first(&self) -> Vec<(SystemTime, PathBuf)> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut ours: Vec<_> = entries
            .filter(|entry| is_ours(&entry.path()))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        ours.sort_by(|a, b| b.cmp(a));
        ours
    }

    /// Writes a state. Its file appears complete or not at all.
    pub(super) fn store(&self, id: &str, text: &str) -> io::Result<()> {
        private_files::create_directory(&self.0)?;
        let new = self.0.join(format!("{id}.new"));
        let mut file = private_files::open_options().create_new(true).write(true).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(new, self.path(id))?;
        self.prune();
        Ok(())
    }

    pub(super) fn read(&self, id: &str) -> Stored {
        match files::read_text(&self.path(id), MAX_BYTES as u64) {
            Ok(text) => Stored::Text(text),
            Err(FileError::Missing) if self.used(id).exists() => Stored::Used,
            Err(_) => Stored::Unknown,
        }
    }

    /// Returns whether the state was not used before: renaming a file succeeds once.
    pub(super) fn claim(&self, id: &str) -> bool {
        fs::rename(self.path(id), self.used(id)).is_ok()
    }

    /// Removes what a used state contained. The name shows that the id was used.
    pub(super) fn clear(&self, id: &str) {
        let _ = OpenOptions::new().write(true).truncate(true).open(self.used(id));
        self.media_of(id).remove_all();
    }

    /// Removes the oldest states. Files that cannot be removed stay.
    fn prune(&self) {
        for (_, path) in self.newest_first().iter().skip(MAX_STATES) {
            let _ = fs::remove_file(path);
        }
        self.prune_media();
    }

    /// Removes media without a state, except those of a run that is being halted.
    fn prune_media(&self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_media = path.extension().is_some_and(|extension| extension == MEDIA);
            let id = path.file_stem().and_then(|name| name.to_str()).filter(|id| is_media && is_id(id));
            let Some(id) = id.filter(|id| !self.path(id).exists()) else { continue };
            let modified = entry.metadata().and_then(|about| about.modified());
            if modified.is_ok_and(|at| {
                clock::now().duration_since(at).is_ok_and(|age| age > private_files::ABANDONED)
            }) {
                self.media_of(id).remove_all();
            }
        }
    }

    /// Returns the media of a state.
    pub(super) fn media_of(&self, id: &str) -> MediaFiles {
        MediaFiles::below(&self.0.join(format!("{id}.{MEDIA}")), MAX_BYTES as u64)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.json"))
    }

    fn used(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.used"))
    }
}

fn is_ours(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_id = path.file_stem().and_then(|name| name.to_str()).is_some_and(is_id);
    is_id && matches!(extension, Some("json" | "used" | "new"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn id(number: usize) -> String {
        format!("halt_{number:032x}")
    }

    /// Stores a state that was written so many seconds after 1970.
    fn store(directory: &Directory, number: usize) {
        private_files::create_directory(&directory.0).unwrap();
        let file = OpenOptions::new().create_new(true).write(true).open(directory.path(&id(number))).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(number as u64)).unwrap();
    }

    #[test]
    fn client_removes_its_own_oldest_states() {
        let place = tempfile::tempdir().unwrap();
        let operator = Directory::new(place.path().join("halted"));
        let [alice, bob] = ["token:alice", "token:bob"].map(|owner| operator.of(Some(owner)));
        store(&operator, 0);
        store(&bob, 1);
        for number in 2..MAX_STATES + 12 {
            store(&alice, number);
            if number % 100 == 0 {
                alice.claim(&id(number));
            }
        }
        operator.prune_clients();
        assert!(operator.path(&id(0)).exists());
        assert!(bob.path(&id(1)).exists());
        assert!(!alice.path(&id(2)).exists());
        assert!(alice.path(&id(MAX_STATES + 11)).exists());
        assert_eq!(alice.newest_first().len() + bob.newest_first().len(), MAX_STATES);
        assert!(!bob.path(&id(MAX_STATES + 11)).exists(), "that of another client");
    }
}
