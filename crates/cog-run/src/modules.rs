//! The module cache: loads each module once while its files do not change.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use cog_module::{Choice, Finder, Module, Origin, Trust, load};
use cog_spec::ErrorBody;

use crate::error;

/// The modules of a runtime, each loaded once while its files do not change.
pub(crate) struct Modules {
    finder: Finder,
    /// The interval after which the files of a module are checked again.
    reload_interval: Duration,
    /// The last check of each requested name or path.
    found: Mutex<HashMap<ModuleKey, Found>>,
    /// The loaded module of each directory, with the trust that its runs have.
    loaded: Mutex<HashMap<Place, Loaded>>,
    /// Locked while files are read, so that concurrent requests load a changed module once.
    loading: Mutex<()>,
}

/// A module to load, and who chose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModuleRef<'a> {
    /// A name or a path that the user chose.
    ///
    /// A path is trusted: its module may call tools. A name that leads to a module of the working directory is not, unless the
    /// finder trusts it ([`Finder::with_trusted`]).
    Chosen(&'a str),
    /// A name or a path that a program found itself, as in a log: only trust lets the module call tools.
    Found(&'a str),
    /// A name, from a caller other than the operator. A path is rejected.
    Name(&'a str),
}

impl<'a> From<&'a str> for ModuleRef<'a> {
    fn from(name_or_path: &'a str) -> Self {
        Self::Chosen(name_or_path)
    }
}

impl<'a> From<&'a String> for ModuleRef<'a> {
    fn from(name_or_path: &'a String) -> Self {
        Self::Chosen(name_or_path)
    }
}

impl ModuleRef<'_> {
    pub(crate) fn key(self) -> ModuleKey {
        let (by, name) = match self {
            Self::Chosen(name) => (SearchBy::NameOrPath(Choice::User), name),
            Self::Found(name) => (SearchBy::NameOrPath(Choice::Program), name),
            Self::Name(name) => (SearchBy::Name, name),
        };
        ModuleKey { by, name: name.to_owned() }
    }
}

/// What identifies a requested module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ModuleKey {
    by: SearchBy,
    name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SearchBy {
    Name,
    NameOrPath(Choice),
}

type Place = (PathBuf, Trust);
type Loaded = (Fingerprint, Arc<Module>);
type Found = (Instant, Arc<Module>);

impl Modules {
    pub(crate) fn new(finder: Finder, reload_interval: Duration) -> Self {
        Self {
            finder,
            reload_interval,
            found: Mutex::default(),
            loaded: Mutex::default(),
            loading: Mutex::default(),
        }
    }

    /// Loads a module, compiled once per state of its files. The files are checked again after the reload
    /// interval.
    pub(crate) fn load(&self, key: ModuleKey) -> Result<Arc<Module>, ErrorBody> {
        if let Some(module) = self.cached(&key) {
            return Ok(module);
        }
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = self.cached(&key) {
            return Ok(module); // another request has loaded it in the meantime
        }
        let module = self.find_and_load(&key)?;
        lock(&self.found).insert(key, (Instant::now(), Arc::clone(&module)));
        Ok(module)
    }

    /// Returns the module when its files need no check.
    pub(crate) fn cached(&self, key: &ModuleKey) -> Option<Arc<Module>> {
        let found = lock(&self.found);
        let (at, module) = found.get(key)?;
        (at.elapsed() < self.reload_interval).then(|| Arc::clone(module))
    }

    /// Loads a module by name only. A path is rejected.
    ///
    /// # Errors
    /// E4006 when no module has this name, E4007 for a name outside the search path, E4008 when the module does not load.
    pub(crate) fn load_name(&self, name: &str) -> Result<Arc<Module>, ErrorBody> {
        self.load(ModuleRef::Name(name).key())
    }

    /// Returns the finder that searches for modules.
    pub(crate) fn finder(&self) -> &Finder {
        &self.finder
    }

    fn find_and_load(&self, key: &ModuleKey) -> Result<Arc<Module>, ErrorBody> {
        let name = key.name.as_str();
        let origin = match key.by {
            SearchBy::Name => self.finder.find_name(name),
            SearchBy::NameOrPath(_) => self.finder.find(name),
        };
        let origin = origin.map_err(|error| error::from_search(&error))?;
        let trust = match key.by {
            SearchBy::Name => self.finder.trust(&origin),
            SearchBy::NameOrPath(choice) => self.finder.trust_chosen(name, &origin, choice),
        };
        let place = (origin.path_of(""), trust.clone());
        let fingerprint = Fingerprint::new(&origin);
        if let Some((known, module)) = lock(&self.loaded).get(&place)
            && *known == fingerprint
        {
            return Ok(Arc::clone(module));
        }
        let module = load(&origin).map_err(|error| error::from_loading(name, &error))?;
        let module = Arc::new(Module { trust, ..module });
        lock(&self.loaded).insert(place, (fingerprint, Arc::clone(&module)));
        Ok(module)
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
                modules.load_name("code-reviewer").unwrap()
            };
            let threads: Vec<_> = (0..REQUESTS).map(|_| scope.spawn(load)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(loaded.windows(2).all(|pair| Arc::ptr_eq(&pair[0], &pair[1])));
    }
}
