//! The module cache: loads each module once while its files do not change.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use cog_module::{Choice, Finder, Module, Origin, Trust, load};
use cog_spec::{Code, ErrorBody};

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
    /// Why the files of a module could not be loaded at the last check, by the requested name.
    failed: Mutex<HashMap<ModuleKey, ErrorBody>>,
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
    /// A name, from a caller other than the operator, among the modules that are offered ([`Finder::with_paths_only`]). A path is
    /// rejected.
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
            Self::Name(name) => (SearchBy::OfferedName, name),
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
    /// A caller other than the operator names it.
    OfferedName,
    /// A module names it.
    Name,
    NameOrPath(Choice),
}

type Place = (PathBuf, Trust);

/// A loaded module.
struct Loaded {
    fingerprint: Fingerprint,
    module: Arc<Module>,
    /// Files that differ from those of the module, and since when. They are loaded once they stay the same.
    changed: Option<(Fingerprint, Instant)>,
}

/// The last check of a requested name or path.
struct Found {
    at: Instant,
    module: Arc<Module>,
    /// Since when nothing is found.
    missing_since: Option<Instant>,
}

impl Modules {
    pub(crate) fn new(finder: Finder, reload_interval: Duration) -> Self {
        Self {
            finder,
            reload_interval,
            found: Mutex::default(),
            loaded: Mutex::default(),
            failed: Mutex::default(),
            loading: Mutex::default(),
        }
    }

    /// Loads a module, compiled once per state of its files. The files are checked again after the reload interval.
    ///
    /// A module that is loaded stays until other files have stayed the same for the reload interval and are valid: files that are
    /// being copied, and broken ones, do not replace it.
    pub(crate) fn load(&self, key: ModuleKey) -> Result<Arc<Module>, ErrorBody> {
        if let Some(module) = self.cached(&key) {
            return Ok(module);
        }
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = self.cached(&key) {
            return Ok(module); // another request has loaded it in the meantime
        }
        let loaded = self.find_and_load(&key);
        let module = match &loaded {
            Ok(module) => Some(Arc::clone(module)),
            Err(error) => self.still_found(&key, error),
        };
        let Some(module) = module else {
            lock(&self.found).remove(&key);
            return loaded;
        };
        let mut found = lock(&self.found);
        let at = Instant::now();
        let missing_since = match loaded {
            Ok(_) => None,
            Err(_) => found.get(&key).and_then(|found| found.missing_since).or(Some(at)),
        };
        found.insert(key, Found { at, module: Arc::clone(&module), missing_since });
        Ok(module)
    }

    /// Lets the next load of a module read its files, although they have just changed: whoever calls this has written them.
    pub(crate) fn reload(&self, key: &ModuleKey) {
        lock(&self.found).retain(|other, _| other.name != key.name);
        let Ok(origin) = self.finder.find_offered(&key.name) else { return };
        let place = (origin.path_of(""), self.finder.trust(&origin));
        let fingerprint = Fingerprint::new(&origin);
        if let Some(known) = lock(&self.loaded).get_mut(&place)
            && known.fingerprint != fingerprint
            && let Some(since) = Instant::now().checked_sub(self.reload_interval)
        {
            known.changed = Some((fingerprint, since));
        }
    }

    /// Returns why the files of a module could not be loaded at the last check. An earlier version may still be in use.
    pub(crate) fn failure(&self, key: &ModuleKey) -> Option<ErrorBody> {
        lock(&self.failed).get(key).cloned()
    }

    /// Returns the module that was found under this name before, if it has disappeared just now: a deployment may be replacing its
    /// directory.
    fn still_found(&self, key: &ModuleKey, error: &ErrorBody) -> Option<Arc<Module>> {
        if error.code != Code::ModuleNotFound.into() || self.reload_interval.is_zero() {
            return None;
        }
        let found = lock(&self.found);
        let found = found.get(key)?;
        let is_recent = found.missing_since.is_none_or(|since| since.elapsed() < self.reload_interval);
        is_recent.then(|| Arc::clone(&found.module))
    }

    /// Returns the module when its files need no check.
    pub(crate) fn cached(&self, key: &ModuleKey) -> Option<Arc<Module>> {
        let found = lock(&self.found);
        let Found { at, module, .. } = found.get(key)?;
        (at.elapsed() < self.reload_interval).then(|| Arc::clone(module))
    }

