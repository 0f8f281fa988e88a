//! The directories whose modules may call tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::{Origin, Trust, files, layout::has_manifest, load_manifest, trust::grants};

/// The directories below the working directory in which modules are found by name.
pub(super) const NEAR: [&str; 2] = ["cognitive/modules", ".cognitive/modules"];

/// A directory that the operator trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedDirectory {
    /// Its path, with links resolved.
    pub path: PathBuf,
    /// What the manifest of each module in it allowed when it was trusted, by the path of the module below the directory. None
    /// for a directory whose modules may change at will, because the operator wrote them.
    pub granted: Option<BTreeMap<String, BTreeSet<String>>>,
}

/// A directory whose modules may change at will.
impl From<PathBuf> for TrustedDirectory {
    fn from(path: PathBuf) -> Self {
        Self { path, granted: None }
    }
}

impl TrustedDirectory {
    /// Trusts a directory with what its modules allow now. `path` has its links resolved.
    pub fn with_current(path: PathBuf) -> Self {
        let roots = [""].into_iter().chain(NEAR).map(|root| path.join(root));
        let below = roots.flat_map(|root| {
            let names = files::directory_names(&root);
            names.into_iter().map(move |name| root.join(name))
        });
        let mut granted = BTreeMap::new();
        for module in below.chain([path.clone()]).filter(|directory| has_manifest(directory)) {
            // A link leads to another place, whose modules are trusted there or not at all.
            if module.canonicalize().is_ok_and(|place| place == module)
                && !has_other_repository(&path, &module)
                && let Ok(manifest) = load_manifest(&Origin::Directory(module.clone()))
            {
                granted.insert(key(&path, &module), grants(&manifest));
            }
        }
        Self { path, granted: Some(granted) }
    }

    /// Returns what a module in the directory allows itself in addition to what was trusted. A module that does not load runs not at
    /// all, so that it adds nothing.
    fn added(&self, module: &Path) -> Vec<String> {
        let Some(granted) = &self.granted else { return Vec::new() };
        let Ok(manifest) = load_manifest(&Origin::Directory(module.to_owned())) else { return Vec::new() };
        let trusted = granted.get(&key(&self.path, module));
        let new = grants(&manifest).into_iter();
        new.filter(|grant| trusted.is_none_or(|trusted| !trusted.contains(grant))).collect()
    }
}

/// Returns the path of a module below a trusted directory, with slashes; empty for the directory itself.
fn key(directory: &Path, module: &Path) -> String {
    let steps = module.strip_prefix(directory).unwrap_or(module).components();
    let steps: Vec<_> = steps.map(|step| step.as_os_str().to_string_lossy()).collect();
    steps.join("/")
}

/// The directories whose modules may call tools.
///
/// A directory is trusted by its path with links resolved. It covers the module that it is, the modules directly in it,
/// and those in `cognitive/modules` and `.cognitive/modules`. It covers no directory further below and no other
/// repository, because a person who trusts `~/src` has not read what is cloned into it. Edits do not end the trust:
/// modules are edited all the time, and a person who confirms each edit confirms anything. What asks again is a manifest
/// that allows its module more than before, or a new module that calls tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustedDirectories {
    /// Every directory is trusted: `--trust`.
    All,
    /// These directories are trusted.
    Only(Vec<TrustedDirectory>),
}

/// No directory.
impl Default for TrustedDirectories {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

impl TrustedDirectories {
    /// Returns the trust in the module of a directory.
    pub(super) fn trust(&self, directory: &Path) -> Trust {
        let Self::Only(trusted) = self else { return Trust::ForThisRun };
        // A link may lead out of a trusted directory, so the place of the files counts, not the place of the link. A
        // place that cannot be resolved is not compared at all.
        let Ok(directory) = directory.canonicalize() else { return Trust::Untrusted(directory.to_owned()) };
        let parent = directory.parent();
        let project =
            parent.and_then(project_of).filter(|project| !has_other_repository(project, &directory));
        let parent = parent.filter(|parent| !has_other_repository(parent, &directory));
        let covering = [Some(directory.as_path()), parent, project];
        let mut trust = Trust::Untrusted(project.unwrap_or(&directory).to_owned());
        for trusted in trusted.iter().filter(|trusted| covering.contains(&Some(trusted.path.as_path()))) {
            let added = trusted.added(&directory);
            if added.is_empty() {
                return Trust::Trusted;
            }
            trust = Trust::Changed { directory: trusted.path.clone(), added };
        }
        trust
    }
}

/// What only the top directory of a repository contains.
const REPOSITORIES: [&str; 4] = [".git", ".jj", ".hg", ".svn"];

/// Returns whether a module belongs to a repository below a directory that contains it: to a clone, or to a submodule.
fn has_other_repository(above: &Path, module: &Path) -> bool {
    let mut steps = module.ancestors().take_while(|step| *step != above);
    steps.any(|step| REPOSITORIES.iter().any(|name| step.join(name).symlink_metadata().is_ok()))
}

/// Returns the directory whose modules are in this one.
fn project_of(modules: &Path) -> Option<&Path> {
    let is_near = NEAR.iter().any(|near| modules.ends_with(near));
    is_near.then(|| modules.parent().and_then(Path::parent)).flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// Returns a directory with these directories below it, and its path.
    fn tree<'a>(directories: impl IntoIterator<Item = &'a str>) -> (TempDir, PathBuf) {
        let root = TempDir::new().unwrap();
        let path = root.path().canonicalize().unwrap();
        for directory in directories {
            fs::create_dir_all(path.join(directory)).unwrap();
        }
        (root, path)
    }

