//! Modules at a git revision, read with the `git` program.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use cog_host::settings::Environment;
use cog_module::{Finder, ModuleFiles, Origin, files::MAX_CASE};
use cog_spec::{Code, ErrorBody};

use crate::error::CliError;

/// A directory of a git repository, and the variables that git needs.
pub(super) struct Git<'a> {
    directory: PathBuf,
    environment: &'a Environment,
}

/// The maximum number of files of a module that are read.
const MAX_FILES: usize = 10_000;
/// The maximum size of all files that are read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The maximum size of a list of files.
const MAX_LIST: u64 = 4 * 1024 * 1024;

/// Returns a module by name, directory, or git revision: `REV:PATH`.
pub(super) fn find(name: &str, finder: &Finder, environment: &Environment) -> Result<Origin, CliError> {
    let is_path = Path::new(name).exists();
    match name.split_once(':') {
        Some((revision, path)) if !is_path => {
            let git = Git { directory: PathBuf::from("."), environment };
            git.module(revision, path)?.ok_or_else(|| missing(revision, path))
        }
        _ => Ok(finder.find(name)?),
    }
}

fn missing(revision: &str, path: &str) -> CliError {
    let message = format!("`{path}` does not exist at revision `{revision}`");
    let help = format!(
        "Paths start at the root of the repository, or with `./` at the working directory. `git ls-tree -r \
         --name-only {revision}` lists them."
    );
    ErrorBody::new(Code::ModuleNotFound, message).suggest(help).into()
}

impl<'a> Git<'a> {
    /// Reads the repository that a directory belongs to.
    pub(super) fn new(directory: &Path, environment: &'a Environment) -> Self {
        Self { directory: directory.to_owned(), environment }
    }

    /// Returns the module in a directory at a revision; none if the revision does not have it.
    ///
    /// # Errors
    /// If git cannot be run, or there is no such revision.
    pub(super) fn module(&self, revision: &str, path: &str) -> Result<Option<Origin>, CliError> {
        if revision.is_empty() || revision.starts_with('-') {
            return Err(CliError::Usage {
                message: format!("`{revision}:{path}` has no revision"),
                suggestion: Some("Write `REV:PATH`, for example `HEAD:./my-module`.".to_owned()),
            });
        }
        let commit = format!("{revision}^{{commit}}");
        if self.line(&["rev-parse", "--verify", "--quiet", &commit])?.is_none() {
            return Err(self.unknown_revision(revision)?);
        }
        let tree = format!("{revision}:{}", if path.is_empty() { "./" } else { path });
        let Some(tree) = self.line(&["rev-parse", "--verify", "--quiet", &tree])? else { return Ok(None) };
        let Some(list) = self.output(&["ls-tree", "-r", "-z", "-l", "--full-tree", &tree], MAX_LIST)? else {
            return Ok(None);
        };
        self.files(&list).map(|files| Some(Origin::Memory(Arc::new(files))))
    }

    fn unknown_revision(&self, revision: &str) -> Result<CliError, CliError> {
        let error = if self.line(&["rev-parse", "--git-dir"])?.is_none() {
            ErrorBody::new(
                Code::InvalidReference,
                format!("{} is not in a git repository", self.directory.display()),
            )
            .suggest("Run the command inside the repository.")
        } else {
            ErrorBody::new(Code::InvalidReference, format!("git does not know the revision `{revision}`"))
                .suggest("`git log --oneline` and `git tag` list revisions; a shallow clone has few (`git fetch --unshallow`).")
        };
        Ok(error.into())
    }

    /// Reads the text files of a list of `git ls-tree -l`. Other files, such as images, are not part of a contract.
    fn files(&self, list: &[u8]) -> Result<ModuleFiles, CliError> {
        let mut files = ModuleFiles::default();
        let mut left = MAX_BYTES;
        let entries = list.split(|byte| *byte == 0).filter_map(Entry::read);
        for entry in entries.filter(Entry::is_text).take(MAX_FILES) {
            left = left.checked_sub(entry.size).ok_or_else(too_large)?;
            let content = self.output(&["cat-file", "blob", &entry.object], MAX_CASE)?;
            let text = String::from_utf8_lossy(&content.unwrap_or_default()).into_owned();
            files = files.with(entry.path, text);
        }
        Ok(files)
    }

    /// Returns the first line that git prints; none if it fails.
    fn line(&self, args: &[&str]) -> Result<Option<String>, CliError> {
        let output = self.output(args, MAX_LIST)?;
        Ok(output.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()))
    }

    /// Returns what git prints; none if it fails.
    fn output(&self, args: &[&str], limit: u64) -> Result<Option<Vec<u8>>, CliError> {
        let mut command = Command::new("git");
        // Without the other variables of this process, which contain the keys of providers.
        command.env_clear();
        for name in ["PATH", "HOME", "XDG_CONFIG_HOME", "SYSTEMROOT"] {
            if let Some(value) = self.environment.path(name) {
                command.env(name, value);
            }
        }
        command.arg("-C").arg(&self.directory).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| not_run(&error))?;
        let mut bytes = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            stdout.take(limit + 1).read_to_end(&mut bytes).map_err(|error| not_run(&error))?;
        }
        if bytes.len() as u64 > limit {
            let _ = child.kill();
            let _ = child.wait();
            return Err(too_large());
        }
        let status = child.wait().map_err(|error| not_run(&error))?;
        Ok(status.success().then_some(bytes))
    }
}

fn not_run(error: &std::io::Error) -> CliError {
    ErrorBody::new(Code::InvalidReference, format!("cannot run git: {error}"))
        .suggest("Install git, or compare directories.")
        .into()
}

fn too_large() -> CliError {
    ErrorBody::new(Code::InvalidReference, "the directory at this revision is too large for a module").into()
}

/// A file of a tree.
struct Entry {
    object: String,
    size: u64,
    path: String,
}

impl Entry {
    /// Reads `MODE TYPE OBJECT SIZE<tab>PATH`. Links and submodules are left out.
    fn read(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let (head, path) = line.split_once('\t')?;
        let [mode, "blob", object, size] = head.split_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        let size = size.parse().ok()?;
        (mode != "120000" && size <= MAX_CASE).then(|| Self {
            object: object.to_owned(),
            size,
            path: path.to_owned(),
        })
    }

    fn is_text(&self) -> bool {
        let extension = Path::new(&self.path).extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("json" | "md" | "yaml" | "yml" | "txt"))
    }
}