    /// Loads a module that another one names, whether it is offered to callers or not. A path is rejected.
    ///
    /// # Errors
    /// E4006 when no module has this name, E4007 for a name outside the search path, E4008 when the module does not load.
    pub(crate) fn load_name(&self, name: &str) -> Result<Arc<Module>, ErrorBody> {
        self.load(ModuleKey { by: SearchBy::Name, name: name.to_owned() })
    }

    /// Returns the finder that searches for modules.
    pub(crate) fn finder(&self) -> &Finder {
        &self.finder
    }

    fn find_and_load(&self, key: &ModuleKey) -> Result<Arc<Module>, ErrorBody> {
        let name = key.name.as_str();
        let origin = match key.by {
            SearchBy::OfferedName => self.finder.find_offered(name),
            SearchBy::Name => self.finder.find_name(name),
            SearchBy::NameOrPath(_) => self.finder.find(name),
        };
        let origin = origin.map_err(|error| error::from_search(&error))?;
        let trust = match key.by {
            SearchBy::OfferedName | SearchBy::Name => self.finder.trust(&origin),
            SearchBy::NameOrPath(choice) => self.finder.trust_chosen(name, &origin, choice),
        };
        // A module has the trust of whoever chose it, so the same directory may be loaded twice.
        let place = (origin.path_of(""), trust.clone());
        let fingerprint = Fingerprint::new(&origin);
        let former = self.former(&place, &fingerprint);
        if let Some(Former { module, state }) = &former
            && *state != FileState::Changed
        {
            if *state == FileState::Same {
                lock(&self.failed).remove(key);
            }
            return Ok(Arc::clone(module));
        }
        let loaded = load(&origin).map_err(|error| error::from_loading(name, &error));
        if let Some(Former { module, .. }) = &former
            && Fingerprint::new(&origin) != fingerprint
        {
            return Ok(Arc::clone(module)); // files that changed while they were read may not belong together
        }
        match (loaded, former) {
            (Ok(module), _) => {
                let module = Arc::new(Module { trust, ..module });
                let loaded = Loaded { fingerprint, module: Arc::clone(&module), changed: None };
                lock(&self.loaded).insert(place, loaded);
                lock(&self.failed).remove(key);
                Ok(module)
            }
            (Err(error), former) => {
                let before = lock(&self.failed).insert(key.clone(), error.clone());
                let Some(Former { module, .. }) = former else { return Err(error) };
                if before.as_ref() != Some(&error) {
                    tracing::warn!(
                        module = name,
                        error = error.message,
                        "the changed files of a module cannot be loaded; its last version stays in use"
                    );
                }
                Ok(module)
            }
        }
    }

    /// Returns the module that is loaded from a place; none if none is.
    fn former(&self, place: &Place, fingerprint: &Fingerprint) -> Option<Former> {
        let mut loaded = lock(&self.loaded);
        let known = loaded.get_mut(place)?;
        let state = match &known.changed {
            _ if known.fingerprint == *fingerprint => FileState::Same,
            Some((changed, since)) if changed == fingerprint => {
                match since.elapsed() < self.reload_interval {
                    true => FileState::Changing,
                    false => FileState::Changed,
                }
            }
            // A copy takes a while, and each of its files may be valid together with the old ones.
            _ if !self.reload_interval.is_zero() => {
                known.changed = Some((fingerprint.clone(), Instant::now()));
                FileState::Changing
            }
            _ => FileState::Changed,
        };
        Some(Former { module: Arc::clone(&known.module), state })
    }
}

/// A module that is loaded, and what became of its files.
struct Former {
    module: Arc<Module>,
    state: FileState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    /// The files are those of the module.
    Same,
    /// The files differ, and have not stayed the same for the reload interval.
    Changing,
    /// The files differ, and must be loaded.
    Changed,
}

