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
    /// Returns whether the module may call tools.
    pub const fn allows_tools(&self) -> bool {
        matches!(self, Self::Trusted | Self::ForThisRun)
    }

    /// Returns the command that trusts the module; none if it is trusted.
    pub fn command(&self) -> Option<String> {
        match self {
            Self::Trusted | Self::ForThisRun => None,
            Self::Untrusted(directory) => Some(format!("cog trust {}", ShellWord(directory))),
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
/// A directory is trusted by its path with links resolved. It covers the module that it is, the modules directly in it,
/// and those in `cognitive/modules` and `.cognitive/modules`. It covers no directory further below and no other
/// repository, because a person who trusts `~/src` has not read what is cloned into it. A change of the files does not
/// end the trust: modules are edited all the time, and a person who confirms each edit confirms anything.
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
        // A link may lead out of a trusted directory, so the place of the files counts, not the place of the link. A
        // place that cannot be resolved is not compared at all.
        let Ok(directory) = directory.canonicalize() else { return Trust::Untrusted(directory.to_owned()) };
        let parent = directory.parent();
        let project =
            parent.and_then(project_of).filter(|project| !has_other_repository(project, &directory));
        let parent = parent.filter(|parent| !has_other_repository(parent, &directory));
        let covering = [Some(directory.as_path()), parent, project];
        if covering.into_iter().flatten().any(|one| trusted.iter().any(|trusted| trusted == one)) {
            return Trust::Trusted;
        }
        Trust::Untrusted(project.unwrap_or(&directory).to_owned())
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

/// A path as a word of a shell command. The author of a repository chooses its names, and a person copies the command.
struct ShellWord<'a>(&'a Path);

impl fmt::Display for ShellWord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: Cow<'_, str> = self.0.to_string_lossy();
        if text.chars().any(is_hidden) {
            return write_escaped(f, &text);
        }
        match text.chars().all(is_plain) {
            true => f.write_str(&text),
            false => write!(f, "'{}'", text.replace('\'', r"'\''")),
        }
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._-+@:,".contains(c)
}

/// Returns whether a terminal shows something else than this character: it may move the cursor, or change the order of
/// others.
fn is_hidden(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    c.is_control() || is_format
}

/// Writes `$'…'`, with hidden characters as the octal numbers of their bytes.
fn write_escaped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("$'")?;
    for c in text.chars() {
        match c {
            '\'' | '\\' => write!(f, "\\{c}")?,
            c if is_hidden(c) => {
                c.encode_utf8(&mut [0; 4]).bytes().try_for_each(|byte| write!(f, "\\{byte:03o}"))?;
            }
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("'")
}

/// A module that is found by name through the working directory, and replaces another one with this name.
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
        let trusted = TrustedDirectories::Only(vec![path.join("a")]);
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
        let trusted = TrustedDirectories::Only(vec![path.join("src"), path.join("own")]);
        for other in ["src/m", "src/cognitive/modules/m"] {
            let Trust::Untrusted(remedy) = trusted.trust(&path.join(other)) else {
                panic!("{other} is trusted")
            };
            let trusted = TrustedDirectories::Only(vec![remedy]);
            assert_eq!(trusted.trust(&path.join(other)), Trust::Trusted, "{other}");
        }
        assert_eq!(trusted.trust(&path.join("own/cognitive/modules/m")), Trust::Trusted);
    }

    #[test]
    fn place_that_cannot_be_resolved_is_not_trusted() {
        let missing = PathBuf::from("/nowhere/a");
        let trusted = TrustedDirectories::Only(vec![missing.clone()]);
        assert_eq!(trusted.trust(&missing), Trust::Untrusted(missing));
    }

    #[cfg(unix)]
    #[test]
    fn link_does_not_carry_trust() {
        let (_root, path) = tree(["trusted", "clone/m"]);
        std::os::unix::fs::symlink(path.join("clone/m"), path.join("trusted/m")).unwrap();
        let trusted = TrustedDirectories::Only(vec![path.join("trusted")]);
        assert_eq!(trusted.trust(&path.join("trusted/m")), Trust::Untrusted(path.join("clone/m")));
    }

    fn command(path: &str) -> String {
        Trust::Untrusted(PathBuf::from(path)).command().unwrap()
    }

    #[test]
    fn command_is_one_word_for_a_shell() {
        assert_eq!(command("/a/b-c_1.x"), "cog trust /a/b-c_1.x");
        assert_eq!(command("/a; rm 'x' $(y)"), r"cog trust '/a; rm '\''x'\'' $(y)'");
    }

    #[test]
    fn command_shows_every_character() {
        assert_eq!(command("/a\u{1b}[2J\n'\\"), r"cog trust $'/a\033[2J\012\'\\'");
        assert_eq!(command("/a\u{202e}é"), r"cog trust $'/a\342\200\256é'");
    }
}
