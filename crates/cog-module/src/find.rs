//! Finds modules (docs/spec/modules.md, *Where modules are found*).

mod trusted;

use std::path::{Path, PathBuf};

use cog_schema::nearest;
use cog_spec::{Code, Manifest};
use thiserror::Error;

use crate::{
    BuiltinModule, LoadError, Origin,
    diagnostic::shown,
    files,
    layout::{self, has_manifest},
    load_manifest,
    name::is_module_name,
    trust::{Choice, Shadowing, Trust},
};
use trusted::NEAR;

pub use trusted::{TrustedDirectories, TrustedDirectory};

/// Finds modules by name or by path.
#[derive(Debug, Clone, Default)]
pub struct Finder {
    working_directory: PathBuf,
    /// Modules outside the searched directories, by name.
    modules: Vec<(String, PathBuf)>,
    roots: Vec<PathBuf>,
    /// The directories among them that the operator named; the others belong to the working directory.
    operators: Vec<PathBuf>,
    trusted: TrustedDirectories,
    /// What callers other than the operator may run; none for everything.
    offered: Option<Offered>,
}

/// What callers other than the operator may run.
#[derive(Debug, Clone)]
struct Offered {
    /// Modules, and directories that contain modules, with links resolved.
    paths: Vec<PathBuf>,
    built_in: bool,
}

/// Why no module was found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FindError {
    /// No module has this name.
    #[error("module `{name}` not found")]
    NotFound {
        /// The requested name.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
        /// The directories that were searched.
        looked_in: Vec<PathBuf>,
    },
    /// The path is not a directory.
    #[error("`{path}` is not a {}", if *.is_file { "manifest" } else { "directory" })]
    NoDirectory {
        /// The requested path.
        path: String,
        /// Whether it is a file.
        is_file: bool,
        /// Whether it contains `..`, which names must not.
        leads_up: bool,
        /// The path of the module with the most similar name in the same directory.
        nearest: Option<String>,
    },
    /// The directory of a module has a name that is not a module name.
    #[error("the directory of `{path}` does not have a module name")]
    Unnamed {
        /// The requested path.
        path: String,
    },
    /// The name points outside the module directories.
    #[error("`{name}` is not a valid module name: it points outside the module directories")]
    Outside {
        /// The requested name.
        name: String,
    },
}

impl FindError {
    /// Returns the code of the envelope: E4006 or E4007.
    pub const fn code(&self) -> Code {
        match self {
            FindError::NotFound { .. }
            | FindError::NoDirectory { leads_up: false, .. }
            | FindError::Unnamed { .. } => Code::ModuleNotFound,
            FindError::NoDirectory { leads_up: true, .. } | FindError::Outside { .. } => {
                Code::PermissionDenied
            }
        }
    }

    /// Returns what to do about it.
    pub fn suggestion(&self) -> String {
        match self {
            FindError::NotFound { nearest: Some(name), .. }
            | FindError::NoDirectory { nearest: Some(name), .. } => format!("Did you mean `{name}`?"),
            FindError::NotFound { .. } => "Run `cog list` to see all modules.".to_owned(),
            FindError::NoDirectory { .. } => {
                "Give the directory with the manifest, or a name from `cog list`.".to_owned()
            }
            FindError::Unnamed { .. } | FindError::Outside { .. } => {
                "Use lower case letters, digits and hyphens.".to_owned()
            }
        }
    }
}

/// A module that was found, and its manifest.
#[derive(Debug, Clone)]
pub struct ListedModule {
    /// Its name: the name of its directory.
    pub name: String,
    /// Its origin.
    pub origin: Origin,
    /// Its manifest, or why it cannot be read.
    pub manifest: Result<Manifest, LoadError>,
}

impl Finder {
    /// Creates a finder for the usual directories, in this order: `./cognitive/modules`, `./.cognitive/modules`, the
    /// directories of `$COGNITIVE_MODULES_PATH`, `~/.cognitive/modules`, and the modules that ship.
    pub fn new(working_directory: impl Into<PathBuf>, extra: Vec<PathBuf>, home: Option<&Path>) -> Self {
        let working_directory = working_directory.into();
        let near = NEAR.map(|directory| working_directory.join(directory));
        let at_home = home.map(|home| home.join(".cognitive/modules"));
        let operators: Vec<PathBuf> = extra.into_iter().chain(at_home).collect();
        let roots = near.into_iter().chain(operators.iter().cloned()).collect();
        Self {
            working_directory,
            modules: Vec::new(),
            roots,
            operators,
            trusted: TrustedDirectories::default(),
            offered: None,
        }
    }

