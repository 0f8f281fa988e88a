use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use cog_module::files::{self, FileError};

use super::stored::{MAX_BYTES, MAX_STATES, Stored, is_id};
use crate::{
    clock,
    private_files::{self, MediaFiles},
};

/// The extension of the directory with the media of a state.
const MEDIA: &str = "media";

/// States in files: `ID.json` with its media in `ID.media`, and an empty `ID.used` for a run that has continued.
#[derive(Debug)]
pub(super) struct Directory(PathBuf);

impl Directory {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self(directory)
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
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut ours: Vec<_> = entries
            .filter(|entry| is_ours(&entry.path()))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        ours.sort();
        for (_, path) in ours.iter().take(ours.len().saturating_sub(MAX_STATES)) {
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
