//! Which modules may call tools: a cloned repository must not give itself the operator's tools.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
};

use cog_spec::Manifest;

use crate::diagnostic::shown;

/// Whether a module may call tools. How it was found decides, not what its manifest says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Trust {
    /// The module is built in, the operator's, or in a trusted directory.
    Trusted,
    /// The user chose the module for this run, by its path or with `--trust`. Later runs must choose again.
    ForThisRun,
    /// The module was found by name through the working directory. Trusting this directory trusts the module.
    Untrusted(PathBuf),
    /// The directory is trusted, but the manifest allows the module more than it did then.
    Changed {
        /// The directory. Trusting it again trusts the module.
        directory: PathBuf,
        /// What the manifest allows in addition: `every tool`, `network`.
        added: Vec<String>,
    },
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
            Self::Untrusted(directory) | Self::Changed { directory, .. } => {
                Some(format!("cog trust {}", ShellWord(directory)))
            }
        }
    }

    /// Returns the warning about a module that would call tools and gets none.
    pub fn warning(&self, manifest: &Manifest) -> Option<String> {
        let command = self.command()?;
        let rules = &manifest.tools;
        let wants_tools =
            manifest.policies.tools_allowed && (rules.allow_by_default || !rules.allowed.is_empty());
        let reason = match self {
            Self::Changed { added, .. } => {
                let added = added.join(", ");
                format!("its manifest allows more than when its directory was trusted ({added})")
            }
            _ => "it was found in a directory that is not trusted".to_owned(),
        };
        wants_tools.then(|| {
            let name = &manifest.name;
            format!("`{name}` gets no tools, because {reason}; once you have read it, run `{command}`")
        })
    }
}

/// Returns what a manifest allows the tool calls of its module: tools, and their effects. Empty for a module that may not call tools.
pub(crate) fn grants(manifest: &Manifest) -> BTreeSet<String> {
    let policies = &manifest.policies;
    let rules = &manifest.tools;
    if !policies.tools_allowed {
        return BTreeSet::new();
    }
    let effects = [
        ("network", policies.network_allowed),
        ("file writes", policies.filesystem_write_allowed),
        ("side effects", policies.side_effects_allowed),
        ("code execution", policies.code_execution_allowed),
    ];
    let mut grants: BTreeSet<String> =
        effects.into_iter().filter(|(_, is_allowed)| *is_allowed).map(|(name, _)| name.to_owned()).collect();
    if !rules.allow_by_default {
        grants.extend(rules.allowed.iter().map(|name| format!("tool {name}")));
    } else if rules.denied.is_empty() {
        grants.insert("every tool".to_owned());
    } else {
        // One entry, so that a shorter list of exceptions is another grant.
        grants.insert(format!("every tool except {}", rules.denied.join(" ")));
    }
    grants
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
    use super::*;

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