    /// Sets the directories whose modules may call tools. By default, modules that are found by name through the
    /// working directory may not.
    pub fn with_trusted(mut self, trusted: TrustedDirectories) -> Self {
        self.trusted = trusted;
        self
    }

    /// Adds directories that take precedence: each is a module, which is found by the name of its directory, or
    /// contains modules. The operator names them, so that their modules may call tools.
    ///
    /// # Errors
    /// E4006 if a path is not a directory, or the name of a module's directory is not a module name.
    pub fn with_paths(self, paths: impl IntoIterator<Item = PathBuf>) -> Result<Self, FindError> {
        let before = (self.modules.len(), self.roots.len());
        let mut finder = self.with_found_paths(paths)?;
        let modules = finder.modules.iter().skip(before.0).map(|(_, directory)| directory.clone());
        let added = finder.roots.len() - before.1;
        let named: Vec<PathBuf> = modules.chain(finder.roots.iter().take(added).cloned()).collect();
        finder.operators.extend(named);
        Ok(finder)
    }

    /// Adds directories like [`Finder::with_paths`], and offers callers other than the operator only their modules and, with
    /// `built_in`, the modules that ship. An offered module may call the others.
    ///
    /// # Errors
    /// As [`Finder::with_paths`].
    pub fn with_paths_only(self, paths: &[PathBuf], built_in: bool) -> Result<Self, FindError> {
        let mut finder = self.with_paths(paths.iter().cloned())?;
        let resolved =
            paths.iter().filter_map(|path| finder.working_directory.join(path).canonicalize().ok());
        finder.offered = Some(Offered { paths: resolved.collect(), built_in });
        Ok(finder)
    }

