//! Modules, loaded once and kept while their files stay as they are.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use cog_module::{Finder, Module, Origin, load};
use cog_spec::ErrorBody;

use crate::fault;

/// The modules of a runtime.
pub(crate) struct Modules {
    finder: Finder,
    loaded: Mutex<HashMap<PathBuf, (Stamp, Arc<Module>)>>,
}

impl Modules {
    pub(crate) fn new(finder: Finder) -> Self {
        Self { finder, loaded: Mutex::default() }
    }

    /// The module of this name or at this path, compiled once for each state of its files.
    pub(crate) fn load(&self, name_or_path: &str) -> Result<Arc<Module>, ErrorBody> {
        let origin = self.finder.find(name_or_path).map_err(|error| fault::of_search(&error))?;
        self.compiled(name_or_path, &origin)
    }

    /// The same by name alone.
    pub(crate) fn load_name(&self, name: &str) -> Result<Arc<Module>, ErrorBody> {
        let origin = self.finder.find_name(name).map_err(|error| fault::of_search(&error))?;
        self.compiled(name, &origin)
    }

    pub(crate) fn finder(&self) -> &Finder {
        &self.finder
    }

    fn compiled(&self, name: &str, origin: &Origin) -> Result<Arc<Module>, ErrorBody> {
        let key = origin.path_of("");
        let stamp = Stamp::of(origin);
        if let Some((known, module)) = self.lock().get(&key)
            && *known == stamp
        {
            return Ok(Arc::clone(module));
        }
        let module = Arc::new(load(origin).map_err(|error| fault::of_loading(name, &error))?);
        self.lock().insert(key, (stamp, Arc::clone(&module)));
        Ok(module)
    }

    /// The map is whole between any two statements, so that a panic elsewhere spoils nothing.
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, (Stamp, Arc<Module>)>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the files of a module looked like: name, length and time of change of each.
#[derive(PartialEq, Eq)]
struct Stamp(Vec<(PathBuf, u64, Option<SystemTime>)>);

impl Stamp {
    fn of(origin: &Origin) -> Self {
        match origin {
            Origin::Folder(folder) => Self(files_of(folder)),
            _ => Self(Vec::new()),
        }
    }
}

fn files_of(folder: &Path) -> Vec<(PathBuf, u64, Option<SystemTime>)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let about = entry.metadata().ok()?;
            about.is_file().then(|| (entry.path(), about.len(), about.modified().ok()))
        })
        .collect();
    files.sort();
    files
}
