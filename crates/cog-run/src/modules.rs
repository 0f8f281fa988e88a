//! The module cache: loads each module once while its files do not change.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use cog_module::{Choice, FindError, Finder, Module, Origin, Trust, load};
use cog_spec::ErrorBody;

use crate::error;

/// The modules of a runtime, each loaded once while its files do not change.
pub(crate) struct Modules {
    finder: Finder,
    /// The interval after which the files of a module are checked again.
    recheck: Duration,
    /// The last check of each requested name or path.
    found: Mutex<HashMap<Lookup, Found>>,
    /// The loaded module of each directory, with the trust that its runs have.
    loaded: Mutex<HashMap<Place, Loaded>>,
    /// Locked while files are read, so that concurrent requests load a changed module once.
    loading: Mutex<()>,
}

/// What identifies a requested module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ModuleKey {
    /// A name only, for any caller.
    Name,
    /// A name or a path, for the operator.
    NameOrPath(Choice),
}

type Lookup = (ModuleKey, String);
type Place = (PathBuf, Trust);
type Loaded = (Fingerprint, Arc<Module>);
type Found = (Instant, Arc<Module>);

impl Modules {
    pub(crate) fn new(finder: Finder, recheck: Duration) -> Self {
        Self { finder, recheck, found: Mutex::default(), loaded: Mutex::default(), loading: Mutex::default() }
    }

    /// Loads a module, compiled once per state of its files. The files are checked again after the recheck
    /// interval.
    pub(crate) fn load(&self, by: ModuleKey, name: &str) -> Result<Arc<Module>, ErrorBody> {
        if let Some(module) = self.cached(by, name) {
            return Ok(module);
        }
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = self.cached(by, name) {
            return Ok(module); // another request has loaded it in the meantime
        }
        let module = self.find_and_load(by, name)?;
        lock(&self.found).insert((by, name.to_owned()), (Instant::now(), Arc::clone(&module)));
        Ok(module)
    }

    /// Returns the module when its files need no check.
    pub(crate) fn cached(&self, by: ModuleKey, name: &str) -> Option<Arc<Module>> {
        let found = lock(&self.found);
        let (at, module) = found.get(&(by, name.to_owned()))?;
        (at.elapsed() < self.recheck).then(|| Arc::clone(module))
    }

    /// Loads a module by name only. A path is rejected.
    ///
    /// # Errors
    /// E4006 when no module has this name, E4007 for a name outside the search path, E4008 when the module does not load.
    pub(crate) fn load_name(&self, name: &str) -> Result<Arc<Module>, ErrorBody> {
        self.load(ModuleKey::Name, name)
    }

    /// Returns the finder that searches for modules.
    pub(crate) fn finder(&self) -> &Finder {
        &self.finder
    }

    fn find_and_load(&self, by: ModuleKey, name: &str) -> Result<Arc<Module>, ErrorBody> {
        let origin = self.find(by, name).map_err(|error| error::from_search(&error))?;
        let trust = match by {
            ModuleKey::Name => self.finder.trust(&origin),
            ModuleKey::NameOrPath(choice) => self.finder.trust_chosen(name, &origin, choice),
        };
        let key = (origin.path_of(""), trust.clone());
        let fingerprint = Fingerprint::new(&origin);
        if let Some((known, module)) = lock(&self.loaded).get(&key)
            && *known == fingerprint
        {
            return Ok(Arc::clone(module));
        }
        let module = load(&origin).map_err(|error| error::from_loading(name, &error))?;
        let module = Arc::new(Module { trust, ..module });
        lock(&self.loaded).insert(key, (fingerprint, Arc::clone(&module)));
        Ok(module)
    }

    fn find(&self, by: ModuleKey, name: &str) -> Result<Origin, FindError> {
        match by {
            ModuleKey::Name => self.finder.find_name(name),
            ModuleKey::NameOrPath(_) => self.finder.find(name),
        }
    }
}

/// Locks a map. A map is consistent between any two statements, so a poisoned lock is usable.
fn lock<T>(map: &Mutex<T>) -> MutexGuard<'_, T> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The fingerprint of a module's files: name, length and modification time of each.
#[derive(PartialEq, Eq)]
struct Fingerprint(Vec<(PathBuf, u64, Option<SystemTime>)>);

impl Fingerprint {
    fn new(origin: &Origin) -> Self {
        match origin {
            Origin::Directory(directory) => Self(files_of(directory)),
            _ => Self(Vec::new()),
        }
    }
}

fn files_of(directory: &Path) -> Vec<(PathBuf, u64, Option<SystemTime>)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let about = entry.metadata().ok()?;
            about.is_file().then(|| (entry.path(), about.len(), about.modified().ok()))
        })
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, thread};

    use super::*;

    #[test]
    fn concurrent_requests_load_a_module_once() {
        const REQUESTS: usize = 16;
        let modules = Modules::new(Finder::new(".", Vec::new(), None), Duration::from_secs(60));
        let barrier = Barrier::new(REQUESTS);
        let loaded: Vec<Arc<Module>> = thread::scope(|scope| {
            let load = || {
                barrier.wait();
                modules.load(ModuleKey::Name, "code-reviewer").unwrap()
            };
            let threads: Vec<_> = (0..REQUESTS).map(|_| scope.spawn(load)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(loaded.windows(2).all(|pair| Arc::ptr_eq(&pair[0], &pair[1])));
    }
}
