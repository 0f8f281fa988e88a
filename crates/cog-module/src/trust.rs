//! Which modules may call tools: a cloned repository must not give itself the operator's tools.

use std::{
    borrow::Cow,
    fmt,
    path::{Path, PathBuf},
};

use cog_spec::Manifest;

use crate::diagnostic::shown;

/// The directories below the working directory in which modules are found by name.
pub(crate) const NEAR: [&str; 2] = ["cognitive/modules", ".cognitive/modules"];

/// Whether a module may call tools. How it was found decides, not what its manifest says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Trust {
    /// The module is built in, the operator's, or in a trusted directory.
    Trusted,
    /// The user chose the module for this run, by its path or with `--trust`. Later runs must choose again.
    ForThisRun,
    /// The module was found by name through the working directory. Trusting this directory trusts the module.
    Untrusted(PathBuf),
}

/// Who chose the name or the path by which a module is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The user. A path is trusted for the run: this person has looked at what is there.
    User,
    /// A program, from a log or a list of what it found, so that a path is not trusted for being one.
    Program,
}

impl Trust {
    /// Whether the module may call tools.
    pub const fn allows_tools(&self) -> bool {
        matches!(self, Self::Trusted | Self::ForThisRun)
    }

    /// Returns the command that trusts the module; none if it is trusted.
    pub fn command(&self) -> Option<String> {
        match self {
            Self::Trusted | Self::ForThisRun => None,
            Self::Untrusted(directory) => Some(format!("cog trust {}", Quoted(directory))),
        }
    }

    /// Returns the warning about a module that would call tools and gets none.
    pub fn warning(&self, manifest: &Manifest) -> Option<String> {
        let command = self.command()?;
        let rules = &manifest.tools;
        let wants_tools =
            manifest.policies.tools_allowed && (rules.allow_by_default || !rules.allowed.is_empty());
        wants_tools.then(|| {
            format!(
                "`{}` gets no tools, because it was found in a directory that is not trusted; once you have read it, run \
                 `{command}`",
                manifest.name
            )
        })
    }
}

/// The directories whose modules may call tools.
///
/// A directory is trusted by its path with links resolved. It covers the module that it is, the modules directly in it, and
/// those in `cognitive/modules` and `.cognitive/modules`. It does not cover directories further below, because a person who
/// trusts `~/src` has not read what is cloned into it. A change of the files does not end the trust: modules are edited all
/// the time, and a person who confirms each edit confirms anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustedDirectories {
    /// Every directory is trusted: `--trust`.
    All,
    /// These directories are trusted.
    Only(Vec<PathBuf>),
}

/// No directory.
impl Default for TrustedDirectories {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

impl TrustedDirectories {
    /// Returns the trust in the module of a directory.
    pub(crate) fn trust(&self, directory: &Path) -> Trust {
        let Self::Only(trusted) = self else { return Trust::ForThisRun };
        // A link may lead out of a trusted directory, so the place of the files counts, not that of the link.
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let parent = directory.parent();
        let project = parent.and_then(project_of);
        let covering = [Some(directory.as_path()), parent, project];
        if covering.into_iter().flatten().any(|one| trusted.iter().any(|trusted| trusted == one)) {
            return Trust::Trusted;
        }
        Trust::Untrusted(project.map_or_else(|| directory.clone(), Path::to_owned))
    }
}

/// Returns the directory whose modules are in this one.
fn project_of(modules: &Path) -> Option<&Path> {
    let is_near = NEAR.iter().any(|near| modules.ends_with(near));
    is_near.then(|| modules.parent().and_then(Path::parent)).flatten()
}

/// A path as a word of a shell command. The author of a repository chooses its names, and a person copies the command.
struct Quoted<'a>(&'a Path);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: Cow<'_, str> = self.0.to_string_lossy();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,".contains(c);
        if text.chars().all(is_plain) && !text.starts_with('-') {
            return f.write_str(&text);
        }
        write!(f, "'{}'", text.replace('\'', r"'\''"))
    }
}

/// A module that is found by name through the working directory, and takes the place of another one with this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shadowing {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    /// The directory of the operator's module; none for one that is built in.
    pub(crate) hidden: Option<PathBuf>,
}

impl fmt::Display for Shadowing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, directory, hidden } = self;
        write!(f, "`{name}` is the module in {}, not ", shown(&directory.to_string_lossy()))?;
        match hidden {
            None => f.write_str("the built-in one"),
            Some(hidden) => write!(f, "yours in {}", shown(&hidden.to_string_lossy())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_covers_its_modules_and_nothing_below() {
        let trusted = TrustedDirectories::Only(vec![PathBuf::from("/nowhere/a")]);
        for covered in ["a", "a/m", "a/cognitive/modules/m", "a/.cognitive/modules/m"] {
            assert_eq!(trusted.trust(&Path::new("/nowhere").join(covered)), Trust::Trusted, "{covered}");
        }
        for (other, remedy) in [
            ("m", "m"),
            ("ab/m", "ab/m"),
            ("a/clone/m", "a/clone/m"),
            ("a/clone/cognitive/modules/m", "a/clone"),
            ("a/cognitive/modules/m/nested", "a/cognitive/modules/m/nested"),
        ] {
            let found = trusted.trust(&Path::new("/nowhere").join(other));
            assert_eq!(found, Trust::Untrusted(Path::new("/nowhere").join(remedy)), "{other}");
        }
        assert_eq!(TrustedDirectories::All.trust(Path::new("/nowhere/m")), Trust::ForThisRun);
    }

    #[test]
    fn command_is_one_word_for_a_shell() {
        let command = |path: &str| Trust::Untrusted(PathBuf::from(path)).command().unwrap();
        assert_eq!(command("/a/b-c_1.x"), "cog trust /a/b-c_1.x");
        assert_eq!(command("/a; rm 'x' $(y)"), r"cog trust '/a; rm '\''x'\'' $(y)'");
    }
}