/// Locks a map. A map is consistent between any two statements, so a poisoned lock is usable.
fn lock<T>(map: &Mutex<T>) -> MutexGuard<'_, T> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The fingerprint of a module's files: name, length and modification time of each.
#[derive(Clone, PartialEq, Eq)]
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

    const INTERVAL: Duration = Duration::from_millis(40);

    fn by_name(name: &str) -> ModuleKey {
        ModuleKey { by: SearchBy::Name, name: name.to_owned() }
    }

    /// Writes the files of a module, whose prompt is this text.
    #[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
    fn write(root: &Path, prompt: &str, schema: &str) {
        let directory = root.join("m");
        std::fs::create_dir_all(&directory).unwrap();
        let manifest = "name: m\nversion: 1.0.0\nresponsibility: Answer\nexcludes: []\n";
        for (file, text) in [("module.yaml", manifest), ("prompt.md", prompt), ("schema.json", schema)] {
            std::fs::write(directory.join(file), text).unwrap();
        }
    }

    const SCHEMA: &str = r#"{"input": {"type": "object"}, "data": {"type": "object"}}"#;

    /// Returns modules that have loaded `m`, and their directory.
    fn loaded(interval: Duration) -> (Modules, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "First.", SCHEMA);
        let modules = Modules::new(Finder::new(".", vec![directory.path().to_owned()], None), interval);
        assert_eq!(modules.load_name("m").unwrap().prompt.text(), "First.");
        (modules, directory)
    }

    #[test]
    fn broken_files_do_not_replace_a_loaded_module() {
        let (modules, directory) = loaded(Duration::ZERO);
        write(directory.path(), "Second.", "{ half a schem");
        assert_eq!(modules.load_name("m").unwrap().prompt.text(), "First.");
        let failure = modules.failure(&by_name("m")).unwrap();
        assert_eq!(failure.code, Code::ModuleInvalid.into());
        write(directory.path(), "Second.", SCHEMA);
        assert_eq!(modules.load_name("m").unwrap().prompt.text(), "Second.");
        assert_eq!(modules.failure(&by_name("m")), None);
    }

    #[test]
    fn changed_files_are_loaded_once_they_stay_the_same() {
        let (modules, directory) = loaded(INTERVAL);
        // The copy has reached the prompt, and not the schema: the files are valid, but do not belong together.
        write(directory.path(), "A second prompt.", SCHEMA);
        thread::sleep(INTERVAL);
        assert_eq!(modules.load_name("m").unwrap().prompt.text(), "First.");
        write(directory.path(), "A second prompt.", &SCHEMA.replace("{", "{ "));
        thread::sleep(INTERVAL);
        assert_eq!(modules.load_name("m").unwrap().prompt.text(), "First.");
        thread::sleep(INTERVAL);
        assert_eq!(modules.load_name("m").unwrap().prompt.text(), "A second prompt.");
    }

    #[test]
    fn program_that_wrote_the_files_need_not_wait() {
        let (modules, directory) = loaded(Duration::from_secs(60));
        let offered = ModuleKey { by: SearchBy::OfferedName, name: "m".to_owned() };
        assert_eq!(modules.load(offered.clone()).unwrap().prompt.text(), "First.");
        write(directory.path(), "A second prompt.", SCHEMA);
        assert_eq!(modules.load(offered.clone()).unwrap().prompt.text(), "First.");
        modules.reload(&offered);
        assert_eq!(modules.load(offered).unwrap().prompt.text(), "A second prompt.");
        assert_eq!(modules.load_name("m").unwrap().prompt.text(), "A second prompt.");
    }

    #[test]
    fn directory_that_is_replaced_does_not_lose_its_module() {
        let (modules, directory) = loaded(INTERVAL);
        std::fs::remove_dir_all(directory.path().join("m")).unwrap();
        thread::sleep(INTERVAL);
        assert_eq!(modules.load_name("m").unwrap().prompt.text(), "First.");
        thread::sleep(INTERVAL);
        assert_eq!(modules.load_name("m").unwrap_err().code, Code::ModuleNotFound.into());
    }

    #[test]
    fn module_that_never_loaded_reports_its_error() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "First.", "{");
        let modules = Modules::new(Finder::new(".", vec![directory.path().to_owned()], None), Duration::ZERO);
        assert_eq!(modules.load_name("m").unwrap_err().code, Code::ModuleInvalid.into());
        assert!(modules.failure(&by_name("m")).is_some());
    }

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