    /// Adds directories like [`Finder::with_paths`], for a program that found them itself: only trust lets their
    /// modules call tools.
    ///
    /// # Errors
    /// As [`Finder::with_paths`].
    pub fn with_found_paths(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Result<Self, FindError> {
        let mut roots = Vec::new();
        for path in paths {
            let full = self.working_directory.join(&path);
            let full = full.canonicalize().ok().filter(|full| full.is_dir());
            let path = path.to_string_lossy();
            let full = full.ok_or_else(|| FindError::NoDirectory {
                path: shown(&path),
                is_file: false,
                leads_up: false,
                nearest: self.nearest_path(&path),
            })?;
            if !has_manifest(&full) {
                roots.push(full);
                continue;
            }
            let name = full.file_name().and_then(|name| name.to_str()).filter(|name| is_module_name(name));
            let name = name.ok_or_else(|| FindError::Unnamed { path: shown(&path) })?.to_owned();
            self.modules.push((name, full));
        }
        self.roots.splice(..0, roots);
        Ok(self)
    }

    /// Returns whether a module that was found by name may call tools. Only a directory that the operator named
    /// or trusts is trusted; any other one is not, wherever it is.
    pub fn trust(&self, origin: &Origin) -> Trust {
        match origin {
            Origin::Directory(directory) if !self.is_operators(directory) => self.trusted.trust(directory),
            _ => Trust::Trusted,
        }
    }

    /// Returns whether a module that was found by this name or path may call tools. A path that the user chose is
    /// trusted, for this run unless trust in its directory outlasts it.
    pub fn trust_chosen(&self, name_or_path: &str, origin: &Origin, choice: Choice) -> Trust {
        match self.trust(origin) {
            Trust::Untrusted(_) | Trust::Changed { .. }
                if choice == Choice::User && is_path(name_or_path) =>
            {
                Trust::ForThisRun
            }
            trust => trust,
        }
    }

    /// Returns the module of the operator, or the built-in one, whose name a module of the working directory has. The
    /// note about it does not depend on trust: a name that means something else must not surprise.
    pub fn shadowing(&self, name: &str, origin: &Origin) -> Option<Shadowing> {
        let Origin::Directory(directory) = origin else { return None };
        if is_path(name) || self.is_operators(directory) {
            return None;
        }
        let operators = self.operators.iter().map(|root| root.join(name)).find(|other| has_manifest(other));
        (operators.is_some() || BuiltinModule::find(name).is_some()).then(|| Shadowing {
            name: name.to_owned(),
            directory: directory.clone(),
            hidden: operators,
        })
    }

    /// Returns whether the operator named the directory, or the one that contains it. The home directory may be the
    /// working directory, so that paths are compared with links resolved.
    fn is_operators(&self, directory: &Path) -> bool {
        // The parent before links are resolved: a link that the operator put into a directory of modules is the
        // operator's.
        let candidates = [Some(directory), directory.parent()].into_iter().flatten();
        let candidates: Vec<PathBuf> = candidates.filter_map(|path| path.canonicalize().ok()).collect();
        let mut roots = self.operators.iter().filter_map(|root| root.canonicalize().ok());
        roots.any(|root| candidates.contains(&root))
    }

    /// Returns the directories that are searched, in order.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Finds a module for an operator, by path or by name.
    ///
    /// A path contains a separator, is a subdirectory with a manifest, or is the manifest itself. A directory without
    /// a manifest is returned if no module has its name: loading it reports what is missing.
    ///
    /// # Errors
    /// E4006 if there is none; E4007 if a path with `..` leads to nothing.
    pub fn find(&self, name_or_path: &str) -> Result<Origin, FindError> {
        if let Some(directory) = self.directory_at(name_or_path) {
            return Ok(Origin::Directory(directory));
        }
        let directory = self.working_directory.join(name_or_path);
        match self.find_name(name_or_path) {
            Err(FindError::NotFound { .. }) if !name_or_path.is_empty() && directory.is_dir() => {
                Ok(Origin::Directory(directory))
            }
            Err(error) if is_path(name_or_path) => Err(FindError::NoDirectory {
                path: shown(name_or_path),
                is_file: directory.is_file(),
                leads_up: matches!(error, FindError::Outside { .. }),
                nearest: self.nearest_path(name_or_path),
            }),
            Err(FindError::NotFound { name, looked_in, .. }) => {
                let mut known = module_names(&self.working_directory);
                known.extend(self.origins().into_iter().map(|(name, _)| name));
                let nearest = nearest(name_or_path, known.iter().map(String::as_str)).map(str::to_owned);
                Err(FindError::NotFound { name, nearest, looked_in })
            }
            found => found,
        }
    }

    /// Returns the path of a module that a misspelt path most likely means. Each of its directories may be misspelt.
    fn nearest_path(&self, path: &str) -> Option<String> {
        const SEPARATORS: [char; 2] = ['/', '\\'];
        let path = path.trim_end_matches(SEPARATORS);
        let mut meant = String::new();
        let mut parts = path.split_inclusive(SEPARATORS).peekable();
        while let Some(part) = parts.next() {
            let name = part.trim_end_matches(SEPARATORS);
            let directory = self.working_directory.join(&meant);
            let is_last = parts.peek().is_none();
            if !is_last && directory.join(name).is_dir() {
                meant.push_str(part);
                continue;
            }
            let known =
                if is_last { module_names(&directory) } else { files::directory_names(&directory.join(".")) };
            let known = known.iter().map(String::as_str);
            meant.push_str(known.clone().find(|known| *known == name).or_else(|| nearest(name, known))?);
            meant.push_str(part.get(name.len()..).unwrap_or_default());
        }
        (meant != path).then_some(meant)
    }

    /// Finds a module by name only, for callers other than the operator, among those that are offered to them.
    ///
    /// # Errors
    /// E4006 if there is none; E4007 if the name is a path.
    pub fn find_offered(&self, name: &str) -> Result<Origin, FindError> {
        match self.find_name(name) {
            Ok(origin) if !self.is_offered(&origin) => Err(self.not_found(name, &self.offered())),
            Err(FindError::NotFound { .. }) => Err(self.not_found(name, &self.offered())),
            found => found,
        }
    }

    /// Finds a module by name only, such as one that another module calls.
    ///
    /// # Errors
    /// E4006 if there is none; E4007 if the name is a path.
    pub fn find_name(&self, name: &str) -> Result<Origin, FindError> {
        // Callers other than the operator send names, over HTTP for example. None may reach a file by its path.
        let leads_out = name.split(['/', '\\']).any(|step| step == "..") || name.contains('\0');
        if leads_out {
            return Err(FindError::Outside { name: shown(name) });
        }
        if let Some((_, directory)) = self.modules.iter().find(|(known, _)| known == name) {
            return Ok(Origin::Directory(directory.clone()));
        }
        let on_disk =
            || self.roots.iter().map(|root| root.join(name)).find(|directory| has_manifest(directory));
        let found = is_module_name(name).then(on_disk).flatten().map(Origin::Directory);
        found
            .or_else(|| BuiltinModule::find(name).map(Origin::BuiltIn))
            .ok_or_else(|| self.not_found(name, &self.origins()))
    }

    /// Returns every module that is found by name, sorted. The first of two modules with the same name is used.
    pub fn list(&self) -> Vec<ListedModule> {
        listed(self.origins())
    }

    /// Returns every module that callers other than the operator may run, sorted.
    pub fn list_offered(&self) -> Vec<ListedModule> {
        listed(self.offered())
    }

    /// Returns the names and origins of the modules that callers other than the operator may run, without reading manifests.
    pub fn offered(&self) -> Vec<(String, Origin)> {
        let mut found = self.origins();
        found.retain(|(_, origin)| self.is_offered(origin));
        found
    }

    fn is_offered(&self, origin: &Origin) -> bool {
        match (&self.offered, origin) {
            (None, _) => true,
            (Some(offered), Origin::Directory(directory)) => {
                // The parent before links are resolved, as in `is_operators`.
                let candidates = [Some(directory.as_path()), directory.parent()].into_iter().flatten();
                let mut candidates = candidates.filter_map(|path| path.canonicalize().ok());
                candidates.any(|path| offered.paths.contains(&path))
            }
            (Some(offered), _) => offered.built_in,
        }
    }

    /// Returns the names and origins of all modules without reading manifests, unsorted.
    pub fn origins(&self) -> Vec<(String, Origin)> {
        let mut found: Vec<(String, Origin)> = Vec::new();
        let on_disk = self
            .roots
            .iter()
            .flat_map(|root| files::directory_names(root).into_iter().map(|name| (root.join(&name), name)));
        let on_disk = on_disk.filter(|(directory, name)| is_module_name(name) && has_manifest(directory));
        let on_disk = on_disk.map(|(directory, name)| (name, Origin::Directory(directory)));
        let shipped =
            BuiltinModule::all().iter().map(|shipped| (shipped.name.to_owned(), Origin::BuiltIn(shipped)));
        let added = self.modules.iter().map(|(name, path)| (name.clone(), Origin::Directory(path.clone())));
        for (name, origin) in added.chain(on_disk).chain(shipped) {
            if !found.iter().any(|(other, _)| *other == name) {
                found.push((name, origin));
            }
        }
        found
    }

    /// Returns the directory of a path; for a manifest, its directory.
    fn directory_at(&self, path: &str) -> Option<PathBuf> {
        if path.is_empty() || path.contains('\0') {
            return None;
        }
        let full = self.working_directory.join(path);
        if full.is_dir() {
            return (is_path(path) || has_manifest(&full)).then_some(full);
        }
        let name = full.file_name()?.to_str()?;
        let is_manifest = is_path(path) && full.is_file() && layout::is_manifest(name);
        is_manifest.then(|| full.parent().map(Path::to_owned)).flatten()
    }

    fn not_found(&self, name: &str, known: &[(String, Origin)]) -> FindError {
        let nearest = nearest(name, known.iter().map(|(known, _)| known.as_str())).map(str::to_owned);
        FindError::NotFound { name: shown(name), nearest, looked_in: self.roots.clone() }
    }
}

/// Returns the names of the modules in a directory.
fn module_names(directory: &Path) -> Vec<String> {
    // The working directory of the command line is the empty path, which cannot be listed.
    let mut modules = files::directory_names(&directory.join("."));
    modules.retain(|module| has_manifest(&directory.join(module)));
    modules
}

fn listed(origins: Vec<(String, Origin)>) -> Vec<ListedModule> {
    let mut listed: Vec<ListedModule> =
        origins.into_iter().map(|(name, origin)| ListedModule::read(name, origin)).collect();
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    listed
}

impl ListedModule {
    fn read(name: String, origin: Origin) -> Self {
        let manifest = load_manifest(&origin);
        Self { name, origin, manifest }
    }
}

/// Returns whether this names a module by its path: a person who writes one has chosen this directory.
fn is_path(text: &str) -> bool {
    text.contains(['/', '\\']) || matches!(text, "." | "..")
}

#[cfg(test)]
mod tests;