    #[test]
    fn directory_covers_its_modules_and_nothing_below() {
        let covered = ["a", "a/m", "a/cognitive/modules/m", "a/.cognitive/modules/m"];
        let others = [
            ("m", "m"),
            ("ab/m", "ab/m"),
            ("a/clone/m", "a/clone/m"),
            ("a/clone/cognitive/modules/m", "a/clone"),
            ("a/cognitive/modules/m/nested", "a/cognitive/modules/m/nested"),
        ];
        let (_root, path) = tree(covered.into_iter().chain(others.map(|(other, _)| other)));
        let trusted = TrustedDirectories::Only(vec![path.join("a").into()]);
        for covered in covered {
            assert_eq!(trusted.trust(&path.join(covered)), Trust::Trusted, "{covered}");
        }
        for (other, remedy) in others {
            assert_eq!(trusted.trust(&path.join(other)), Trust::Untrusted(path.join(remedy)), "{other}");
        }
        assert_eq!(TrustedDirectories::All.trust(&path.join("m")), Trust::ForThisRun);
    }

    #[test]
    fn clone_in_a_trusted_directory_is_not_covered() {
        let clones = [
            "src/m/.git",
            "src/cognitive/.git",
            "src/cognitive/modules/m",
            "own/.git",
            "own/cognitive/modules/m",
        ];
        let (_root, path) = tree(clones);
        let trusted = TrustedDirectories::Only(vec![path.join("src").into(), path.join("own").into()]);
        for other in ["src/m", "src/cognitive/modules/m"] {
            let Trust::Untrusted(remedy) = trusted.trust(&path.join(other)) else {
                panic!("{other} is trusted")
            };
            let trusted = TrustedDirectories::Only(vec![remedy.into()]);
            assert_eq!(trusted.trust(&path.join(other)), Trust::Trusted, "{other}");
        }
        assert_eq!(trusted.trust(&path.join("own/cognitive/modules/m")), Trust::Trusted);
    }

    #[test]
    fn place_that_cannot_be_resolved_is_not_trusted() {
        let missing = PathBuf::from("/nowhere/a");
        let trusted = TrustedDirectories::Only(vec![missing.clone().into()]);
        assert_eq!(trusted.trust(&missing), Trust::Untrusted(missing));
    }

    #[cfg(unix)]
    #[test]
    fn link_does_not_carry_trust() {
        let (_root, path) = tree(["trusted", "clone/m"]);
        std::os::unix::fs::symlink(path.join("clone/m"), path.join("trusted/m")).unwrap();
        let trusted = TrustedDirectories::Only(vec![path.join("trusted").into()]);
        assert_eq!(trusted.trust(&path.join("trusted/m")), Trust::Untrusted(path.join("clone/m")));
    }

    /// Writes the manifest of a module with these lines.
    #[expect(clippy::disallowed_methods, reason = "tests lay out directories")]
    fn write(path: &Path, name: &str, lines: &str) {
        let directory = path.join("cognitive/modules").join(name);
        fs::create_dir_all(&directory).unwrap();
        let head = format!("name: {name}\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\n");
        fs::write(directory.join("module.yaml"), head + lines).unwrap();
    }

    /// Returns the lines of a module that may call tools.
    fn caller(tools: &str, effects: &str) -> String {
        format!("policies: {{ tools_allowed: true{effects} }}\ntools: {{ {tools} }}\n")
    }

    #[test]
    fn manifest_that_allows_more_asks_again() {
        let (_root, path) = tree([]);
        write(&path, "m", &caller("allowed: [a, b]", ""));
        write(&path, "plain", "");
        let trusted = TrustedDirectories::Only(vec![TrustedDirectory::with_current(path.clone())]);
        let added = |name: &str| match trusted.trust(&path.join("cognitive/modules").join(name)) {
            Trust::Trusted => Vec::new(),
            Trust::Changed { directory, added } if directory == path => added,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!((added("m"), added("plain")), (vec![], vec![]));
        for (manifest, expected) in [
            (caller("allowed: [b]", ""), &[][..]),
            (String::new(), &[]),
            (caller("allowed: [a, c]", ""), &["tool c"]),
            (caller("allowed: [a]", ", network: allow"), &["network"]),
            (caller("policy: allow_by_default, denied: [x, y]", ""), &["every tool except x y"]),
            (
                caller("policy: allow_by_default", ", code_execution: allow"),
                &["code execution", "every tool"],
            ),
        ] {
            write(&path, "m", &manifest);
            assert_eq!(added("m"), expected, "{manifest}");
        }
        write(&path, "new", &caller("allowed: [a]", ""));
        assert_eq!(added("new"), ["tool a"], "a module that was not there");
        write(&path, "plain", "excludes: [guessing]\n");
        assert_eq!(added("plain"), [""; 0], "it calls no tools");
        let own = TrustedDirectories::Only(vec![path.clone().into()]);
        assert_eq!(own.trust(&path.join("cognitive/modules/new")), Trust::Trusted);
    }
}
